"""`aeon-tui show`: what one run did, as text, JSON, Markdown or a web page."""

from __future__ import annotations

import io
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.view.formatting import message
from aeon_core.paths import expanded
from aeon_core.units import count
from aeon_tui.cli import options
from aeon_tui.cli.output import STATUS_STYLES, OutputStream, stderr, stdout
from aeon_tui.cli.run_output import print_answer, print_sections, print_steps
from aeon_tui.reports import ExportFormat
from aeon_tui.reports.export import body_of, report_on, write_file
from aeon_tui.reports.run_report import RunReport
from aeon_tui.sources.run_index import find_journal

DAMAGE_SHOWN = 20
LONG = 64 * 1024 * 1024
"""The size from which only a journal's end is shown; with --pass, --json and --export it is always read whole."""


def execute(args: Namespace) -> int:
    """Print or write a run's execution history and return 0. Raises UsageError if there is no such run or pass."""
    kind = _kind(args)
    number = options.whole_number(args.pass_number, "--pass")
    runs_dir = options.runs_dir(args)
    path = find_journal(args.run, runs_dir, newest_of_all=True)
    at_once = kind is None and number is None and path.stat().st_size > LONG
    report = report_on(path, runs_dir, number, at_once=at_once)
    buffer = io.StringIO()
    out = stdout() if args.output is None else OutputStream(buffer)
    if kind == "json":
        out.json(report.as_json())
    elif kind is not None:
        out.block(body_of(report, kind))
    elif isinstance(report, RunReport):
        _print(out, report)
    else:
        out.block(report.text)
    if args.output is not None:
        write_file(expanded(args.output, "the option -o"), buffer.getvalue())
    _report_damage(report.damage)
    if kind is None and isinstance(report, RunReport) and report.view.asked:
        _report_question(path)
    return 0


def _kind(args: Namespace) -> ExportFormat | None:
    if args.json and args.export not in (None, "json"):
        raise UsageError(f"--json and --export {args.export} cannot be used together; drop one of them")
    kind: ExportFormat | None = "json" if args.json else args.export
    return kind


def _print(out: OutputStream, report: RunReport) -> None:
    above = ""
    for label, value in report.facts:
        style = STATUS_STYLES.get(report.view.status, "") if label == "status" else ""
        out.line((f"{label if label != above else '':<8} ", "dim"), (value, style))
        above = label
    out.line()
    if report.view.goal:
        out.line(("Plan: ", "bold"), report.view.goal)
    print_steps(out, report.view)
    for text in report.other_repairs:
        out.line((text, "yellow"))
    print_sections(out, report.passes)
    print_answer(out, report.answer, simulated=report.view.simulated)
    print_sections(out, report.for_a_person)
    if report.error is not None:
        out.line()
        out.line(("error: ", "bold red"), message(report.error))


def _report_damage(damage: Sequence[str]) -> None:
    err = stderr()
    for text in damage[:DAMAGE_SHOWN]:
        err.line(("damaged: ", "yellow"), text)
    if len(damage) > DAMAGE_SHOWN:
        err.line(("damaged: ", "yellow"), count(len(damage) - DAMAGE_SHOWN, "more place"))


def _report_question(path: Path) -> None:
    """Report what the run waits for and how to decide it, if another terminal can."""
    from aeon_core.approval_inbox import how_to_decide
    from aeon_tui.sessions.approval_broker import pending_request
    from aeon_widgets.run_question import headline

    if (request := pending_request(path)) is not None:
        how = how_to_decide(path, request)
        stderr().line((f"waiting: {headline(request.point, request.subject)} · to decide: {how}", "bold yellow"))
