"""What scrolling and updating cost: lines that are in sight and have changed, whatever the number of lines."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from rich.color import ColorSystem
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_themes import fallback_variables
from aeon_widgets.log_pane import LogPane
from aeon_widgets.text import Piece
from aeon_widgets.virtual_list import RowsView
from tests.waiting import painted

HEIGHT = 20
MANY = 1_000_000
pytestmark = pytest.mark.usefixtures("drawn_frames")


class Counted(RowsView):
    """Numbers, and which of them were asked for and drawn."""

    DEFAULT_CSS = "Counted { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.drawn: list[int] = []
        self.word = "line"

    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        self.asked.append(index)
        return [(f"{self.word if index == 3 else 'line'} {index}", "")]

    def render_line(self, y: int):  # type: ignore[no-untyped-def]  # a Strip
        self.drawn.append(y)
        return super().render_line(y)


class Shown(App[None]):
    def __init__(self, view: Counted | LogPane) -> None:
        super().__init__()
        self.view = view

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.view


async def filled(pilot: Pilot[None], view: Counted, count: int) -> None:
    view.focus()
    view.set_line_count(count)
    await settled(pilot, view)


async def settled(pilot: Pilot[None], view: Counted) -> None:
    await painted(pilot)
    view.asked.clear()
    view.drawn.clear()


async def test_a_key_draws_only_the_visible_of_a_million_lines() -> None:
    view = Counted()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await filled(pilot, view, MANY)
        for key, cursor in {"end": MANY - 1, "pageup": MANY - HEIGHT, "home": 0, "pagedown": HEIGHT - 1}.items():
            await pilot.press(key)
            await painted(pilot)
            assert view.cursor == cursor
            assert 0 < len(set(view.asked)) <= 2 * HEIGHT, key
            await settled(pilot, view)


async def test_moving_within_the_pane_draws_the_two_lines_that_change() -> None:
    view = Counted()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await filled(pilot, view, MANY)
        await pilot.press("j")
        await painted(pilot)
        assert set(view.drawn) == {0, 1}


async def test_an_update_draws_only_what_has_changed() -> None:
    view = Counted()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await filled(pilot, view, MANY)
        view.set_line_count(MANY)
        await painted(pilot)
        assert view.drawn == []
        view.word = "changed"
        view.set_line_count(MANY)
        await painted(pilot)
        assert set(view.drawn) == {3}
        assert view.render_line(3).text.startswith("changed 3")


async def test_a_line_that_is_only_looked_at_counts_as_not_drawn() -> None:
    view = Counted()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await filled(pilot, view, MANY)
        view.word = "changed"
        view.render_line(3)  # as for the text under the mouse
        await settled(pilot, view)
        view.set_line_count(MANY)
        await painted(pilot)
        assert set(view.drawn) == {3}


async def test_lines_added_below_the_view_trigger_no_layout() -> None:
    view = Counted()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await filled(pilot, view, MANY)
        view.set_line_count(MANY - 1)
        await settled(pilot, view)
        await painted(pilot)
        laid_out = []
        refresh = view.screen._refresh_layout
        view.screen._refresh_layout = lambda *args, **named: (laid_out.append(1), refresh(*args, **named))[1]  # type: ignore[method-assign]
        view.set_line_count(MANY + 1)
        await painted(pilot)
        assert (laid_out, view.max_scroll_y) == ([], MANY + 1 - HEIGHT)
        view.set_line_count(3)
        await painted(pilot)
        assert laid_out
        assert not view.show_vertical_scrollbar


def log_view(first: int, last: int, whole_from: int) -> RunView:
    envelope = {"v": 1, "ts": "2026-11-20T09:30:00Z", "run": "r", "type": "memory"}
    view = fold({**envelope, "seq": seq, "key": "k", "value": seq} for seq in range(first, last))
    view.whole_from = whole_from
    return view


async def test_a_paused_log_keeps_lines_that_newer_views_lack() -> None:
    pane = LogPane()
    async with Shown(pane).run_test(size=(60, HEIGHT)) as pilot:
        pane.update_view(log_view(0, 100, 0))
        await painted(pilot)
        pane.focus()
        await pilot.press("pageup")
        top = pane.render_line(0).text
        pane.update_view(log_view(5_000, 5_100, 5_000))
        await painted(pilot)
        assert pane.render_line(0).text == top
        assert pane.border_subtitle == "paused · 5,000 records since · End follows"
        pane.update_view(log_view(0, 5_200, 0))
        await painted(pilot)
        assert pane.render_line(0).text == top
        pane.update_view(log_view(6_000, 6_100, 6_000))
        await pilot.press("end")
        await painted(pilot)
        assert "6099" in pane.render_line(pane.size.height - 1).text


async def test_a_cursor_set_before_layout_does_not_scroll_what_fits() -> None:
    class Chosen(Counted):
        def on_mount(self) -> None:
            self.set_line_count(HEIGHT + 1)
            self.cursor = 2

    view = Chosen()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await painted(pilot)
        assert (view.cursor, view.scroll_offset.y) == (2, 0)


@pytest.mark.parametrize("focused", [True, False])
async def test_in_sixteen_colours_the_cursor_is_underlined(focused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    view = Counted()
    async with Shown(view).run_test(size=(40, HEIGHT)) as pilot:
        await filled(pilot, view, 3)
        if not focused:
            view.blur()
        await painted(pilot)
        assert not underlined(view, 0)
        monkeypatch.setattr(App, "is_headless", False)
        monkeypatch.setattr(pilot.app.console, "_color_system", ColorSystem.STANDARD)
        assert [underlined(view, y) for y in range(3)] == [True, False, False]


def underlined(view: Counted, y: int) -> bool:
    return all(segment.style is not None and segment.style.underline for segment in view.render_line(y))
