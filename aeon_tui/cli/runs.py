"""`aeon-tui runs`, `delete` and `label`: list past and live runs; delete or label past ones."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.listing import find_run, is_path, refuse_live, remove_run, size_of
from aeon_core.journal.summary import SUFFIX, WORKFLOW, RunSummary, summarise
from aeon_core.journal.values import at_pass, brief
from aeon_core.json_safe import clean_text
from aeon_core.paths import program
from aeon_core.process import can_answer
from aeon_core.units import count, local_time, money
from aeon_tui.cli import options
from aeon_tui.cli.output import STATUS_STYLES, OutputStream, stderr, stdout
from aeon_tui.sources.run_index import RunIndex, find_journal

ID_CELLS, STATUS_CELLS, MODEL_CELLS, TASK_CELLS, LEAST_TASK_CELLS = 30, 20, 40, 60, 10
WIDE = 100
"""Columns from which a terminal has room for the models, too."""


def execute(args: Namespace) -> int:
    """Print the runs and return 0."""
    directory = options.runs_dir(args)
    limit = options.whole_number(args.limit, "--limit")
    index = RunIndex(directory)
    found = index.runs()[:limit]
    _warn_of(index.unlisted, directory)
    out = stdout()
    if args.json:
        out.json([run.as_dict() for run in found])
        return 0
    id_width = min(max((len(run.run_id) for run in found), default=0), ID_CELLS)
    status_width = min(max((len(run.status) for run in found), default=0), STATUS_CELLS)
    model_width = min(max((len(run.model) for run in found), default=0), MODEL_CELLS)
    if out.width is not None and out.width < WIDE:
        model_width = 0
    for run in found:
        _print(out, run, id_width, status_width, model_width)
    if not found and not index.unlisted:
        stderr().line(f"no runs in {str(directory)!r} yet; try `{program()} demo`")
    return 0


def _warn_of(unlisted: list[str], directory: Path) -> None:
    if not unlisted:
        return
    names = ", ".join(brief(name, 60) for name in unlisted[:3]) + (", …" if len(unlisted) > 3 else "")
    what = f"not listed: {count(len(unlisted), 'file')} in {str(directory)!r} without a readable first record"
    stderr().warning(f"{what} ({names}); `aeon-tui show PATH` says what is wrong")


def _print(out: OutputStream, run: RunSummary, id_width: int, status_width: int, model_width: int) -> None:
    """Print one run on one line: at a terminal the task has what the other columns leave, or a few cells."""
    cost = "" if not run.cost_usd else f"  {money(run.cost_usd)}"
    fork = "" if run.parent is None else f"  fork of {brief(run.parent)}{at_pass(run.forked_at)}"
    run_id = run.run_id.ljust(id_width)
    status = brief(run.status, STATUS_CELLS).ljust(status_width)
    started = local_time(run.started, "%Y-%m-%d %H:%M")
    model = f"{brief(run.model, MODEL_CELLS).ljust(model_width)}  " if model_width else ""
    kind = "workflow: " if run.kind == WORKFLOW else ""
    task = brief(run.task[:400], TASK_CELLS)
    if out.width is not None:
        from rich.cells import cell_len

        from aeon_widgets.text import fit

        others = f"{run_id}  {status}  {started}  {model}{kind}{cost}{fork}"
        task = fit(task, max(out.width - cell_len(others), LEAST_TASK_CELLS))
    status_style = STATUS_STYLES.get(run.status, "")
    first = ((run_id, "bold"), "  ", (status, status_style), "  ", (started, "dim"), "  ", model)
    out.line(*first, (kind, "dim"), task, cost, (fork, "dim"))


def delete(args: Namespace) -> int:
    """Delete the runs after asking; return 0, or 1 if the answer was no or a run could not be deleted.

    All runs are looked up before any is deleted. Raises UsageError if a run does not exist, is live or is named
    ambiguously, or if nobody can be asked.
    """
    from aeon_widgets.text import size

    directory = options.runs_dir(args)
    journals = list(dict.fromkeys(_journal(run, directory, sure=args.yes) for run in args.runs))
    for journal in journals:
        refuse_live(journal)
    err = stderr()
    if not args.yes:
        if not can_answer():
            raise UsageError("there is no terminal to ask on; add --yes to delete without confirmation")
        for journal in journals:
            summary = summarise(journal)
            task = f"  {brief(summary.task[:400], TASK_CELLS)}" if summary is not None else ""
            err.line((journal.stem, "bold"), f"  {size(size_of(journal))}{task}")
        if not err.confirms(f"Delete {count(len(journals), 'run')}? This cannot be undone."):
            err.line("nothing was deleted")
            return 1
    code = 0
    for journal in journals:
        try:
            remove_run(journal)
        except AeonError as error:
            code = 1
            err.line(f"aeon-tui: {error.message}")
        else:
            err.line(("deleted ", "green"), journal.stem)
    return code


def _journal(run: str, directory: Path, *, sure: bool) -> Path:
    """Return the journal of a run; without asking, only for a full id."""
    # A path names that file alone, not the journal that a transcript was written from.
    journal = (find_run(run) if is_path(run) else find_journal(run, directory)).absolute()
    if journal.suffix != SUFFIX:
        raise UsageError(f"{str(journal)!r} is not a run's <run_id>{SUFFIX} file, so it is not deleted")
    if sure and not is_path(run) and run not in (journal.stem, "last"):
        raise UsageError(f"with --yes, name the run in full: {journal.stem}")
    return journal


def label(args: Namespace) -> int:
    """Label the run and return 0. Raises UsageError if there is no such run, or it has no result."""
    from aeon_core.journal.labels import label_run

    path = find_journal(args.run, options.runs_dir(args))
    record = label_run(path, args.verdict, clean_text(args.why or "").strip() or None)
    stderr().line(f"labelled {args.verdict}: {path.stem}, pass {record['pass']}")
    return 0
