"""A batch over real processes: what ends, what is gone on with, what a dying worker takes with it."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.journal_trust import seal
from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.journal.history import open_history
from aeon_core.journal.reader import read_records
from aeon_core.journal.summary import is_being_written
from aeon_core.journal.values import ENVELOPE
from aeon_core.journal.writer import JournalWriter
from aeon_core.process import ending_signals, handled
from aeon_core.runs.batch import Batch, ExecutorPool, ProcessPool, exit_code
from aeon_core.runs.batch_tasks import BatchJob, BatchTask, read_tasks, run_job, set_aside, work
from tests.waiting import PATIENCE, wait_until

DEADLY = """
import os, signal, threading, time
from pathlib import Path
from aeon_core import tool

@tool(effect="idempotent")
def perish(marker: str) -> str:
    "Ends the process that calls it, as often as its marker says."
    path = Path(marker)
    lives = int(path.read_text())
    if lives:
        path.write_text(str(lives - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"

@tool(effect="pure")
def linger(marker: str) -> str:
    "Says that it is there, and waits until its worker knows that the batch is to stop."
    path = Path(marker)
    path.write_text(str(os.getpid()))
    until = time.monotonic() + 600
    while time.monotonic() < until and "aeon-batch-stop" in {each.name for each in threading.enumerate()}:
        time.sleep(0.01)
    return "lingered"
"""


@pytest.fixture(autouse=True)
def _no_process_survives() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def tasks_of(tmp_path: Path, *tasks: str, **fields: Any) -> list[BatchTask]:
    """Return tasks; one that uses a tool needs it in a process of its own, since a module's name is there once."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    tools = ["deadly:perish", "deadly:linger"] if any(task.startswith("use ") for task in tasks) else []
    config = RunConfig(
        model="simulated:default",
        project_root=tmp_path,
        tools=tools,
        **{"single_pass": True, **fields},
    )
    lines = [json.dumps({"id": f"t{number}", "task": task}).encode() for number, task in enumerate(tasks, 1)]
    return read_tasks(lines, name="b", config=config, where="lines")


def lives(tmp_path: Path, number: int) -> str:
    """Return a task whose worker dies so many times."""
    marker = tmp_path / f"lives-{number}"
    marker.write_text(str(number))
    return f"use perish on '{marker}'"


def told(results: list[dict[str, Any]], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(result[key] for key in keys) for result in results]


def threads() -> ExecutorPool:
    """Return a pool that is quick to start, for what is no matter of processes."""
    return ExecutorPool(lambda: ThreadPoolExecutor(2), lambda: 2)


def test_every_task_is_a_run_with_a_journal_and_the_results_are_in_order(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, *(f"calculate the sum of {number} and 10" for number in range(5)))
    seen: list[str] = []
    results = Batch(tasks, ProcessPool(2), runs, on_result=lambda result: seen.append(result["id"])).run()
    assert told(results, "id", "run_id", "status", "exit_code", "answer", "ended") == [
        (f"t{n + 1}", f"b.t{n + 1}", "completed", 0, f"The sum of {n} and 10 is {n + 10}.", "now") for n in range(5)
    ]
    assert sorted(seen) == ["t1", "t2", "t3", "t4", "t5"]
    for result in results:
        history = open_history(Path(result["journal"]))
        assert history.final_result is not None
        assert history.final_result.answer == result["answer"]
    assert sorted(path.name for path in runs.iterdir()) == [f"b.t{n}.jsonl" for n in range(1, 6)]


def test_a_second_call_runs_only_what_is_missing(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, "calculate 1 + 2", "divide 7 by 0")
    first = Batch(tasks, threads(), runs).run()
    assert told(first, "status", "error") == [("completed", None), ("not_converged", None)]
    before = {path: path.read_bytes() for path in runs.iterdir()}
    again = Batch([*tasks, *tasks_of(tmp_path, "x", "y", "calculate 3 + 4")[2:]], threads(), runs).run()
    assert told(again, "id", "status", "ended") == [
        ("t1", "completed", "before"),
        ("t2", "not_converged", "before"),
        ("t3", "completed", "now"),
    ]
    assert told(again[:2], "answer", "passes", "cost_usd", "usage") == told(
        first, "answer", "passes", "cost_usd", "usage"
    )
    for result in again[:2]:
        begun, *_, ended = [datetime.fromisoformat(each["ts"]) for each in read_records(Path(result["journal"]))]
        assert result["seconds"] == round((ended - begun).total_seconds(), 3)
    assert again[2]["seconds"] == round(again[2]["seconds"], 3) > 0
    assert {path: path.read_bytes() for path in before} == before


def test_failed_tasks_are_repeated_on_request_and_journals_kept(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, "calculate 1 + 2", "divide 7 by 0")
    Batch(tasks, threads(), runs).run()
    failed = (runs / "b.t2.jsonl").read_bytes()
    again = Batch(tasks, threads(), runs, retry_failed=True).run()
    assert told(again, "status", "ended") == [("completed", "before"), ("not_converged", "now")]
    assert (runs / "b.t2.failed-1.jsonl").read_bytes() == failed
    assert exit_code(again) == 5


def test_a_run_that_this_version_cannot_resume_is_repeated_on_request(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, "calculate 1 + 2")
    Batch(tasks, threads(), runs).run()
    journal = runs / "b.t1.jsonl"
    lines = [line.replace(b"calculator", b"abacus") for line in journal.read_bytes().splitlines(keepends=True)]
    journal.write_bytes(other := b"".join(lines[:4]))
    (refused,) = Batch(tasks, threads(), runs).run()
    assert (refused["status"], journal.read_bytes()) == ("failed", other)
    assert "cannot be resumed" in refused["error"]["message"]
    (again,) = Batch(tasks, threads(), runs, retry_failed=True).run()
    assert (again["status"], again["ended"]) == ("completed", "now")
    assert (runs / "b.t1.failed-1.jsonl").read_bytes() == other


def test_an_earlier_long_answer_is_reported_in_full(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, "design a REST API for invoices", single_pass=False)
    first, again = (Batch(tasks, threads(), runs).run()[0] for _ in range(2))
    assert again["ended"] == "before"
    assert len(again["answer"]) > 400
    assert again["answer"] == first["answer"]


@pytest.mark.parametrize("left", [b"", b'{"v":1,"seq":0', b"line\n" * 3], ids=["empty", "torn", "foreign"])
def test_an_interrupted_run_is_continued_and_nothing_is_deleted(tmp_path: Path, runs: Path, left: bytes) -> None:
    tasks = tasks_of(tmp_path, "calculate 1 + 2")
    runs.mkdir()
    (runs / "b.t1.jsonl").write_bytes(left)
    (result,) = Batch(tasks, threads(), runs).run()
    assert (result["status"], result["ended"]) == ("completed", "now")
    assert (runs / "b.t1.interrupted-1.jsonl").read_bytes() == left


def test_setting_aside_overwrites_nothing(tmp_path: Path) -> None:
    for content in ("first", "second"):
        (tmp_path / "b.t1.jsonl").write_text(content)
        set_aside(tmp_path / "b.t1.jsonl", "failed")
    assert [(tmp_path / f"b.t1.failed-{n}.jsonl").read_text() for n in (1, 2)] == ["first", "second"]


@pytest.mark.exhaustive
def test_a_worker_that_dies_loses_nothing_and_takes_no_other_with_it(tmp_path: Path, runs: Path) -> None:
    others = [f"calculate {number} + 10" for number in range(4)]
    tasks = tasks_of(tmp_path, lives(tmp_path, 1), *others)
    results = Batch(tasks, ProcessPool(2), runs).run()
    assert told(results, "status", "ended") == [("completed", "now")] * 5
    assert "survived" in results[0]["answer"]
    assert b'"type":"run_resumed"' in (runs / "b.t1.jsonl").read_bytes()
    assert list(runs.glob("*.interrupted-*")) == []


@pytest.mark.exhaustive
def test_a_task_that_kills_every_worker_is_given_up_after_three(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, lives(tmp_path, 9), "calculate 1 + 2")
    killer, other = Batch(tasks, ProcessPool(2), runs).run()
    assert (killer["status"], killer["exit_code"], killer["ended"]) == ("interrupted", 1, None)
    assert "its worker died on try 3 of 3" in killer["error"]["message"]
    assert killer["journal"] == str(runs / "b.t1.jsonl")
    assert (tmp_path / "lives-9").read_text() == "6"
    assert other["status"] == "completed"


@pytest.mark.exhaustive
def test_a_stop_aborts_active_runs_and_starts_no_more(tmp_path: Path, runs: Path) -> None:
    here = tmp_path / "here"
    tasks = tasks_of(tmp_path, f"use linger on '{here}'", "calculate 1 + 2")
    batch = Batch(tasks, ProcessPool(1), runs)
    stopping = threading.Thread(target=lambda: (_wait_for(here), batch.stop()))
    stopping.start()
    results = batch.run()
    stopping.join()
    assert told(results, "id", "status", "exit_code", "ended") == [
        ("t1", "aborted", 1, "now"),
        ("t2", "not_run", 1, None),
    ]
    assert open_history(runs / "b.t1.jsonl").final_result is not None
    assert [path.name for path in runs.iterdir()] == ["b.t1.jsonl"]
    assert told(Batch(tasks, ProcessPool(1), runs).run(), "id", "status", "ended") == [
        ("t1", "completed", "now"),
        ("t2", "completed", "now"),
    ]
    assert b'"type":"run_resumed"' in (runs / "b.t1.jsonl").read_bytes()


@pytest.mark.exhaustive
def test_an_interrupt_kills_the_workers_and_leaves_their_journals(tmp_path: Path, runs: Path) -> None:
    here = tmp_path / "here"
    tasks = tasks_of(tmp_path, f"use linger on '{here}'", "calculate 1 + 2")

    def interrupt(result: dict[str, Any]) -> None:
        _wait_for(here)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Batch(tasks, ProcessPool(2), runs, on_result=interrupt).run()
    with pytest.raises(ProcessLookupError):
        os.kill(int(here.read_text()), 0)
    assert open_history(runs / "b.t1.jsonl").final_result is None
    assert not is_being_written(runs / "b.t1.jsonl")


def test_a_worker_that_cannot_be_started_ends_the_batch_with_the_reason(
    tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: SpawnProcess) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(SpawnProcess, "start", start)
    with pytest.raises(OSError, match="Too many open files"):
        Batch(tasks_of(tmp_path, "calculate 1 + 2"), ProcessPool(1), runs).run()
    assert list(runs.iterdir()) == []


def test_signals_that_a_worker_gets_too_do_not_end_it_even_while_it_starts() -> None:
    pool = ProcessPool(1)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    future = pool.submit(partial(signal.pthread_sigmask, signal.SIG_BLOCK), ())
    (worker,) = multiprocessing.active_children()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(worker.pid or 0, number)
    assert future is not None
    assert future.result(PATIENCE) == set()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    # The pool itself ends a worker that it cannot use any more.
    worker.terminate()
    worker.join(PATIENCE)
    assert worker.exitcode == -signal.SIGKILL
    pool.close()


def leave_a_thread(marker: str) -> dict[str, Any]:
    """Let the worker's process take long to end, and say so when it ends by itself."""

    def stay() -> None:
        threading.Event().wait(2)
        Path(marker).touch()

    threading.Thread(target=stay).start()
    return {}


def test_idle_workers_are_not_waited_for(tmp_path: Path) -> None:
    pool = ProcessPool(2)
    markers = [str(tmp_path / name) for name in ("a", "b")]
    for future in [pool.submit(leave_a_thread, marker) for marker in markers]:
        assert future is not None
        future.result(PATIENCE)
        pool.free(future)
    pool.close()
    assert list(tmp_path.iterdir()) == []


def end_forked_child(_: object) -> int | None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def wait() -> None:
        there.send(None)
        # Again and again, since Python notices a signal that comes just before a wait only after it.
        while not there.poll(0.1):
            pass

    child = context.Process(target=wait)
    child.start()
    here.recv()
    child.terminate()
    child.join(PATIENCE / 4)
    child.kill()
    return child.exitcode


def end_forked_child_of_a_run(_: object) -> int | None:
    with handled(lambda *_: None, *ending_signals()):
        return end_forked_child(_)


def test_a_tool_can_terminate_a_process_that_it_forked() -> None:
    pool = ProcessPool(2)
    ended = [pool.submit(act, ()) for act in (end_forked_child, end_forked_child_of_a_run)]
    codes = [each and each.result(PATIENCE) for each in ended]
    pool.close()
    assert codes == [-signal.SIGTERM] * 2


def test_an_interrupt_asks_unkillable_workers_to_stop(tmp_path: Path, runs: Path) -> None:
    release, began = threading.Event(), threading.Event()

    class Busy(ThreadPoolExecutor):
        def submit(self, *_: Any) -> Any:
            return super().submit(lambda: (began.set(), release.wait(PATIENCE), {})[-1])

    def interrupt(result: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    first, second = tasks_of(tmp_path, "calculate 1 + 2", "calculate 3 + 4")
    Batch([first], threads(), runs).run()
    pool = ExecutorPool(lambda: Busy(2), lambda: 2)
    pool.submit(work, {})
    assert began.wait(PATIENCE)
    with pytest.raises(KeyboardInterrupt):
        Batch([first, second], pool, runs, on_result=interrupt).run()
    assert len(list(runs.glob(".batch-*.stop"))) == 1
    release.set()


def test_a_run_that_another_process_writes_is_left_alone(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, "calculate 1 + 2")
    writer = JournalWriter(runs / "b.t1.jsonl", "b.t1")
    (result,) = Batch(tasks, threads(), runs).run()
    writer.close()
    assert (result["status"], result["exit_code"]) == ("running", 1)
    assert "another process is writing" in result["error"]["message"]


def test_a_run_that_another_batch_starts_at_the_same_time_is_left_alone(tmp_path: Path, runs: Path) -> None:
    (task,) = tasks_of(tmp_path, "calculate 1 + 2")
    path = runs / "b.t1.jsonl"
    with ExitStack() as others:

        def perform(_: BatchJob) -> Any:
            others.callback(JournalWriter(path, "b.t1").close)
            JournalWriter(path, "b.t1")

        result = run_job(BatchJob(task, path, tmp_path / "stop", trusts_project=False), perform)
    assert (result["status"], result["exit_code"]) == ("running", 1)


def test_a_journal_that_is_no_file_fails_its_task_in_plain_words(tmp_path: Path, runs: Path) -> None:
    (task,) = tasks_of(tmp_path, "calculate 1 + 2")
    path = runs / "b.t1.jsonl"
    path.mkdir(parents=True)
    result = work(BatchJob(task, path, tmp_path / "stop", trusts_project=False))
    assert (result["status"], result["exit_code"]) == ("failed", 2)
    assert "is not a journal: it is a folder" in result["error"]["message"]


def test_a_journal_that_cannot_be_read_fails_only_its_task(
    tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> Any:
        if path.name == "b.t1.jsonl":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("aeon_core.runs.batch.ended_result", read)
    first, second = Batch(tasks_of(tmp_path, "calculate 1 + 2", "calculate 3 + 4"), threads(), runs).run()
    assert (first["status"], first["exit_code"], second["status"]) == ("failed", 2, "completed")
    assert "Permission denied" in first["error"]["message"]


@pytest.mark.parametrize("named", ["tools", "rule", "sealed-in-the-project"])
def test_an_interrupted_run_is_not_continued_with_what_only_its_journal_names(
    tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    tasks, path = tasks_of(tmp_path, "calculate 1 + 2"), runs / "b.t1.jsonl"
    Batch(tasks, threads(), runs).run()
    records = [json.loads(line) for line in path.read_bytes().splitlines()[:7]]
    if named == "tools":
        records[0]["config"]["tools"] = ["deadly:perish"]
    else:
        allowed = {"state": "decided", "point": "tool", "decision": "approve", "allow": {"rule": "bash(ls *)"}}
        records[-1] = {**{key: records[-1][key] for key in ENVELOPE}, "type": "approval", **allowed}
    if named == "sealed-in-the-project":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        records[-1]["seal"] = seal("b.t1", None, records[-1])
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (result,) = Batch(tasks, threads(), runs).run()
    assert (result["status"], result["exit_code"]) == ("failed", 2)
    assert "allow it with --trust-project" in result["error"]["message"]
    assert len(path.read_bytes().splitlines()) == len(records)


def test_an_interrupted_run_is_not_continued_with_an_approval_of_somebody_else(tmp_path: Path, runs: Path) -> None:
    tasks = tasks_of(tmp_path, "calculate 1 + 2", policy={"ask": ["calculator"]})
    path = runs / "b.t1.jsonl"
    Batch(tasks, threads(), runs).run()
    lines = path.read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if '"state":"decided"' in line)
    decided = {key: value for key, value in json.loads(lines[place]).items() if key != "feedback"}
    path.write_text("\n".join([*lines[:place], json.dumps({**decided, "decision": "approve"}), ""]))
    before = path.read_bytes()
    (result,) = Batch(tasks, threads(), runs).run()
    assert (result["status"], result["exit_code"], path.read_bytes()) == ("failed", 2, before)
    assert "asks to call 'calculator' with" in result["error"]["message"]
    (result,) = Batch(tasks, threads(), runs, trusts_project=True).run()
    assert result["status"] == "completed"


def test_an_interrupted_run_is_continued_by_the_rules_of_today(tmp_path: Path, runs: Path) -> None:
    Batch(tasks_of(tmp_path, "calculate 1 + 2"), threads(), runs).run()
    path = runs / "b.t1.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: next(place for place, line in enumerate(lines) if '"type":"tool"' in line)]))
    tasks = tasks_of(tmp_path, "calculate 1 + 2", policy={"deny": ["calculator"]})
    (result,) = Batch(tasks, threads(), runs).run()
    assert result["status"] == "not_converged"
    assert "the rule deny: calculator" in path.read_text()


def test_a_failed_task_keeps_its_reason_whatever_its_journal_is(tmp_path: Path) -> None:
    (task,) = tasks_of(tmp_path, "calculate 1 + 2")
    path = tmp_path / "b.t1.jsonl"

    def perform(_: BatchJob) -> Any:
        path.mkdir()
        raise UsageError("the first reason")

    result = run_job(BatchJob(task, path, tmp_path / "stop", trusts_project=False), perform)
    assert (result["status"], result["error"]["message"]) == ("failed", "the first reason")


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"tools": ["nowhere:tool"]}, 2, "nowhere"),
        ({"model": None}, 3, "no model is configured"),
        ({"model": "openai:m"}, 3, "OPENAI_API_KEY"),
        ({"criteria": Path("/nowhere.yml")}, 2, "nowhere.yml"),
    ],
)
def test_a_run_that_cannot_begin_is_a_result_with_its_exit_code(
    tmp_path: Path, runs: Path, fields: dict[str, Any], code: int, message: str
) -> None:
    task = tasks_of(tmp_path, "calculate 1 + 2")[0]
    task = replace(task, config=task.config.model_copy(update=fields))
    result = work(BatchJob(task, task.journal(runs), runs / "stop", trusts_project=False))
    assert (result["status"], result["exit_code"], result["ended"]) == ("failed", code, None)
    assert message in result["error"]["message"]


def test_a_runs_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot create the runs directory"):
        Batch(tasks_of(tmp_path, "calculate 1 + 2"), threads(), tmp_path / "file" / "runs").run()


@pytest.mark.parametrize(("codes", "code"), [([], 0), ([0, 0], 0), ([0, 1, 5, 3], 5)])
def test_the_exit_code_is_the_highest_of_the_runs(codes: list[int], code: int) -> None:
    assert exit_code([{"exit_code": each} for each in codes]) == code


def _wait_for(path: Path) -> None:
    wait_until(lambda: path.exists() and path.read_text(), str(path))
