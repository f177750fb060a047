"""Validation of a plan file: by rules, by a model where one is given (core FR-010, FR-063, FR-070; contract: lint)."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from aeon_core.plan.fields import shown
from aeon_core.plan.models import Plan
from aeon_core.plan.reading import Entry, Reading
from aeon_core.validation.judge import judged
from aeon_core.validation.report import (
    IssueLocation,
    IssueType,
    SemanticValidationReport,
    Severity,
    ValidationIssue,
    report_of,
)
from aeon_core.validation.semantic.hallucination import is_unknown_choice
from aeon_core.validation.semantic.rules import plan_findings
from aeon_core.validation.semantic.views import PlanView, ToolView, tool_views

if TYPE_CHECKING:
    from pathlib import Path

    from aeon_core.tools.registry import ToolRegistry
    from aeon_core.validation.semantic.finding import Finding
    from aeon_core.validation.validator import Judge

MAX_ISSUES = 1000


@dataclass(frozen=True, slots=True)
class _Finding:
    type: IssueType
    severity: Severity
    description: str
    repair: str
    step_id: str | None


def lint(data: Any, registry: ToolRegistry) -> SemanticValidationReport:
    """Return every structural issue of a plan, as the file of a plan that is still to run.

    `data` may be anything a parser gives. What is malformed, a dependency on an unknown or a later step, and arguments
    that do not fit are `consistency`; an unregistered tool and a choice that a tool does not offer are `hallucination`,
    all high. A step with neither tool nor agent is `specificity`, medium, for it is repaired or reasoned about. At most
    MAX_ISSUES; never raises.
    """
    reading = Reading(data, fresh=True, limit=MAX_ISSUES)
    return _report(reading, _structural_findings(reading, registry, tool_views(registry)))


def lint_report(
    data: Any,
    registry: ToolRegistry,
    *,
    task: str | None = None,
    judge: Judge | None = None,
    prompts_dir: Path | None = None,
) -> SemanticValidationReport:
    """Return every issue that rules find in a plan file: the structural ones of `lint`, then those of meaning.

    A plan with structural faults is checked for meaning as far as its steps can be read. A `judge` is asked once, and
    what it finds beyond the rules comes last; `prompts_dir` may hold a judge.md of one's own. At most MAX_ISSUES.
    Raises what ends the judge's work for good (a RunEnding), nothing else (adaptive FR-036 to FR-045).
    """
    reading = Reading(data, fresh=True, limit=MAX_ISSUES)
    tools = tool_views(registry)
    findings = _structural_findings(reading, registry, tools)
    plan = _readable(reading)
    if plan is not None:
        view = PlanView(plan, registry, tools, task)
        vague = {finding.step_id for finding in findings if finding.type == "specificity"}
        findings += [
            _plain(found)
            for found in plan_findings(view)
            if not found.structural and not (found.type == "specificity" and found.step_id in vague)
        ]
        if judge is not None:
            findings += _beyond(findings, judged(judge, view, folder=prompts_dir).findings)
    return _report(reading, findings)


def _plain(found: Finding) -> _Finding:
    return _Finding(found.type, found.severity, found.description, found.repair, found.step_id)


def _beyond(known: Sequence[_Finding], judged: Iterable[Finding]) -> list[_Finding]:
    """Return what the judge alone found: one issue of each type at each place."""
    places = {(finding.type, finding.step_id) for finding in known}
    new: dict[tuple[IssueType, str | None], _Finding] = {}
    for found in judged:
        if (found.type, found.step_id) not in places:
            new.setdefault((found.type, found.step_id), _plain(found))
    return list(new.values())


def _structural_findings(reading: Reading, registry: ToolRegistry, tools: dict[str, ToolView]) -> list[_Finding]:
    findings = [
        _Finding("consistency", "high", str(problem), problem.repair, problem.step_id) for problem in reading.problems
    ]
    entries = list(reading.walk())
    order = _order_of_completion(reading.roots)
    for entry in entries:
        if len(findings) >= MAX_ISSUES:
            break
        findings += _tool_findings(entry, registry, tools)
        findings += _dependency_findings(entry, order)
    return findings


def _readable(reading: Reading) -> Plan | None:
    """Return the plan of the steps that can be read, substeps in place of their parent; None where none can."""
    goal = reading.goal if reading.goal is not None else "an unknown goal"
    steps: dict[str, dict[str, Any]] = {}
    for entry in reading.walk():
        if entry.step_id is not None and "description" in entry.fields and not entry.has_parts:
            steps.setdefault(entry.step_id, entry.fields)
    try:
        return Plan.model_validate({"goal": goal, "steps": list(steps.values())})
    except pydantic.ValidationError:
        return None


def _report(reading: Reading, findings: list[_Finding]) -> SemanticValidationReport:
    issues = [_issue(number, finding) for number, finding in enumerate(findings[:MAX_ISSUES], 1)]
    return report_of(_validation_id(reading, findings), "plan", issues)


def lint_refusal(reason: str) -> SemanticValidationReport:
    """Return the report on a file that is JSON or YAML, and holds what plain data cannot: one issue, high."""
    repair = "Write the plan as plain data: each key text and once in its object, values in place of anchors and tags."
    issue = _issue(1, _Finding("consistency", "high", f"plan: {reason}", repair, None))
    return report_of(f"validation-{hashlib.sha256(reason.encode()).hexdigest()[:12]}", "plan", [issue])


def _issue(number: int, finding: _Finding) -> ValidationIssue:
    step_id = finding.step_id if finding.step_id is not None and finding.step_id.strip() else None
    return ValidationIssue(
        issue_id=f"issue-{number}",
        type=finding.type,
        severity=finding.severity,
        description=finding.description,
        location=IssueLocation(artifact="plan", step_id=step_id),
        proposed_repair=finding.repair,
    )


def _tool_findings(entry: Entry, registry: ToolRegistry, tools: dict[str, ToolView]) -> Iterator[_Finding]:
    tool, arguments = entry.fields.get("tool"), entry.fields.get("arguments")
    if tool is None:
        if "agent" not in entry.fields and not entry.has_parts and not entry.faulty & {"tool", "agent"}:
            description = f"{entry.path}: has neither a tool nor agent 'llm'"
            repair = f"Name a registered tool in {entry.path}.tool, or set {entry.path}.agent to 'llm'."
            yield _Finding("specificity", "medium", description, repair, entry.step_id)
        return
    if registry.get(tool) is None:
        description = f"{entry.path}.tool: {shown(tool)} is not registered"
        yield _Finding("hallucination", "high", description, _tool_repair(entry, tool, registry), entry.step_id)
    elif arguments is not None:
        for error in registry.input_schema(tool).errors(arguments):
            kind: IssueType = "hallucination" if is_unknown_choice(error, tools[tool], arguments) else "consistency"
            description = f"{entry.path}.arguments: {error}"
            repair = f"Change {entry.path}.arguments to fit the input_schema of {shown(tool)}: {error}."
            yield _Finding(kind, "high", description, repair, entry.step_id)


def _tool_repair(entry: Entry, tool: str, registry: ToolRegistry) -> str:
    near = difflib.get_close_matches(tool[:100], [known.name for known in registry.list()], n=1, cutoff=0.5)
    if near:
        return f"Set {entry.path}.tool to {near[0]!r}."
    return f"Register the tool {shown(tool)}, or remove {entry.path}.tool and set {entry.path}.agent to 'llm'."


def _dependency_findings(entry: Entry, order: dict[str, int]) -> Iterator[_Finding]:
    place = order.get(entry.step_id) if entry.step_id is not None else None
    for needed in dict.fromkeys(entry.fields.get("depends_on") or ()):
        if needed not in order:
            finding, repair = "no step has that id", "name an earlier step"
        elif place is not None and order[needed] >= place:
            finding, repair = "that step does not end before this one runs", "move this step behind it"
        else:
            continue
        description = f"{entry.path}.depends_on: {shown(needed)}: {finding}"
        proposed = f"Remove {shown(needed)} from {entry.path}.depends_on, or {repair}."
        yield _Finding("consistency", "high", description, proposed, entry.step_id)


def _order_of_completion(roots: list[Entry]) -> dict[str, int]:
    """Return the place of each step_id in the order in which steps end: substeps before their parent."""
    order: dict[str, int] = {}
    stack = [(entry, False) for entry in reversed(roots)]
    while stack:
        entry, left = stack.pop()
        if not left:
            stack.append((entry, True))
            stack.extend((child, False) for child in reversed(entry.children))
        elif entry.step_id is not None:
            order.setdefault(entry.step_id, len(order))
    return order


def _validation_id(reading: Reading, findings: list[_Finding]) -> str:
    said = [reading.goal, [entry.fields for entry in reading.walk()], [finding.description for finding in findings]]
    text = json.dumps(said, ensure_ascii=True, sort_keys=True)
    return f"validation-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
