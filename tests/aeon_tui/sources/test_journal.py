from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.view.incremental import LEFT_OUT
from aeon_core.journal.view.model import RunView
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sources.journal import JournalSource
from aeon_widgets.call_rows import RowKey
from aeon_widgets.log_pane import LogPane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepPane, StepText
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.recordings import START, Recording, finished_run, steps
from tests.waiting import PATIENCE, until, wait_until


def long_run() -> Recording:
    run = Recording()
    run.plan(*steps(repaired=True))
    for number in range(40):
        run.phase("execute")
        run.step("s3", "running")
        run.ask("reason", "s3", prompt=f"Say it nicely, {number}.")
        run.answer("reason", f"reply {number}", "s3")
        run.step("s3", "complete", mode="llm", output={"text": f"output {number}"})
        run.ask("answer", prompt=f"Write the answer, {number}.")
        run.answer("answer", f"answer {number}")
        run.phase("execute", "finished")
    run.finish("completed", answer="15")
    return run


SHORT = finished_run().records
LONG = long_run().records
"""More lines than a first view takes."""


def journal(folder: Path, records: list[dict[str, Any]]) -> Path:
    path = folder / "r1.jsonl"
    path.write_text("".join(f"{json.dumps(record, separators=(',', ':'))}\n" for record in records))
    return path


def views(source: JournalSource) -> list[RunView]:
    found: list[RunView] = []

    def all_there() -> bool:
        if (view := source.take_view()) is not None:
            found.append(view)
        return source.ended

    wait_until(all_there)
    return found


def test_a_short_journal_is_one_complete_view(tmp_path: Path) -> None:
    source = JournalSource(journal(tmp_path, SHORT))
    (view,) = views(source)
    assert (view.status, view.last_seq, view.whole_from) == ("completed", len(SHORT) - 1, 0)
    assert view.steps["s1"].output not in (LEFT_OUT, None)
    assert (source.take(0.01), source.reading, source.error, source.live) == ([], "", None, False)
    source.close()


@pytest.mark.parametrize(
    ("records", "line"), [([*SHORT[:5], *SHORT[6:]], 6), ([*LONG[:5], *LONG[6:]], 6)], ids=["short", "long"]
)
def test_damage_is_reported_with_its_line(tmp_path: Path, records: list[dict[str, Any]], line: int) -> None:
    source = JournalSource(journal(tmp_path, records))
    assert views(source)[-1].damage == [f"line {line}: seq {line} where {line - 1} was expected; lines are missing"]
    source.close()


@pytest.mark.parametrize("records", [SHORT, LONG], ids=["short", "long"])
def test_a_broken_line_is_not_also_reported_as_a_missing_one(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    path = journal(tmp_path, records)
    content = path.read_bytes().split(b"\n")
    content[5] = b"{"
    path.write_bytes(b"\n".join(content))
    source = JournalSource(path)
    (damage,) = views(source)[-1].damage
    assert damage.startswith("line 6: broken")
    source.close()


def test_a_long_journal_shows_its_end_first(tmp_path: Path) -> None:
    source = JournalSource(journal(tmp_path, LONG))
    end, whole = views(source)
    assert end.whole_from == len(LONG) - 200
    assert (whole.whole_from, whole.last_seq, end.last_seq) == (0, len(LONG) - 1, len(LONG) - 1)
    assert {name: step.status for name, step in end.steps.items()} == {
        name: step.status for name, step in whole.steps.items()
    }
    assert len(whole.phases) > len(end.phases)
    assert (source.take_view(), source.ended) == (None, True)
    assert source.record(0) == LONG[0]
    assert source.record(len(LONG)) is None
    source.close()


def test_elided_values_are_read_by_seq(tmp_path: Path) -> None:
    source = JournalSource(journal(tmp_path, LONG))
    whole = views(source)[-1]
    call = next(attempts[0] for attempts in whole.calls.values() if attempts[0].finished)
    assert call.request is LEFT_OUT
    assert (source.record(call.seq) or {})["request"] == LONG[call.seq]["request"]
    source.close()
    assert source.record(call.seq) is None


@pytest.mark.parametrize(
    ("content", "error"),
    [(None, UsageError), (b'{"a": 1}\n', UsageError), (b"", UsageError)],
    ids=["gone", "no", "empty"],
)
def test_a_file_that_is_not_a_journal_is_an_error_without_a_view(
    tmp_path: Path, content: bytes | None, error: type[Exception]
) -> None:
    path = tmp_path / "r1.jsonl"
    if content is not None:
        path.write_bytes(content)
    source = JournalSource(path)
    assert views(source) == []
    assert isinstance(source.error, error)
    assert not isinstance(source.error, JournalError)


class TwoViews(ListSource):
    """Gives its views on request, and records as they are in the run."""

    def __init__(self, views: list[RunView], records: list[dict[str, Any]]) -> None:
        super().__init__([])
        self.views: list[RunView] = []
        self.ended = False
        self.all_views, self._records = views, records
        self.asked: list[int] = []
        self.may_read = threading.Event()

    def take_view(self) -> RunView | None:
        return self.views.pop(0) if self.views else None

    def record(self, seq: int) -> dict[str, Any] | None:
        self.asked.append(seq)
        self.may_read.wait(PATIENCE)
        return self._records[seq]


class Shown:
    def __init__(self, screen: RunScreen, source: TwoViews, pilot: Pilot[None]) -> None:
        self.screen, self.source, self.pilot = screen, source, pilot
        self.tree, self.log = screen.query_one(PlanTree), screen.query_one(LogPane)

    async def show(self, number: int) -> None:
        self.source.views.append(self.source.all_views[number])
        if number:
            self.source.reading, self.source.ended = "", True
        self.screen.tick()
        await self.pilot.pause()

    @property
    def header(self) -> str:
        return self.screen.query_one(RunHeader).render().plain

    @property
    def text(self) -> str:
        return self.screen.query_one(StepText).text

    async def until(self, done: Callable[[], bool]) -> None:
        await until(self.pilot, done, lambda: self.text)


@asynccontextmanager
async def shown(folder: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Shown]:
    past = JournalSource(journal(folder, LONG))
    source = TwoViews(views(past), LONG)
    past.close()
    source.reading = "reading 37 %"
    app = AeonApp(folder)
    app.first_screen = screen = RunScreen(source, clock=lambda: START + timedelta(seconds=100))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Shown(screen, source, pilot)
        source.may_read.set()


async def test_the_end_shows_the_status_and_the_reading_progress(tmp_path: Path) -> None:
    async with shown(tmp_path) as on:
        await on.show(0)
        assert "reading 37 %" in on.header
        assert "✔ completed" in on.header
        first = "".join(text for text, _ in on.log.pieces(0, 100))
        assert first == f" … {len(LONG) - 200:,} earlier records still loading"
        on.tree.select(RowKey("step", "s1"))
        await on.pilot.pause()
        assert on.text.endswith("Still loading what came earlier …")
        await on.show(1)
        assert "reading" not in on.header


async def test_the_full_view_replaces_the_end_in_place(tmp_path: Path) -> None:
    async with shown(tmp_path) as on:
        on.source.may_read.set()
        await on.show(0)
        key = RowKey("step", "s3")
        on.tree.select(key)
        await on.pilot.press("8", "pageup", "pageup", "up")
        top = on.log.scroll_offset.y
        line = "".join(text for text, _ in on.log.pieces(top, 200))
        await on.show(1)
        assert on.tree.selected == key
        assert not on.log.following
        assert on.log.scroll_offset.y > top
        assert "".join(text for text, _ in on.log.pieces(on.log.scroll_offset.y, 200)) == line
        assert "new" not in str(on.log.border_subtitle)


async def test_an_opened_step_is_read_in_the_background(tmp_path: Path) -> None:
    async with shown(tmp_path) as on:
        await on.show(1)
        on.tree.select(RowKey("calls", "answer", 1))
        await on.until(lambda: bool(on.source.asked))
        assert on.text == "Reading the journal …"
        await on.pilot.press("2", "right")
        assert on.screen.query_one(StepPane).tab == 1
        on.source.may_read.set()
        await on.until(lambda: "Reading the journal" not in on.text)
        assert "Write the answer, 39." in on.text
        assert "answer 39" in on.text
        assert on.text.startswith("… 20 earlier ones: find them with `/`")
