"""The recursive planner as the loop uses it: what it asks of a model, what becomes of the reply (adaptive FR-009)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.entities import TTLState
from aeon_core.evaluation.evaluator import Evaluator
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.applying import RefinementOutcome, apply_actions
from aeon_core.plan.fragments import fragments_to_refine
from aeon_core.plan.models import Plan
from aeon_core.plan.refinement import RefinementLedger
from aeon_core.plan.refining import RefinementReply, refinement_request
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.report import SemanticValidationReport


class RecursivePlanner:
    """Rewrites the fragments of a plan that validation or failure points at, within the limits."""

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
        failures = dict(failures)
        fragments = fragments_to_refine(plan, issues=report.issues, failures=failures, ledger=ledger)
        if all(fragment.exhausted for fragment in fragments):
            return None
        return refinement_request(
            self._task,
            plan,
            fragments,
            tools=self._registry.export_tools_for_llm(),
            outputs=outputs,
            failures=failures,
            assessment=assessment.model_dump(mode="json") if assessment is not None else None,
            ledger=ledger,
            ttl_remaining=ttl.remaining,
            ttl_limit=ttl.allocated,
            max_tokens=self._max_tokens,
            prompts_dir=self._prompts_dir,
        )

    def applied(
        self, plan: Plan, reply: RefinementReply, report: SemanticValidationReport, ledger: RefinementLedger
    ) -> RefinementOutcome:
        """Return the plan after a reply's actions, each looked at by the rules before it is accepted (FR-013)."""
        return apply_actions(plan, reply.actions, ledger=ledger, validate=self._evaluator.of_step, issues=report.issues)
