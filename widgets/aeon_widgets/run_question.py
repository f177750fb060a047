"""What a run asks a person at each of its points, with the answers that do something different there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aeon_core.journal.values import dict_of, dicts_of, int_of, number_of, str_of
from aeon_core.journal.view.formatting import reasons
from aeon_core.journal.view.model import AssessmentView
from aeon_core.journal.view.reducer import assessment_of, nodes
from aeon_core.money import money
from aeon_widgets.approval_question import REASON, ApprovalQuestion, Choice, Section
from aeon_widgets.call_text import budget_blocks, call_blocks, call_title
from aeon_widgets.review_text import pass_body, pass_sections, plan_body, plan_sections
from aeon_widgets.text import count, fit, one_line
from aeon_widgets.text_view import Block

Subject = Mapping[str, Any]
REVIEWED = ("plan", "pass")
"""The points at which a person looks at what there is, rather than at what is about to be done."""
_WHAT_TO_FIX = "what should change?"
_WHY_NOT = "why not?"
ALWAYS = "always"
"""What the choice of a rule sends."""
END = Choice("X", "End here, not finished", "abort")
_LATER = Choice("X", "Stop here, decide later", "abort")
_FIX = Choice("w", "Tell it what to fix", "reject", REASON)
_TAKE = Choice("c", "Take the result as it is", "accept")
_AGAIN = Choice("r", "Run this pass again", "replay")
_EDIT_PLAN = Choice("e", "Edit the plan", "edit")


def run_question(
    point: str, subject: Subject, pass_number: int = 1, assessments: Sequence[AssessmentView] = ()
) -> ApprovalQuestion:
    """Return the question about `subject`. A pass is shown against those that were assessed before it."""
    head, body, sections, hint = headline(point, subject), list[Block](), list[Section](), _WHY_NOT
    if point == "plan":
        body, sections, hint = list(plan_body(subject)), list(plan_sections(subject, pass_number)), _WHAT_TO_FIX
    elif point == "pass":
        body, hint = list(pass_body(subject, pass_number, assessments)), _WHAT_TO_FIX
        sections = list(pass_sections(subject, pass_number, assessments))
    elif point == "budget":
        body = list(budget_blocks(subject))
    else:
        body = list(call_blocks(point, subject))
    return ApprovalQuestion(
        point, head, tuple(body), tuple(choices(point, subject, pass_number)), tuple(sections), hint
    )


def headline(point: str, subject: Subject) -> str:
    """Return the outcome that is decided about, or the question itself, in a few words."""
    if point == "plan":
        return _plan_headline(subject)
    if point == "pass":
        return _pass_headline(subject)
    if point == "tool":
        return call_title(subject)
    if point == "gate":
        title, artifact = (one_line(str(subject.get(name)), 80) for name in ("title", "artifact"))
        return f"Gate {subject.get('gate')} · {title}: approve {artifact}?"
    if point == "question":
        return one_line(str(subject.get("text")), 200)
    if point == "unknown":
        return f"{one_line(str(subject.get('tool_name', 'A tool')), 60)} was cut off: call it again?"
    if point == "budget":
        limit, proposed = number_of(subject.get("limit_usd")), number_of(subject.get("proposed_usd"))
        if limit is None or proposed is None:
            return "Raise the budget?"
        return f"Raise the budget from {money(limit)} to {money(proposed)}?"
    return f"Decide: {one_line(point, 40)}"


def _plan_headline(subject: Subject) -> str:
    steps = [node for node, _, _ in nodes(dict_of(subject.get("plan")) or {})]
    calls = sum(bool(str_of(step.get("tool"))) for step in steps if step.get("status", "pending") == "pending")
    issues = len(dicts_of(subject.get("issues")))
    parts = [count(len(steps), "step")]
    parts += [count(calls, "tool call")] if calls else []
    parts += [count(issues, "issue")] if issues else []
    return f"Run this plan? {', '.join(parts)}"


def _pass_headline(subject: Subject) -> str:
    told = dict_of(subject.get("convergence"))
    if told is None:
        return "Not finished: the pass was not assessed"
    shown = assessment_of(told, pass_number=0)
    if shown.not_judged:
        return "Not judged: nothing has checked the answer"
    met, number = sum(each.met == "yes" for each in shown.requirements), len(shown.requirements)
    if subject.get("ended") == "converged":
        if not number:
            return "Finished: the result is complete and consistent"
        all_met = "the requirement is met" if number == 1 else f"all {number} requirements are met"
        return f"Finished: {all_met if met == number else f'{met} of {number} requirements are met'}"
    if unmet := number - met:
        if number == 1:
            return "Not finished: the requirement is unmet"
        return f"Not finished: {unmet} of {number} requirements {'is' if unmet == 1 else 'are'} unmet"
    return f"Not finished: {next(iter(reasons(shown)), 'the judge gave no reason')}"


def choices(point: str, subject: Subject, pass_number: int = 1) -> list[Choice]:
    """Return the answers that lead to something different here, the one that continues first."""
    if point == "plan":
        return _plan_choices(subject, pass_number)
    if point == "pass":
        return _pass_choices(subject)
    if point == "unknown":
        again = Choice("a", "Call it again, perhaps a second time", "approve")
        return [again, Choice("w", "Let the step fail, and say why", "reject", REASON), END]
    if point == "budget":
        proposed = number_of(subject.get("proposed_usd"))
        return [
            Choice("a", f"Raise it to {money(proposed)}" if proposed is not None else "Raise it", "approve"),
            Choice("e", "Set another budget", "edit"),
            Choice("w", "End at the ceiling, and say why", "reject", REASON),
            _LATER,
        ]
    return [
        Choice("a", _call_words(subject), "approve"),
        *(
            [Choice("A", f"Always allow {fit(one_line(rule), 40)}", ALWAYS)]
            if (rule := _proposed_rule(subject))
            else []
        ),
        Choice("w", "Refuse it, and say why", "reject", REASON),
        Choice("e", "Edit the arguments", "edit"),
        END,
    ]


def _proposed_rule(subject: Subject) -> str:
    return str_of((dict_of(subject.get("proposal")) or {}).get("rule"))


def _call_words(subject: Subject) -> str:
    return f"{call_title(subject).partition(' ')[0]} it"


def _plan_choices(subject: Subject, pass_number: int) -> list[Choice]:
    edit = Choice("e", "Edit plan or requirements", "edit") if pass_number == 1 else _EDIT_PLAN
    change = [Choice("w", "Tell it what to change", "reject", REASON)] if has_cycles(subject) else []
    return [Choice("a", "Run this plan", "approve"), *change, edit, END]


def _pass_choices(subject: Subject) -> list[Choice]:
    ended = subject.get("ended")
    # Whatever else runs needs a cycle: without one, the TTL ends the run.
    more = has_cycles(subject)
    fix, again = ([_FIX], [_AGAIN, _EDIT_PLAN]) if more else ([], [])
    if ended == "converged":
        return [Choice("a", "Take the result", "approve"), *fix, *again, END]
    if ended is None and more:
        return [Choice("a", "Run another pass", "approve"), *fix, _TAKE, *again, END]
    how = "not finished" if ended is not None else "out of cycles"
    return [Choice("a", f"End here, {how}", "approve"), *fix, _TAKE, *again, _LATER]


def has_cycles(subject: Subject) -> bool:
    """Return whether a cycle is left for what follows; where the subject does not say, that one is."""
    ttl = dict_of(subject.get("ttl"))
    return ttl is None or "remaining" not in ttl or int_of(ttl.get("remaining")) > 0
