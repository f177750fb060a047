"""A plan that a run waits with, in an editor: what was typed is kept until the run has taken it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from aeon_core.effects.approval import NOBODY, ApprovalDecision, ApprovalRequest
from aeon_core.errors import UsageError
from aeon_tui.approvals import about
from aeon_tui.plan_reviews import PlanReviews

STEPS = [
    {"step_id": "s1", "description": "Add", "status": "complete", "agent": "llm"},
    {"step_id": "s2", "description": "Say it", "status": "pending", "agent": "llm"},
]


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def request(**more: Any) -> ApprovalRequest:
    subject = {"plan": {"goal": "sums", "steps": STEPS}, **more}
    return ApprovalRequest(point="plan", pass_number=3, subject=subject, digest="d")


def editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = folder / "editor"
    path.write_text(f'#!/bin/sh\ncp "$1" {folder}/seen\n{script}\n')
    path.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(path))


def seen(folder: Path) -> str:
    return (folder / "seen").read_text()


def test_a_status_that_nobody_wrote_is_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "sed -i '/status:/d' \"$1\"")
    decision = PlanReviews().edit(request())
    assert decision is not None
    assert decision.edited is not None
    assert [sorted(step) for step in decision.edited["steps"]] == [["agent", "description", "step_id"]] * 2
    assert seen(tmp_path).startswith("# The plan of pass 3.\n")


def test_a_plan_that_the_run_did_not_take_is_opened_as_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviews = PlanReviews()
    editor(tmp_path, monkeypatch, "sed -i 's/^goal: sums/goal: all sums/' \"$1\"; echo '# mine' >> \"$1\"")
    first = reviews.edit(request())
    editor(tmp_path, monkeypatch, "sed -i 's/Say it/Sing it/' \"$1\"")
    second = reviews.edit(request(problem="it cannot be so"))
    assert "goal: all sums\n" in seen(tmp_path)
    assert seen(tmp_path).endswith("# mine\n")
    assert first is not None
    assert second is not None
    assert second.edited == {"goal": "all sums", "steps": [STEPS[0], {**STEPS[1], "description": "Sing it"}]}


def test_another_question_begins_with_its_own_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = PlanReviews()
    editor(tmp_path, monkeypatch, "sed -i 's/^goal: sums/goals: sums/' \"$1\"")
    with pytest.raises(UsageError, match=r'unknown key "goals".*; edit it again to mend it'):
        reviews.edit(request())
    editor(tmp_path, monkeypatch, "true")
    assert reviews.edit(request()) is None
    assert "goal: sums\n" in seen(tmp_path)
    assert len(list(tmp_path.glob("aeon-plan-*"))) == 1, "what could not be used is kept"


def test_a_draft_that_was_emptied_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews, asked = PlanReviews(), request()
    editor(tmp_path, monkeypatch, ': > "$1"')
    with pytest.raises(UsageError, match="was emptied in the editor; nothing was done"):
        reviews.edit(asked)
    editor(tmp_path, monkeypatch, "true")
    assert reviews.edit(asked) is None
    assert "goal: sums\n" in seen(tmp_path)


@pytest.mark.parametrize(
    ("approve", "point", "asked"),
    [
        (["pass"], "tool", False),
        (["pass"], "budget", False),
        (["pass"], "pass", True),
        (["none"], "unknown", True),
        (["tool"], "tool", True),
        (["plan", "tool"], "budget", True),
    ],
)
def test_calls_are_asked_about_with_tool_alone(approve: list[str], point: Any, asked: bool) -> None:
    approver = about(approve, lambda _: ApprovalDecision(decision="approve"))
    assert approver is not None
    decision = approver(ApprovalRequest(point=point, pass_number=1, subject={}, digest="d"))
    assert (decision.decision, decision.feedback) == (("approve", None) if asked else ("reject", NOBODY))
    assert about(approve, None) is None
