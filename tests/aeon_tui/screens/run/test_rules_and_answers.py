"""At a question: a rule that always allows such calls, and answers to what is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Static

from aeon_core import RunConfig
from aeon_core.config.loading import load_config
from aeon_core.journal.reader import read_records
from aeon_core.runs.resume import Resumption
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import AnswersDialog, RuleDialog
from aeon_tui.screens.run.approval_controller import UNUSED
from aeon_tui.sessions.run_jobs import ResumeJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepPane, StepText
from aeon_widgets.virtual_list import ChoiceRows
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, of, plan
from tests.aeon_tui.screens.run.test_approval_controller import Erasing, asked
from tests.aeon_tui.screens.run.test_reviews import Reviewed
from tests.waiting import until

WHICH, WHO = "Which [bold]notation[/]?", "For whom?"
ERASES = {
    "goal": "clean up",
    "steps": [
        {"step_id": f"s{number}", "description": "erase", "tool": "erase", "arguments": {"path": path}}
        for number, path in enumerate(("a.txt", "a.txt", "b.md"), 1)
    ],
}


@pytest.fixture(autouse=True)
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def decided(journal: Path) -> list[dict[str, Any]]:
    return [each for each in of(list(read_records(journal)), "approval") if each["state"] == "decided"]


async def rule_dialog(pilot: Any) -> RuleDialog:
    await pilot.press("A")
    await until(pilot, lambda: isinstance(pilot.app.screen, RuleDialog) and bool(pilot.app.screen.query(ChoiceRows)))
    screen = pilot.app.screen
    assert isinstance(screen, RuleDialog)
    return screen


async def test_two_keys_always_allow_calls_like_this_one_in_this_run(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path, ERASES)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await asked(pilot)
        tree, step = pilot.app.screen.query_one(PlanTree), pilot.app.screen.query_one(StepPane)
        await until(pilot, lambda: "Step s1 · ? waiting" in step.pane_title)
        assert tree.render_line(0).text.startswith(" ? s1"), "it does not run while its call waits for a decision"
        assert "Waiting for a decision." in step.query_one(StepText).text
        dialog = await rule_dialog(pilot)
        assert dialog.query_one(Input).value == "erase(a.txt)"
        await pilot.press("enter")
        await until(pilot, lambda: erasing.erased == ["a.txt", "a.txt"])
        await asked(pilot)
        await pilot.press("a")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == ["a.txt", "a.txt", "b.md"]
    assert [each.get("allow") for each in decided(erasing.runner.journal)] == [
        {"rule": "erase(a.txt)", "scope": "run"},
        None,
    ]
    assert load_config().config.policy.allow == ()


async def test_a_rule_that_cannot_be_used_stays_in_the_field_and_one_for_the_project_is_saved_there(
    tmp_path: Path,
) -> None:
    erasing = Erasing(tmp_path, ERASES)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await asked(pilot)
        dialog = await rule_dialog(pilot)
        field, problem = dialog.query_one(Input), dialog.query_one("#problem", Static)
        for rule, words in (("erase(*.md)", "does not fit this call: a.txt"), ("read(*)", "must begin with erase")):
            field.value = rule
            await pilot.press("enter")
            await until(pilot, lambda words=words: words in str(problem.content))  # type: ignore[misc]
            assert field.value == rule
        assert erasing.erased == []
        config = Path(".aeon/config.yml")
        config.parent.mkdir()
        config.write_text("# ours\ntools: [shell]\n")
        field.value = "erase(*)"
        await pilot.press("down", "enter")
        await until(pilot, lambda: "not trusted" in str(problem.content))
        assert config.read_text() == "# ours\ntools: [shell]\n"
        config.write_text("# ours\n")
        await pilot.press("enter")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == ["a.txt", "a.txt", "b.md"]
    assert config.read_text() == '# ours\npolicy:\n  allow: ["erase(*)"]\n'
    assert load_config().config.policy.allow == ("erase(*)",)


async def test_escape_leaves_the_rule_and_the_call_still_waits(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await asked(pilot)
        await rule_dialog(pilot)
        await pilot.press("escape")
        await asked(pilot)
        await until(pilot, lambda: not isinstance(pilot.app.screen, RuleDialog))
        assert erasing.runner.broker.waiting is not None
        await pilot.press("a")
        await until(pilot, lambda: erasing.runner.result is not None)


def asking(tmp_path: Path) -> Reviewed:
    scripted = model(plan=plan(by=0), refine={**MENDED, "follow_up_questions": [WHICH, WHO]})
    return Reviewed(tmp_path, "pass", scripted=scripted)


async def answer(pilot: Any, *typed: str) -> None:
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, AnswersDialog) and len(pilot.app.screen.query(Input)) == 2)
    await pilot.press(*typed)
    await until(pilot, lambda: not isinstance(pilot.app.screen, AnswersDialog))


async def test_an_answer_is_shown_with_its_question_and_goes_with_the_decision(tmp_path: Path) -> None:
    reviewed = asking(tmp_path)
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        text = pilot.app.screen.query_one(ApprovalText)
        await answer(pilot, *"as 0.5", "enter", "enter")
        await until(pilot, lambda: "✔ as 0.5" in text.text)
        assert f"? {WHICH}" in text.text
        assert "2 open questions, 1 answered" in text.text
        assert reviewed.runner.broker.waiting is first, "to answer decides nothing"
        await answer(pilot, *"me", "escape")
        await until(pilot, lambda: "✔ me" in text.text)
        await pilot.press("a")
        second = await reviewed.question(pilot, first)
        assert second.subject["questions"] == []
        await reviewed.end(pilot)
    assert decided(reviewed.runner.journal)[0]["answers"] == {WHICH: "as 0.5", WHO: "me"}
    assert any('"answer": "as 0.5"' in each.prompt for each in reviewed.model.requests if each.purpose == "answer")


async def test_answers_survive_an_abort_and_a_resume(tmp_path: Path) -> None:
    reviewed = asking(tmp_path)
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        await reviewed.question(pilot)
        await answer(pilot, *"as 0.5", "escape")
        reviewed.runner.abort()
        await until(pilot, lambda: reviewed.runner.result is not None)
    journal = reviewed.runner.journal
    assert decided(journal)[0]["answers"] == {WHICH: "as 0.5"}

    def build(job: Any, path: Path, line: Any, delta: Any, approver: Any) -> Resumption:
        return Resumption(path, reviewed.model, approver=approver, on_line=line, on_delta=delta.add)

    config = RunConfig(durability="off", approve=["pass"])
    reviewed.runner = Runner(ResumeJob(TASK, config, journal, {}), journal, build)
    reviewed.app = AeonApp(tmp_path, reviewed.runner)
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        asked_again = await reviewed.question(pilot)
        text = pilot.app.screen.query_one(ApprovalText).text
        assert ("✔ as 0.5" in text, "2 open questions, 1 answered" in text) == (True, True)
        await pilot.press("a")
        await reviewed.question(pilot, asked_again)
        await reviewed.end(pilot)
    assert decided(journal)[0]["answers"] == {WHICH: "as 0.5"}
    assert any('"answer": "as 0.5"' in each.prompt for each in reviewed.model.requests if each.purpose == "answer")


async def test_ending_the_run_warns_that_answers_are_not_used(tmp_path: Path) -> None:
    reviewed = asking(tmp_path)
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        await reviewed.question(pilot)
        await answer(pilot, *"x", "escape")
        await until(pilot, lambda: "✔ x" in pilot.app.screen.query_one(ApprovalText).text)
        await pilot.press("c")
        await until(pilot, lambda: reviewed.runner.result is not None)
        await until(pilot, lambda: UNUSED in [each.message for each in pilot.app._notifications])
        assert not pilot.app.screen.query(ApprovalPanel) or pilot.app.screen.query_one(ApprovalPanel).answered
    assert decided(reviewed.runner.journal)[0]["answers"] == {WHICH: "x"}
