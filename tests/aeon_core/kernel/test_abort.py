"""Ending a run from outside: a model call is given up, a tool never cut, the journal says so."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from aeon_core import LLMError, LLMRequest, LLMResponse, Orchestrator, RunConfig, RunResult, ToolRegistry, tool
from aeon_core.journal.records import PhaseRecord, Record
from aeon_core.journal.writer import JournalWriter
from aeon_core.llm import errors
from tests.aeon_core.kernel.test_execution import of
from tests.fakes import ScriptedModel, add, steps
from tests.replays import replays_the_same
from tests.waiting import PATIENCE


def start(orchestrator: Orchestrator, plan: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(orchestrator.run("a task", plan)))
    thread.start()
    return thread, results


def test_an_abort_cancels_a_model_call_in_flight() -> None:
    asked, never = threading.Event(), threading.Event()

    class Stuck(ScriptedModel):
        closed = False

        def complete(self, request: LLMRequest) -> LLMResponse:
            asked.set()
            never.wait()
            return LLMResponse(text="late")

        def close(self) -> None:
            self.closed = True

    records: list[dict[str, Any]] = []
    model = Stuck()
    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(model, config=config, journal=False, on_record=records.append)
    thread, results = start(orchestrator, steps(add(1, 1), {"agent": "llm"}))
    assert asked.wait(PATIENCE)
    assert orchestrator.state is not None
    assert [call.result for call in orchestrator.state.tool_history] == [{"result": 2}]
    assert [step.status for step in orchestrator.state.step_results()] == ["complete", "running"]
    orchestrator.abort()
    thread.join(PATIENCE)
    never.set()
    [result] = results
    assert (result.status, result.exit_code) == ("aborted", 1)
    assert [step.status for step in result.steps] == ["complete", "running"]
    assert model.closed
    assert records[-1]["type"] == "run_finished"
    assert records[-1]["result"]["status"] == "aborted"


def test_an_abort_before_a_run_ends_it_and_no_later_one() -> None:
    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(ScriptedModel(answer="x"), config=config, journal=False)
    orchestrator.abort()
    assert [orchestrator.run("t", steps(add(1, 1))).status for _ in range(2)] == ["aborted", "completed"]


def test_a_tool_finishes_and_the_next_step_does_not_start() -> None:
    begun, go_on = threading.Event(), threading.Event()
    registry = ToolRegistry()

    @tool(effect="unsafe")
    def slow() -> str:
        """Takes its time."""
        begun.set()
        go_on.wait()
        return "whole"

    registry.register(slow)
    records: list[dict[str, Any]] = []
    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(ScriptedModel(), tools=registry, config=config, journal=False, on_record=records.append)
    thread, results = start(orchestrator, steps(*[{"tool": "slow", "arguments": {}}] * 2))
    assert begun.wait(PATIENCE)
    orchestrator.abort()
    go_on.set()
    thread.join(PATIENCE)
    [result] = results
    assert result.status == "aborted"
    assert result.steps[0].output == {"result": "whole"}
    assert [step.status for step in result.steps] == ["complete", "pending"]
    assert len(of(records, "tool")) == 2


def test_a_wait_between_attempts_ends_with_the_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "MAX_WAIT", 3_600.0)
    failed = threading.Event()

    def fail(_: LLMRequest) -> LLMError:
        failed.set()
        return LLMError("busy", True, retry_after=3_600)

    orchestrator = Orchestrator(
        ScriptedModel(plan=fail), config=RunConfig(single_pass=True, durability="off"), journal=False
    )
    thread, results = start(orchestrator, None)
    assert failed.wait(PATIENCE)
    orchestrator.abort()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert results[0].status == "aborted"


def test_an_interrupt_in_a_tool_ends_the_run_as_aborted() -> None:
    registry = ToolRegistry()

    @tool(effect="pure")
    def interrupted() -> str:
        """Is interrupted."""
        raise KeyboardInterrupt

    registry.register(interrupted)
    orchestrator = Orchestrator(
        ScriptedModel(), tools=registry, config=RunConfig(single_pass=True, durability="off"), journal=False
    )
    assert orchestrator.run("t", steps({"tool": "interrupted", "arguments": {}})).status == "aborted"


def test_a_run_that_was_interrupted_between_two_records_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[dict[str, Any]] = []
    append = JournalWriter.append

    def interrupt(journal: JournalWriter, record: Record) -> int:
        seq = append(journal, record)
        if isinstance(record, PhaseRecord) and record.state == "finished":
            raise KeyboardInterrupt
        return seq

    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(ScriptedModel(), config=config, journal=False, on_record=records.append)
    with monkeypatch.context() as patched:
        patched.setattr(JournalWriter, "append", interrupt)
        assert orchestrator.run("t", steps(add(1, 1))).status == "aborted"
    replays_the_same(records)


def test_an_interrupt_in_a_listener_ends_the_run_with_a_result_at_any_record() -> None:
    def run(interrupted_at: int) -> tuple[RunResult, list[dict[str, Any]]]:
        records: list[dict[str, Any]] = []
        counted = itertools.count()

        def interrupt(_: bytes) -> None:
            if next(counted) == interrupted_at:
                raise KeyboardInterrupt

        config, model = RunConfig(single_pass=True, durability="off"), ScriptedModel(answer="a long answer " * 50)
        listeners: Any = {"on_line": interrupt, "on_record": records.append}
        orchestrator = Orchestrator(model, config=config, journal=False, **listeners)
        return orchestrator.run("t", steps(add(1, 1), add(2, 2))), records

    _, whole = run(-1)
    assert "text" in [record["type"] for record in whole]
    statuses = []
    for place in range(len(whole)):
        result, records = run(place)
        assert [record["seq"] for record in records] == list(range(len(records)))
        assert records[-1]["result"]["status"] == result.status
        replays_the_same(records)
        statuses.append(result.status)
    assert (statuses[0], statuses[-1]) == ("aborted", "completed")


def test_an_interrupt_in_a_listener_of_a_run_that_is_aborted_already_ends_it_at_once() -> None:
    records: list[dict[str, Any]] = []

    def interrupt(record: dict[str, Any]) -> None:
        records.append(record)
        if record["type"] == "step":
            orchestrator.abort()
            raise KeyboardInterrupt

    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(ScriptedModel(), config=config, journal=False, on_record=interrupt)
    assert orchestrator.run("t", steps(add(1, 1))).status == "aborted"
    assert "tool" not in [record["type"] for record in records]
    assert records[-1]["result"]["status"] == "aborted"
    replays_the_same(records)


def test_a_tool_that_exits_fails_its_step_only() -> None:
    registry = ToolRegistry()

    @tool(effect="pure")
    def leaver() -> str:
        """Leaves."""
        raise SystemExit(3)

    registry.register(leaver)
    orchestrator = Orchestrator(
        ScriptedModel(answer="x"), tools=registry, config=RunConfig(single_pass=True, durability="off"), journal=False
    )
    result = orchestrator.run("t", steps({"tool": "leaver", "arguments": {}}))
    assert result.steps[0].errors == ["SystemExit: 3"]


def test_histories_only_grow() -> None:
    orchestrator = Orchestrator(
        ScriptedModel(answer="x"), config=RunConfig(single_pass=True, durability="off"), journal=False
    )
    orchestrator.run("t", steps(add(1, 1)))
    assert orchestrator.state is not None
    for change in (
        lambda history: history.pop(),
        lambda history: history.clear(),
        lambda history: history.__setitem__(0, None),
        lambda history: history.insert(0, None),
    ):
        with pytest.raises(TypeError, match="append-only"):
            change(orchestrator.state.tool_history)
