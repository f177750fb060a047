"""A plan or a pass that a headless run waits with, as a few lines: the journal holds the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from aeon_core.approvals.request import ApprovalRequest
from aeon_core.journal.values import dict_of, dicts_of, str_of, strs_of
from aeon_core.journal.view.formatting import issue, refinement, refinement_cause
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import issue_of, refinement_of
from aeon_widgets.review_text import cycles_left, follows, problem_blocks, score_blocks, step_blocks
from aeon_widgets.text import count, one_line
from aeon_widgets.text_view import Block

_ANSWER_LINES = 12
_STEP_LINES = 60
_FEW = 10


def review_lines(request: ApprovalRequest, view: RunView) -> Iterator[Block]:
    """Yield what a person decides about, the most important first; `view` is the run up to here."""
    subject, number = request.subject, request.pass_number
    yield from problem_blocks(subject)
    if request.point == "pass":
        yield from score_blocks(subject, number, view.assessments)
        yield from _cut(_answer(str_of(subject.get("answer"))), _ANSWER_LINES, "line")
    else:
        wanted = strs_of(subject.get("requirements"))
        yield from _cut([("", f"must satisfy: {one_line(each)}") for each in wanted], _FEW, "requirement")
        yield from _cut(list(step_blocks(dict_of(subject.get("plan")) or {})), _STEP_LINES, "line")
    found = [issue_of(each) for each in dicts_of(subject.get("issues"))]
    yield from _cut([(each.severity, f"issue: {issue(each)}") for each in found], _FEW, "issue")
    yield from _cut(
        _changes("changed before this pass", subject.get("earlier_refinements"), number - 1), _FEW, "change"
    )
    yield from _cut(_changes("changed", subject.get("refinements"), number), _FEW, "change")
    questions = strs_of(subject.get("questions"))
    yield from _cut([("accent", f"question: {one_line(each)}") for each in questions], _FEW, "question")
    yield "medium", follows(subject, number) if request.point == "pass" else f"approve: {cycles_left(subject)}"


def _changes(heading: str, refinements: object, pass_number: int) -> list[Block]:
    changes = (refinement_of(each, pass_number=pass_number) for each in dicts_of(refinements))
    return [("", f"{heading}: {refinement(each)}; because: {refinement_cause(each)}") for each in changes]


def _answer(answer: str) -> list[Block]:
    if not answer.strip():
        return [("muted", "no answer was given")]
    return [("bold", "answer:"), *(("", f"  {line}") for line in answer.splitlines())]


def _cut(blocks: list[Block], most: int, noun: str) -> Iterator[Block]:
    """Yield the first blocks, and how many more there are."""
    yield from islice(blocks, most)
    if len(blocks) > most:
        yield "muted", f"… {count(len(blocks) - most, f'more {noun}')}; see all with `aeon-tui show`"
