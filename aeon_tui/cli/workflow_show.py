"""`aeon-tui show` and `watch` of a workflow's transcript."""

from __future__ import annotations

import io
import time
from argparse import Namespace
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.follow import Follower
from aeon_core.paths import expanded
from aeon_tui.cli import options
from aeon_tui.cli.output import Output, stderr, stdout
from aeon_tui.reports import ExportFormat
from aeon_tui.reports.export import write_file
from aeon_tui.reports.workflow_report import WorkflowReport
from aeon_tui.screens.workflow.transcript import items_of
from aeon_tui.sources.workflow import WorkflowState

POLL_SECONDS = 0.1
INTERRUPTED = 1
"""A workflow that was cut off has no exit code of its own."""


def show(args: Namespace, path: Path, form: ExportFormat | None) -> int:
    """Print or write a workflow's history and return 0. Raises UsageError for what only a run has."""
    if args.pass_number is not None:
        raise UsageError(f"{path.stem!r} is a workflow, which has no passes; drop --pass")
    report = WorkflowReport(path)
    buffer = io.StringIO()
    out = stdout() if args.output is None else Output(buffer)
    if form == "json":
        out.json(report.as_json())
    else:
        out.block(report.text if form is None else report.render(form))
    if args.output is not None:
        write_file(expanded(args.output, "the option -o"), buffer.getvalue())
    for problem in report.damage:
        stderr().line(("damaged: ", "yellow"), problem)
    return 0


def watch(args: Namespace, path: Path) -> int:
    """Follow a workflow in the app, view only; headless, print it as it comes and return its exit code."""
    if not args.headless:
        from aeon_tui.app import run_app

        directory = options.runs_dir(args)
        return run_app(directory, None, lambda: options.load(args), lambda app: app.open_on_transcript(path))
    if args.json:
        raise UsageError("a workflow has no RunResult to print while it is followed; use `aeon-tui show --json`")
    return _headless(path)


def _headless(path: Path) -> int:
    out, state = stdout(), WorkflowState()
    follower, generation = Follower(path), 0
    try:
        while True:
            for number, record in follower.read():
                if number != generation:
                    generation, state = number, WorkflowState()
                for entry in state.apply(record):
                    _print(out, entry)
            if state.view.end is not None and follower.standing != "running":
                return int(state.view.end["exit_code"])
            if follower.standing in ("interrupted", "gone"):
                stderr().line("aeon-tui: the workflow was interrupted; continue it with `aeon-tui resume`")
                return INTERRUPTED
            time.sleep(POLL_SECONDS)
    finally:
        follower.close()


def _print(out: Output, record: dict[str, object]) -> None:
    kind = record.get("type")
    if kind == "gate_asked":
        out.line(f"? gate {record['gate']}: {record['artifact']} is waiting for a decision")
    elif kind == "workflow_end":
        out.line(f"{record['status']}")
    for item in items_of(record):
        agent = f"{record.get('agent') or ''}"
        out.line(f"{agent:<22} {item.icon} {item.head}")
