"""The recursive planner as the loop uses it: what it asks a model, and how it uses the reply (adaptive FR-009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.entities import TTLState
from aeon_core.evaluation.evaluator import Evaluator
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement.actions import ANSWER, PLAN, RefinementAction, RefinementLedger
from aeon_core.plan.refinement.apply import RefinementOutcome, apply_actions
from aeon_core.plan.refinement.fragments import Fragment, fragments_to_refine
from aeon_core.plan.refinement.reply import RefinementReply, refinement_request
from aeon_core.prompts.sections import to_line
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.report import SemanticValidationReport


@dataclass(frozen=True)
class Findings:
    """A plan and what was found of it: what refinement starts from. `failures` are why steps failed, by step_id."""

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
        self, found: Findings, *, requirements: Sequence[str], outputs: Mapping[str, Any], ttl: TTLState
    ) -> LLMRequest | None:
        """Return the request for refinement, None if nothing needs it or may be refined any more."""
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

    def answer_again(self, found: Findings) -> RefinementReply | None:
        """Return the request for another answer where the verdict is about the answer alone; None if it is not.

        Every step is done, plan, steps and memory are consistent, and each issue is with the answer: refinement could
        change nothing else, so that no model is asked for it.
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

        It would not where a step is failed or missing, and once the answer was refined as often as it may be.
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
    """Return whether what was accepted of these refinements asked for another answer and for nothing else."""
    accepted = [each["action"]["target"] for each in refinements if each["accepted"]]
    return bool(accepted) and set(accepted) == {ANSWER}


def _of_answer(report: SemanticValidationReport) -> list[Any]:
    """Return the issues, other than remarks, that are located at the answer."""
    return [
        issue
        for issue in report.issues
        if issue.severity != "low" and issue.location.step_id is None and issue.location.artifact == ANSWER
    ]
