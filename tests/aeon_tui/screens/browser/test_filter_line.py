"""Narrowing the list of runs as one types, and searching the full text of all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from aeon_core.journal import search
from aeon_core.journal.listing import list_runs
from aeon_core.journal.search import SearchHit
from aeon_tui.screens.browser.screen import BrowserScreen, BrowserTitle
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.run_list import STATUS_CELLS, RunList, task_cells
from aeon_widgets.text_fields import FilterLine
from tests.aeon_core.journal.build import finished, started, ttl, write
from tests.aeon_tui.screens.browser.test_screen import browsing, settle, summary, text
from tests.waiting import PATIENCE, until

RUNS = [
    summary(4, "publish the report", "failed"),
    summary(3, "add 5 and 10"),
    summary(2, "translate the report"),
    summary(1, "compare two reports", "not_converged"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, started(task="one"), ttl(1), finished(answer="a needle, found"), run="a")
    write(tmp_path, started(task="two"), ttl(1), finished(answer="nothing"), run="b")
    write(tmp_path, started(task="three"), ttl(1, "needle of old"), finished(), run="c")
    return tmp_path


def shown(screen: BrowserScreen) -> list[str]:
    rows = screen.query_one(RunList)
    return [" ".join(text(rows, line, 80).split()) for line in range(rows.line_count)]


def tasks(screen: BrowserScreen) -> list[str]:
    rows, end = screen.query_one(RunList), STATUS_CELLS + task_cells(80)
    return [text(rows, line, 80)[STATUS_CELLS:end].strip() for line in range(rows.line_count)]


def title(screen: BrowserScreen) -> str:
    return screen.query_one(BrowserTitle).render().plain


async def typed(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


async def searched(pilot: Pilot[None], screen: BrowserScreen, *keys: str) -> None:
    await pilot.press("slash", *keys, "enter")
    await until(pilot, lambda: screen.search is not None and screen.search.ended)
    screen.look_at_search()
    await pilot.pause()


async def test_typing_narrows_the_list_and_escape_resets_it() -> None:
    async with browsing(lambda directory: RUNS) as (pilot, screen):
        assert not screen.query_one(FilterLine).display
        await typed(pilot, "slash", *"report")
        assert tasks(screen) == ["publish the report", "translate the report", "compare two reports"]
        assert "3 of 4" in title(screen)
        await typed(pilot, "space", *"conv")
        assert tasks(screen) == ["compare two reports"]
        await typed(pilot, *"x")
        assert tasks(screen) == []
        assert screen.query_one(RunList).where_empty[0].startswith("no run matches")
        await typed(pilot, "escape")
        assert len(tasks(screen)) == 4
        assert not screen.query_one(FilterLine).display
        assert screen.focused is screen.query_one(RunList)


async def test_the_found_run_stays_selected_after_leaving_the_filter() -> None:
    async with browsing(lambda directory: RUNS) as (pilot, screen):
        await typed(pilot, "down", "slash", *"report")
        assert screen.selected_run is RUNS[0]
        await typed(pilot, "down", "down")
        assert screen.selected_run is RUNS[2]
        await typed(pilot, "escape")
        assert screen.selected_run is RUNS[2]
        assert screen.query_one(RunList).cursor == 2


async def test_a_filter_applies_to_new_runs() -> None:
    runs = RUNS[:2]
    async with browsing(lambda directory: list(runs)) as (pilot, screen):
        await typed(pilot, "slash", *"report", "down")
        runs.insert(0, summary(9, "a report"))
        runs.insert(0, summary(8, "a poem"))
        await typed(pilot, "ctrl+r")
        assert tasks(screen) == ["a report", "publish the report"]
        assert screen.selected_run is RUNS[0]


async def test_keys_of_the_screen_are_letters_in_the_filter() -> None:
    async with browsing(lambda directory: RUNS) as (pilot, screen):
        await typed(pilot, "slash", "q", "r", "slash", "question_mark")
        assert screen.query_one(FilterLine).value == "qr/?"
        assert screen.check_action("filter", ()) is False
        assert pilot.app.screen is screen


async def test_letters_typed_ahead_are_not_keys() -> None:
    async with browsing(lambda directory: RUNS) as (pilot, screen):
        for key in ("slash", *"nDq"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else "/"))
        await settle(pilot)
        assert pilot.app.screen is screen
        assert screen.query_one(FilterLine).value == "nDq"


async def test_enter_searches_the_full_text_and_shows_matches_under_runs(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, screen):
        await searched(pilot, screen, *"needle")
        lines = enumerate(zip(tasks(screen), shown(screen), strict=True))
        assert [task if number % 2 == 0 else line for number, (task, line) in lines] == [
            "three",
            "ttl needle of old",
            "one",
            "answer a needle, found",
        ]
        assert "2 of 3 match" in title(screen)
        await typed(pilot, "down", "down", "down")
        assert screen.selected_run is not None
        assert screen.selected_run.run_id == "a"
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, RunScreen)
        await pilot.press("escape")
        assert len(shown(screen)) == 4
        await typed(pilot, "escape")
        assert len(shown(screen)) == 3
        assert screen.selected_run.run_id == "a"


async def test_matches_keep_showing_the_status_of_their_runs(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, screen):
        await searched(pilot, screen, *"needle")
        write(folder, started(task="three"), ttl(1, "needle of old"), finished("failed"), run="c")
        (folder / "a.jsonl").unlink()
        await typed(pilot, "ctrl+r")
        assert len(shown(screen)) == 2
        assert shown(screen)[0].startswith("✖ failed")


async def test_a_search_without_matches_is_reported(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, screen):
        await searched(pilot, screen, *"absent")
        assert screen.query_one(RunList).where_empty == ("no run contains this text; esc shows all",)
        assert "0 of 3 match" in title(screen)


async def test_a_search_stopped_before_a_match_is_not_reported_as_one_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def endless(path: Path, wanted: str, **options: object) -> Iterator[SearchHit]:
        while not options["cancelled"]():  # type: ignore[operator]
            begun.wait(0.005)
        yield from ()

    monkeypatch.setattr(search, "search_journal", endless)
    async with browsing(list_runs, folder) as (pilot, screen):
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: "searched 0 …" in title(screen))
        await pilot.press("escape")
        await until(pilot, lambda: "stopped after" in title(screen), lambda: title(screen))
        nothing = "nothing found before the search was stopped; esc shows all"
        assert screen.query_one(RunList).where_empty == (nothing,)


async def test_typing_leaves_the_search_results(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, screen):
        await searched(pilot, screen, *"needle")
        await typed(pilot, "slash", *["backspace"] * 6, *"tw")
        assert tasks(screen) == ["two"]


async def test_enter_without_words_goes_to_the_list() -> None:
    async with browsing(lambda directory: RUNS) as (pilot, screen):
        await typed(pilot, "slash", "space", "enter")
        assert screen.focused is screen.query_one(RunList)
        assert screen.search is None


async def test_enter_stays_in_an_invalid_filter_line() -> None:
    async with browsing(lambda directory: RUNS) as (pilot, screen):
        await typed(pilot, "slash", *"status:bogus", "enter", *"x")
        assert screen.query_one(FilterLine).value == "status:bogusx"
        assert screen.query_one(FilterLine).has_focus


async def test_escape_stops_a_search_and_then_leaves_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going_on, asked = threading.Event(), threading.Event()

    def endless(path: Path, wanted: str, **options: object) -> Iterator[SearchHit]:
        if path.stem == "c":
            yield SearchHit(0, 1, 0, "ttl", wanted)
        cancelled = options["cancelled"]
        going_on.set()
        while not cancelled():  # type: ignore[operator]
            asked.wait(0.005)

    monkeypatch.setattr(search, "search_journal", endless)
    async with browsing(list_runs, folder) as (pilot, screen):
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: going_on.is_set() and len(shown(screen)) == 2)
        await pilot.press("down")
        assert screen.query_one(RunList).cursor == 1
        assert "searched 1 …" in title(screen)
        await pilot.press("escape")
        await until(pilot, lambda: "1 of 3 match; stopped after" in title(screen), lambda: title(screen))
        assert len(shown(screen)) == 2
        await typed(pilot, "escape")
        assert len(shown(screen)) == 3


async def test_leaving_the_app_ends_a_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def endless(path: Path, wanted: str, **options: object) -> Iterator[SearchHit]:
        while not options["cancelled"]():  # type: ignore[operator]
            ended.wait(0.005)
        ended.set()
        yield from ()

    monkeypatch.setattr(search, "search_journal", endless)
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("slash", *"needle", "enter")
        await pilot.pause()
        await pilot.press("q")
    assert ended.wait(PATIENCE)
