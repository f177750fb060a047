"""What a person sees, as pictures. After a wanted change: look at the report, then `--snapshot-update`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from aeon_core.approvals import ApprovalRequest
from aeon_core.config.schema import RunConfig
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.approval_panel import ApprovalPanel
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import converged_run, first_pass, given_up_run, second_pass
from tests.aeon_tui.recordings import HOSTILE, START, Recording, failed_run, finished_run, hostile_run, live_run
from tests.sampling import sample
from tests.waiting import PATIENCE, until

Compare = Callable[..., bool]
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]


def run_app(run: Recording, live: bool = False, theme: str | None = None) -> AeonApp:
    app = AeonApp(Path("runs"))
    if theme is not None:
        app.theme = theme
    screen = RunScreen(ListSource(run.records, live), clock=lambda: START + timedelta(seconds=41))
    app.first_screen = screen
    return app


def then(*keys: str) -> Callable[[Pilot[None]], object]:
    async def settle(pilot: Pilot[None]) -> None:
        await pilot.pause()
        screen = pilot.app.screen
        if isinstance(screen, RunScreen):
            screen.tick()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()

    return settle


def looks_so_when_asked(
    snap_compare: Compare,
    records: list[dict[str, Any]],
    runner: Runner,
    request: ApprovalRequest,
    keys: tuple[str, ...],
    size: tuple[int, int],
) -> bool:
    """Return whether the run screen looks as recorded while a person is asked, once they have typed some keys."""
    waiting = threading.Thread(target=runner.broker, args=(request,), daemon=True)
    app = AeonApp(Path("runs"))
    app.first_screen = RunScreen(ListSource(records, live=True), runner, clock=lambda: START + timedelta(seconds=41))

    async def decide(pilot: Pilot[None]) -> None:
        waiting.start()
        await until(pilot, lambda: pilot.app.screen.query(ApprovalPanel))
        await then(*keys)(pilot)  # type: ignore[misc]

    try:
        return bool(snap_compare(app, terminal_size=size, run_before=decide))
    finally:
        runner.broker.close()
        waiting.join(PATIENCE)


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize(
    ("run", "live", "keys"),
    [
        pytest.param(live_run, True, (), id="live"),
        pytest.param(finished_run, False, ("g", "j", "j"), id="finished"),
        pytest.param(failed_run, False, (), id="failed"),
        pytest.param(hostile_run, False, ("g", "p"), id="hostile"),
    ],
)
def test_run_screen(
    snap_compare: Compare, run: Callable[[], Recording], live: bool, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    assert snap_compare(run_app(run(), live), terminal_size=size, run_before=then(*keys))


@pytest.mark.parametrize("size", sample([*SIZES, pytest.param((200, 50), id="200x50")], 1))
@pytest.mark.parametrize(
    ("run", "live", "keys"),
    [
        pytest.param(second_pass, True, (), id="second-pass"),
        pytest.param(converged_run, False, ("1", "up", "2", "left"), id="converged"),
    ],
)
def test_passes(
    snap_compare: Compare, run: Callable[[], Recording], live: bool, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    assert snap_compare(run_app(run(), live), terminal_size=size, run_before=then(*keys))


@pytest.mark.parametrize(
    ("run", "size", "keys"),
    [
        pytest.param(first_pass, (80, 24), ("5", "v"), id="issues-80x24"),
        pytest.param(first_pass, (80, 24), ("4",), id="convergence-80x24"),
        pytest.param(first_pass, (60, 20), (), id="60x20"),
        pytest.param(second_pass, (120, 40), ("3", "enter"), id="profile"),
        pytest.param(given_up_run, (120, 40), ("5",), id="given-up"),
    ],
)
def test_passes_otherwise(
    snap_compare: Compare, run: Callable[[], Recording], size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    assert snap_compare(run_app(run(), live=True), terminal_size=size, run_before=then(*keys))


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        pytest.param((60, 20), (), id="60x20"),
        pytest.param((200, 60), (), id="200x60"),
        pytest.param((80, 24), ("p", "z"), id="zoomed-prompt"),
        pytest.param((80, 24), ("6", "enter"), id="repair"),
        pytest.param((80, 24), ("question_mark",), id="keys"),
    ],
)
def test_finished_run_otherwise(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(run_app(finished_run()), terminal_size=size, run_before=then(*keys))


def test_light_theme(snap_compare: Compare) -> None:
    app = run_app(finished_run(), theme="aeon-light")
    assert snap_compare(app, terminal_size=(120, 40), run_before=then())


EDIT: dict[str, Any] = {
    "tool_name": "Edit",
    "arguments": {
        "file_path": "src/main.py",
        "old_string": "import os\n\nretries = 2\nwait = 1.5\n",
        "new_string": "import os\n\nretries = 3\nwait = 1.5\n",
    },
    "description": "try once more before giving up",
    "reason": "'Edit' needs approval",
    "preview": {
        "diff": "--- a/src/main.py\n+++ b/src/main.py\n@@ -11,6 +11,7 @@\n import os\n \n-retries = 2\n+# be patient\n"
        "+retries = 3\n wait = 1.5\n \n \n@@ -40,2 +41,2 @@\n def connect() -> None:\n-    raise NotImplementedError\n"
        "+    return None  # nothing to do",
    },
}
WRITE: dict[str, Any] = {
    "tool_name": "Write",
    "arguments": {"file_path": f"{HOSTILE}.txt", "content": "\n".join(f"{n} {HOSTILE}" for n in range(5_000))},
    "description": HOSTILE,
    "reason": "'Write' needs approval",
}
MONEY: dict[str, Any] = {
    "spent_usd": 1.1043,
    "held_usd": 0.04,
    "reserved_usd": 0.31,
    "limit_usd": 1.2,
    "proposed_usd": 2.4,
    "model": "anthropic:claude",
    "purpose": "reason",
}


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize(
    ("point", "subject", "keys"),
    [
        pytest.param("tool", EDIT, (), id="edit"),
        pytest.param("tool", WRITE, ("w", *"too long"), id="hostile-words"),
        pytest.param("budget", MONEY, ("1",), id="budget-elsewhere"),
    ],
)
def test_decision(
    snap_compare: Compare,
    monkeypatch: pytest.MonkeyPatch,
    point: Any,
    subject: dict[str, Any],
    keys: tuple[str, ...],
    size: tuple[int, int],
) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    run = live_run()
    run.records[0]["config"]["budget"] = 1.2
    runner = Runner(NewRunJob("task", RunConfig()), Path("runs/r.jsonl"))
    request = ApprovalRequest(point=point, pass_number=1, subject=subject, digest="d")
    assert looks_so_when_asked(snap_compare, run.records, runner, request, keys, size)
