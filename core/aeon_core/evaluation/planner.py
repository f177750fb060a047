"""The recursive planner as the loop uses it: what it asks a model, and how it uses the reply (adaptive FR-009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.entities import TTLState
from aeon_core.evaluation.evaluator import Evaluator
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.actions import ANSWER, PLAN, RefinementAction, RefinementLedger
from aeon_core.plan.refinement.apply import RefinementOutcome, apply_actions
from aeon_core.plan.refinement.fragments import Fragment, fragments_to_refine, left_to_a_person
from aeon_core.plan.refinement.reply import RefinementReply, refinement_request
from aeon_core.prompts.sections import to_line
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.report import SemanticValidationReport


class RecursivePlanner:
    """Rewrites the fragments of a plan that validation, convergence or failure points at, within the limits."""

    def __init__(
        self, task: str, registry: ToolRegistry, evaluator: Evaluator, *, max_tokens: int, prompts_dir: Path | None
    ) -> None:
        self._task = task
        self._registry = registry
        self._evaluator = evaluator
        self._max_tokens = max_tokens
        self._prompts_dir = prompts_dir

    def request(
        self,
        plan: Plan,
        report: SemanticValidationReport,
        assessment: ConvergenceAssessment | None,
        *,
        requirements: Sequence[str],
        outputs: Mapping[str, Any],
        failures: Mapping[str, list[str]],
        ledger: RefinementLedger,
        ttl: TTLState,
    ) -> LLMRequest | None:
        """Return the request for refinement, None where nothing needs it or may be refined any more."""
        fragments = _fragments(plan, report, assessment, failures, ledger)
        if all(fragment.exhausted for fragment in fragments):
            return None
        return refinement_request(
            self._task,
            plan,
            fragments,
            tools=self._registry.export_tools_for_llm(),
            requirements=requirements,
            outputs=outputs,
            failures=dict(failures),
            assessment=assessment.model_dump(mode="json") if assessment is not None else None,
            ledger=ledger,
            ttl_remaining=ttl.remaining,
            ttl_limit=ttl.allocated,
            max_tokens=self._max_tokens,
            prompts_dir=self._prompts_dir,
        )

    def settled(
        self,
        plan: Plan,
        report: SemanticValidationReport,
        assessment: ConvergenceAssessment | None,
        *,
        failures: Mapping[str, list[str]],
        ledger: RefinementLedger,
    ) -> RefinementLedger:
        """Return the ledger with each fragment that is at its limit and still wanting marked for a person (FR-065)."""
        return left_to_a_person(ledger, _fragments(plan, report, assessment, failures, ledger))

    def answer_sections(
        self,
        answer: str | None,
        report: SemanticValidationReport | None,
        assessment: ConvergenceAssessment | None,
    ) -> dict[str, str]:
        """Return what an answer is shown of the verdict on the one before it, as `assessment`; nothing for the first.

        `answer`, `report` and `assessment` are those of the pass before.
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

    def answer_again(
        self,
        plan: Plan,
        report: SemanticValidationReport,
        assessment: ConvergenceAssessment | None,
        *,
        ledger: RefinementLedger,
    ) -> RefinementReply | None:
        """Return the request for another answer where the verdict is about the answer alone; None where it is not.

        Every step is done, plan, steps and memory are consistent, and each issue is with the answer: refinement could
        change nothing else, so that no model is asked for it.
        """
        if assessment is None or assessment.converged or not assessment.judged or plan.pending:
            return None
        status, steps = assessment.consistency_status, assessment.metadata.get("steps", {})
        sound = status["plan"] and status["step"] and status["memory"] and not steps["failed"] and not steps["missing"]
        counted = [issue for issue in report.issues if issue.severity != "low"]
        if not sound or not counted or len(counted) != len(_of_answer(report)):
            return None
        return self.last_answer(plan, assessment, ledger)

    def last_answer(
        self,
        plan: Plan,
        assessment: ConvergenceAssessment | None,
        ledger: RefinementLedger,
    ) -> RefinementReply | None:
        """Return the request for another answer with the verdict on the last one; None where that would not help.

        It would not where a step is failed or missing, and once the answer was refined as often as it may be.
        """
        if assessment is None or assessment.converged or not assessment.judged or plan.pending:
            return None
        steps = assessment.metadata.get("steps", {})
        if steps.get("failed") or steps.get("missing") or ledger.exhausted(PLAN):
            return None
        reason = "; ".join(assessment.detected_issues[:3]) or "the answer was not accepted"
        return RefinementReply([RefinementAction(type="plan_update", target=ANSWER, reason=reason)])

    def applied(
        self, plan: Plan, reply: RefinementReply, report: SemanticValidationReport, ledger: RefinementLedger
    ) -> RefinementOutcome:
        """Return the plan after a reply's actions, each checked before it is accepted (FR-013)."""
        return apply_actions(plan, reply.actions, ledger=ledger, validate=self._evaluator.of_step, issues=report.issues)


def answer_alone(refinements: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether what was accepted of these refinements asked for another answer and for nothing else."""
    accepted = [each["action"]["target"] for each in refinements if each["accepted"]]
    return bool(accepted) and set(accepted) == {ANSWER}


def _fragments(
    plan: Plan,
    report: SemanticValidationReport,
    assessment: ConvergenceAssessment | None,
    failures: Mapping[str, list[str]],
    ledger: RefinementLedger,
) -> list[Fragment]:
    unmet = assessment.detected_issues if assessment is not None and not assessment.converged else ()
    return fragments_to_refine(plan, issues=report.issues, failures=failures, unmet=unmet, ledger=ledger)


def _of_answer(report: SemanticValidationReport) -> list[Any]:
    """Return the issues, other than remarks, that are located at the answer."""
    return [
        issue
        for issue in report.issues
        if issue.severity != "low" and issue.location.step_id is None and issue.location.artifact == ANSWER
    ]
