"""Text of a pane is selected with the mouse, and Ctrl-C copies it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.constants import MAX_FPS
from textual.events import MouseDown, MouseMove, MouseUp
from textual.pilot import Pilot
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.preview import PreviewPane
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.item_actions import FullText, TextScreen
from aeon_tui.screens.keys import KeyColumns
from aeon_tui.screens.settings import SettingsScreen
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.match_list import RecordText
from aeon_widgets.pane import HangingText, Item
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepText
from aeon_widgets.text_view import TextView
from aeon_widgets.workflow_panes import WorkflowConversation
from tests.aeon_tui.passes import given_up_run
from tests.aeon_tui.recordings import finished_run, live_run
from tests.aeon_tui.scenes import SCENES, opened
from tests.aeon_tui.screens.run.test_screen import Shown, shown
from tests.waiting import until

FIRST = "say it nicely, in one friendly sentence that everybody understands"


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(AeonApp, "copy_to_clipboard", lambda app, text: texts.append(text))
    return texts


async def drag(run: Shown, pane: type[Widget], start: tuple[int, int], end: tuple[int, int]) -> str | None:
    return await dragged(run.pilot, pane, start, end)


async def dragged(pilot: Pilot[None], pane: type[Widget], start: tuple[int, int], end: tuple[int, int]) -> str | None:
    """Drag the mouse between two cells, counted from the top left of the pane; return what is then selected.

    The app gets the events of a terminal, so it makes a click of them if they are in one pane.
    """
    screen = pilot.app.screen
    first, last = (screen.query_one(pane).region.offset + cell for cell in (start, end))
    for kind, place in ((MouseDown, first), (MouseMove, last), (MouseUp, last)):
        pilot.app.post_message(kind(None, *place, 0, 0, 1, False, False, False))
        await pilot.pause()
    return screen.get_selected_text()


async def test_each_line_of_the_header_is_selected_where_the_mouse_is() -> None:
    async with shown(finished_run()) as run:
        first, second = run.screen.query_one(RunHeader).render().plain.splitlines()
        assert await dragged(run.pilot, RunHeader, (3, 1), (12, 1)) == second[2:12]
        assert await dragged(run.pilot, RunHeader, (7, 0), (20, 0)) == first[6:20]
        assert await dragged(run.pilot, RunHeader, (3, 1), (60, 6)) == second[2:60], "not of the pane below"


async def test_text_is_selected_with_the_mouse_and_copied_once(copied: list[str]) -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        assert await drag(run, StepText, (5, 0), (9, 1)) == "it nicely, in one friendly sentence that everybody"
        await run.press("ctrl+c")
        assert copied == ["it nicely, in one friendly sentence that everybody"]
        assert [each.message for each in run.app._notifications] == ["Copied the selection (50 characters)"]
        assert run.screen.selections == {}, "the next Ctrl-C quits"
        assert run.text.has_focus


async def test_a_selection_ends_at_the_pane_where_it_began() -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        assert await drag(run, StepText, (5, 0), (60, 0)) == "it nicely, in one friendly sentence that"
        assert await drag(run, StepText, (5, 0), (-9, 1)) == "it nicely, in one friendly sentence that e"
        assert (await drag(run, StepText, (5, 2), (5, 30)) or "").endswith("make fifteen!")
        assert await drag(run, StepText, (7, 1), (0, -4)) == "say it nicely, in one friendly sentence that everybo"


async def test_new_lines_do_not_move_what_is_selected() -> None:
    recording = live_run()
    rest, recording.records = recording.records[-4:], recording.records[:-4]
    async with shown(recording, live=True) as run:
        await run.press("8")
        assert run.log.following
        text = await drag(run, LogPane, (12, 2), (40, 2))
        top = run.log.scroll_offset.y
        await run.go_on(rest)
        assert run.log.scroll_offset.y == top
        assert run.screen.get_selected_text() == text
        assert "End follows" in str(run.log.border_subtitle)
        await run.press("end")
        assert run.log.following


async def test_another_drag_selects_in_the_pane_where_it_begins() -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        for pane in (StepText, LogPane):
            assert await drag(run, pane, (5, 0), (20, 0))
            assert list(run.screen.selections) == [run.screen.query_one(pane)]
            drawn = run.screen._compositor.render_strips()[run.screen.query_one(pane).content_region.y]
            reversed_cells = [part.text for part in drawn if part.style and part.style.reverse]
            assert "".join(reversed_cells) == run.screen.get_selected_text(), "it is drawn"


async def test_a_selection_at_the_edge_of_a_low_pane_scrolls_no_faster_than_one_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = AeonApp(Path("runs"))
    app.first_screen = TextScreen(Item("the text", "\n".join(f"line {number}" for number in range(99)), ""))
    async with app.run_test(size=(40, 5)) as pilot:
        await pilot.pause()
        text = app.screen.query_one(FullText)
        text.scroll_to(y=50, animate=False, immediate=True)
        monkeypatch.setattr(Screen, "set_interval", lambda *_: Timer(app, 1))  # only the first step of a scroll
        at = text.content_region.offset
        assert text.size.height == 3
        for kind, y in ((MouseDown, at.y + 1), (MouseMove, at.y)):
            app.post_message(kind(None, at.x, y, 0, y - at.y - 1, 1, False, False, False))
            await pilot.pause()
        assert 0 < round((50 - text.scroll_y) * MAX_FPS) <= 20, "lines a second"


async def test_text_under_the_mouse_is_found_without_textuals_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(finished_run()) as run:
        x, y = run.log.content_region.offset
        found = run.screen.get_widget_and_offset_at(x, y)
        assert found[0] is run.log
        with monkeypatch.context() as renamed:
            renamed.delattr(Screen, "_selecting")
            assert run.screen.get_widget_and_offset_at(x, y) == found


async def test_the_first_column_of_a_scrolled_pane_is_where_its_line_begins() -> None:
    async with shown(finished_run()) as run:
        await run.press("8", "end")
        assert run.log.scroll_offset.y > 0
        text = (await drag(run, LogPane, (0, 1), (117, 1)) or "").split()
        top = run.screen.query_one(LogPane).scroll_offset.y
        assert text == "".join(part for part, _ in run.log.pieces(top, 100)).split()


async def test_clicks_select_the_text_of_a_pane_but_no_rows(copied: list[str]) -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        for times in (2, 3):
            await run.pilot.click(StepText, offset=(3, times), times=times)
            assert list(run.screen.selections) == [run.text]
            assert (run.screen.get_selected_text() or "").startswith(FIRST)
        await run.pilot.click(StepText, offset=(9, 3))
        await run.pilot.click(PlanTree, offset=(9, 3), times=3)
        assert run.screen.selections == {}
        await run.press("1")
        await run.pilot.click(RunHeader, offset=(9, 0), times=3)
        assert isinstance(run.screen.focused, PlanTree)
        assert run.screen.selections == {}
        assert copied == []


async def test_a_button_released_on_another_screen_no_longer_selects() -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        await run.pilot.mouse_down(StepText, offset=(5, 0))
        await run.pilot.hover(StepText, offset=(9, 0))
        await run.press("question_mark")
        await run.pilot.mouse_up(offset=(1, 1))
        await run.press("escape")
        await run.pilot.hover(StepText, offset=(20, 1))
        assert run.screen.selections == {}
        assert await drag(run, LogPane, (4, 2), (14, 2))
        assert list(run.screen.selections) == [run.log]


async def test_nothing_is_copied_where_there_is_no_text(copied: list[str]) -> None:
    async with shown(finished_run()) as run:
        assert not await drag(run, StepText, (3, 20), (9, 21))
        await run.press("ctrl+c")
        assert copied == []


async def test_dragging_over_the_requirements_chooses_none() -> None:
    async with shown(given_up_run()) as run:
        pane = run.screen.query_one(ConvergencePane)
        before = pane.selected
        assert await drag(run, ConvergencePane, (4, 1), (11, 1)) == "complete"
        assert await drag(run, ConvergencePane, (4, 3), (10, 3)) == "The ans"
        pane.scroll_to(y=3, animate=False, immediate=True)
        assert await drag(run, ConvergencePane, (4, 3), (10, 3)) == "Each er"
        assert pane.selected == before
        await run.pilot.click(ConvergencePane, offset=(4, 1))
        assert run.screen.selections == {}
        pane.focus()
        await run.press("z")
        second = pane.lines_of(1).start + 1
        assert await drag(run, ConvergencePane, (4, second), (10, second))
        assert pane.selected == 0
        await run.pilot.click(ConvergencePane, offset=(4, second), times=2)
        assert pane.selected == 1
        assert run.screen.selections == {}, "a double click is for the requirement"


async def test_another_step_is_not_selected() -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        assert await drag(run, StepText, (1, 0), (10, 1))
        await run.press("1", "j")
        assert run.screen.selections == {}


async def test_lines_with_other_text_at_another_width_are_not_selected() -> None:
    async with shown(finished_run()) as run:
        await run.press("1", "g", "j", "j")
        assert await drag(run, StepText, (5, 0), (9, 1)) == "it nicely, in one friendly sentence that everybody"
        await run.press("2", "z")
        assert run.screen.selections == {}, "the second line now has more of the text"
        assert await drag(run, StepText, (5, 0), (9, 0)) == "it ni"
        await run.press("z")
        assert run.screen.get_selected_text() == "it ni"


async def test_text_beside_the_list_of_runs_is_selected_too(copied: list[str]) -> None:
    scene = next(each for each in SCENES if each.name == "runs-preview")
    async with opened(scene) as (app, pilot):
        assert await dragged(pilot, PreviewPane, (0, 1), (35, 2)) == "in bold\nin accent"
        await pilot.press("ctrl+c")
        assert copied == ["in bold\nin accent"]
        assert app.screen.selections == {}


@pytest.mark.parametrize(
    ("name", "keys", "pane"), [("search", ("j", "j", "enter"), RecordText), ("finished", ("o",), FullText)]
)
async def test_text_of_a_match_and_an_opened_text_are_copied_once(
    copied: list[str], name: str, keys: tuple[str, ...], pane: type[Widget]
) -> None:
    scene = next(each for each in SCENES if each.name == name)
    async with opened(scene) as (app, pilot):
        await pilot.press(*keys)
        await until(pilot, lambda: bool(app.screen.query(pane)) and app.screen.query_one(pane).virtual_size.height)
        text = await dragged(pilot, pane, (2, 0), (12, 0))
        assert text
        await pilot.press("ctrl+c")
        assert copied == [text]
        assert app.screen.selections == {}


async def test_text_that_explains_a_setting_is_copied_once(copied: list[str]) -> None:
    async with shown(finished_run()) as run:
        screen = SettingsScreen()
        await run.app.push_screen(screen)
        await run.app.workers.wait_for_complete()
        await run.pilot.pause()
        assert (text := await dragged(run.pilot, TextView, (3, 1), (5, -4)))
        assert list(screen.selections) == [screen.query_one(TextView)], "no rows of the list above"
        await run.press("ctrl+c")
        assert copied == [text]
        assert [each.message for each in run.app._notifications] == [f"Copied the selection ({len(text)} characters)"]
        assert screen.selections == {}, "the next Ctrl-C quits"


async def test_lines_of_a_dialog_and_of_the_key_help_are_copied_once(copied: list[str]) -> None:
    async with shown(finished_run()) as run:
        lines = ["Its journal is deleted.", "So is its inbox."]
        await run.app.push_screen(ConfirmDialog("Delete it?", lines, "Delete"))
        await run.pilot.pause()
        texts = [await dragged(run.pilot, HangingText, (4, 0), (8, 1))]
        assert texts == ["journal is deleted.\nSo is it"]
        await run.press("ctrl+c", "escape", "question_mark")
        texts.append(await dragged(run.pilot, KeyColumns, (3, 1), (9, 2)))
        await run.press("ctrl+c")
        assert texts[1]
        assert copied == texts
        assert [each.message for each in run.app._notifications] == [
            f"Copied the selection ({len(texts[1])} characters)"
        ]
        assert run.app.screen.selections == {}


async def test_text_of_an_agents_conversation_is_selected_and_a_double_click_opens_it() -> None:
    scene = next(each for each in SCENES if each.name == "workflow-at-work")
    async with opened(scene) as (app, pilot):
        await pilot.press("g")
        talk = app.screen.query_one(WorkflowConversation)
        text = await dragged(pilot, WorkflowConversation, (0, 1), (70, 2))
        assert text == "\n".join(talk.text.split("\n")[:2])
        await pilot.click(WorkflowConversation, offset=(9, 1), times=2)
        assert app.screen.selections == {}
        assert talk.text.split("\n")[0] == text.split("\n")[0].replace("▾", "▸")
