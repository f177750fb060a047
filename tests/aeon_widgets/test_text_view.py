"""Text that is measured at one width while another is on screen."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.geometry import Offset, Size
from textual.selection import SELECT_ALL, Selection

from aeon_themes import fallback_variables
from aeon_widgets.text_view import TextView

WORDS = "one two three four five six seven eight nine ten"


class Shown(App[None]):
    view = TextView

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.view()


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


def selected(view: TextView, start: tuple[int, int], end: tuple[int, int]) -> str | None:
    """Select from one place to before another, each a character and its line; return what would be copied."""
    view.screen.selections = {view: Selection(Offset(*start), Offset(*end))}
    return view.screen.get_selected_text()


async def test_a_selection_has_the_line_breaks_of_the_text_and_not_those_of_the_pane() -> None:
    async with Shown().run_test(size=(20, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", f"{WORDS}\n\n    and (so) on")])
        assert view.line_count > 4
        last = view.line_count - 1
        assert selected(view, (4, 0), (12, last)) == f"{WORDS[4:]}\n\n    and (so)"
        view.show([("markdown", "- **one** two three four five six")])
        assert view.text.startswith("• one two three")
        assert selected(view, (2, 0), (8, 1)) == "one two three\n  four f", "it is not in the source like that"
        view.show([("", "{{}}\n}\n}")])
        assert selected(view, (0, 1), (1, 2)) == "}\n}", "it is in the source as shown, and earlier without the break"


async def test_the_whole_text_is_searched_for_a_selection_only_when_that_is_copied() -> None:
    searched: list[str] = []

    class Searched(TextView):
        @property
        def source(self) -> str:
            searched.append(super().source)
            return searched[-1]

    class Searching(Shown):
        view = Searched

    async with Searching().run_test(size=(20, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", WORDS)])
        await pilot.mouse_down(TextView, offset=(3, 0))
        for column in (5, 7, 9):
            await pilot.hover(TextView, offset=(column, 1))
        view.show([("", WORDS), ("", "more")])
        assert not searched
        assert view.screen.get_selected_text() == WORDS[2:23]
        assert searched


async def test_text_out_of_sight_and_wide_characters_can_be_selected() -> None:
    async with Shown().run_test(size=(20, 4)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", "日本語 text\n" + "\n".join(f"line {number}" for number in range(20)))])
        await pilot.pause()
        await pilot.mouse_down(TextView, offset=(3, 0))
        await pilot.hover(TextView, offset=(5, 0))
        assert view.screen.get_selected_text() == "本語"
        strip = view.render_line(0)
        assert [segment.text for segment in strip if segment.style and segment.style.reverse] == ["本語"]
        assert strip.text.rstrip() == "日本語 text"
        await pilot.mouse_up(TextView, offset=(5, 0))
        view.scroll_to(y=10, animate=False, immediate=True)
        assert selected(view, (1, 0), (7, 17)) == "本語 text\n" + "\n".join(f"line {number}" for number in range(17))


async def test_only_the_selected_lines_of_a_long_text_are_looked_at() -> None:
    looked_at: list[int] = []

    class Watched(Selection):
        def get_span(self, y: int) -> tuple[int, int] | None:
            looked_at.append(y)
            return super().get_span(y)

    async with Shown().run_test(size=(20, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", "\n".join(f"line {number}" for number in range(500)))])
        assert view.get_selection(Watched(Offset(0, 250), Offset(4, 251)))[0] == "line 250\nline"
        assert looked_at == [250, 251]
        assert view.get_selection(Watched(Offset(0, 499), None))[0] == "line 499"
        assert view.get_selection(Watched(None, Offset(6, 0)))[0] == "line 0"


async def test_a_selection_stays_while_text_is_added_and_ends_when_its_text_changes() -> None:
    async with Shown().run_test(size=(20, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("", "one two")])
        assert selected(view, (4, 0), (7, 0)) == "two"
        await pilot.pause()
        view.show([("", "one two"), ("", "three")])
        assert view.screen.get_selected_text() == "two"
        view.show([("", "one 2"), ("", "three")])
        assert view.screen.get_selected_text() is None
        view.show([("", "three four five s")])
        view.screen.selections = {view: SELECT_ALL}
        await pilot.pause()
        view.show([("", "three four five six seven")])
        assert view.text == "three four five\nsix seven", "a selected word was moved to the next line"
        assert view.screen.get_selected_text() == "three four five six seven"


async def test_what_is_selected_within_a_highlighted_quote_is_visible() -> None:
    async with Shown().run_test(size=(30, 20)) as pilot:
        view = pilot.app.query_one(TextView)
        view.show([("accent", "one two three four")])
        assert view.mark("two three")
        assert selected(view, (5, 0), (16, 0)) == "wo three fo"
        await pilot.pause()
        strip = view.render_line(0)
        reverse = [segment.text for segment in strip if segment.text and segment.style and segment.style.reverse]
        assert reverse == ["t", " fo"]
