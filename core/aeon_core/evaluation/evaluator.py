"""What validation and convergence together say of a plan and of what came of it (adaptive FR-048, FR-050)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aeon_core.adaptive.depth import DepthEvidence
from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.criteria import ConvergenceCriteria
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.judge.request import Ask
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.refinement.actions import RefinementLedger
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.report import SemanticValidationReport, ValidationIssue, report_of
from aeon_core.validation.result_checks import Artifacts
from aeon_core.validation.validator import SemanticValidator, issues_of


def current_plan(plan: Plan) -> Plan:
    """Return the plan without the substeps of replaced steps that no stand-in takes up; itself where there are none.

    Their results no longer count: the stand-in has parts of its own (adaptive FR-069).
    """
    stand_ins = {step.replaces: step for step in plan.walk() if step.replaces is not None}
    dropped = {step.step_id for step in plan.walk() if _is_redone(step, stand_ins)}
    if not dropped:
        return plan
    made = plan.model_copy(deep=True)
    for step in made.walk():
        if step.step_id in dropped:
            step.subplan = None
    return made


def _is_redone(step: PlanStep, stand_ins: Mapping[str, PlanStep]) -> bool:
    """Return whether one of the steps that stand in for a step one after another has parts of its own."""
    if step.subplan is None:
        return False
    seen: set[str] = set()
    while step.status == "invalid" and step.step_id in stand_ins and step.step_id not in seen:
        seen.add(step.step_id)
        former: set[str | None] = {part.step_id for part in step.substeps}
        step = stand_ins[step.step_id]
        if step.substeps and former.isdisjoint(part.replaces for part in step.substeps):
            return True
    return False


class Evaluator:
    """Validates and assesses. `criteria` are those of convergence, None for the defaults."""

    def __init__(
        self,
        task: str,
        registry: ToolRegistry,
        criteria: ConvergenceCriteria | None,
        prompts_dir: Path | None,
        votes: int = 1,
    ) -> None:
        self._task = task
        self._registry = registry
        self._criteria = criteria
        self._prompts_dir = prompts_dir
        self._votes = votes
        self._exact = SemanticValidator(registry)

    def of_plan(self, plan: Plan, requirements: Sequence[str] = (), ask: Ask | None = None) -> SemanticValidationReport:
        """Return the report on a plan that is still to run: exact checks, and a model's review where `ask` is given."""
        if ask is None:
            return self._exact.validate_plan(plan, task=self._task)
        validator = SemanticValidator(self._registry, ask, prompts_dir=self._prompts_dir)
        return validator.validate_plan(plan, task=self._task, requirements=requirements)

    def of_step(self, step: PlanStep, plan: Plan) -> list[ValidationIssue]:
        """Return what exact checks say of one step within a plan: how a refined fragment is validated (FR-049)."""
        return self._exact.validate_step(step, plan, task=self._task).issues

    def of_pass(
        self,
        plan: Plan,
        *,
        outputs: Mapping[str, Any],
        failures: Mapping[str, list[str]],
        answer: str | None,
        memory: Mapping[str, Any],
        requirements: Sequence[str] = (),
        ask: Ask | None,
    ) -> tuple[SemanticValidationReport, ConvergenceAssessment]:
        """Return the report on what a pass gave, and whether it converged; without `ask` by exact checks alone.

        What invalid steps gave does not count, nor what their parts gave where other steps replace all of them.
        """
        left = current_plan(plan)
        valid = {step.step_id for step in left.walk() if step.status != "invalid"}
        invalid = {step.step_id for step in plan.walk()} - valid
        artifacts: dict[str, Any] = {
            "goal": self._task,
            "plan": left,
            "results": {step_id: output for step_id, output in outputs.items() if step_id not in invalid},
            "answer": answer,
            "memory": {key: value for key, value in memory.items() if key not in invalid},
            "failures": {step_id: errors for step_id, errors in failures.items() if step_id not in invalid},
        }
        report = self._exact.validate_execution(**artifacts)
        engine = ConvergenceEngine(self._criteria, ask, prompts_dir=self._prompts_dir, votes=self._votes)
        tools = [tool.name for tool in self._registry]
        given = Artifacts(**{**artifacts, "answer": (answer or "").strip()}, tools=tools)
        assessment, judgement = engine.judged(given, requirements)
        if judgement is not None and judgement.issues:
            judged = issues_of(judgement.issues, "answer", start=len(report.issues) + 1)
            report = report_of(report.validation_id, report.artifact_type, [*report.issues, *judged])
        return report, assessment


def depth_evidence(
    report: SemanticValidationReport,
    assessment: ConvergenceAssessment,
    ledger: RefinementLedger,
    *,
    refinements: int,
    questions: int,
) -> DepthEvidence:
    """Return what a pass found, as adaptive depth takes it (FR-031 to FR-033).

    The steps that failed are those that the assessment saw: refinement may have replaced them since.
    """
    counted = [issue for issue in report.issues if issue.severity != "low"]
    return DepthEvidence(
        high_issues=sum(issue.severity == "high" for issue in counted),
        medium_issues=sum(issue.severity == "medium" for issue in counted),
        specificity_issues=sum(issue.type == "specificity" for issue in counted),
        converged=assessment.converged,
        completeness_score=assessment.completeness_score,
        coherence_score=assessment.coherence_score,
        reason_codes=tuple(assessment.reason_codes),
        failed_steps=len(assessment.metadata["steps"]["failed"]),
        refinements=refinements,
        manual_interventions=len(ledger.manual_intervention),
        follow_up_questions=questions,
    )
