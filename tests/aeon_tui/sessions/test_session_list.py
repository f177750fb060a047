from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.config.schema import RunConfig
from aeon_core.errors import AeonError
from aeon_tui.sessions import session
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.session import SessionList
from tests.waiting import PATIENCE, wait_until


class Asking(Runner):
    """Runs until it is stopped, and asks what a test has it ask."""

    waiting: Any = None

    def __init__(self, journal: str = "r.jsonl", *, deaf: bool = False) -> None:
        super().__init__(NewRunJob("ask", RunConfig()), Path(journal))
        self.deaf, self.go = deaf, threading.Event()

    def abort(self) -> None:
        self.aborting = True
        if not self.deaf:
            self.go.set()

    def outcome(self) -> str:
        return ""

    def run(self) -> None:
        self.go.wait(PATIENCE)
        raise AeonError("aborted")


def told(sessions: SessionList) -> list[tuple[int, str]]:
    return [(sessions.all.index(change.session), change.kind) for change in sessions.look()]


def started(count: int) -> SessionList:
    sessions = SessionList(Asking(f"{number}.jsonl") for number in range(count))
    for each in sessions.all:
        each.start()
    return sessions


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12))
def test_questions_are_queued_in_the_order_they_were_asked(events: list[tuple[int, bool]]) -> None:
    sessions = started(3)
    try:
        queue: list[int] = []
        for number, asks in events:
            sessions.all[number].waiting = object() if asks else None  # type: ignore[misc]
            queue = [each for each in queue if each != number] + [number] * asks
            assert told(sessions) == [(number, "waits")] * asks
            assert told(sessions) == [], "each question is reported once"
            assert [sessions.all.index(each) for each in sessions.waiting] == queue
    finally:
        sessions.abort()
        assert sessions.wait(PATIENCE)


def test_an_answer_counts_before_the_next_poll() -> None:
    sessions = started(1)
    sessions.all[0].waiting = object()  # type: ignore[misc]
    sessions.look()
    sessions.all[0].waiting = None  # type: ignore[misc]
    assert sessions.waiting == []
    sessions.abort()
    assert sessions.wait(PATIENCE)


def test_all_are_aborted_and_each_end_is_reported_once() -> None:
    sessions = started(2)
    sessions.all.append(Asking("never started"))
    assert (len(sessions.running), len(sessions.active)) == (2, 2)
    sessions.abort()
    assert sessions.wait(PATIENCE)
    assert (sessions.running, sessions.active) == ([], [])
    assert told(sessions) == [(0, "ended"), (1, "ended")]
    assert told(sessions) == []
    assert [each.status for each in sessions.all] == ["failed: aborted", "failed: aborted", ""]


def test_the_wait_for_all_ends_with_its_deadline() -> None:
    deaf = Asking(deaf=True)
    sessions = SessionList([Asking(), deaf])
    for each in sessions.all:
        each.start()
    sessions.abort()
    assert not sessions.wait(0.0)
    deaf.go.set()
    assert sessions.wait(PATIENCE)


def test_a_journal_belongs_to_the_session_that_last_resumed_it() -> None:
    first, other, second = Asking("a"), Asking("b"), Asking("a")
    sessions = SessionList([first, other, second])
    assert sessions.of(Path("a")) is second
    assert sessions.of(Path("b")) is other
    assert sessions.of(Path("c")) is None
    assert sessions.of(None) is None


def test_the_terminal_is_given_back_when_the_last_run_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "ENDING_SECONDS", 0.0)
    in_a_tool = Asking(deaf=True)
    sessions = SessionList([Asking(), in_a_tool])
    for each in sessions.all:
        each.start()

    def end_tool() -> None:
        wait_until(lambda: sessions.all[0].ended and in_a_tool.aborting)
        in_a_tool.go.set()

    ending = threading.Thread(target=end_tool)
    ending.start()
    session.let_end(sessions)
    assert [each.ended for each in sessions.all] == [True, True]
    assert capsys.readouterr().err == session.WAITING
    ending.join(PATIENCE)


def test_a_signal_just_before_the_wait_for_a_tool_ends_it() -> None:
    class Unnoticed(SessionList):
        """Each wait begins just after a signal has come, which Python notices only when the wait ends."""

        signals = 0

        def wait(self, seconds: float | None = None) -> bool:
            assert seconds is not None, "a wait without end"
            self.signals += 1
            if self.signals > 2:
                raise KeyboardInterrupt
            return False

    in_a_tool = Asking(deaf=True)
    in_a_tool.start()
    sessions = Unnoticed([in_a_tool])
    session.let_end(sessions)
    assert sessions.running == [in_a_tool]
    in_a_tool.go.set()
    assert in_a_tool.wait(PATIENCE)


def test_a_termination_aborts_every_run() -> None:
    class App:
        sessions = started(2)
        quits = 0

        def quit_soon(self) -> None:
            self.quits += 1

    app = App()
    with session.ended_by_signals(app):
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: not app.sessions.running)
    assert app.quits == 1
    assert all(each.aborting for each in app.sessions.all)
