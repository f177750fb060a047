"""What validation says to a refinement: an objection that refuses it, or an advisory (adaptive FR-013, FR-079)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from aeon_core.plan.models import PlanStep
from aeon_core.plan.refinement.actions import Advisory, Issue, issue_as_dict

_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")


def objection(step: PlanStep, found: Sequence[Issue], before: Sequence[Issue] | None) -> str | None:
    """Return why a refined step is refused: what blocks it, where that is not less than before; None where it is taken.

    High issues block, and medium ones of specificity: a refinement that is still vague is none. `before` are the issues
    of the step as it was, None for a new one. That a step has neither tool nor agent yet is repaired when it runs.
    """
    now = _blocking(step, found)
    was = _blocking(step, before) if before is not None else (0, 0)
    if now == (0, 0) or now < was:
        return None
    severity = "high" if now[0] else "medium"
    worst = next(issue for issue in found if issue.severity == severity and (now[0] or issue.type == "specificity"))
    return f"validation objects to step {step.step_id!r}: {worst.description}"


def _blocking(step: PlanStep, issues: Sequence[Issue]) -> tuple[int, int]:
    high = sum(issue.severity == "high" for issue in issues)
    vague = sum(issue.severity == "medium" and issue.type == "specificity" for issue in issues)
    undecided = step.tool is None and step.agent is None and step.subplan is None
    return high, max(0, vague - undecided)


def advisories(step: PlanStep, issues: Iterable[Issue], *, still: Sequence[Issue]) -> list[Advisory]:
    """Return an advisory for each proposed repair of the issues that a refined step does not carry out.

    It does where the step holds all that the repair quotes, or, where it quotes nothing, where the issue is gone from
    those that are `still` found.
    """
    text = step.model_dump_json(exclude_none=True)
    left = {(issue.type, issue.description) for issue in still}
    seen: set[str] = set()
    made = []
    for issue in issues:
        if issue.description in seen or _carried_out(issue, text, left):
            continue
        seen.add(issue.description)
        made.append(Advisory(step.step_id, issue_as_dict(issue)))
    return made


def _carried_out(issue: Issue, text: str, left: set[tuple[str, str]]) -> bool:
    if (issue.type, issue.description) in left:
        return False
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(issue.proposed_repair)]
    return all(literal in text for literal in quoted)
