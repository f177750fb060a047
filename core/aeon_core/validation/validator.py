"""The semantic validator: exact checks of plans and plan files, and a model's review if there is a judge.

Core FR-010 and FR-063, adaptive FR-036 to FR-046 and FR-081.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pydantic

from aeon_core.entities import (
    ArtifactType,
    Finding,
    IssueLocation,
    SemanticValidationReport,
    ValidationIssue,
    report_of,
)
from aeon_core.errors import LLMError, SupervisorError
from aeon_core.json_safe import MAX_DEPTH
from aeon_core.judge.judgement import Ask, Judge, ask_of, read_review, review_request
from aeon_core.memory import Memory, entries_of
from aeon_core.paths import expanded
from aeon_core.plan.files import NotPlainDataError, read_plan_data
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import PlanEntry, PlanProblem, PlanReader, dump_plan
from aeon_core.suggest import check_failures, check_texts, check_type
from aeon_core.tools.base import Tools
from aeon_core.tools.registry import ToolRegistry, default_registry
from aeon_core.validation.plan_checks import check_calls, check_dependencies, check_plan, check_tool, completion_order
from aeon_core.validation.result_checks import Artifacts, check_result

_log = logging.getLogger("aeon")


class SemanticValidator:
    """Finds what is wrong with plans, steps and results; advice, not a truth oracle (FR-081).

    Exact checks need no model and give the same report for the same input, in any language. With a `judge` a model
    reviews a plan once, and its issues are added. `prompts_dir` may hold a custom review.md.
    """

    def __init__(self, registry: Tools, judge: Judge | Ask | None = None, *, prompts_dir: Path | None = None) -> None:
        self._registry = registry if isinstance(registry, ToolRegistry) else ToolRegistry(registry)
        check_type(prompts_dir, str | Path | None, "prompts_dir")
        self._ask = ask_of(judge)
        self._prompts_dir = prompts_dir

    def validate_plan(
        self, plan: Plan, *, task: str | None = None, requirements: Sequence[str] = ()
    ) -> SemanticValidationReport:
        """Return the report on a plan (FR-036 to FR-040). `task` is the original request, if it says more.

        Executed steps are context: they can no longer change. A failed or unusable review adds nothing; errors that end
        a run are raised, and UsageError for something that is not a Plan.
        """
        check_type(plan, Plan, "the plan", "; write Plan.model_validate({…}), or use lint_plan")
        check_type(task or "", str, "the task")
        check_texts(requirements, "requirements")
        found = check_plan(plan, self._registry)
        found += self.review(plan, task=task, requirements=requirements)
        return report_on("plan", "plan", found, [plan.model_dump(mode="json"), task])

    def validate_step(self, step: PlanStep, plan: Plan, *, task: str | None = None) -> SemanticValidationReport:
        """Return the report on one step within its plan, by exact checks: the issues located at it.

        A step that is not yet part of the plan is checked as its last one, or in place of the one with the same id.
        """
        check_type(step, PlanStep, "the step")
        check_type(plan, Plan, "the plan")
        whole = _with_step(plan, step)
        found = [finding for finding in check_plan(whole, self._registry) if finding.step_id == step.step_id]
        return report_on("step", "step", found, [whole.model_dump(mode="json"), task, step.step_id])

    def validate_execution(
        self,
        *,
        goal: str,
        plan: Plan,
        results: Mapping[str, Any],
        answer: str | None = None,
        memory: Mapping[str, Any] | Memory | None = None,
        failures: Mapping[str, Sequence[str]] | None = None,
    ) -> SemanticValidationReport:
        """Return the report on a plan's results, by exact checks (FR-041); their meaning is for the judge.

        `results` are the steps' outputs and `failures` the errors of failed steps, both by step_id. The report is
        `cross_phase` if there is an answer or a memory to compare with, else about the execution_artifact.
        """
        check_type(goal, str, "the goal")
        check_type(plan, Plan, "the plan")
        check_type(results, Mapping, "results")
        check_type(answer or "", str, "the answer")
        check_failures(failures)
        entries = entries_of(memory)
        tools = [tool.name for tool in self._registry]
        artifacts = Artifacts(goal, plan, dict(results), answer or "", entries, dict(failures or {}), tools)
        found = [each.finding for each in check_result(artifacts) if answer is not None or each.flag != "answer"]
        kind: ArtifactType = "cross_phase" if answer is not None or entries else "execution_artifact"
        inputs = [goal, plan.model_dump(mode="json"), results, answer, entries, failures]
        return report_on(kind, kind, found, inputs)

    def review(self, plan: Plan, *, task: str | None = None, requirements: Sequence[str] = ()) -> list[Finding]:
        """Return a model's findings about a plan before it runs; nothing if its reply fails or is unusable."""
        if self._ask is None:
            return []
        known: Any = {"task": task, "requirements": requirements, "folder": self._prompts_dir}
        request = review_request(plan, self._registry, **known)
        read = partial(read_review, steps=[step.step_id for step in plan.walk()])
        try:
            return self._ask(request, "the review", read)
        except (LLMError, SupervisorError) as error:
            _log.warning("no model reviewed the plan: %s", error.message)
            return []


def issues_of(found: Sequence[Finding], artifact: str, *, start: int = 1) -> list[ValidationIssue]:
    """Return findings as the issues of a report, numbered in order."""
    return [
        ValidationIssue(
            issue_id=f"issue-{number}",
            type=finding.type,
            severity=finding.severity,
            description=finding.description,
            location=IssueLocation(artifact=finding.artifact or artifact, step_id=finding.step_id),
            proposed_repair=finding.repair,
        )
        for number, finding in enumerate(found, start)
    ]


def report_on(kind: ArtifactType, artifact: str, found: Sequence[Finding], inputs: Any) -> SemanticValidationReport:
    """Return the report of these findings; its id is a digest of the inputs and findings."""
    whole = [inputs, [finding.description for finding in found]]
    try:
        text = json.dumps(whole, sort_keys=True, default=str)
    except (TypeError, ValueError):  # a caller's dict with keys of several types, or one that holds itself
        text = repr(whole)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return report_of(f"validation-{digest[:12]}", kind, issues_of(found, artifact))


def _with_step(plan: Plan, step: PlanStep) -> Plan:
    known = plan.find(step.step_id)
    if known is step:
        return plan
    if known is None:
        return plan.model_copy(update={"steps": [*plan.steps, step]})
    made = plan.model_copy(deep=True)
    replaced = made.find(step.step_id)
    assert replaced is not None
    replaced.__dict__.update(step.model_copy(deep=True).__dict__)
    return made


MAX_ISSUES = 1000


def lint_plan(
    plan: Path | str | Mapping[str, Any] | Plan,
    tools: Tools | None = None,
    *,
    judge: Judge | None = None,
    prompts_dir: Path | None = None,
) -> SemanticValidationReport:
    """Return every issue of a plan file, of data that it would hold, or of a Plan that has yet to run.

    `tools` are by default echo and calculator. A `judge` reviews the plan too. Raises UsageError if the file cannot be
    read, or is neither JSON nor YAML.
    """
    registry = ToolRegistry(default_registry() if tools is None else tools)
    try:
        given = dump_plan(plan) if isinstance(plan, Plan) else plan
        data = given if isinstance(given, Mapping) else read_plan_data(expanded(given, "the plan"))
        return lint_report(data, registry, judge=judge, prompts_dir=prompts_dir)
    except NotPlainDataError as error:
        repair = f"Write plain data: unique text keys, no anchors or tags, at most {MAX_DEPTH} levels of nesting."
        finding = Finding("consistency", "high", None, f"plan: {error.reason}", repair)
        return report_on("plan", "plan", [finding], error.reason)


def lint_report(
    data: Any, registry: ToolRegistry, *, judge: Judge | None = None, prompts_dir: Path | None = None
) -> SemanticValidationReport:
    """Return every issue of a plan that has yet to run.

    `data` may be anything that a parser returns; a plan with structural problems is checked as far as its steps can be
    read. Malformed data, a dependency on an unknown or later step, and arguments that do not fit are `consistency`, an
    unregistered tool is `hallucination`, all high. A step with neither tool nor agent is `specificity`, medium, since
    it is repaired or reasoned about. Then come repeated calls and literals that the arguments contradict. A `judge`
    reviews the plan once, and its issues come last; `prompts_dir` may hold a custom review.md. At most MAX_ISSUES.
    Raises only what ends the judge's work for good, a RunEnding (adaptive FR-036 to FR-045).
    """
    reading = PlanReader(data, fresh=True, limit=MAX_ISSUES)
    findings = [
        Finding("consistency", "high", _id(problem), str(problem), problem.repair) for problem in reading.problems
    ]
    order = completion_order(reading.roots, lambda entry: entry.children)
    for entry in reading.walk():
        if len(findings) >= MAX_ISSUES:
            break
        findings += _entry_findings(entry, order, registry)
    if (plan := _readable(reading)) is not None:
        findings += check_calls(plan, registry)
        findings += SemanticValidator(registry, judge, prompts_dir=prompts_dir).review(plan)
    inputs = [reading.goal, [entry.fields for entry in reading.walk()]]
    return report_on("plan", "plan", findings[:MAX_ISSUES], inputs)


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


def _entry_findings(entry: PlanEntry, order: dict[str, int], registry: ToolRegistry) -> Iterator[Finding]:
    """Yield the plan checks' findings about a step, as far as it can be read."""
    if not entry.fields.keys() & {"tool", "agent"} and not entry.has_parts and not entry.faulty & {"tool", "agent"}:
        repair = "Name a registered tool, or set agent to 'llm'."
        yield Finding("specificity", "medium", _id(entry), f"{entry.path}: neither a tool nor agent 'llm'", repair)
    step = PlanStep.model_construct(**{"step_id": "", **entry.fields})
    for found in (*check_tool(step, registry), *check_dependencies(step, order)):
        yield replace(found, step_id=_id(entry), description=f"{entry.path}: {found.description}")


def _id(part: PlanEntry | PlanProblem) -> str | None:
    return part.step_id if part.step_id is not None and part.step_id.strip() else None
