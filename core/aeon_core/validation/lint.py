"""Validation of a plan file: exact checks, and a model's review if a judge is given (core FR-010, FR-063)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from aeon_core.paths import expanded
from aeon_core.plan.files import NotPlainDataError
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import PlanEntry, PlanReader, Problem, read_plan_data
from aeon_core.tools.base import Tools
from aeon_core.tools.registry import ToolRegistry, default_registry
from aeon_core.validation.plan_checks import check_calls, check_dependencies, check_tool, completion_order
from aeon_core.validation.report import Finding, SemanticValidationReport, report_of
from aeon_core.validation.validator import SemanticValidator, issues_of

if TYPE_CHECKING:
    from aeon_core.judge.request import Judge

MAX_ISSUES = 1000


def lint(data: Any, registry: ToolRegistry) -> SemanticValidationReport:
    """Return every structural issue of a plan that has yet to run.

    `data` may be anything that a parser returns. Malformed data, a dependency on an unknown or later step, and
    arguments that do not fit are `consistency`, an unregistered tool is `hallucination`, all high. A step with neither
    tool nor agent is `specificity`, medium, since it is repaired or reasoned about. At most MAX_ISSUES; never raises.
    """
    reading = PlanReader(data, fresh=True, limit=MAX_ISSUES)
    return _report(reading, _structural_findings(reading, registry))


def lint_plan(
    plan: Path | str | Mapping[str, Any],
    tools: Tools | None = None,
    *,
    judge: Judge | None = None,
    prompts_dir: Path | None = None,
) -> SemanticValidationReport:
    """Return every issue of a plan file, or of data that it would hold, as `lint_report` does.

    Raises UsageError if the file is neither JSON nor YAML.
    """
    registry = ToolRegistry(default_registry() if tools is None else tools)
    try:
        data = plan if isinstance(plan, Mapping) else read_plan_data(expanded(plan, "the plan"))
        return lint_report(data, registry, judge=judge, prompts_dir=prompts_dir)
    except NotPlainDataError as error:
        return lint_refusal(error.reason)


def lint_report(
    data: Any,
    registry: ToolRegistry,
    *,
    judge: Judge | None = None,
    prompts_dir: Path | None = None,
) -> SemanticValidationReport:
    """Return every issue of a plan file: those of `lint`, repeated calls, literals that the arguments contradict.

    A plan with structural problems is checked as far as its steps can be read. A `judge` reviews it once, and its
    issues come last; `prompts_dir` may hold a custom review.md. At most MAX_ISSUES. Raises only what ends the judge's
    work for good, a RunEnding (adaptive FR-036 to FR-045).
    """
    reading = PlanReader(data, fresh=True, limit=MAX_ISSUES)
    findings = _structural_findings(reading, registry)
    if (plan := _readable(reading)) is not None:
        findings += check_calls(plan, registry)
        findings += SemanticValidator(registry, judge, prompts_dir=prompts_dir).review(plan)
    return _report(reading, findings)


def _structural_findings(reading: PlanReader, registry: ToolRegistry) -> list[Finding]:
    findings = [
        Finding("consistency", "high", _id(problem), str(problem), problem.repair) for problem in reading.problems
    ]
    order = completion_order(reading.roots, lambda entry: entry.children)
    for entry in reading.walk():
        if len(findings) >= MAX_ISSUES:
            break
        findings += _entry_findings(entry, order, registry)
    return findings


def _readable(reading: PlanReader) -> Plan | None:
    """Return the plan of the steps that can be read, substeps in place of their parent; None if none can."""
    goal = reading.goal if reading.goal is not None else "an unknown goal"
    steps: dict[str, dict[str, Any]] = {}
    for entry in reading.walk():
        if entry.step_id is not None and "description" in entry.fields and not entry.has_parts:
            steps.setdefault(entry.step_id, entry.fields)
    try:
        return Plan.model_validate({"goal": goal, "steps": list(steps.values())})
    except pydantic.ValidationError:
        return None


def _report(reading: PlanReader, findings: list[Finding]) -> SemanticValidationReport:
    inputs = [reading.goal, [entry.fields for entry in reading.walk()], [finding.description for finding in findings]]
    return _report_of(json.dumps(inputs, ensure_ascii=True, sort_keys=True), findings[:MAX_ISSUES])


def lint_refusal(reason: str) -> SemanticValidationReport:
    """Return the report on a JSON or YAML file that is not plain data: one high issue."""
    repair = "Write the plan as plain data: text keys, each once per object, and values instead of anchors and tags."
    return _report_of(reason, [Finding("consistency", "high", None, f"plan: {reason}", repair)])


def _report_of(inputs: str, findings: list[Finding]) -> SemanticValidationReport:
    return report_of(
        f"validation-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}", "plan", issues_of(findings, "plan")
    )


def _entry_findings(entry: PlanEntry, order: dict[str, int], registry: ToolRegistry) -> Iterator[Finding]:
    """Yield the plan checks' findings about a step, as far as it can be read."""
    if not entry.fields.keys() & {"tool", "agent"} and not entry.has_parts and not entry.faulty & {"tool", "agent"}:
        repair = "Name a registered tool, or set agent to 'llm'."
        yield Finding("specificity", "medium", _id(entry), f"{entry.path}: neither a tool nor agent 'llm'", repair)
    step = PlanStep.model_construct(**{"step_id": "", **entry.fields})
    for found in (*check_tool(step, registry), *check_dependencies(step, order)):
        yield replace(found, step_id=_id(entry), description=f"{entry.path}: {found.description}")


def _id(part: PlanEntry | Problem) -> str | None:
    return part.step_id if part.step_id is not None and part.step_id.strip() else None
