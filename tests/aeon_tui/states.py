"""A run's screen in the states that a person meets it in: live, waiting for a decision, past, failed, damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from typing_extensions import override

from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.config.schema import RunConfig
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.keys import KeyGuard
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import Passes, converged_run, first_pass, second_pass
from tests.aeon_tui.recordings import START, Recording, failed_run, live_run
from tests.aeon_tui.screens.run.test_review_snapshots import PASS, PLAN, second_pass_assessed
from tests.aeon_tui.screens.run.test_run_snapshots import EDIT


class Asked(ApprovalBroker):
    """A broker at which a question waits until it is decided here; no run waits behind it."""

    def __init__(self, point: Any, subject: dict[str, Any]) -> None:
        super().__init__()
        self.request: ApprovalRequest | None = ApprovalRequest(point=point, pass_number=1, subject=subject, digest="d")
        self.decisions: list[ApprovalDecision] = []

    @property
    @override
    def waiting(self) -> ApprovalRequest | None:
        return self.request

    @override
    def decide(self, digest: str, decision: ApprovalDecision) -> bool:
        self.request = None
        self.decisions.append(decision)
        return True


def runner_that_asks(broker: Asked) -> Runner:
    """Return a runner that runs nothing, and at whose broker a question waits."""
    runner = Runner(NewRunJob("task", RunConfig()), Path("runs/r.jsonl"))
    runner.broker = broker
    return runner


def run_screen(
    run: Recording,
    *,
    live: bool = False,
    asked: Asked | None = None,
    damage: int = 0,
    guard: KeyGuard | None = None,
) -> RunScreen:
    """Return the screen of a recording; with `asked`, of one that waits for that decision."""
    if asked is not None and asked.request is not None:
        point, subject = asked.request.point, asked.request.subject
        run.add("approval", **{"pass": run.number}, point=point, state="asked", subject=subject, digest="d")
    source = ListSource(run.records, live or asked is not None)
    source.damage = [f"line {number} is not JSON" for number in range(damage)]
    runner = runner_that_asks(asked) if asked is not None else None
    return RunScreen(source, runner, clock=lambda: START + timedelta(seconds=41), guard=guard)


def on(screen: RunScreen) -> AeonApp:
    """Return the app that opens on a screen."""
    app = AeonApp(Path("runs"))
    app.first_screen = screen
    return app


STATES: dict[str, Callable[[], RunScreen]] = {
    "starting": lambda: run_screen(Passes(), live=True),
    "live": lambda: run_screen(second_pass(), live=True),
    "live-single-pass": lambda: run_screen(live_run(), live=True),
    "plan": lambda: run_screen(first_pass(), asked=Asked("plan", PLAN)),
    "pass": lambda: run_screen(second_pass_assessed(), asked=Asked("pass", PASS)),
    "tool": lambda: run_screen(live_run(), asked=Asked("tool", EDIT)),
    "past": lambda: run_screen(converged_run()),
    "failed": lambda: run_screen(failed_run()),
    "interrupted": lambda: run_screen(first_pass()),
    "damaged": lambda: run_screen(first_pass(), damage=3),
}
"""By name."""
