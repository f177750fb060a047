"""`aeon-tui runs`: past and live runs, newest first."""

from __future__ import annotations

from argparse import Namespace

from aeon_core.journal.summary import RunSummary, list_runs
from aeon_core.timing import local_time
from aeon_tui.cli import _settings
from aeon_tui.cli._output import STATUS_STYLES, Output, stderr, stdout

TASK_CELLS = 60


def execute(args: Namespace) -> int:
    """Print the runs and return 0."""
    directory = _settings.runs_dir(args)
    found = list_runs(directory)
    out = stdout()
    if args.json:
        out.json([run.as_dict() for run in found])
        return 0
    for run in found:
        _print(out, run, max(len(each.status) for each in found), max(len(each.model) for each in found))
    if not found:
        stderr().line(f"no runs in {str(directory)!r} yet; `aeon-tui demo` makes one")
    return 0


def _print(out: Output, run: RunSummary, status_width: int, model_width: int) -> None:
    task = " ".join(run.task[:400].split())
    cost = "" if not run.cost_usd else f"  ${run.cost_usd:.4f}"
    out.line(
        (run.run_id, "bold"),
        "  ",
        (run.status.ljust(status_width), STATUS_STYLES.get(run.status, "")),
        "  ",
        (local_time(run.started, "%Y-%m-%d %H:%M"), "dim"),
        f"  {run.model.ljust(min(model_width, 40))}  ",
        task if len(task) <= TASK_CELLS else f"{task[: TASK_CELLS - 1]}…",
        cost,
    )
