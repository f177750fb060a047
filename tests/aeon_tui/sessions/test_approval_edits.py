"""A plan that a run waits with, in an editor: what was typed is kept until the run accepted it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from aeon_core.approval_inbox import about
from aeon_core.approvals import NOBODY, ApprovalDecision, ApprovalRequest
from aeon_core.errors import UsageError
from aeon_tui.sessions.approval_edits import ApprovalEdits

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


def test_an_omitted_status_is_not_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "sed -i '/status:/d' \"$1\"")
    decision = ApprovalEdits().edit(request())
    assert decision is not None
    assert decision.edited is not None
    assert [sorted(step) for step in decision.edited["steps"]] == [["agent", "description", "step_id"]] * 2
    assert seen(tmp_path).startswith("# The plan of pass 3.\n")


def test_a_refused_plan_is_reopened_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = ApprovalEdits()
    editor(tmp_path, monkeypatch, "sed -i 's/^goal: sums/goal: all sums/' \"$1\"; echo '# mine' >> \"$1\"")
    first = reviews.edit(request())
    editor(tmp_path, monkeypatch, "sed -i 's/Say it/Sing it/' \"$1\"")
    second = reviews.edit(request(problem="it cannot be so"))
    assert "goal: all sums\n" in seen(tmp_path)
    assert seen(tmp_path).endswith("# mine\n")
    assert first is not None
    assert second is not None
    assert second.edited == {"goal": "all sums", "steps": [STEPS[0], {**STEPS[1], "description": "Sing it"}]}


WANTED = ["The sum is given.", "It is short."]


def first(**more: Any) -> ApprovalRequest:
    steps = [{**step, "status": "pending"} for step in STEPS]
    return request(requirements=WANTED, plan={"goal": "sums", "steps": steps}, **more).model_copy(
        update={"pass_number": 1}
    )


def test_requirements_are_edited_next_to_the_first_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "sed -i 's/It is short/It is long/' \"$1\"")
    decision = ApprovalEdits().edit(first())
    assert decision is not None
    assert decision.edited is not None
    assert decision.edited["requirements"] == ["The sum is given.", "It is long."]
    assert [step["step_id"] for step in decision.edited["steps"]] == ["s1", "s2"]
    assert "\n# `requirements`: what a finished answer must satisfy, as a list;" in seen(tmp_path)
    assert "\nrequirements:\n- The sum is given.\n" in seen(tmp_path)


def test_invalid_requirements_are_reported_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits, asked = ApprovalEdits(), first()
    editor(tmp_path, monkeypatch, "sed -i 's/^- It is short.$/- [mine]/' \"$1\"")
    with pytest.raises(UsageError, match=r"requirements\[1\]: expected a sentence, got an array of 1; edit it again"):
        edits.edit(asked)
    editor(tmp_path, monkeypatch, "sed -i 's/^- .mine.$/- mine/' \"$1\"")
    decision = edits.edit(asked)
    assert decision is not None
    assert decision.edited is not None
    assert decision.edited["requirements"] == ["The sum is given.", "mine"]


def test_requirements_are_fixed_after_the_first_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "echo 'requirements: [mine]' >> \"$1\"")
    with pytest.raises(UsageError, match="the requirements are final since the first plan; leave them out"):
        ApprovalEdits().edit(request(requirements=WANTED))
    assert "equirements" not in seen(tmp_path)


def test_each_question_starts_with_its_own_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = ApprovalEdits()
    editor(tmp_path, monkeypatch, "sed -i 's/^goal: sums/goals: sums/' \"$1\"")
    with pytest.raises(UsageError, match=r'unknown key "goals".*; edit it again to fix it'):
        reviews.edit(request())
    editor(tmp_path, monkeypatch, "true")
    assert reviews.edit(request()) is None
    assert "goal: sums\n" in seen(tmp_path)
    assert len(list(tmp_path.glob("aeon-plan-*"))) == 1, "what could not be used is kept"


def test_a_draft_that_was_emptied_starts_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews, asked = ApprovalEdits(), request()
    editor(tmp_path, monkeypatch, ': > "$1"')
    with pytest.raises(UsageError, match="was emptied in the editor; cancelled"):
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
def test_calls_are_asked_about_only_with_approve_tool(approve: list[str], point: Any, asked: bool) -> None:
    approver = about(approve, lambda _: ApprovalDecision(decision="approve"))
    assert approver is not None
    decision = approver(ApprovalRequest(point=point, pass_number=1, subject={}, digest="d"))
    assert (decision.decision, decision.feedback) == (("approve", None) if asked else ("reject", NOBODY))
    assert about(approve, None) is None


TOOLS = [
    {
        "name": "erase",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    }
]
ARGUMENTS = {"path": "notes: old.txt\nand more", "times": 1}


def call(point: Any = "tool", **more: Any) -> ApprovalRequest:
    subject = {"tool_name": "erase", "arguments": ARGUMENTS, **more}
    return ApprovalRequest(point=point, pass_number=1, step_id="s1", subject=subject, digest="d")


def test_the_arguments_of_a_call_are_edited_as_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "sed -i 's/times: 1/times: 3/' \"$1\"")
    decision = ApprovalEdits(TOOLS).edit(call())
    assert decision is not None
    assert (decision.decision, decision.edited) == ("edit", {**ARGUMENTS, "times": 3})
    assert seen(tmp_path).startswith("# The arguments of erase.\n")
    assert "# The tool itself cannot be changed.\n" in seen(tmp_path)
    assert list(tmp_path.glob("aeon-arguments-*")) == []


def test_invalid_arguments_are_reopened_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits, asked = ApprovalEdits(TOOLS), call()
    editor(tmp_path, monkeypatch, "sed -i 's/times: 1/times: often/' \"$1\"")
    with pytest.raises(UsageError, match=r"does not fit 'erase': .*times.*; edit it again to fix it"):
        edits.edit(asked)
    editor(tmp_path, monkeypatch, "sed -i 's/times: often/times: 2/' \"$1\"")
    decision = edits.edit(asked)
    assert decision is not None
    assert decision.edited == {**ARGUMENTS, "times": 2}
    assert "times: often\n" in seen(tmp_path)


def test_an_edit_cannot_replace_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, 'echo "tool_name: Bash" >> "$1"')
    with pytest.raises(UsageError, match=r"does not fit 'erase': .*tool_name"):
        ApprovalEdits(TOOLS).edit(call())


@pytest.mark.parametrize("tools", [[], [{"name": "erase"}], [{"name": "erase", "input_schema": {"type": 1}}]])
def test_arguments_of_an_unknown_tool_are_checked_by_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: list[dict[str, Any]]
) -> None:
    editor(tmp_path, monkeypatch, 'echo "more: 1" >> "$1"')
    decision = ApprovalEdits(tools).edit(call())
    assert decision is not None
    assert decision.edited == {**ARGUMENTS, "more": 1}


@pytest.mark.parametrize(("typed", "taken"), [("3.5", True), ("2", False), ("much", False), ("true", False)])
def test_a_budget_is_edited_to_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, taken: bool
) -> None:
    editor(tmp_path, monkeypatch, f"sed -i 's/limit_usd: .*/limit_usd: {typed}/' \"$1\"")
    asked = ApprovalRequest(point="budget", pass_number=1, subject={"limit_usd": 2.0, "proposed_usd": 4.0}, digest="d")
    if taken:
        decision = ApprovalEdits().edit(asked)
        assert decision is not None
        assert decision.edited == {"limit_usd": 3.5}
    else:
        with pytest.raises(UsageError, match=r"expected `limit_usd: USD`, more than 2.0"):
            ApprovalEdits().edit(asked)
