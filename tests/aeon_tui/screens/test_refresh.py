"""When a run's screen looks for something new: as soon as its source says so, and else hardly ever."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.strip import Strip
from textual.widget import Widget

from aeon_tui.app import AeonApp
from aeon_tui.screens import refresh
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sources.base import Listener
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepPane, TabBar
from aeon_widgets.ttl_gauge import TTLGauge
from aeon_widgets.virtual_list import LinesView
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import second_pass
from tests.aeon_tui.recordings import finished_run
from tests.aeon_tui.workflows import completed
from tests.waiting import painted, until

RECORDS = finished_run().records


class TellingFeed(ListSource):
    """Says when there is something to take, and counts how often it is asked."""

    def __init__(self, records: list[dict[str, Any]], live: bool, tells: bool = True) -> None:
        super().__init__(records, live)
        self.ended = not live
        self.asked, self.tells = 0, tells
        self.listener: Listener | None = None

    def listen(self, listener: Listener) -> bool:
        self.listener = listener
        return self.tells

    def take(self, seconds: float) -> list[dict[str, Any]]:
        self.asked += 1
        return super().take(seconds)

    def bring(self, records: list[dict[str, Any]]) -> None:
        """Have something new, on a thread as sources do."""
        self.waiting = records
        if self.listener is not None:
            thread = threading.Thread(target=self.listener)
            thread.start()
            thread.join()


@pytest.mark.usefixtures("drawn_frames")
async def test_a_second_of_a_call_redraws_only_its_time_and_row(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: set[tuple[str, int]] = set()

    def counted(kind: type[Widget]) -> None:
        render_line = kind.render_line

        def render(self: Widget, y: int) -> Strip:
            drawn.add((type(self).__name__, y))
            return render_line(self, y)

        monkeypatch.setattr(kind, "render_line", render)

    for kind in (RunHeader, LinesView, StepPane, TabBar):
        counted(kind)
    run = second_pass()
    now = [datetime.fromisoformat(run.records[-1]["ts"])]
    app = AeonApp(Path("runs"))
    screen = app.first_screen = RunScreen(TellingFeed(run.records, live=True), clock=lambda: now[0])
    async with app.run_test(size=(120, 40)) as pilot:
        screen.tick()
        await painted(pilot)
        tree, drawn_before = screen.query_one(PlanTree), len(drawn)
        assert drawn_before > 40
        drawn.clear()
        now[0] += timedelta(seconds=1)
        screen.show_rest()
        screen.query_one(StepPane).pane_title = "another one"
        await painted(pilot)
        assert drawn == {("RunHeader", 1), ("PlanTree", tree.cursor - tree.scroll_offset.y)}
        lines = [strip.text for strip in screen._compositor.render_strips()]
        assert any("another one" in line for line in lines)


@pytest.fixture(autouse=True)
def soon_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "SLOW_AFTER", 2)


@pytest.mark.parametrize(
    ("records", "live", "tells", "rate"),
    [
        (RECORDS, False, True, refresh.NONE),
        (RECORDS[:30], True, True, refresh.CLOCK_RATE),
        (RECORDS[:30], True, False, refresh.ASKING_RATE),
    ],
    ids=["past", "live", "a source that has to be asked"],
)
async def test_an_idle_screen_is_rarely_woken(
    tmp_path: Path, records: list[dict[str, Any]], live: bool, tells: bool, rate: int
) -> None:
    app = AeonApp(tmp_path)
    app.first_screen = screen = RunScreen(TellingFeed(list(records), live, tells))
    async with app.run_test() as pilot:
        await until(pilot, lambda: screen._frames.rate == rate)


async def test_a_past_run_is_idle_but_shows_new_records_at_once(tmp_path: Path) -> None:
    app, source = AeonApp(tmp_path), TellingFeed(RECORDS[:30], live=False)
    source.ended = True
    app.first_screen = screen = RunScreen(source)
    async with app.run_test() as pilot:
        await until(pilot, lambda: screen._frames.rate == refresh.NONE)
        asked = source.asked
        await pilot.pause(0.3)
        assert source.asked == asked
        source.bring(RECORDS[30:])
        await until(pilot, lambda: screen.view.last_seq == RECORDS[-1]["seq"])
        assert screen.view.result is not None


async def test_the_screen_is_woken_once_a_frame(tmp_path: Path) -> None:
    app, source = AeonApp(tmp_path), TellingFeed(RECORDS[:30], live=True)
    app.first_screen = screen = RunScreen(source)
    async with app.run_test() as pilot:
        await until(pilot, lambda: screen._frames.rate == refresh.CLOCK_RATE)
        for _ in range(1_000):
            assert source.listener is not None
            source.listener()
        await pilot.pause()
        assert screen._frames.wakes == 1


async def test_a_past_workflow_is_idle(tmp_path: Path) -> None:
    app, source = AeonApp(tmp_path), TellingFeed(completed().records, live=False)
    app.first_screen = screen = WorkflowScreen(source)
    async with app.run_test() as pilot:
        await until(pilot, lambda: screen._frames.rate == refresh.NONE)
        assert screen.status == "completed"


async def test_a_frame_that_is_due_while_the_screen_is_removed_is_left_out(tmp_path: Path) -> None:
    class RemovedScreen(RunScreen):
        def on_unmount(self) -> None:
            assert not self.query(TTLGauge)
            self._source.take = lambda seconds: RECORDS[30:]  # type: ignore[method-assign]
            self._frames._wake()
            self._frames._frame()
            self.tick()
            left.append(self.view.last_seq)

    app, left = AeonApp(tmp_path), list[int]()
    async with app.run_test() as pilot:
        screen = RemovedScreen(TellingFeed(RECORDS[:30], live=True))
        await app.push_screen(screen)
        await until(pilot, lambda: screen.view.last_seq == RECORDS[29]["seq"])
        await app.pop_screen()
        assert left == [RECORDS[29]["seq"]]


async def test_a_frame_of_a_hidden_run_is_left_out_while_the_app_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, source, panes = AeonApp(tmp_path), TellingFeed(RECORDS[:30], live=True), set[bool]()
    screen = RunScreen(source)
    detach = Widget._detach

    def detached(widget: Widget) -> None:
        detach(widget)
        panes.add(bool(screen.query(TTLGauge)))
        source.waiting = RECORDS[30:]
        screen._frames._frame()

    async with app.run_test() as pilot:
        app.install_screen(screen, "hidden")
        await app.push_screen(screen)
        await until(pilot, lambda: screen.view.last_seq == RECORDS[29]["seq"])
        await app.pop_screen()
        monkeypatch.setattr(Widget, "_detach", detached)
    assert panes == {True, False}
    assert screen.view.last_seq == RECORDS[29]["seq"]
