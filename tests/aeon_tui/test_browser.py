from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Footer

from aeon_core.errors import UsageError
from aeon_core.journal.summary import RunSummary
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser import BrowserScreen, ListRuns
from aeon_tui.screens.run import RunScreen
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_list import RunList
from aeon_widgets.text_view import TextView
from tests.aeon_tui.recordings import HOSTILE, finished_run


def summary(number: int, task: str = "add 5 and 10", status: str = "completed", path: str = "x") -> RunSummary:
    started = f"2026-11-20T09:{number:02d}:00.000000Z"
    return RunSummary(f"20261120-09{number:02d}00-a1b2c3", task, status, "simulated:default", 1, 0.0, started, path)


@asynccontextmanager
async def browsing(
    read: ListRuns, directory: Path = Path("runs"), size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Pilot[None], BrowserScreen]]:
    app = AeonApp(directory)
    screen = BrowserScreen(directory, read)
    app.first_screen = screen
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot, screen


async def settle(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text(rows: RunList, index: int, width: int) -> str:
    return "".join(piece for piece, _ in rows.pieces(index, width))


async def test_runs_are_listed_with_status_time_task_and_where_there_is_room_model_and_id() -> None:
    async with browsing(lambda directory: [summary(30, status="ttl_expired")]) as (_, screen):
        rows = screen.query_one(RunList)
        assert " ".join(text(rows, 0, 80).split()) == "✖ ttl expired sim 2026-11-20 09:30 add 5 and 10"
        wide = " ".join(text(rows, 0, 140).split())
        assert wide.endswith("add 5 and 10 simulated:default 20261120-093000-a1b2c3")


async def test_the_keys_fit_a_narrow_screen_without_lying_on_each_other() -> None:
    for width, palette in ((30, False), (60, False), (80, False), (100, True)):
        async with browsing(lambda directory: [summary(30)], size=(width, 10)) as (_, screen):
            footer = screen.query_one(Footer)
            assert bool(footer.query(".-command-palette")) is palette
            assert footer.compact is not palette
            keys = sorted(key.region.x for key in footer.query("FooterKey"))
            ends = sorted(key.region.right for key in footer.query("FooterKey"))
            assert all(end <= start for end, start in zip(ends[:-1], keys[1:], strict=True))


async def test_no_runs_says_how_to_start_one() -> None:
    async with browsing(lambda directory: []) as (_, screen):
        hint = screen.query_one(TextView)
        assert hint.display
        assert "No runs yet." in hint.text
        assert "aeon-tui demo" in hint.text
        assert not screen.query_one(RunList).display


async def test_a_directory_that_cannot_be_read_is_one_clear_line() -> None:
    def read(directory: Path) -> Sequence[RunSummary]:
        raise UsageError("the runs directory '[/]' is not a folder; name another one")

    async with browsing(read) as (_, screen):
        assert screen.query_one(TextView).text.split() == [
            "✖",
            *["the", "runs", "directory", "'[/]'", "is", "not", "a", "folder;", "name", "another", "one"],
        ]


async def test_a_reload_shows_new_runs_and_keeps_the_selected_one() -> None:
    runs = [summary(2, "two"), summary(1, "one")]
    async with browsing(lambda directory: list(runs)) as (pilot, screen):
        rows = screen.query_one(RunList)
        await pilot.press("down")
        assert rows.selected is not None
        assert rows.selected.task == "one"
        runs.insert(0, summary(3, "three"))
        await pilot.press("r")
        await settle(pilot)
        assert rows.line_count == 3
        assert rows.selected.task == "one"
        del runs[2]
        await pilot.press("r")
        await settle(pilot)
        assert rows.selected.task == "two"


async def test_enter_opens_a_journal_and_escape_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in finished_run().records))
    async with browsing(lambda directory: [summary(30, path=str(path))]) as (pilot, screen):
        await pilot.press("enter")
        await pilot.pause()
        shown = pilot.app.screen
        assert isinstance(shown, RunScreen)
        for _ in range(200):
            await pilot.pause(0.02)
            if shown.view.result is not None:
                break
        assert shown.view.result is not None
        assert shown.query_one(PlanTree).line_count == 6
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_hostile_tasks_are_text() -> None:
    async with browsing(lambda directory: [summary(1, HOSTILE + "z" * 5_000_000)]) as (pilot, screen):
        assert "[@click=app.quit]quit[/]" in text(screen.query_one(RunList), 0, 120)
        await pilot.click(RunList, offset=(50, 1))
        assert pilot.app.is_running


async def test_q_quits_with_code_0() -> None:
    async with browsing(lambda directory: []) as (pilot, _):
        await pilot.press("q")
        await pilot.pause()
    assert pilot.app.return_code in (0, None)
