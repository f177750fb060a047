from __future__ import annotations

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widgets.input import Selection

from aeon_themes import fallback_variables
from aeon_widgets.text_fields import FilterLine, LineInput


class Form(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield LineInput("say this")
        yield FilterLine("words")


@pytest.mark.parametrize("kind", [LineInput, FilterLine])
@pytest.mark.parametrize(
    ("pasted", "taken"),
    [
        ("one", "one"),
        ("first\nsecond\n\n  third\n", "first second third"),
        ("first\rsecond\r\nthird", "first second third"),
        ("", ""),
        ("\n", ""),
    ],
)
async def test_every_line_of_a_pasted_text_is_kept(kind: type[LineInput], pasted: str, taken: str) -> None:
    async with Form().run_test() as pilot:
        field = pilot.app.query_one(f"{kind.__name__}", kind)
        field.focus()
        field.value = ""
        pilot.app.post_message(events.Paste(pasted))
        await pilot.pause()
        assert field.value == taken


@pytest.mark.parametrize("selection", [Selection(4, 8), Selection(8, 4)])
async def test_a_pasted_text_replaces_the_selection(selection: Selection) -> None:
    async with Form().run_test() as pilot:
        field = pilot.app.query_one(LineInput)
        field.focus()
        await pilot.pause()
        field.selection = selection
        pilot.app.post_message(events.Paste("a\nb"))
        await pilot.pause()
        assert (field.value, field.cursor_position) == ("say a b", 7)
