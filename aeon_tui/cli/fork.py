"""`aeon-tui fork`: a new run that starts where a pass of another one started, live in the app or headless."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from aeon_core.config.schema import runs_directory
from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.reader import read_records
from aeon_core.journal.values import int_of
from aeon_core.paths import expanded, writable
from aeon_core.plan.files import PlanEdit, load_requirements
from aeon_core.runs.fork import starting_edit
from aeon_tui.cli import options
from aeon_tui.cli.output import has_screen, in_app
from aeon_tui.cli.run import given_options, progress_of, run_headless, run_live
from aeon_tui.platform.stdio_capture import capture_stdio
from aeon_tui.sessions.approval_edits import edit_plan, load_edited_plan
from aeon_tui.sessions.fork_job import fork_job
from aeon_tui.sources.run_index import find_journal, is_workflow


def execute(args: Namespace) -> int:
    """Fork a run and return the exit code of the new one's result.

    Raises UsageError if there is no such run or pass or an option is wrong, ModelUnavailableError without a model.
    """
    if in_app(args):
        options.ask_for_trust(args)
    path = find_journal(args.run, options.runs_dir(args))
    if is_workflow(path):
        from aeon_tui.cli import workflow

        return workflow.fork(args, path)
    if args.gate is not None or args.feedback is not None:
        raise UsageError(f"{path.stem!r} is a run, which has no gates; use --pass N, without --feedback")
    if (number := options.whole_number(args.pass_number, "--pass")) is None:
        raise UsageError(f"choose the pass to start from with --pass N; {_those_there_are(path)}")
    before = starting_edit(path, number)
    loaded = options.load(args)
    directory = writable(runs_directory(loaded.config))
    overrides = {**given_options(args, loaded.config), "runs_dir": directory}
    live = in_app(args)
    if "requirements" in overrides:
        before = replace(before, requirements=load_requirements(overrides["requirements"]))
    with _edited(args, before, f"The plan at the start of pass {number} of the run {path.stem}") as edit:
        job = fork_job(path, number, loaded, overrides, edit, in_app=live)
        with capture_stdio():
            job.prepare()
    if live:
        return run_live(args, job, directory)
    return run_headless(args, job, job.journal_in(directory), progress_of(args))


def _those_there_are(path: Path) -> str:
    records = read_records(path, texts=False)
    begun = sorted({int_of(record.get("pass")) for record in records if record["type"] == "phase"} - {0})
    if len(begun) < 2:
        return f"the run has pass {begun[0] if begun else 1}"
    return f"the run has passes {begun[0]} to {begun[-1]}"


@contextlib.contextmanager
def _edited(args: Namespace, before: PlanEdit, what: str) -> Iterator[PlanEdit | None]:
    """Yield the edited plan, or None; if the fork fails, what was typed is kept."""
    if not args.edit:
        yield load_edited_plan(expanded(args.plan, "--plan")) if args.plan is not None else None
        return
    if before.plan is None:
        raise UsageError("that pass started without a plan to edit; give one with --plan FILE")
    if not has_screen():
        raise UsageError("--edit needs a terminal; without one, give the edited plan with --plan FILE")
    edit, draft = edit_plan(before, what)
    try:
        yield edit
    except AeonError as error:
        error.message += f"; the edited plan is in {str(draft.file)!r}"
        raise
    draft.forget()
