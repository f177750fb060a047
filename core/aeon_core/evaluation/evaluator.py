"""What validation and convergence together say of a plan and of what came of it (adaptive FR-048, FR-050)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aeon_core.adaptive.evidence import DepthEvidence
from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.criteria import ConvergenceCriteria
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.evaluation.standing import standing
from aeon_core.llm.base import LLMAdapter
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.refinement import RefinementLedger
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.report import SemanticValidationReport, ValidationIssue
from aeon_core.validation.validator import SemanticValidator


class Evaluator:
    """Validates and assesses. `criteria` are those of convergence, None for the defaults."""

    def __init__(
        self, task: str, registry: ToolRegistry, criteria: ConvergenceCriteria | None, prompts_dir: Path | None
    ) -> None:
        self._task = task
        self._registry = registry
        self._criteria = criteria
        self._prompts_dir = prompts_dir
        self._rules = SemanticValidator(registry)

    def of_plan(self, plan: Plan) -> SemanticValidationReport:
        """Return what the rules say of a plan that is still to run."""
        return self._rules.validate_plan(plan, task=self._task)

    def of_step(self, step: PlanStep, plan: Plan) -> list[ValidationIssue]:
        """Return what the rules say of one step within a plan: how a refined fragment is looked at (FR-049)."""
        return self._rules.validate_step(step, plan, task=self._task).issues

    def of_pass(
        self,
        plan: Plan,
        *,
        outputs: Mapping[str, Any],
        failures: Mapping[str, list[str]],
        answer: str | None,
        memory: Mapping[str, Any],
        judge: LLMAdapter | None,
    ) -> tuple[SemanticValidationReport, ConvergenceAssessment]:
        """Return the report on what a pass gave, and whether it converged. Without a judge by rules alone; where the
        judge gives no judgement it has not (`not_judged`).

        What invalid steps gave does not count, nor what their parts gave where others stand in for all of them.
        """
        left = standing(plan)
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
        validator = SemanticValidator(self._registry, judge, prompts_dir=self._prompts_dir)
        report, judgement = validator.judge_execution(**artifacts)
        engine = ConvergenceEngine(self._criteria, judge, prompts_dir=self._prompts_dir)
        tools = [tool.name for tool in self._registry]
        assessment = engine.assess(report=report, tools=tools, **artifacts)
        if judgement is None:
            return report, assessment
        if (score := judgement.completeness) is not None:
            too_low = judgement.unmet or score < engine.criteria.completeness
            assessment = assessment.limited(score, incomplete=too_low)
        return report, assessment.unjudged(judgement.failure) if judgement.failure is not None else assessment


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
