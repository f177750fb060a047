"""The recursive planner as the loop uses it: what it asks of a model, what becomes of the reply (adaptive FR-009)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.entities import TTLState
from aeon_core.evaluation.evaluator import Evaluator
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.fragments import Fragment, fragments_to_refine, left_to_a_person
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement import ANSWER, RefinementLedger
from aeon_core.plan.refining.applying import RefinementOutcome, apply_actions
from aeon_core.plan.refining.asking import refinement_request
from aeon_core.plan.refining.replies import RefinementReply
from aeon_core.prompts.sections import to_line
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.report import SemanticValidationReport

_SAID_OF_ANSWER = ("the answer ", "the goal asks ", "criterion ")
"""What begins the lines of an assessment that another answer can mend."""


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
        """Return the ledger with each fragment marked for a person that is at its limit and still wanting (FR-065)."""
        return left_to_a_person(ledger, _fragments(plan, report, assessment, failures, ledger))

    def answer_sections(
        self, report: SemanticValidationReport | None, assessment: ConvergenceAssessment | None
    ) -> dict[str, str]:
        """Return what an answer is told of the one before it, its `assessment`; nothing for the first answer.

        `report` and `assessment` are those of the pass before.
        """
        if report is None or assessment is None or assessment.converged:
            return {}
        issues = list(dict.fromkeys(_of_answer(report, assessment)))
        return {"assessment": to_line({"detected_issues": issues})} if issues else {}

    def applied(
        self, plan: Plan, reply: RefinementReply, report: SemanticValidationReport, ledger: RefinementLedger
    ) -> RefinementOutcome:
        """Return the plan after a reply's actions, each looked at by the rules before it is accepted (FR-013)."""
        return apply_actions(plan, reply.actions, ledger=ledger, validate=self._evaluator.of_step, issues=report.issues)


def _fragments(
    plan: Plan,
    report: SemanticValidationReport,
    assessment: ConvergenceAssessment | None,
    failures: Mapping[str, list[str]],
    ledger: RefinementLedger,
) -> list[Fragment]:
    unmet = assessment.detected_issues if assessment is not None and not assessment.converged else ()
    return fragments_to_refine(plan, issues=report.issues, failures=failures, unmet=unmet, ledger=ledger)


def _of_answer(report: SemanticValidationReport, assessment: ConvergenceAssessment) -> Iterator[str]:
    """Yield what was wrong with an answer: the issues located there, and what convergence says of it."""
    for issue in report.issues:
        if issue.location.step_id is None and ANSWER in issue.location.artifact.lower():
            yield f"{issue.description} → {issue.proposed_repair}"
    yield from (line for line in assessment.detected_issues if line.startswith(_SAID_OF_ANSWER))
