"""`aeon-tui lint`: a plan file against the rules."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.assemble import assembled_tools
from aeon_tui.cli import _settings
from aeon_tui.cli._output import stdout
from aeon_tui.prints import prints_on_stderr

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry
    from aeon_core.validation.report import SemanticValidationReport

SEVERITIES = ("low", "medium", "high")
STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan"}


def execute(args: Namespace) -> int:
    """Print the issues; return 1 where one is as severe as `--fail-on` says, else 0. Raises UsageError."""
    config = _settings.load(args).config
    with prints_on_stderr():
        registry = assembled_tools(config)
    report = _report(Path(args.plan_file), registry)
    out = stdout()
    if args.json:
        out.json(report.model_dump(mode="json"))
    else:
        for issue in report.issues:
            where = f"{issue.location.step_id}: " if issue.location.step_id else ""
            out.line((f"{issue.severity:<6}", STYLES[issue.severity]), f" {issue.type}  {where}{issue.description}")
            if issue.proposed_repair:
                out.line(("       → ", "dim"), str(issue.proposed_repair))
        count = len(report.issues)
        out.line(f"{args.plan_file}: " + ("no issues" if not count else f"{count} issue{'s' if count > 1 else ''}"))
    least = SEVERITIES.index(args.fail_on)
    return int(any(SEVERITIES.index(issue.severity) >= least for issue in report.issues))


def _report(path: Path, registry: ToolRegistry) -> SemanticValidationReport:
    from aeon_core.plan.files import NotPlainDataError
    from aeon_core.plan.parsing import read_plan_data
    from aeon_core.validation.lint import lint_refusal, lint_report

    try:
        return lint_report(read_plan_data(path), registry)
    except NotPlainDataError as error:
        return lint_refusal(error.reason)
