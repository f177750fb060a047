"""The semantic validator: rules, and a model's judgement where one is asked (adaptive FR-036 to FR-046, FR-081)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeon_core.memory.base import Memory
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.validation.judge import Judgement, beyond, judged
from aeon_core.validation.report import (
    ArtifactType,
    IssueLocation,
    SemanticValidationReport,
    ValidationIssue,
    report_of,
)
from aeon_core.validation.semantic.assessments import assessment_findings
from aeon_core.validation.semantic.execution import Execution, execution_findings
from aeon_core.validation.semantic.finding import Finding
from aeon_core.validation.semantic.rules import plan_findings
from aeon_core.validation.semantic.views import PlanView, ToolView, tool_views

if TYPE_CHECKING:
    from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.tools.registry import ToolRegistry


class Judge(Protocol):
    """A model that judges: any LLMAdapter."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply."""


class SemanticValidator:
    """Finds what is wrong with the meaning of plans, steps and results; best-effort advice, no truth (FR-081).

    The rules need no model and always give the same report for the same input. With a `judge` a model is asked once for
    each artifact, and what it finds beyond the rules is added. `prompts_dir` may hold a judge.md of one's own.
    """

    def __init__(self, registry: ToolRegistry, judge: Judge | None = None, *, prompts_dir: Path | None = None) -> None:
        self._registry = registry
        self._judge = judge
        self._prompts_dir = prompts_dir
        self._tools: tuple[int, dict[str, ToolView]] | None = None

    def validate_plan(self, plan: Plan, *, task: str | None = None) -> SemanticValidationReport:
        """Return the report on a plan (FR-036 to FR-040). `task` is the request as it was put, where it says more.

        Steps that have run are context: they are not blamed, as they can no longer change.
        """
        view = self._view(plan, task)
        found = plan_findings(view)
        return _report(
            "plan", "plan", found + _added(found, self._judgement(view)), [plan.model_dump(mode="json"), task]
        )

    def validate_step(self, step: PlanStep, plan: Plan, *, task: str | None = None) -> SemanticValidationReport:
        """Return the report on one step within its plan: the issues that are located at it.

        A step that is not part of the plan yet is looked at as if it stood last, or in place of the one with its id.
        """
        whole = _with_step(plan, step)
        view = self._view(whole, task)
        found = [finding for finding in plan_findings(view) if finding.step_id == step.step_id]
        judged = [finding for finding in _added(found, self._judgement(view, step)) if finding.step_id == step.step_id]
        return _report("step", "step", found + judged, [whole.model_dump(mode="json"), task, step.step_id])

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
        """Return the report on what came of a plan (FR-041): contradictions between plan, results, answer and memory.

        `results` are the steps' outputs and `failures` the errors of those that failed, both by step_id. The report is
        `cross_phase` where there is an answer or a memory to compare with, else about the execution_artifact.
        """
        return self.judge_execution(
            goal=goal, plan=plan, results=results, answer=answer, memory=memory, failures=failures
        )[0]

    def judge_execution(
        self,
        *,
        goal: str,
        plan: Plan,
        results: Mapping[str, Any],
        answer: str | None = None,
        memory: Mapping[str, Any] | Memory | None = None,
        failures: Mapping[str, Sequence[str]] | None = None,
    ) -> tuple[SemanticValidationReport, Judgement | None]:
        """Return the report of `validate_execution`, and what the judge said; None where there is no judge."""
        entries = dict(memory.search("")) if isinstance(memory, Memory) else dict(memory or {})
        view = self._view(plan, goal)
        execution = Execution(view, dict(results), dict(failures or {}), answer, entries)
        found = execution_findings(execution)
        kind: ArtifactType = "cross_phase" if answer is not None or entries else "execution_artifact"
        said = [goal, plan.model_dump(mode="json"), results, answer, entries, failures]
        judgement = self._judgement(view, execution=execution)
        return _report(kind, kind, found + _added(found, judgement), said), judgement

    def validate_assessment(
        self,
        assessment: Mapping[str, Any],
        *,
        plan: Plan,
        results: Mapping[str, Any],
        failures: Mapping[str, Sequence[str]] | None = None,
    ) -> SemanticValidationReport:
        """Return the report on an assessment of convergence, as plain data, by rules: what nothing bears out.

        Steps that do not exist and a result called finished that is not are `hallucination`, a converged assessment
        against its own flags is `consistency`. What was read from a journal or told by a model is looked at like what
        the engine says.
        """
        execution = Execution(self._view(plan, None), dict(results), dict(failures or {}), None, {})
        found = assessment_findings(assessment, execution)
        said = [dict(assessment), plan.model_dump(mode="json"), results, failures]
        return _report("cross_phase", "assessment", found, said)

    def _view(self, plan: Plan, task: str | None) -> PlanView:
        version = self._registry.version
        if self._tools is None or self._tools[0] != version:
            self._tools = (version, tool_views(self._registry))
        return PlanView(plan, self._registry, self._tools[1], task)

    def _judgement(
        self, view: PlanView, step: PlanStep | None = None, execution: Execution | None = None
    ) -> Judgement | None:
        if self._judge is None:
            return None
        return judged(self._judge, view, step=step, execution=execution, folder=self._prompts_dir)


def _added(found: list[Finding], judgement: Judgement | None) -> list[Finding]:
    return beyond(found, judgement.findings) if judgement is not None else []


def issues_of(found: Sequence[Finding], artifact: str) -> list[ValidationIssue]:
    """Return findings as the issues of a report, numbered in their order."""
    return [
        ValidationIssue(
            issue_id=f"issue-{number}",
            type=finding.type,
            severity=finding.severity,
            description=finding.description,
            location=IssueLocation(artifact=finding.artifact or artifact, step_id=finding.step_id),
            proposed_repair=finding.repair,
        )
        for number, finding in enumerate(found, 1)
    ]


def _report(kind: ArtifactType, artifact: str, found: list[Finding], said: Any) -> SemanticValidationReport:
    text = json.dumps([said, [finding.description for finding in found]], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return report_of(f"validation-{digest[:12]}", kind, issues_of(found, artifact))


def _with_step(plan: Plan, step: PlanStep) -> Plan:
    known = plan.find(step.step_id)
    if known is step:
        return plan
    if known is None:
        return plan.model_copy(update={"steps": [*plan.steps, step]})
    whole = plan.model_copy(deep=True)
    place = whole.find(step.step_id)
    if place is not None:
        place.__dict__.update(step.model_copy(deep=True).__dict__)
    return whole
