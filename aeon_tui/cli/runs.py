"""`aeon-tui runs`: past and live runs, newest first."""

from __future__ import annotations

from argparse import Namespace

from aeon_core.journal.listing import at_pass
from aeon_core.journal.summary import WORKFLOW, RunSummary
from aeon_core.journal.values import brief
from aeon_core.money import money
from aeon_core.timing import local_time
from aeon_tui.cli import options
from aeon_tui.cli.output import STATUS_STYLES, Output, stderr, stdout
from aeon_tui.sources.run_index import RunIndex

STATUS_CELLS, MODEL_CELLS, TASK_CELLS = 20, 40, 60


def execute(args: Namespace) -> int:
    """Print the runs and return 0."""
    directory = options.runs_dir(args)
    limit = options.whole_number(args.limit, "--limit")
    found = RunIndex(directory).runs()[:limit]
    out = stdout()
    if args.json:
        out.json([run.as_dict() for run in found])
        return 0
    status_width = min(max((len(run.status) for run in found), default=0), STATUS_CELLS)
    model_width = min(max((len(run.model) for run in found), default=0), MODEL_CELLS)
    for run in found:
        _print(out, run, status_width, model_width)
    if not found:
        stderr().line(f"no runs in {str(directory)!r} yet; try `aeon-tui demo`")
    return 0


def _print(out: Output, run: RunSummary, status_width: int, model_width: int) -> None:
    kind = "workflow: " if run.kind == WORKFLOW else ""
    cost = "" if not run.cost_usd else f"  {money(run.cost_usd)}"
    fork = "" if run.parent is None else f"  fork of {brief(run.parent)}{at_pass(run.forked_at)}"
    out.line(
        (run.run_id, "bold"),
        "  ",
        (brief(run.status, STATUS_CELLS).ljust(status_width), STATUS_STYLES.get(run.status, "")),
        "  ",
        (local_time(run.started, "%Y-%m-%d %H:%M"), "dim"),
        f"  {brief(run.model, MODEL_CELLS).ljust(model_width)}  ",
        (kind, "dim"),
        brief(run.task[:400], TASK_CELLS),
        cost,
        (fork, "dim"),
    )
