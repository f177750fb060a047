"""What the kernel asks of models besides steps: plans and results (adaptive FR-048, FR-050)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon_core.adaptive_depth import DepthEvidence
from aeon_core.convergence import ConvergenceAssessment, ConvergenceCriteria, ConvergenceEngine
from aeon_core.entities import SemanticValidationReport, TTLState, ValidationIssue, report_of
from aeon_core.judge.judgement import Ask
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.refinement.actions import (
    ANSWER,
    PLAN,
    Fragment,
    RefinementAction,
    RefinementLedger,
    fragments_to_refine,
)
from aeon_core.plan.refinement.apply import RefinementOutcome, apply_actions
from aeon_core.plan.requests import RefinementReply, refinement_request
from aeon_core.prompts import to_line
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.result_checks import Artifacts
from aeon_core.validation.validator import SemanticValidator, issues_of


def current_plan(plan: Plan) -> Plan:
    """Return the plan without the substeps of replaced steps that no replacement reuses; itself if there are none.

    Their results no longer count: the replacement has parts of its own (adaptive FR-069).
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
    """Return whether one of a step's successive replacements has parts of its own."""
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
        """Return the report on a plan before it runs: exact checks, and a model's review if `ask` is given."""
        if ask is None:
            return self._exact.validate_plan(plan, task=self._task)
        validator = SemanticValidator(self._registry, ask, prompts_dir=self._prompts_dir)
        return validator.validate_plan(plan, task=self._task, requirements=requirements)

    def of_step(self, step: PlanStep, plan: Plan) -> list[ValidationIssue]:
        """Return the exact checks' findings on one step within a plan, which validate a refined fragment (FR-049)."""
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
        """Return the report on a pass's results, and whether it converged; without `ask`, by exact checks only.

        Outputs of invalid steps do not count, nor those of their parts if other steps replace all of them.
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
    """Return a pass's findings as evidence for adaptive depth (FR-031 to FR-033).

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


@dataclass(frozen=True)
class Findings:
    """A plan with its findings, the input of refinement. `failures` are why steps failed, by step_id."""

    plan: Plan
    report: SemanticValidationReport
    assessment: ConvergenceAssessment | None
    ledger: RefinementLedger
    failures: Mapping[str, list[str]] = field(default_factory=dict)

    def fragments(self) -> list[Fragment]:
        """Return what needs refinement."""
        unfinished = self.assessment is not None and not self.assessment.converged
        unmet = self.assessment.detected_issues if self.assessment is not None and unfinished else ()
        known: dict[str, Any] = {"failures": self.failures, "unmet": unmet, "ledger": self.ledger}
        return fragments_to_refine(self.plan, issues=self.report.issues, **known)


class RecursivePlanner:
    """Rewrites the fragments of a plan that validation, convergence or a failure points at, within the limits."""

    def __init__(
        self, task: str, registry: ToolRegistry, evaluator: Evaluator, *, max_tokens: int, prompts_dir: Path | None
    ) -> None:
        self._task = task
        self._registry = registry
        self._evaluator = evaluator
        self._max_tokens = max_tokens
        self._prompts_dir = prompts_dir

    def request(
        self, found: Findings, *, requirements: Sequence[str], outputs: Mapping[str, Any], ttl: TTLState
    ) -> LLMRequest | None:
        """Return the request for refinement, None if nothing needs it or can still be refined."""
        fragments = found.fragments()
        if all(fragment.exhausted for fragment in fragments):
            return None
        return refinement_request(
            self._task,
            found.plan,
            fragments,
            tools=self._registry.export_tools_for_llm(),
            requirements=requirements,
            outputs=outputs,
            failures=found.failures,
            assessment=found.assessment.model_dump(mode="json") if found.assessment is not None else None,
            ledger=found.ledger,
            ttl_remaining=ttl.remaining,
            ttl_limit=ttl.allocated,
            max_tokens=self._max_tokens,
            prompts_dir=self._prompts_dir,
        )

    def answer_sections(
        self, answer: str | None, report: SemanticValidationReport | None, assessment: ConvergenceAssessment | None
    ) -> dict[str, str]:
        """Return the part of the last verdict shown in the request for an answer, as `assessment`; empty for the first.

        `answer`, `report` and `assessment` are those of the previous pass.
        """
        if report is None or assessment is None or assessment.converged:
            return {}
        unmet = [verdict for verdict in assessment.requirements if verdict["met"] != "yes"]
        issues = [f"{issue.description} → {issue.proposed_repair}" for issue in _of_answer(report)]
        verdict = {
            "answer": answer,
            "requirements": unmet,
            "issues": issues,
            "detected_issues": assessment.detected_issues,
        }
        return {"assessment": to_line({key: value for key, value in verdict.items() if value})}

    def answer_again(self, found: Findings) -> RefinementReply | None:
        """Return the request for another answer if the verdict concerns only the answer; else None.

        Every step is done, plan, steps and memory are consistent, and each issue concerns the answer: refinement could
        change nothing else, so no model is asked for one.
        """
        if (assessment := found.assessment) is None or (reply := self.last_answer(found)) is None:
            return None
        status, counted = (
            assessment.consistency_status,
            [each for each in found.report.issues if each.severity != "low"],
        )
        sound = status["plan"] and status["step"] and status["memory"]
        return reply if sound and counted and len(counted) == len(_of_answer(found.report)) else None

    def last_answer(self, found: Findings) -> RefinementReply | None:
        """Return the request for another answer with the verdict on the last one; None if that would not help.

        It would not if a step failed or is missing, or once the answer has been refined as often as allowed.
        """
        assessment = found.assessment
        if assessment is None or assessment.converged or not assessment.judged or found.plan.pending:
            return None
        steps = assessment.metadata.get("steps", {})
        if steps.get("failed") or steps.get("missing") or found.ledger.exhausted(PLAN):
            return None
        reason = "; ".join(assessment.detected_issues[:3]) or "the answer was not accepted"
        return RefinementReply([RefinementAction(type="plan_update", target=ANSWER, reason=reason)])

    def applied(
        self, plan: Plan, reply: RefinementReply, report: SemanticValidationReport, ledger: RefinementLedger
    ) -> RefinementOutcome:
        """Return the plan after a reply's actions, each checked before it is accepted (FR-013)."""
        return apply_actions(plan, reply.actions, ledger=ledger, validate=self._evaluator.of_step, issues=report.issues)


def answer_alone(refinements: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the accepted refinements requested only another answer."""
    accepted = [each["action"]["target"] for each in refinements if each["accepted"]]
    return bool(accepted) and set(accepted) == {ANSWER}


def _of_answer(report: SemanticValidationReport) -> list[Any]:
    """Return the issues, other than remarks, that are located at the answer."""
    return [
        issue
        for issue in report.issues
        if issue.severity != "low" and issue.location.step_id is None and issue.location.artifact == ANSWER
    ]
