from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual.events import MouseScrollDown
from textual.pilot import Pilot
from textual.widgets import Static

from aeon_core.errors import UsageError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.summary import RunSummary
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen, BrowserTitle, ListRuns, RunsText
from aeon_tui.screens.onboarding import Onboarding
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.footer import KeyFooter
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_list import RunList
from aeon_widgets.text_fields import FilterLine
from tests.aeon_core.journal.build import finished, started, ttl, whole_run, write
from tests.aeon_tui.recordings import HOSTILE, finished_run
from tests.cpu_limit import cpu_limit
from tests.waiting import until

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


def summary(number: int, task: str = "add 5 and 10", status: str = "completed", path: str = "x") -> RunSummary:
    started = f"2026-11-20T09:{number:02d}:00.000000Z"
    return RunSummary(f"20261120-09{number:02d}00-a1b2c3", task, status, "simulated:default", 1, 0.0, started, path)


@asynccontextmanager
async def browsing(
    read: ListRuns, directory: Path = Path("runs"), size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Pilot[None], BrowserScreen]]:
    app = AeonApp(directory)
    screen = BrowserScreen(directory, read, lambda: NOW)
    app.first_screen = screen
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot, screen


async def settle(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text(rows: RunList, index: int, width: int) -> str:
    return "".join(piece for piece, _ in rows.pieces(index, width))


async def test_wider_screens_show_more_columns() -> None:
    run = replace(summary(30, status="ttl_expired"), passes=3, cost_usd=1.5, completeness=0.829, coherence=1.0)
    async with browsing(lambda directory: [run]) as (_, screen):
        rows = screen.query_one(RunList)
        assert " ".join(text(rows, 0, 60).split()) == "✖ TTL expired add 5 and 10 sim 30 min"
        assert " ".join(text(rows, 0, 80).split()) == "✖ TTL expired add 5 and 10 sim 3 0.82 1.00 30 min"
        assert " ".join(text(rows, 0, 90).split()).endswith("sim 3 0.82 1.00 $1.50 30 min")
        assert " ".join(text(rows, 0, 101).split()).endswith("sim 3 0.82 1.00 default $1.50 30 min")
        assert " ".join(text(rows, 0, 200).split()).endswith("$1.50 20261120-093000-a1b2c3 30 min")
        for width in range(20, 210):
            assert cell_len(text(rows, 0, width)) == max(width, cell_len(text(rows, 0, 20))), width


async def test_a_live_run_updates_and_shows_what_it_waits_for() -> None:
    run = replace(summary(30, status="running"), passes=1, waits_for="pass")
    async with browsing(lambda directory: [run]) as (_, screen):
        rows = screen.query_one(RunList)
        rows.tick(NOW + timedelta(seconds=1))
        assert " ".join(text(rows, 0, 80).split()) == "? waits: pass add 5 and 10 sim 2 – – 30:01"
        rows.tick(NOW + timedelta(seconds=2))
        assert text(rows, 0, 80).endswith("30:02")


async def test_the_keys_fit_a_narrow_screen_without_overlapping() -> None:
    for width, palette in ((30, False), (60, False), (80, False), (100, True)):
        async with browsing(lambda directory: [summary(30)], size=(width, 10)) as (_, screen):
            keys = screen.query_one(KeyFooter).keys
            assert any("palette" in key.action for key in keys) is palette
            assert (keys[0].width > keys[0].needed) is palette
            assert all(one.end <= other.start for one, other in pairwise(keys))
            assert keys[-1].end <= width


async def test_without_runs_the_screen_shows_how_to_start_one() -> None:
    runs: list[RunSummary] = []
    async with browsing(lambda directory: list(runs)) as (pilot, screen):
        await until(pilot, lambda: isinstance(screen.focused, Onboarding))
        assert "No runs yet." in str(screen.query_one("#welcome", Static).render())
        assert not screen.query_one(RunList).region
        runs.append(summary(1))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: not screen.query(Onboarding) and screen.focused is screen.query_one(RunList))
        runs.clear()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(screen.focused, Onboarding))


async def test_a_directory_that_cannot_be_read_is_one_clear_line() -> None:
    def read(directory: Path) -> Sequence[RunSummary]:
        raise UsageError("the runs directory '[/]' is not a folder; choose another")

    async with browsing(read) as (_, screen):
        assert screen.query_one(RunsText).text.split() == [
            "✖",
            *["the", "runs", "directory", "'[/]'", "is", "not", "a", "folder;", "choose", "another"],
        ]


async def test_a_reload_shows_new_runs_and_keeps_the_selected_one() -> None:
    runs = [summary(2, "two"), summary(1, "one")]
    async with browsing(lambda directory: list(runs)) as (pilot, screen):
        rows = screen.query_one(RunList)
        await pilot.press("down")
        assert rows.selected is not None
        assert rows.selected.task == "one"
        runs.insert(0, summary(3, "three"))
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert rows.line_count == 3
        assert rows.selected.task == "one"
        del runs[2]
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert rows.selected.task == "two"


async def test_enter_opens_a_journal_and_escape_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in finished_run().records))
    async with browsing(lambda directory: [summary(30, path=str(path))]) as (pilot, screen):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        shown = pilot.app.screen
        assert isinstance(shown, RunScreen)
        await until(pilot, lambda: shown.view.result is not None)
        await until(pilot, lambda: shown.query_one(PlanTree).line_count > 0)
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_hostile_tasks_are_text() -> None:
    async with browsing(lambda directory: [summary(1, HOSTILE + "z" * 5_000_000)]) as (pilot, screen):
        assert "[@click=app.quit]quit[/]" in text(screen.query_one(RunList), 0, 160)
        await pilot.click(RunList, offset=(50, 1))
        assert pilot.app.is_running


async def test_q_quits_with_code_0() -> None:
    async with browsing(lambda directory: []) as (pilot, _):
        await pilot.press("q")
        await pilot.pause()
    assert pilot.app.return_code in (0, None)


async def test_the_mouse_alone_selects_scrolls_and_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Path, int | None]] = []
    monkeypatch.setattr(AeonApp, "open_journal", lambda app, path, seq=None: opened.append((path, seq)))
    runs = [summary(59 - number, f"task {number}", path=f"{number}") for number in range(50)]
    async with browsing(lambda directory: runs) as (pilot, screen):
        rows = screen.query_one(RunList)
        await pilot.click(RunList, offset=(30, 2))
        assert rows.cursor == 2
        assert opened == []
        await pilot._post_mouse_events([MouseScrollDown], RunList, offset=(30, 5))
        await pilot.pause()
        assert rows.scroll_offset.y > 0
        assert rows.cursor == 2
        await pilot.double_click(RunList, offset=(30, 3))
        assert opened == [(Path(f"{rows.cursor}"), None)]
        assert rows.cursor > 2


async def test_a_match_is_opened_at_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Path, int | None]] = []
    monkeypatch.setattr(AeonApp, "open_journal", lambda app, path, seq=None: opened.append((path, seq)))
    path = write(tmp_path, started(), ttl(1, "a needle"), ttl(2), finished())
    async with browsing(list_runs, tmp_path) as (pilot, screen):
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: screen.query_one(RunList).line_count == 2)
        await pilot.press("enter", "down", "enter")
        await pilot.pause()
    assert opened == [(path, None), (path, 1)]


async def test_ten_thousand_runs_are_filtered_within_a_key_press() -> None:
    runs = [summary(number % 60, f"task {number}") for number in range(10_000)]
    runs = [replace(run, run_id=f"{number:05}") for number, run in enumerate(runs)]
    async with browsing(lambda directory: runs) as (_, screen):
        line = screen.query_one(FilterLine)
        line.value = "task 99 status:completed"
        with cpu_limit(5):
            screen.show_runs()
        assert screen.query_one(RunList).line_count == sum("99" in run.task or "99" in run.run_id for run in runs)


async def test_a_workflow_shows_its_forks() -> None:
    parent = replace(summary(1, "build it"), kind="workflow")
    fork = replace(summary(2, "build it"), kind="workflow", parent=parent.run_id)
    async with browsing(lambda directory: [fork, parent]) as (_, screen):
        rows = screen.query_one(RunList)
        assert [text(rows, row, 80)[20:42] for row in range(2)] == ["workflow · build it   ", "└ workflow · build it "]


async def test_the_title_counts_the_files_that_cannot_be_read(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write(runs, *whole_run())
    (runs / "broken.jsonl").write_text("no journal\n")
    app = AeonApp(runs_dir=runs)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "1 unreadable file" in app.screen.query_one(BrowserTitle).render().plain)
        (runs / "broken.jsonl").unlink()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "unreadable" not in app.screen.query_one(BrowserTitle).render().plain)
