"""What can be done with the selected run: mark and compare, export, delete, copy; order and common filters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

from aeon_core.journal.listing import list_runs
from aeon_core.journal.writer import JournalWriter
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.dialogs import ConfirmDialog, ExportDialog
from aeon_widgets.run_list import RunList, RunListHeader
from aeon_widgets.text_fields import FilterLine
from aeon_widgets.virtual_list import ChoiceRows
from tests.aeon_core.journal.build import finished, started, ttl, write
from tests.aeon_tui.screens.browser.test_filter_line import tasks, title
from tests.aeon_tui.screens.browser.test_screen import browsing, settle, summary, text
from tests.waiting import until


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    write(runs, started(task="one"), ttl(1), finished(answer="the first"), run="c")
    write(runs, started(task="two", parent={"run_id": "c", "pass": 1}), ttl(1), finished("failed"), run="b")
    write(runs, started(task="three"), ttl(1), finished("aborted"), run="a")
    return runs


async def dialog(pilot: Pilot[None], kind: type) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    await pilot.pause()


def said(pilot: Pilot[None]) -> str:
    return " ".join(str(note.message) for note in pilot.app._notifications)


async def test_a_run_is_deleted_only_after_confirmation(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, screen):
        await pilot.press("delete")
        await dialog(pilot, ConfirmDialog)
        asked = " ".join(str(line.render()) for line in pilot.app.screen.query(".line"))
        assert "one" in asked
        assert "c · " in asked
        assert "kB" in asked
        assert "Its forks are kept: 1 run." in asked
        assert pilot.app.focused is pilot.app.screen.query_one("#no")
        await pilot.press("enter")
        await settle(pilot)
        assert pilot.app.screen is screen
        assert len(list_runs(folder)) == 3
        await pilot.press("delete")
        await dialog(pilot, ConfirmDialog)
        await pilot.press("right", "enter")
        await until(pilot, lambda: tasks(screen) == ["↳ pass 1 · two", "three"])
        assert sorted(path.name for path in folder.iterdir()) == ["a.jsonl", "b.jsonl"]
        await until(pilot, lambda: said(pilot) == "Deleted: c")


async def test_confirmation_can_be_clicked(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, screen):
        for button, left in (("#no", 3), ("#yes", 2)):
            await pilot.press("delete")
            await dialog(pilot, ConfirmDialog)
            await pilot.click(pilot.app.screen.query_one(button, Button))
            await until(pilot, lambda: pilot.app.screen is screen)
            await settle(pilot)
            await until(pilot, lambda left=left: len(list_runs(folder)) == left)  # type: ignore[misc]


async def test_keys_typed_ahead_of_the_question_delete_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 60.0)
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("delete")
        await dialog(pilot, ConfirmDialog)
        await pilot.press("y", "right", "enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, ConfirmDialog)
        await pilot.press("escape")
        assert len(list_runs(folder)) == 3


async def test_a_live_run_is_not_deleted(folder: Path) -> None:
    writer = JournalWriter(folder / "live.jsonl", "live")
    writer.append(started(task="live"))
    async with browsing(list_runs, folder) as (pilot, screen):
        assert tasks(screen)[0] == "live"
        await pilot.press("delete")
        await until(pilot, lambda: "is still running; abort it" in said(pilot))
        assert pilot.app.screen is screen
    writer.close()
    assert (folder / "live.jsonl").exists()


@pytest.mark.parametrize(
    ("keys", "name", "holds"),
    [
        (("enter",), "c.md", "# Run"),
        (("tab", "down", "enter"), "c.html", "<!doctype html>"),
        (("tab", "end", "enter"), "c.json", '"execution_id": "c"'),
        ((*["backspace"] * 4, *"x.json", "enter"), "x.json", '"task_input": "one"'),
    ],
)
async def test_a_run_is_exported_in_the_chosen_format(
    folder: Path, keys: tuple[str, ...], name: str, holds: str
) -> None:
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("x")
        await dialog(pilot, ExportDialog)
        await pilot.press(*keys)
        await until(pilot, lambda: said(pilot).startswith("Written: "))
        written = folder.parent / name
        assert said(pilot) == f"Written: {written}"
        assert holds.lower() in written.read_text().lower()
        if name.endswith("json"):
            assert json.loads(written.read_text())["final_result"]["answer"] == "the first"


async def test_the_format_follows_a_click_or_the_typed_suffix(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("x")
        await dialog(pilot, ExportDialog)
        line = pilot.app.screen.query_one(Input)
        await pilot.click(ChoiceRows, offset=(5, 2))
        await pilot.pause()
        assert line.value == "c.json"
        line.value = "report.HTML"
        await pilot.pause()
        assert pilot.app.screen.query_one(ChoiceRows).value == "html"
        line.value = "report.doc"
        line.focus()
        await pilot.press("enter")
        problem = str(pilot.app.screen.query_one("#problem", Static).content)
        assert problem == "✖ the file is 'report.doc'; its name must end in .md, .html or .json"
        await pilot.press("escape")
        assert list(folder.parent.iterdir()) == [folder]


async def test_a_file_is_replaced_only_after_confirmation(folder: Path) -> None:
    (folder.parent / "c.md").write_text("mine")
    async with browsing(list_runs, folder) as (pilot, screen):
        for key, kept in (("n", True), ("y", False)):
            await pilot.press("x")
            await dialog(pilot, ExportDialog)
            await pilot.press("enter")
            await dialog(pilot, ConfirmDialog)
            await pilot.press(key)
            await until(pilot, lambda: pilot.app.screen is screen)
            await settle(pilot)
            await until(pilot, lambda kept=kept: ((folder.parent / "c.md").read_text() == "mine") is kept)  # type: ignore[misc]


async def test_an_export_that_cannot_be_written_is_one_clear_line(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("x")
        await dialog(pilot, ExportDialog)
        pilot.app.screen.query_one(Input).value = "none/c.md"
        await pilot.press("enter")
        await until(pilot, lambda: "No such file or directory" in said(pilot))


async def test_an_unknown_users_home_folder_is_reported_in_the_dialog(folder: Path) -> None:
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("x")
        await dialog(pilot, ExportDialog)
        pilot.app.screen.query_one(Input).value = "~nobody-here/c.md"
        await pilot.press("enter")
        await pilot.pause()
        problem = str(pilot.app.screen.query_one("#problem", Static).content)
        assert problem == "✖ the file: the home folder in '~nobody-here/c.md' is unknown; write the full path"


@pytest.mark.parametrize("key", ["x", "F"])
async def test_a_run_name_in_a_title_is_not_markup(folder: Path, key: str) -> None:
    write(folder, started(task="odd"), ttl(1), finished("failed"), run="z[b]y")
    async with browsing(list_runs, folder) as (pilot, screen):
        screen.query_one(RunList).move_to(next(at for at, run in enumerate(list_runs(folder)) if run.task == "odd"))
        await pilot.press(key)
        boxes = await until(pilot, lambda: pilot.app.screen.is_modal and pilot.app.screen.query("Vertical"))
        title = boxes.first()._border_title
        assert str(title).endswith("z[b]y")


async def test_a_marked_run_is_compared_with_the_selected_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Path, Path]] = []
    monkeypatch.setattr(AeonApp, "compare_runs", lambda app, a, b: compared.append((a, b)))
    async with browsing(list_runs, folder) as (pilot, screen):
        await pilot.press("m")
        assert text(screen.query_one(RunList), 0, 80).startswith("◆ ✔")
        assert "◆ c marked" in title(screen)
        await pilot.press("down", "C")
        assert compared == [(folder / "c.jsonl", folder / "b.jsonl")]
        await pilot.press("up", "m")
        assert "◆" not in title(screen)
        await pilot.press("C")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))


async def test_two_marked_runs_are_compared_wherever_the_selection_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[Path, Path]] = []
    monkeypatch.setattr(AeonApp, "compare_runs", lambda app, a, b: compared.append((a, b)))
    async with browsing(list_runs, folder) as (pilot, screen):
        await pilot.press("m", "down", "m")
        rows = screen.query_one(RunList)
        assert [text(rows, at, 80)[0] for at in (0, 1)] == ["◆", "◆"]
        assert "◆ 2 marked" in title(screen)
        await pilot.press("C", "down", "C")
        assert compared == [(folder / "c.jsonl", folder / "b.jsonl")] * 2
        await pilot.press("m", "C")
        assert compared[-1] == (folder / "b.jsonl", folder / "a.jsonl"), "a third mark replaces the first"
        await pilot.press("m")
        assert "◆ b marked" in title(screen)
        (folder / "b.jsonl").unlink()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "◆" not in title(screen))


async def test_comparing_a_single_run_explains_what_is_needed(tmp_path: Path) -> None:
    write(tmp_path, started(task="odd"), ttl(1), finished("failed"), run="a")
    async with browsing(list_runs, tmp_path) as (pilot, screen):
        await pilot.press("C")
        await until(
            pilot, lambda: said(pilot) == "There is no other run to compare with: s starts one, F forks this one."
        )
        assert pilot.app.screen is screen


async def test_id_and_path_are_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(AeonApp, "copy_to_clipboard", lambda app, told: copied.append(told))
    async with browsing(list_runs, folder) as (pilot, _):
        await pilot.press("y", "ctrl+y")
        assert copied == ["c", str(folder / "c.jsonl")]
        await until(pilot, lambda: said(pilot) == f"Copied: {folder / 'c.jsonl'}")


def run(number: int, task: str, **fields: object) -> object:
    return replace(summary(number, task), **fields)  # type: ignore[arg-type]


RUNS = [
    run(9, "poor", completeness=0.9, coherence=0.2, cost_usd=0.5),
    run(8, "dear", cost_usd=3.0),
    run(7, "live", status="running", cost_usd=0.1),
    run(6, "good", completeness=0.8, coherence=0.7, cost_usd=None),
    run(5, "waits", status="running", waits_for="plan", cost_usd=0.2),
    run(4, "bad", status="failed"),
]


async def tried(pilot: Pilot[None], screen: BrowserScreen, act: Callable[[], object]) -> list[str]:
    await act()  # type: ignore[misc]
    await settle(pilot)
    return tasks(screen)


async def test_pressing_o_sorts_by_cost_then_scores_with_live_runs_first() -> None:
    async with browsing(lambda _: RUNS) as (pilot, screen):  # type: ignore[arg-type, return-value]
        assert tasks(screen) == ["live", "waits", "poor", "dear", "good", "bad"]
        assert await tried(pilot, screen, lambda: pilot.press("V")) == ["waits", "live", "dear", "poor", "bad", "good"]
        assert "by cost" in title(screen)
        by_scores = await tried(pilot, screen, lambda: pilot.press("V"))
        assert by_scores == ["live", "waits", "good", "poor", "dear", "bad"]
        assert (await tried(pilot, screen, lambda: pilot.press("V")))[2] == "poor"
        assert "by" not in title(screen)


async def test_a_click_on_a_title_orders_and_another_one_goes_back() -> None:
    async with browsing(lambda _: RUNS) as (pilot, screen):  # type: ignore[arg-type, return-value]
        head = screen.query_one(RunListHeader)
        at = str(head.render()).index("scores")
        by_scores = await tried(pilot, screen, lambda: pilot.click(RunListHeader, offset=(at, 0)))
        assert by_scores[2] == "good"
        assert "scores▾" in str(head.render())
        await pilot.click(RunListHeader, offset=(2, 0))
        assert tasks(screen) == by_scores
        assert (await tried(pilot, screen, lambda: pilot.click(RunListHeader, offset=(at, 0))))[2] == "poor"


async def test_a_key_cycles_through_the_existing_statuses() -> None:
    async with browsing(lambda _: RUNS) as (pilot, screen):  # type: ignore[arg-type, return-value]
        line = screen.query_one(FilterLine)
        asked = []
        for _ in range(5):
            await pilot.press("S")
            await settle(pilot)
            asked.append((line.value, len(tasks(screen))))
        assert asked == [
            ("status:running", 2),
            ("status:waiting", 1),
            ("status:completed", 3),
            ("status:failed", 1),
            ("", 6),
        ]
        assert not line.display
        assert screen.focused is screen.query_one(RunList)


async def test_tab_completes_a_filter_and_errors_are_reported() -> None:
    async with browsing(lambda _: RUNS) as (pilot, screen):  # type: ignore[arg-type, return-value]
        hint = screen.query_one("FilterHint")
        await pilot.press("slash", "s", "t")
        await settle(pilot)
        assert "status: model: since:" in str(hint.render())
        await pilot.press("tab", "f")
        await settle(pilot)
        await pilot.press("tab")
        await settle(pilot)
        assert screen.query_one(FilterLine).value == "status:failed"
        assert tasks(screen) == ["bad"]
        await pilot.press("x")
        await settle(pilot)
        assert str(hint.render()).startswith("✖ unknown status 'failedx'; choose from running")
        await pilot.press("end", "tab")
        assert screen.focused is screen.query_one(RunList)
