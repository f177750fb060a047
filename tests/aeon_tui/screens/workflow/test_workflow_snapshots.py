"""How a workflow looks: at work, at a gate, with a command to confirm, with another question, past, failed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from aeon_tui.app import AeonApp
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_widgets.approval_panel import ApprovalPanel
from tests.aeon_tui.workflows import BLOCKLISTED, CEILING, COMMAND, GATE, app_on, at_a_gate, at_work, completed, failed
from tests.sampling import sample
from tests.waiting import until

Compare = Callable[..., bool]
SIZES = [pytest.param((60, 20), id="60x20"), pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]
STATES: dict[str, Callable[[], AeonApp]] = {
    "running": lambda: app_on(at_work(hostile=True), live=True),
    "gate": lambda: app_on(at_a_gate(), live=True, asked=GATE),
    "command": lambda: app_on(at_work(), live=True, asked=COMMAND),
    "blocklisted": lambda: app_on(at_work(), live=True, asked=BLOCKLISTED),
    "ceiling": lambda: app_on(at_work(), live=True, asked=CEILING),
    "past": lambda: app_on(completed()),
    "failed": lambda: app_on(failed()),
}
ASKING = {"gate", "command", "blocklisted", "ceiling"}


def settled(state: str, *keys: str) -> Callable[[Pilot[None]], object]:
    async def settle(pilot: Pilot[None]) -> None:
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, WorkflowScreen)
        screen.tick()
        if state in ASKING:
            await until(pilot, lambda: any(panel.has_focus_within for panel in screen.query(ApprovalPanel)))
        await pilot.press(*keys)
        for field in screen.query(Input):
            field.cursor_blink = False
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    return settle


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize("state", STATES)
def test_workflow_snapshots(snap_compare: Compare, state: str, size: tuple[int, int]) -> None:
    assert snap_compare(STATES[state](), terminal_size=size, run_before=settled(state))


@pytest.mark.parametrize("size", sample(SIZES, 1))
def test_rejection_snapshots(snap_compare: Compare, size: tuple[int, int]) -> None:
    keys = ("w", *"name the invoices table")
    assert snap_compare(STATES["gate"](), terminal_size=size, run_before=settled("gate", *keys))


def test_the_widest_screen_shows_the_artifact(snap_compare: Compare) -> None:
    assert snap_compare(STATES["running"](), terminal_size=(200, 50), run_before=settled("running", "2", "V", "g"))
