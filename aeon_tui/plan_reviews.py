"""The edit of a plan that a run waits with: what was typed is kept until a plan was made of it."""

from __future__ import annotations

from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
from aeon_core.plan.parsing import parse_plan
from aeon_tui.plan_editing import Draft

_AGAIN = "edit it again to mend it"


class PlanReviews:
    """Opens the plans of a run's questions in a person's editor."""

    def __init__(self) -> None:
        self._request: ApprovalRequest | None = None
        self._draft: Draft | None = None
        self._typed = ""

    def edit(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Return the decision with the edited plan, None where nothing was changed.

        Raises UsageError where there is no editor, it fails, or left no plan: the file is kept, and the next edit of
        the same question opens it again. So it is with what was typed where the question comes back because the run
        could not take the plan.
        """
        draft = self._draft_of(request)
        plan = draft.edit(_AGAIN)
        self._typed, self._draft = draft.text() if plan is not None else "", None
        draft.forget()
        if plan is None:
            return None
        # A status that nobody wrote stays unsaid: `pending` would let an executed step run again.
        edited = plan.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return ApprovalDecision(decision="edit", edited=edited)

    def _draft_of(self, request: ApprovalRequest) -> Draft:
        if self._draft is None or self._request is not request or not self._draft.file.exists():
            plan = parse_plan(request.subject["plan"], fresh=False)
            typed = self._typed if "problem" in request.subject else ""
            self._draft = Draft(plan, f"The plan of pass {request.pass_number}", typed)
            self._request = request
        return self._draft
