from __future__ import annotations

import pytest
from textual import events
from textual.app import App, ComposeResult

from aeon_themes import fallback_variables
from aeon_widgets.text_fields import FeedbackField


class Form(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[str] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield FeedbackField()

    def on_feedback_field_submitted(self, event: FeedbackField.Submitted) -> None:
        self.submitted.append(event.text)


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_enter_submits_and_other_keys_add_a_line(key: str) -> None:
    app = Form()
    async with app.run_test() as pilot:
        field = app.query_one(FeedbackField)
        await pilot.press(*"one", key, *"two")
        await pilot.pause()
        assert field.size.height == 2
        await pilot.press("enter")
        await pilot.pause()
        assert app.submitted == ["one\ntwo"] == [field.text]


async def test_keys_in_quick_succession_keep_their_order() -> None:
    app = Form()
    async with app.run_test() as pilot:
        for key in ("a", "ctrl+j", "b", "backspace", "c", "enter", "d"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.submitted == ["a\nc"]


@pytest.mark.parametrize(
    ("pasted", "kept"),
    [
        ("one", "one"),
        ("first\n\n\tsecond\n", "first\n\n\tsecond"),
        ("first\rsecond\r\nthird", "first\nsecond\nthird"),
        ("red \x1b[31mtext\x00\x7f\x9b", "red [31mtext"),
    ],
)
async def test_a_pasted_text_keeps_its_lines_but_no_control_characters(pasted: str, kept: str) -> None:
    app = Form()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(pasted))
        await pilot.pause()
        await pilot.press("enter")
        assert app.submitted == [kept]


async def test_a_long_text_takes_four_lines_and_scrolls_to_the_cursor() -> None:
    app = Form()
    async with app.run_test() as pilot:
        field = app.query_one(FeedbackField)
        app.post_message(events.Paste("\n".join(map(str, range(9)))))
        await pilot.pause()
        await pilot.pause()
        assert (field.size.height, field.scroll_offset.y) == (4, 5)
