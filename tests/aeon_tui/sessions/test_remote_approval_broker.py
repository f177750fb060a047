"""A run of another process is decided on its screen; and one of this app from another terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.approval_inbox import Inbox, send
from aeon_core.approvals import ApprovalDecision, pending_approval
from aeon_core.journal.listing import Awaited
from aeon_tui.app import AeonApp
from aeon_tui.screens.pane_screen import SENT
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions import approval_broker
from aeon_tui.sessions.approval_broker import RemoteApprovalBroker
from aeon_tui.sources.journal import FollowedSource
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from tests.aeon_core.questions import Asked
from tests.aeon_tui.screens.run.test_approval_controller import Erasing
from tests.waiting import until, wait_until

APPROVE = ApprovalDecision(decision="approve")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    monkeypatch.setattr(approval_broker, "LOOK_SECONDS", 0.01)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    made = Asked(tmp_path / "r.jsonl")
    yield made
    made.end()


@pytest.fixture
def source(asked: Asked) -> Iterator[FollowedSource]:
    made = FollowedSource(Awaited("r", asked.asking.path.parent))
    yield made
    made.close()


@pytest.fixture
def broker(source: FollowedSource) -> Iterator[RemoteApprovalBroker]:
    made = RemoteApprovalBroker(source)
    yield made
    made.close()


def decide_elsewhere(asked: Asked, decision: ApprovalDecision) -> None:
    question = pending_approval(asked.asking.path)
    assert question is not None
    send(asked.asking.path, question, decision).close()


async def watched(asked: Asked, check: Callable[[Any, RunScreen], Any], size: tuple[int, int] = (80, 24)) -> None:
    source = FollowedSource(Awaited("r", asked.asking.path.parent))
    app = AeonApp(asked.asking.path.parent)
    app.first_screen = RunScreen(source)
    async with app.run_test(size=size) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, RunScreen)
        await check(pilot, screen)


async def test_a_watched_run_is_decided_on_its_screen(asked: Asked) -> None:
    asked.ask(asked.asking.ask("tool"))

    async def check(pilot: Any, screen: RunScreen) -> None:
        await until(pilot, lambda: isinstance(screen.focused, ApprovalText))
        await until(pilot, lambda: "path: notes.txt" in screen.query_one(ApprovalText).text)
        assert str(screen.query_one(ApprovalPanel).border_title) == "9 Call erase?"
        await pilot.press("w", "w", "h", "y", "enter")
        await until(pilot, lambda: not screen.query(ApprovalPanel))

    await watched(asked, check)
    assert asked.heard == [ApprovalDecision(decision="reject", feedback="why")]


async def test_a_decision_that_is_not_taken_at_once_is_shown_as_sent(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_tui.screens.pane_screen.SENT_SECONDS", 0.05)

    async def check(pilot: Any, screen: RunScreen) -> None:
        await until(pilot, lambda: isinstance(screen.focused, ApprovalText))
        await pilot.press("a")
        await until(pilot, lambda: [each.message for each in pilot.app._notifications] == [SENT])
        assert asked.heard == []
        inbox.settle(APPROVE)

    with Inbox(asked.asking.path, asked.asking.ask("tool")) as inbox:
        await watched(asked, check)


async def test_the_panel_closes_when_decided_elsewhere(asked: Asked) -> None:
    asked.ask(asked.asking.ask("tool"))

    async def check(pilot: Any, screen: RunScreen) -> None:
        await until(pilot, lambda: isinstance(screen.focused, ApprovalText))
        decide_elsewhere(asked, APPROVE)
        await until(pilot, lambda: not screen.query(ApprovalPanel))

    await watched(asked, check)
    assert asked.heard == [APPROVE]


async def test_a_run_without_remote_decisions_shows_no_panel(asked: Asked) -> None:
    asked.asking.ask("tool")

    async def check(pilot: Any, screen: RunScreen) -> None:
        await until(pilot, lambda: screen.status == "waiting for a decision")
        await pilot.pause(0.1)
        assert not screen.query(ApprovalPanel)

    await watched(asked, check)


async def test_the_terminal_shows_that_a_watched_run_waits(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, bool]] = []
    monkeypatch.setattr(AeonApp, "update_terminal", lambda _, text, *, urgent=False: told.append((text, urgent)))
    asked.ask(asked.asking.ask("tool"))

    async def check(pilot: Any, screen: RunScreen) -> None:
        # The question may arrive before the record that holds the task.
        await until(pilot, lambda: any(urgent and "waiting for a decision" in text for text, urgent in told))
        await until(pilot, lambda: told[-1][0] == "aeon: waiting for a decision · clean up")
        decide_elsewhere(asked, APPROVE)
        await until(pilot, lambda: told[-1] == ("aeon: running · clean up", False))

    await watched(asked, check)


async def test_a_run_of_this_app_is_decided_from_another_terminal(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = pilot.app.screen
        await until(pilot, lambda: isinstance(screen.focused, ApprovalText))
        question = pending_approval(erasing.runner.journal)
        assert question is not None
        sent = send(erasing.runner.journal, question, ApprovalDecision(decision="edit", edited={"path": "other.txt"}))
        await until(pilot, lambda: not screen.query(ApprovalPanel))
        await until(pilot, lambda: sent.fate() == "taken")
        sent.close()
        await until(pilot, lambda: erasing.runner.result is not None)
        said = "Decided in another terminal: edit."
        await until(pilot, lambda: [each.message for each in pilot.app._notifications] == [said])
    assert erasing.erased == ["other.txt"]


def test_a_decision_that_comes_too_late_is_reported(asked: Asked, broker: RemoteApprovalBroker) -> None:
    request = asked.asking.ask("tool")
    asked.ask(request)
    wait_until(lambda: broker.waiting is not None)
    # Before the run's process hears of it, the one that was first is taken.
    decide_elsewhere(asked, ApprovalDecision(decision="reject"))
    taken = broker.decide(request.digest, APPROVE)
    wait_until(lambda: broker.waiting is None)
    assert asked.heard == [ApprovalDecision(decision="reject")]
    said: list[str] = []
    wait_until(lambda: not taken or said.append(broker.pop_notice()) or any(said))
    told = ("lready decided elsewhere", "cannot take a decision", "no longer waiting for that")
    assert not taken or any(words in each for words in told for each in said)


def test_a_decision_about_another_question_is_ignored(asked: Asked, broker: RemoteApprovalBroker) -> None:
    assert not broker.decide("d", APPROVE)
    asked.ask(asked.asking.ask("tool"))
    wait_until(lambda: broker.waiting is not None)
    assert not broker.decide("d", APPROVE)
    assert asked.heard == []


def test_an_unresponsive_process_is_asked_again(
    asked: Asked, broker: RemoteApprovalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_tui.sessions.approval_broker.PATIENCE_SECONDS", 0.05)
    request = asked.asking.ask("tool")
    with Inbox(asked.asking.path, request):
        wait_until(lambda: broker.waiting is not None)
        first = broker.waiting
        assert broker.decide(request.digest, APPROVE)
        told = "has not taken the decision within 0.05 s, but still may; it may have been stopped."
        wait_until(lambda: broker.pop_notice().endswith(told))
        wait_until(lambda: broker.waiting is not None and broker.waiting is not first)


def test_a_process_that_dies_before_deciding_is_reported(asked: Asked, broker: RemoteApprovalBroker) -> None:
    request = asked.asking.ask("tool")
    inbox = Inbox(asked.asking.path, request).__enter__()
    wait_until(lambda: broker.waiting is not None)
    assert broker.decide(request.digest, APPROVE)
    wait_until(lambda: inbox.take() is not None)
    asked.asking.end()
    wait_until(lambda: "ended before it took the decision" in broker.pop_notice())
    wait_until(lambda: broker.waiting is None)
    inbox.__exit__(None, None, None)
