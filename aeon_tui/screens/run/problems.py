"""What went wrong in a run: the rows of its plan that need a look, one after the other."""

from __future__ import annotations

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.step_issues import open_issues
from aeon_widgets.call_rows import RowKey
from aeon_widgets.plan_tree import PlanTree


def problems_of(view: RunView, tree: PlanTree) -> list[RowKey]:
    """Return the rows that need a look: failed steps first, then calls without a reply, then steps with open issues."""
    issues = open_issues(view)
    failed = [RowKey("step", each.step_id) for each in view.steps.values() if each.status == "failed"]
    unanswered = [
        row
        for attempts in view.calls.values()
        if attempts[-1].step_id is None and attempts[-1].error is not None
        if (row := tree.calls_at(attempts[-1].seq)) is not None
    ]
    doubtful = [
        RowKey("step", each.step_id)
        for each in view.steps.values()
        if each.validator_errors or issues.get(each.step_id)
    ]
    return list(dict.fromkeys([*failed, *unanswered, *doubtful]))


def next_problem(problems: list[RowKey], selected: RowKey | None, by: int) -> RowKey | None:
    """Return the problem after the selected row, or with -1 the one before, in a circle; None where there is none."""
    if not problems:
        return None
    if selected not in problems:
        return problems[0 if by > 0 else -1]
    return problems[(problems.index(selected) + by) % len(problems)]
