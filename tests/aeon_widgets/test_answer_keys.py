"""The line of a question's answers: it tells the keys that they have now."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from aeon_themes import fallback_variables
from aeon_widgets.answer_keys import AnswerKeys
from aeon_widgets.approval_panel import ApprovalPanel


class Asking(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield ApprovalPanel("unknown", {"tool_name": "Write", "arguments": {}}, "digest")

    def on_approval_panel_decided(self, event: ApprovalPanel.Decided) -> None:
        self.answers.append(event.answer)


async def test_an_answer_that_was_given_another_key_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.key_guard.SILENCE_SECONDS", 0.0)
    app = Asking()
    async with app.run_test(size=(80, 24)) as pilot:
        keys = app.query_one(AnswerKeys)
        assert str(keys.render()) == "a approve · d reject · w reject, say why · ctrl+x abort"
        app.set_keymap({"approval.approve": "f6", "approval.abort": "X"})
        await pilot.pause()
        assert str(keys.render()) == "f6 approve · d reject · w reject, say why · X abort"
        await pilot.press("a")
        assert app.answers == []
        await pilot.press("f6")
        await pilot.pause()
        assert app.answers == ["approve"]


async def test_a_click_answers_whatever_key_the_answer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.key_guard.SILENCE_SECONDS", 0.0)
    app = Asking()
    async with app.run_test(size=(80, 24)) as pilot:
        app.set_keymap({"approval.approve": "f6"})
        await pilot.pause()
        app.query_one(AnswerKeys).refresh(layout=True)
        await pilot.pause()
        await pilot.click(AnswerKeys, offset=(1 + len("f6 approve · d"), 0))
        await pilot.pause()
        assert app.answers == ["reject"]
