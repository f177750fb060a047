"""Text that is measured at one width while another is on screen."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.geometry import Size

from aeon_themes import fallback_variables
from aeon_widgets.text_view import TextView

WORDS = "one two three four five six seven eight nine ten"


class Shown(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield TextView()


async def test_measuring_text_at_another_width_keeps_the_screen() -> None:
    async with Shown().run_test(size=(13, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", WORDS)])
        drawn = [view.render_line(y).text for y in range(view.line_count)]
        assert view.line_count > 3
        assert view.get_content_height(Size(200, 20), Size(200, 20), 100) == 1
        assert [view.render_line(y).text for y in range(view.line_count)] == drawn
        assert view.text.replace("\n", " ").split() == WORDS.split()


async def test_a_text_is_wrapped_again_when_its_width_changes_or_the_text_does() -> None:
    async with Shown().run_test(size=(13, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", WORDS)])
        await pilot.resize_terminal(80, 20)
        await pilot.pause()
        assert view.text == WORDS
        view.show([("", "eleven")])
        assert (view.text, view.line_count) == ("eleven", 1)


async def test_words_that_are_nowhere_in_markdown_leave_it_rendered() -> None:
    async with Shown().run_test(size=(40, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("markdown", "the **sum** of both")])
        assert not view.mark("difference")
        assert view.text == "the sum of both"
