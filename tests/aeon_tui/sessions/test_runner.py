from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.errors import AeonError, ModelUnavailableError
from aeon_tui.sessions.run_jobs import Kernel, NewRunJob, OnLine, RunJob
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.stream import STREAM_LIMIT, Stream
from tests.aeon_tui.fakes import ScriptedKernel, build_scripted
from tests.aeon_tui.recordings import live_run
from tests.waiting import PATIENCE

START = NewRunJob("add 5 and 10", RunConfig(model="simulated:default"))
JOURNAL = Path("runs/r1.jsonl")


def test_a_run_ends_with_its_result_and_its_records() -> None:
    kernels: list[ScriptedKernel] = []
    records = live_run().records
    runner = Runner(
        START, JOURNAL, build_scripted(records, lambda kernel: (kernels.append(kernel), kernel.release())[0])
    )
    assert not runner.running
    runner.start()
    assert runner.wait(PATIENCE)
    assert runner.result is not None
    assert (runner.result.status, runner.exit_code) == ("completed", 0)
    assert [record["seq"] for record in runner.source.take(1)] == list(range(len(records) + 1))
    assert runner.outcome() == f"run r1 (simulated): completed · see `aeon-tui show {JOURNAL.absolute()}`"


def test_an_abort_ends_the_run_with_exit_code_1() -> None:
    runner = Runner(START, JOURNAL, build_scripted(live_run().records))
    runner.start()
    runner.abort()
    assert runner.wait(PATIENCE)
    assert runner.exit_code == 1
    assert runner.outcome() == f"run r1 (simulated): aborted · continue with `aeon-tui resume {JOURNAL.absolute()}`"


def test_an_abort_before_the_kernel_exists_still_applies() -> None:
    runner = Runner(START, JOURNAL, build_scripted(live_run().records))
    runner.abort()
    runner.start()
    assert runner.wait(PATIENCE)
    assert runner.result is not None
    assert runner.result.status == "aborted"


def test_a_run_whose_thread_cannot_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    runner = Runner(START, JOURNAL, build_scripted(live_run().records))
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        runner.start()
    assert not runner.running
    assert runner.wait(0)


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            ModelUnavailableError("no key; set \x1b[31mOPENAI_API_KEY"),
            3,
            "aeon-tui: no key; set \\x1b[31mOPENAI_API_KEY",
        ),
        (AeonError("cannot"), 1, "aeon-tui: cannot"),
        (ZeroDivisionError("oops"), 1, "aeon-tui: internal error: ZeroDivisionError: oops"),
    ],
)
def test_an_error_before_the_run_is_its_message_and_code(raised: Exception, code: int, message: str) -> None:
    def build(job: RunJob, journal: Path, on_line: OnLine, stream: Stream, approver: object) -> Kernel:
        raise raised

    runner = Runner(START, JOURNAL, build)
    runner.start()
    assert runner.wait(PATIENCE)
    assert (runner.exit_code, runner.outcome()) == (code, message)
    ending = runner.ending()
    assert ending is not None
    assert ending.error is not None
    assert (ending.status, ending.model) == ("failed", "simulated:default")
    assert str(ending.error["message"]).endswith(str(raised))
    assert runner.source.ended


def test_a_run_abandoned_in_a_tool_call_has_an_unknown_outcome() -> None:
    kernels: list[ScriptedKernel] = []
    runner = Runner(START, JOURNAL, build_scripted(live_run().records, kernels.append))
    runner.start()
    assert not runner.wait(0.01)
    assert runner.exit_code == 1
    assert runner.outcome() == (
        "aeon-tui: run r1: stopped during a tool call; its outcome is unknown · "
        f"continue with `aeon-tui resume {JOURNAL.absolute()}`"
    )
    assert runner.ending() is None
    runner.abort()
    assert runner.wait(PATIENCE)


def test_a_model_record_clears_the_previous_calls_stream() -> None:
    runner = Runner(START, JOURNAL, build_scripted([]))
    runner.stream.add("reason", "s1", "half a rep")
    runner._on_line(b'{"v":1,"seq":1,"ts":"","run":"r","type":"step"}\n')
    assert runner.stream.text == "half a rep"
    runner._on_line(b'{"v":1,"seq":2,"ts":"","run":"r","type":"llm","state":"finished"}\n')
    assert runner.stream.text == ""


def test_a_stream_is_bounded() -> None:
    stream = Stream()
    for _ in range(STREAM_LIMIT):
        stream.add("answer", None, "xx")
    assert len(stream.text) == STREAM_LIMIT


def test_a_stream_keeps_the_text_and_each_tool_call_apart_until_it_is_cleared() -> None:
    stream = Stream()
    stream.add("tool_call", "planner", "I write it.")
    for tool, text in (
        ("Write", ""),
        ("Write", '{"file'),
        ("Write", ""),
        ("Bash", ""),
        ("Write", '_path"'),
        ("Bash", "{}"),
    ):
        stream.add_call(tool, "planner", text)
    assert (stream.text, stream.step_id) == ("I write it.", "planner")
    assert stream.calls == [("Write", '{"file'), ("Write", '_path"'), ("Bash", "{}")]
    version = stream.version
    stream.clear()
    assert (stream.text, stream.calls) == ("", [])
    assert stream.version > version
    stream.add_call("Bash", None, "")
    stream.clear()
    assert stream.calls == [], "also of one that has only begun"


def test_a_stream_reports_its_rate_once_it_can_be_measured() -> None:
    clock = iter([0.0, 10.0, 10.1, 12.0])
    stream = Stream(lambda: next(clock))
    assert stream.tokens_per_second is None
    stream.add("plan", None, "x" * 400)
    assert stream.tokens_per_second is None, "a tenth of a second says nothing"
    assert stream.tokens_per_second == 50.0
