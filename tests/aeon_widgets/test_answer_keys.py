"""The line of a question's answers: it tells the keys that they have now."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from aeon_themes import fallback_variables
from aeon_widgets.approval_panel import AnswerKeys, ApprovalPanel
from aeon_widgets.run_question import choices, run_question

MIDDLE = "w Tell it what to change · e Edit the plan"


class Asking(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield ApprovalPanel(run_question("plan", {"plan": {}, "ttl": {"remaining": 1}}, 2))

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        self.answers.append(event.answer)


async def test_an_answer_with_another_key_is_shown_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    app = Asking()
    async with app.run_test(size=(80, 24)) as pilot:
        keys = app.query_one(AnswerKeys)
        assert str(keys.render()) == f"a Run this plan · {MIDDLE}\nX End here, not finished"
        app.set_keymap({"approval.approve": "f6", "approval.abort": "f7"})
        await pilot.pause()
        assert str(keys.render()) == f"f6 Run this plan · {MIDDLE}\nf7 End here, not finished"
        await pilot.press("a")
        assert app.answers == []
        await pilot.press("f6")
        await pilot.pause()
        assert app.answers == ["approve"]


async def test_an_answer_wider_than_the_panel_leaves_room_for_those_after_it() -> None:
    async with Asking().run_test(size=(31, 24)) as pilot:
        keys = pilot.app.query_one(AnswerKeys)
        assert [keys.get_content_height(keys.size, keys.size, width) for width in (60, 27, 20)] == [2, 4, 6]


async def test_a_click_answers_whatever_key_the_answer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    app = Asking()
    async with app.run_test(size=(80, 24)) as pilot:
        app.set_keymap({"approval.approve": "f6"})
        await pilot.pause()
        app.query_one(AnswerKeys).refresh(layout=True)
        await pilot.pause()
        await pilot.click(AnswerKeys, offset=(1 + len("f6 Run this plan · w Tell it what to change · e"), 0))
        await pilot.pause()
        assert app.answers == ["edit"]


def test_a_single_pass_does_not_offer_to_change_a_plan_it_cannot_refine() -> None:
    assert "reject" in [choice.answer for choice in choices("plan", {})]
    assert [choice.answer for choice in choices("plan", {"single_pass": True})] == ["approve", "edit", "abort"]
