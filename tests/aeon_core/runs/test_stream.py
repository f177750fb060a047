"""The records of a run as an iterator, plain and async: what ends early is aborted, and can be resumed."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import LLMRequest, LLMResponse, Orchestrator, RunResult, replay, resume
from aeon_core.errors import UsageError
from aeon_core.journal.reader import read_records
from aeon_core.runs.orchestrator import Worker
from tests.fakes import ScriptedModel, add, steps
from tests.waiting import PATIENCE, wait_until

PLAN = steps(add(1, 1), {"agent": "llm"})
OPTIONS = {"single_pass": True, "durability": "off"}


class Stuck(ScriptedModel):
    """A model that answers only when it is let go."""

    def __init__(self) -> None:
        super().__init__(answer="2")
        self.asked, self.let_go = threading.Event(), threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.asked.set()
        assert self.let_go.wait(PATIENCE)
        return LLMResponse(text="2")


def orchestrator(path: Path, llm: Any = None, **more: Any) -> Orchestrator:
    return Orchestrator(llm or ScriptedModel(reason="2", answer="2"), config=OPTIONS, journal=path, **more)


def written(path: Path) -> list[dict[str, Any]]:
    return [record for record in read_records(path) if record["type"] != "text"]


def ended_as(path: Path) -> str:
    return str(written(path)[-1]["result"]["status"])


def test_a_stream_yields_every_record_and_then_the_result(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    records = orchestrator(tmp_path / "a.jsonl", on_record=seen.append).stream("add", PLAN)
    with pytest.raises(UsageError, match="has not started"):
        _ = records.result
    assert [record for record in records if record["type"] != "text"] == written(tmp_path / "a.jsonl")
    assert records.result.status == "completed"
    assert len(seen) == len(list(read_records(tmp_path / "a.jsonl")))


def test_a_stream_that_was_never_read_has_no_result_even_when_closed(tmp_path: Path) -> None:
    async def unread() -> None:
        async with orchestrator(tmp_path / "a.jsonl").astream("add", PLAN) as records:
            pass
        _ = records.result

    with pytest.raises(UsageError, match="has not started; iterate over the stream"):
        asyncio.run(unread())
    with orchestrator(tmp_path / "a.jsonl").stream("add", PLAN) as records:
        pass
    with pytest.raises(UsageError, match="has not started; iterate over the stream"):
        _ = records.result


def test_an_async_stream_yields_the_same_and_arun_the_result(tmp_path: Path) -> None:
    async def both() -> tuple[list[dict[str, Any]], RunResult, RunResult]:
        records = orchestrator(tmp_path / "a.jsonl").astream("add", PLAN)
        seen = [record async for record in records if record["type"] != "text"]
        return seen, records.result, await orchestrator(tmp_path / "b.jsonl").arun("add", PLAN)

    seen, streamed, result = asyncio.run(both())
    assert seen == written(tmp_path / "a.jsonl")
    assert (streamed.status, streamed.answer) == (result.status, result.answer) == ("completed", "2")


def test_errors_of_a_run_propagate_from_each_method(tmp_path: Path) -> None:
    made = orchestrator(tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match="the task is"):
        next(made.stream(" "))
    with pytest.raises(UsageError, match="the task is"):
        asyncio.run(made.arun(" "))

    async def first() -> None:
        await anext(made.astream(" "))

    with pytest.raises(UsageError, match="the task is"):
        asyncio.run(first())


@pytest.mark.parametrize("how", ["with", "close", "let go"])
def test_a_stream_that_is_left_early_is_aborted_and_can_be_resumed(tmp_path: Path, how: str) -> None:
    path, llm = tmp_path / "a.jsonl", Stuck()
    made = orchestrator(path, llm)
    records = made.stream("add", PLAN)
    assert next(records)["type"] == "run_started"
    assert llm.asked.wait(PATIENCE)
    if how == "with":
        with records:
            pass
    elif how == "close":
        records.close()
    else:
        del records
        gc.collect()
    assert ended_as(path) == "aborted"
    if how != "let go":
        assert records.result.status == "aborted"
        assert list(records) == []
    llm.let_go.set()
    assert resume(path, ScriptedModel(reason="2", answer="2")).status == "completed"
    assert replay(path).difference is None
    # The next run of the same Orchestrator is not aborted.
    made._setup._journal = tmp_path / "b.jsonl"
    assert made.run("add", PLAN).status == "completed"


@pytest.mark.parametrize("how", ["arun", "astream", "aclose"])
def test_a_cancelled_task_aborts_its_run_which_can_be_resumed(tmp_path: Path, how: str) -> None:
    path, llm = tmp_path / "a.jsonl", Stuck()

    async def iterate() -> None:
        async for _ in orchestrator(path, llm).astream("add", PLAN):
            pass

    async def cancelled() -> None:
        if how == "aclose":
            async with orchestrator(path, llm).astream("add", PLAN) as records:
                await anext(records)
                await asyncio.to_thread(llm.asked.wait, PATIENCE)
            assert records.result.status == "aborted"
            return
        task = asyncio.create_task(iterate() if how == "astream" else orchestrator(path, llm).arun("add", PLAN))
        await asyncio.to_thread(llm.asked.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended_as(path) == "aborted"
    llm.let_go.set()
    assert resume(path, ScriptedModel(reason="2", answer="2")).status == "completed"


@pytest.mark.parametrize("how", ["directly", "through a generator"])
def test_the_next_run_waits_for_the_end_of_an_async_stream_that_was_left_by_break(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("aeon_core.runs.orchestrator.ABORT_SECONDS", PATIENCE)
    llm, ended = Stuck(), []

    def let_go(record: dict[str, Any]) -> None:
        if record["type"] == "run_finished":
            ended.append(record["result"]["status"])
            llm.let_go.set()

    async def generator(made: Orchestrator) -> AsyncIterator[dict[str, Any]]:
        async with made.astream("add", PLAN) as records:
            async for record in records:
                yield record

    async def both() -> None:
        made = Orchestrator(llm, config=OPTIONS, journal=False, on_record=let_go)
        async for _ in made.astream("add", PLAN) if how == "directly" else generator(made):
            break
        await made.arun("add", PLAN)

    asyncio.run(both())
    assert ended == ["aborted", "completed"]


def test_a_tool_in_flight_is_not_cut_but_does_not_hold_a_cancelled_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_core.runs.orchestrator.ABORT_SECONDS", 0)
    path, begun, let_go = tmp_path / "a.jsonl", threading.Event(), threading.Event()

    def slow() -> str:
        """Take a while."""
        begun.set()
        assert let_go.wait(PATIENCE)
        return "whole"

    async def cancelled() -> None:
        made = Orchestrator(ScriptedModel(), tools=[slow], config=OPTIONS, journal=path)
        task = asyncio.create_task(made.arun("a task", steps({"tool": "slow", "arguments": {}})))
        await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert written(path)[-1]["type"] == "tool"
    let_go.set()
    wait_until(lambda: written(path)[-1]["type"] == "run_finished")
    assert written(path)[-1]["result"]["steps"][0]["output"] == {"result": "whole"}


def test_an_orchestrator_runs_one_task_at_a_time(tmp_path: Path) -> None:
    llm = Stuck()
    made = orchestrator(tmp_path / "a.jsonl", llm)
    with made.stream("add", PLAN) as records:
        next(records)
        with pytest.raises(UsageError, match="make another one"):
            made.run("add", PLAN)
    llm.let_go.set()


def test_a_second_task_of_an_async_program_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.runs.orchestrator.ABORT_SECONDS", 0)
    llm = Stuck()

    async def both() -> str:
        made = Orchestrator(llm, config=OPTIONS, journal=False)
        first = asyncio.create_task(made.arun("add", PLAN))
        await asyncio.to_thread(llm.asked.wait, PATIENCE)
        with pytest.raises(UsageError, match="make another one"):
            await made.arun("add", PLAN)
        llm.let_go.set()
        return (await first).status

    assert asyncio.run(both()) == "completed"


def test_a_run_that_has_ended_is_not_aborted_by_its_stream() -> None:
    aborted: list[str] = []

    def worker() -> Worker:
        result: Any = "the result"
        return Worker(lambda push: result, lambda: aborted.append("aborted"))

    assert asyncio.run(worker().wait()) == "the result"
    assert list(worker().records()) == []
    assert aborted == []


def test_a_program_that_exits_with_an_open_stream_does_not_hang() -> None:
    code = """
from aeon_core import Orchestrator
orchestrator = Orchestrator("simulated:default", journal=False)
stream = orchestrator.stream("design a REST API for invoices")
next(stream)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False).returncode == 0
