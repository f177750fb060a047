"""The preview beside the list of runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from aeon_core.journal.listing import list_runs
from aeon_core.journal.records import ConvergenceRecord
from aeon_core.journal.summary import RunSummary
from aeon_core.journal.view.model import RunView
from aeon_core.journal.writer import JournalWriter
from aeon_tui.screens.browser import preview
from aeon_tui.screens.browser.preview import PreviewPane, view_of
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_widgets.run_list import RunList
from aeon_widgets.run_preview import Kin, preview_blocks
from tests.aeon_core.journal.build import finished, lines, plan_record, started, step, ttl, whole_run, write
from tests.aeon_tui.screens.browser.test_screen import NOW, browsing, settle, summary, text
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "REST_SECONDS", 0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, *whole_run(), run="c-whole")
    write(tmp_path, started(task="the second", parent={"run_id": "c-whole", "pass": 2}), ttl(1), run="b-fork")
    broken = lines(started(task="the third"), *[ttl(number) for number in range(9)], finished())
    broken[4] = broken[4].replace(b'"limit":50', b'"limit":5"')
    (tmp_path / "a-broken.jsonl").write_bytes(b"".join(broken))
    return tmp_path


def pane(screen: BrowserScreen) -> PreviewPane:
    return screen.query_one(PreviewPane)


async def test_the_selected_run_is_shown_next_to_a_wide_list_and_the_next_one_after_it(folder: Path) -> None:
    async with browsing(list_runs, folder, (120, 40)) as (pilot, screen):
        await until(pilot, lambda: "Answer" in pane(screen).text)
        assert pane(screen).region.x > screen.query_one(RunList).region.x
        shown = pane(screen).text
        assert shown.startswith("calculate the sum of 5 and 10\n✔ completed\n")
        assert "The sum is 15." in shown
        assert "Plan · 3 of 3 steps complete\n✔ s1 add 5 and 10\n" in shown
        assert "fork b-fork at pass 2, interrupted" in " ".join(shown.split())
        await pilot.press("down")
        await until(pilot, lambda: pane(screen).text.startswith("the second"))
        assert "interrupted" in pane(screen).text
        assert "fork of   c-whole at pass 2" in pane(screen).text
        assert "No longer" not in pane(screen).text


async def test_pressing_v_toggles_the_preview_under_a_narrow_list(folder: Path) -> None:
    async with browsing(list_runs, folder, (80, 24)) as (pilot, screen):
        assert not pane(screen).region
        await pilot.press("v")
        await until(pilot, lambda: "The sum is 15." in pane(screen).text)
        assert pane(screen).region.y > screen.query_one(RunList).region.y
        await pilot.press("tab")
        assert screen.focused is pane(screen)
        await pilot.press("v")
        assert not pane(screen).region
        assert screen.focused is screen.query_one(RunList)


async def test_only_the_last_of_many_runs_is_read_and_keys_are_answered_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, read = threading.Event(), []

    def slow(path: Path) -> RunView:
        read.append(path.stem)
        go.wait(PATIENCE)
        return view_of(path)

    monkeypatch.setattr(preview, "view_of", slow)
    monkeypatch.setattr(preview, "REST_SECONDS", PATIENCE)  # the cursor rests on no run before the last, however slow
    runs = list_runs(folder)
    async with browsing(lambda _: runs, folder, (120, 40)) as (pilot, screen):
        await pilot.press("down", "down", "up")
        monkeypatch.setattr(preview, "REST_SECONDS", 0.01)
        await pilot.press("down")
        assert screen.query_one(RunList).cursor == 2
        await until(pilot, lambda: "a-broken" in read)
        assert "b-fork" not in read
        await pilot.press("up")
        assert screen.query_one(RunList).cursor == 1
        go.set()
        await until(pilot, lambda: pane(screen).text.startswith("the second"))


async def test_damage_is_reported_and_marked_in_the_list(folder: Path) -> None:
    async with browsing(list_runs, folder, (120, 40)) as (pilot, screen):
        assert not text(screen.query_one(RunList), 2, 80).startswith("⚠")
        await pilot.press("end")
        await until(pilot, lambda: "damaged: 1 place" in pane(screen).text)
        assert "line 5: broken" in pane(screen).text
        assert text(screen.query_one(RunList), 2, 80).startswith("⚠ ✔ completed")


async def test_a_missing_journal_is_one_clear_line(tmp_path: Path) -> None:
    run = summary(30, path=str(tmp_path / "gone.jsonl"))
    async with browsing(lambda _: [run], tmp_path, (120, 40)) as (pilot, screen):
        await until(pilot, lambda: pane(screen).text.startswith("✖"))
        assert "No such file or directory" in " ".join(pane(screen).text.split())


async def test_the_preview_shows_that_no_run_is_selected_until_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browsing(lambda _: [summary(30)], tmp_path, (120, 40)) as (pilot, screen):
        await pilot.press("slash", *"nothing")
        await settle(pilot)
        assert pane(screen).text == "No run is selected."
        monkeypatch.setattr(preview, "REST_SECONDS", 600)  # it is not read
        await pilot.press("escape")
        await until(pilot, lambda: pane(screen).text == "")


async def test_a_live_run_is_read_again_after_new_records(folder: Path) -> None:
    async with browsing(list_runs, folder, (120, 40)) as (pilot, screen):
        await pilot.press("down")
        await until(pilot, lambda: "interrupted" in pane(screen).text)
        write(folder, started(task="the second"), ttl(1), finished("failed", answer="at last"), run="b-fork")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "at last" in pane(screen).text)


async def test_the_steps_of_a_live_run_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "LIVE_SECONDS", 0.02)
    writer = JournalWriter(tmp_path / "live.jsonl", "live")
    writer.append(started())
    runs = list_runs(tmp_path)
    async with browsing(lambda _: runs, tmp_path, (120, 40)) as (pilot, screen):
        await until(pilot, lambda: "No plan yet." in pane(screen).text)
        writer.append(plan_record({"step_id": "s1", "description": "add"}))
        writer.append(step("s1", "running"))
        await until(pilot, lambda: "▶ s1 add" in pane(screen).text)
    writer.close()


def test_a_long_journal_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, started(), *[ttl(number % 50) for number in range(3_000)], step("s1", "running"), finished())
    assert view_of(path).whole_from == 0
    monkeypatch.setattr(preview, "WHOLE", 1_000)
    view = view_of(path)
    assert view.whole_from > 2_000
    (run,) = list_runs(tmp_path)
    told = [text for _, text in preview_blocks(run, view, Kin(), NOW)]
    assert "read      the end of a long journal; open it for the rest" in told


def told(run: RunSummary, view: RunView, *forks: RunSummary) -> str:
    return "\n".join(text for _, text in preview_blocks(run, view, Kin(forks=forks), NOW))


def test_the_status_is_reported_with_its_reason(tmp_path: Path) -> None:
    live = replace(summary(30, status="running"), waits_for="pass")
    assert "? waiting for a decision about the result of the pass; open it to decide" in told(live, RunView())
    assert "it can be resumed" in told(summary(30, status="interrupted"), RunView())
    error = {"error_type": "LLMError", "message": "503\nthree times"}
    failed = view_of(write(tmp_path, started(), finished("failed", error=error)))
    assert "✖ failed\n503 three times" in told(summary(30, status="failed"), failed)


def test_scores_are_reported_pass_by_pass(tmp_path: Path) -> None:
    codes = {"reason_codes": ["incomplete"], "converged": False}
    scores = [
        ConvergenceRecord(pass_number=number, completeness_score=score, coherence_score=1.0, **codes)
        for number, score in ((1, 0.25), (2, 0.5))
    ]
    view = view_of(write(tmp_path, started(), *scores, finished("not_converged")))
    shown = told(summary(30, status="not_converged"), view)
    assert "0.25 → 0.50" in shown
    assert "the goal is not covered" in shown


def test_missing_or_many_relatives_are_reported(tmp_path: Path) -> None:
    orphan = replace(summary(30), parent="gone", forked_at=3)
    assert "fork of   gone at pass 3 (its journal is gone)" in told(orphan, RunView())
    forks = [replace(summary(number), parent=orphan.run_id, forked_at=1) for number in range(8)]
    assert "… 3 more forks" in told(orphan, RunView(), *forks)
