"""How a headless run's result is printed: what it gave on stdout, how it ended on stderr."""

from __future__ import annotations

from aeon_core.entities import RunResult
from aeon_core.journal.view.model import RunView
from aeon_tui.cli.exit_summary import ending, why_not_usable
from aeon_tui.cli.output import stderr, stdout
from aeon_tui.cli.report_output import print_answer, print_sections, print_steps
from aeon_tui.reports.pass_sections import person_sections


def print_result(result: RunResult, view: RunView, where: str, *, as_json: bool, steps: bool = True) -> int:
    """Print a result, as JSON or with its steps, and return its exit code; `where` says where it is kept."""
    out, err = stdout(), stderr()
    if as_json:
        out.json(result.model_dump(mode="json"))
    else:
        if steps:
            print_steps(out, view)
        print_answer(out, result.answer, simulated=result.simulated)
        print_sections(out, person_sections(view))
    if problem := why_not_usable(result):
        err.line(f"aeon-tui: {problem}")
    err.line((f"{ending(result)} · {where}", "dim"))
    return result.exit_code
