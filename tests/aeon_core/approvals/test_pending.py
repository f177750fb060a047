"""The question that a journal ends with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.approvals import NOBODY, UNASKED, ApprovalDecision, asked_again, pending_approval, was_unasked
from aeon_core.journal.records import MemoryRecord, RunResumed
from tests.aeon_core.questions import Asking

LONG = "a long text, " * 100
RESUMED = RunResumed(options={}, continues_at=2)


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    made = Asking(tmp_path / "r.jsonl")
    yield made
    made.end()


def test_the_last_question_is_open_until_decided(asking: Asking) -> None:
    assert pending_approval(asking.path) is None
    request = asking.ask("tool")
    question = pending_approval(asking.path)
    assert question is not None
    assert question.model_dump(exclude={"seq"}) == request.model_dump()
    assert question.seq == 1
    asking.decide(ApprovalDecision(decision="approve"))
    assert pending_approval(asking.path) is None


def test_a_process_that_resumes_leaves_it_open(asking: Asking) -> None:
    asking.ask("tool")
    asking.writer.append(RESUMED)
    question = pending_approval(asking.path)
    assert question is not None
    assert question.seq == 1


@pytest.mark.parametrize(
    ("feedback", "again"), [(NOBODY, "tool"), ("nobody could be asked", "tool"), ("not like this", None)]
)
def test_an_unanswered_question_of_any_version_is_asked_on_resume(
    asking: Asking, feedback: str, again: str | None
) -> None:
    asking.ask("tool")
    asking.decide(ApprovalDecision(decision="reject", feedback=feedback))
    assert asked_again(asking.path) == again


@pytest.mark.parametrize("feedback", [UNASKED.format("pass"), "nobody is asked about a pass any more"])
def test_automatic_approvals_of_any_version_are_recognised(feedback: str) -> None:
    assert was_unasked(feedback, "pass")
    assert not was_unasked(feedback, "tool")


def test_long_texts_are_in_full_wherever_the_journal_holds_them(asking: Asking) -> None:
    subject = {"plan": {"goal": LONG}, "answer": f"{LONG}!", "tool": {"$text": "no reference"}}
    asking.writer.append(MemoryRecord(key="known", value=LONG))
    asking.ask("pass", subject)
    question = pending_approval(asking.path)
    assert question is not None
    assert question.subject == subject
    short = pending_approval(asking.path, texts=False)
    assert short is not None
    assert LONG not in str(short.subject)


def test_a_question_longer_than_the_end_that_is_read_is_found_after_a_resume(asking: Asking) -> None:
    asking.ask("plan", {"plan": {"goal": "g", "steps": [{"step_id": f"s{number}"} for number in range(10_000)]}})
    asking.writer.append(RESUMED)
    question = pending_approval(asking.path)
    assert question is not None
    assert len(question.subject["plan"]["steps"]) == 10_000


@pytest.mark.parametrize("changed", [{"point": "lunch"}, {"digest": None}, {"subject": None}, {"subject": ["x"]}])
def test_a_record_without_a_question_is_ignored(asking: Asking, changed: dict[str, Any]) -> None:
    asking.ask("tool")
    asking.end()
    lines = asking.path.read_text().splitlines()
    asking.path.write_text("\n".join([*lines[:-1], json.dumps({**json.loads(lines[-1]), **changed})]) + "\n")
    assert pending_approval(asking.path) is None
