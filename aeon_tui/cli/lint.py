"""`aeon-tui lint`: check plan files by rules, and with `--judge` by a model."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.errors import ModelUnavailableError, UsageError
from aeon_core.runs.factory import connect_model
from aeon_core.units import count
from aeon_core.validation.validator import lint_plan
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, stderr, stdout, warnings_on
from aeon_tui.cli.tools import inspected_tools
from aeon_tui.platform.stdio_capture import capture_stdio

if TYPE_CHECKING:
    from aeon_core.config.schema import RunConfig
    from aeon_core.entities import SemanticValidationReport
    from aeon_core.tools.registry import ToolRegistry

SEVERITIES = ("low", "medium", "high")
STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan"}


def execute(args: Namespace) -> int:
    """Print the issues of each plan; return 1 if one reaches the severity of `--fail-on`, else 0.

    Raises UsageError, with `--judge` also ModelUnavailableError and CostCeilingReached; then no report is printed.
    """
    _check_names(args.plan_files)
    config = options.load(args).config
    reports: list[SemanticValidationReport] = []
    with capture_stdio():
        registry = inspected_tools(args, config)
        try:
            for name in args.plan_files:
                with options.given_file(name, "the plan") as plan:
                    judged = args.judge and _judged_report(plan, registry, config)
                    reports.append(judged or lint_plan(plan, registry))
        finally:
            registry.close()
    out = stdout()
    if args.json:
        found = [report.model_dump(mode="json") for report in reports]
        out.json(found if len(found) > 1 else found[0])
    else:
        for name, report in zip(args.plan_files, reports, strict=True):
            _print(out, "standard input" if name == "-" else str(Path(name)), report)
    least = SEVERITIES.index(args.fail_on)
    return int(any(SEVERITIES.index(issue.severity) >= least for report in reports for issue in report.issues))


def _check_names(names: Sequence[str]) -> None:
    """Raise UsageError for a pattern that the shell did not expand, and for standard input given twice."""
    if names.count("-") > 1:
        raise UsageError("'-' is given more than once; standard input can be read only once")
    for name in names:
        if {"*", "?", "["} & set(name) and not os.path.lexists(name):
            raise UsageError(f"no file is named {name!r}; a pattern without quotes is expanded by the shell")


def _print(out: OutputStream, name: str, report: SemanticValidationReport) -> None:
    for issue in report.issues:
        where = f"{issue.location.step_id}: " if issue.location.step_id else ""
        out.line((f"{issue.severity:<6}", STYLES[issue.severity]), f" {issue.type}  {where}{issue.description}")
        if issue.proposed_repair:
            out.line(("       → ", "dim"), str(issue.proposed_repair))
    out.line(f"{name}: {count(len(report.issues), 'issue') if report.issues else 'no issues'}")


def _judged_report(path: Path, registry: ToolRegistry, config: RunConfig) -> SemanticValidationReport:
    """Return the report with the model's findings in addition to the rules'; if the model fails, only the rules'."""
    from aeon_tui.sessions.judge_model import JudgeModel

    llm = connect_model(config)
    try:
        llm.check()
        judge = JudgeModel(llm, config, stderr().warning)
        with warnings_on(stderr()):
            report = lint_plan(path, registry, judge=judge, prompts_dir=config.prompts_dir)
    finally:
        llm.close()
    if any(judge.models.usage.values()):
        stderr().line((f"judged by {judge.label} · {judge.spent}", "dim"))
    if judge.refusal is not None:
        raise ModelUnavailableError(judge.refusal.message)
    return report
