"""Waiting for a decision from another terminal, with a clock that a test turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.approval_inbox import POLL_SECONDS, RemoteApprover, about, inbox_of, send
from aeon_core.approvals import NOBODY, ApprovalDecision, ApprovalRequest, nobody_answered, pending_approval
from tests.aeon_core.questions import Asking
from tests.fakes import ScriptedModel, steps


class Time:
    """A clock that each pause moves on; `meanwhile` is what happens in a pause."""

    def __init__(self, meanwhile: Callable[[int], None] = lambda _: None) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._meanwhile = meanwhile

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        self._meanwhile(len(self.pauses))

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    made = Asking(tmp_path / "r.jsonl")
    yield made
    made.end()


def waiting(path: Path, time: Time, said: list[str], seconds: float = 60.0) -> RemoteApprover:
    return RemoteApprover(path, seconds, said.append, pause=time.pause, clock=time)


def test_the_approver_publishes_its_question_and_takes_the_answer(asking: Asking) -> None:
    def decide(pause: int) -> None:
        if pause == 3:
            question = pending_approval(asking.path)
            assert question is not None
            send(asking.path, question, ApprovalDecision(decision="approve")).close()

    said: list[str] = []
    time = Time(decide)
    decision = waiting(asking.path, time, said)(asking.ask("plan"))
    assert decision == ApprovalDecision(decision="approve")
    assert time.pauses == [POLL_SECONDS] * 3
    how = f"`aeon-tui decide {asking.path} approve` (or edit, reject, abort)"
    assert said == [
        f"waiting 60 s for a decision about the plan of pass 1: {how}",
        "decided in another terminal: approve",
    ]
    assert not inbox_of(asking.path).exists()


def test_a_timeout_reports_that_nobody_decided(asking: Asking) -> None:
    said: list[str] = []
    time = Time()
    decision = waiting(asking.path, time, said, 0.25)(asking.ask("tool"))
    assert decision == ApprovalDecision(decision="reject", feedback="no one decided in time")
    assert nobody_answered(decision.feedback)
    assert time.now == pytest.approx(0.25)
    assert said[-1] == "no decision within 0.25 s"
    assert said[0].startswith("waiting 0.25 s for a decision about the call of 'erase': ")


@pytest.mark.parametrize(("point", "what"), [("pass", "pass 1"), ("budget", "the budget")])
def test_a_question_is_shown_and_named(asking: Asking, point: Any, what: str) -> None:
    said: list[str] = []
    shown: list[ApprovalRequest] = []
    time, request = Time(), asking.ask(point)
    RemoteApprover(asking.path, 0, said.append, shown.append, pause=time.pause, clock=time)(request)
    assert shown == [request]
    assert said[0].startswith(f"waiting 0 s for a decision about {what}: ")


def test_an_abort_ends_the_waiting(asking: Asking) -> None:
    time = Time(lambda _: patient.abort())
    patient = waiting(asking.path, time, [], 1e9)
    assert patient(asking.ask("tool")).decision == "abort"
    assert patient(asking.ask("tool")).decision == "abort"
    assert len(time.pauses) == 1


def test_without_an_inbox_nothing_is_awaited(asking: Asking) -> None:
    said: list[str] = []
    time = Time()
    inbox_of(asking.path).mkdir()
    assert waiting(asking.path, time, said)(asking.ask("tool")).feedback == NOBODY
    assert time.pauses == []
    assert said[0].startswith("cannot take decisions from another terminal: ")


def test_an_inbox_that_is_replaced_by_a_folder_ends_the_waiting_with_one_line(asking: Asking) -> None:
    def replace(_: int) -> None:
        inbox_of(asking.path).unlink()
        inbox_of(asking.path).mkdir()

    said: list[str] = []
    time = Time(replace)
    assert waiting(asking.path, time, said)(asking.ask("tool")).feedback == NOBODY
    assert len(time.pauses) == 1
    assert len(said) == 2
    assert said[1].startswith("cannot take decisions from another terminal: ")


@pytest.mark.parametrize(("approve", "erased"), [(["tool"], ["mine.txt"]), (["none"], [])])
def test_calls_wait_only_if_tools_need_approval_and_edits_apply(
    tmp_path: Path, approve: list[str], erased: list[str]
) -> None:
    done: list[str] = []
    path = tmp_path / "r.jsonl"

    @tool(effect="unsafe", needs_approval=True)
    def erase(path: str) -> str:
        """Erases a file."""
        done.append(path)
        return "gone"

    def decide(_: int) -> None:
        question = pending_approval(path)
        assert question is not None
        send(path, question, ApprovalDecision(decision="edit", edited={"path": "mine.txt"})).close()

    registry = ToolRegistry()
    registry.register(erase)
    model = ScriptedModel(plan=steps({"tool": "erase", "arguments": {"path": "yours.txt"}}), answer="done")
    config = RunConfig(durability="off", single_pass=True, approve=approve)
    approver = about(config.approve, waiting(path, Time(decide), []))
    Orchestrator(model, tools=registry, config=config, approver=approver, journal=path).run("clean up")
    assert done == erased
