from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core.journal.search import SearchHit
from aeon_tui.app import AeonApp
from aeon_tui.screens.run import search
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.run.search import SearchScreen
from aeon_tui.sources.base import ReadAheadSource
from aeon_widgets.match_list import MatchList, RecordText, record_blocks
from aeon_widgets.step_pane import TABS, StepPane, StepText
from aeon_widgets.tally import HeadLine
from aeon_widgets.text_fields import FilterLine
from tests.aeon_tui.recordings import Recording, finished_run
from tests.waiting import until


class Searching:
    """A search screen on a run's screen."""

    def __init__(self, screen: SearchScreen, pilot: Pilot[None]) -> None:
        self.screen, self.pilot = screen, pilot
        self.list, self.record = screen.query_one(MatchList), screen.query_one(RecordText)

    @property
    def said(self) -> str:
        return self.screen.query_one(HeadLine).title

    @property
    def lines(self) -> list[str]:
        return ["".join(text for text, _ in self.list.pieces(place, 78)) for place in range(self.list.line_count)]

    async def until(self, done: Callable[[], bool]) -> None:
        await until(self.pilot, done, lambda: f"{self.said!r}, {self.record.text!r}")

    async def search(self, text: str) -> None:
        await self.pilot.press("slash")
        self.screen.query_one(FilterLine).value = text
        await self.pilot.press("enter")
        await self.until(lambda: self.screen._search is not None and self.screen._search.wanted == text)
        await self.until(lambda: "searching" not in self.said)


@asynccontextmanager
async def searching(folder: Path, run: Recording, extra: bytes = b"") -> AsyncIterator[Searching]:
    path = folder / "r1.jsonl"
    path.write_bytes("".join(f"{json.dumps(record)}\n" for record in run.records).encode() + extra)
    app = AeonApp(folder)
    app.first_screen = RunScreen(ReadAheadSource(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("slash")
        await pilot.pause()
        assert isinstance(app.screen, SearchScreen)
        yield Searching(app.screen, pilot)


async def test_matches_are_grouped_by_step_and_enter_opens_their_tab(tmp_path: Path) -> None:
    run = Recording()
    run.plan({"step_id": "s1", "description": "gather them"}, {"step_id": "s2", "description": "count them"})
    run.tool("s1", "echo", {"text": "needle one"}, {"text": "needle two"})
    run.ask("execute", "s2", "count each needle")
    run.add("text", sha256="ab", text="a long needle")
    run.step("s1", "complete", output={"text": {"$text": "ab"}})
    run.phase("a needle")
    for number in range(3):
        run.add("cycle", step_number=number, plan_state={"goal": "a needle in hay"})
    async with searching(tmp_path, run) as on:
        await on.search("Needle")
        assert on.said == "8 records match"
        assert [" ".join(line.split()) for line in on.lines] == [
            "s1 gather them · 3 matches",
            "tool arguments needle one",
            "tool result needle two",
            "output a long needle",
            "s2 count them · 1 match",
            "prompt count each needle",
            "Pass 1 · 1 match",
            "phase a needle",
            "The run · 3 matches",
            "supervisor a needle in hay ×3",
        ]
        await on.pilot.press("G")
        await on.search("one")
        assert [line.split()[-1] for line in on.lines] == ["match", "one"]
        await on.search("needle")
        assert (on.screen.focused, on.list.cursor) == (on.list, 1)
        await on.pilot.press("n", "n", "n")
        await on.until(lambda: on.list.cursor == 5)
        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.pilot.app.screen, RunScreen))
        pane = on.pilot.app.screen.query_one(StepPane)
        await on.until(lambda: (pane.tab, pane.pane_title[:7]) == (TABS.index("Prompt"), "Step s2"))


async def test_enter_scrolls_to_the_words_in_a_long_prompt(tmp_path: Path) -> None:
    run = Recording()
    run.plan({"step_id": "s1", "description": "gather them"}, {"step_id": "s2", "description": "count them"})
    run.ask("execute", "s2", "\n\n".join(f"hay {number}" for number in range(200)) + "\n\ncount each needle")
    async with searching(tmp_path, run) as on:
        await on.search("each NEEDLE")
        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.pilot.app.screen, RunScreen))
        text = on.pilot.app.screen.query_one(StepText)
        await on.until(lambda: "count each needle" in text.text and text.scroll_offset.y > 0)
        seen = range(text.scroll_offset.y, text.scroll_offset.y + text.size.height)
        assert ("each needle", "quote") in [
            (words, style) for line in seen for words, style in text.pieces(line, 80) if "quote" in style
        ]


async def test_a_search_of_the_run_without_matches_is_reported(tmp_path: Path) -> None:
    async with searching(tmp_path, finished_run()) as on:
        await on.search("not to be found")
        assert (on.said, on.lines) == ("no record matches", [])


async def test_pressing_v_opens_a_record_and_n_the_next(tmp_path: Path) -> None:
    run = Recording()
    for number in range(3):
        run.step(f"s{number}", "complete", output={"text": "x\n" * 40 + f"needle {number}"})
    async with searching(tmp_path, run) as on:
        await on.search("needle")
        await on.pilot.press("v")
        await on.until(lambda: "needle 0" in on.record.text)
        assert on.record.border_title is not None
        assert str(on.record.border_title).strip() == "step · seq 2"

        def in_sight() -> bool:
            at = on.record.scroll_offset.y
            return any("needle 0" in line.text for line in on.record._lines[at : at + on.record.size.height])

        await on.until(in_sight)
        await on.pilot.press("n")
        await on.until(lambda: "needle 1" in on.record.text)
        await on.pilot.press("n", "n", "N")
        await on.until(lambda: "needle 1" in on.record.text)
        await on.pilot.press("escape")
        assert not on.screen.has_class("-opened")
        await on.pilot.press("escape")
        await on.pilot.pause()
        assert isinstance(on.pilot.app.screen, RunScreen)


async def test_a_damaged_line_is_shown_raw(tmp_path: Path) -> None:
    async with searching(tmp_path, finished_run(), b'{"needle": \x1b[31m broken\n') as on:
        await on.search("needle")
        assert "damaged" in on.lines[1]
        await on.pilot.press("enter")
        await on.until(lambda: "broken" in on.record.text)
        assert "\\x1b[31m" in on.record.text
        assert on.record.text.startswith("✖ broken (")


async def test_escape_cancels_a_search_and_keeps_its_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slowly(path: Path, text: str, *, cancelled: Callable[[], bool]) -> Iterator[SearchHit]:
        yield SearchHit(0, 1, 0, "step", "needle")
        while not cancelled():
            go_on.wait(0.01)

    monkeypatch.setattr(search, "search_journal", slowly)
    async with searching(tmp_path, finished_run()) as on:
        on.screen.query_one(FilterLine).value = "needle"
        await on.pilot.press("enter")
        await on.until(lambda: on.said == "searching … 1 found · esc cancels")
        await on.pilot.press("down", "escape")
        await on.until(lambda: on.said == "1 record matches so far; the search was cancelled")
        assert isinstance(on.pilot.app.screen, SearchScreen)
        assert len(on.lines) == 2


async def test_a_text_with_too_many_matches_is_listed_partly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST", 3)
    monkeypatch.setattr("aeon_tui.screens.run.search.MOST", 3)
    async with searching(tmp_path, finished_run()) as on:
        await on.search("s")
        assert on.said == "the first 3 matching records"
        assert sum(line.startswith("   ") for line in on.lines) == 3


async def test_a_missing_journal_is_reported(tmp_path: Path) -> None:
    async with searching(tmp_path, finished_run()) as on:
        (tmp_path / "r1.jsonl").unlink()
        await on.search("sum")
        assert "does not exist" in on.said


def test_a_record_is_its_fields_without_the_envelope() -> None:
    record: dict[str, Any] = {
        "v": 1,
        "seq": 3,
        "ts": "now",
        "run": "r",
        "type": "t",
        "a": 1,
        "b": "x\ny",
        "c": {"d": 2},
    }
    assert record_blocks(record) == [
        ("muted", "now · r"),
        ("", "a: 1"),
        ("accent", "b"),
        ("", "x\ny"),
        ("accent", "c"),
        ("", '{\n  "d": 2\n}'),
    ]
