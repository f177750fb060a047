"""Ctrl-C at any line of a run: it ends with a result, replays, and can be resumed."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import aeon_core
from aeon_core import Orchestrator, RunConfig, RunResult
from aeon_core.effects.record_stream import RecordStream
from aeon_core.runs import setup
from aeon_core.runs.replay import replay_lines
from tests.aeon_core.kernel.crash_checks import Whole, goes_on_to_the_same, read
from tests.aeon_core.kernel.crashes import never_waits
from tests.aeon_core.kernel.scenarios import JOURNAL, SCENARIOS
from tests.fakes import ScriptedModel, add, steps
from tests.replays import replays_the_same
from tests.sampling import scope

TRACED = tuple(str(Path(aeon_core.__file__).parent / name) for name in ("kernel", "effects", "journal/writer.py"))
AGAIN = 60
"""Lines from the first Ctrl-C to the second."""


class Lines:
    """Counts the lines of the kernel and the port that this thread executes, and presses Ctrl-C at some of them."""

    def __init__(self, *pressed: int) -> None:
        self.count = 0
        self._pressed = pressed

    @contextlib.contextmanager
    def traced(self, handler: Callable[..., object]) -> Iterator[None]:
        before, trace = signal.signal(signal.SIGINT, handler), sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(trace)
            signal.signal(signal.SIGINT, before)

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(TRACED) else None

    def _line(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        self.count += event == "line"
        if event == "line" and self.count in self._pressed:
            signal.raise_signal(signal.SIGINT)
        return self._line


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("name", ["outside", "launches"])
def test_a_run_that_is_interrupted_at_any_line_ends_replays_and_resumes(
    name: str, presses: int, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)
    folder = memory / f"{name}-{presses}"
    (folder / "whole").mkdir(parents=True)
    lines = Lines()
    with lines.traced(signal.default_int_handler):
        whole = Whole.of(name, folder / "whole")
    ended = set()
    for place in range(1, lines.count, lines.count // (300 if scope["all"] else 6)):
        left = folder / str(place)
        left.mkdir()
        result: RunResult | None = None
        pressed = [place + AGAIN * number for number in range(presses)]
        with contextlib.suppress(KeyboardInterrupt), Lines(*pressed).traced(signal.default_int_handler):
            result = SCENARIOS[name].run(left)
        for thread in threading.enumerate():
            if thread.name == "aeon-model-call":  # the run did not wait for a reply, which is paid nevertheless
                thread.join()
        if not (records := read(left / JOURNAL)):
            assert result is None, place
            continue
        # Before the first record and after the last, it is the caller who is interrupted.
        assert records[-1]["type"] == "run_finished", place
        assert result is None or records[-1]["result"]["status"] == result.status, place
        replays_the_same(records)
        ended.add(records[-1]["result"]["status"])
        goes_on_to_the_same(whole, left)
    assert "aborted" in ended


def test_a_second_interrupt_of_a_listener_ends_the_run_before_its_next_effect() -> None:
    def run(*interrupted_at: int) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []

        def interrupt(record: dict[str, Any]) -> None:
            records.append(record)
            if len(records) in interrupted_at:
                raise KeyboardInterrupt

        config, model = RunConfig(single_pass=True, durability="off"), ScriptedModel(answer="7")
        orchestrator = Orchestrator(model, config=config, journal=False, on_record=interrupt)
        assert orchestrator.run("t", steps(add(1, 1), add(2, 2))).status == records[-1]["result"]["status"]
        return records

    whole = len(run())
    for first in range(1, whole):
        for second in range(first + 1, whole, 1 if scope["all"] else 3):
            replays_the_same(run(first, second))


def test_an_interrupt_ends_a_tool_at_once_and_its_outcome_is_unknown() -> None:
    def interrupted() -> str:
        """Is interrupted."""
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the tool continued")

    records: list[dict[str, Any]] = []
    config = RunConfig(single_pass=True, durability="off", policy={"allow": ["interrupted"]})
    orchestrator = Orchestrator(ScriptedModel(), [interrupted], config=config, journal=False, on_record=records.append)
    with Lines().traced(signal.default_int_handler):
        result = orchestrator.run("t", steps({"tool": "interrupted", "arguments": {}}))
    assert (result.status, result.error and result.error["message"]) == ("aborted", "the run was interrupted")
    assert [record["state"] for record in records if record["type"] == "tool"] == ["started"]
    replays_the_same(records)


def test_an_interrupt_ends_a_listener_at_once_and_then_the_run() -> None:
    records: list[dict[str, Any]] = []

    def listen(record: dict[str, Any]) -> None:
        if record["type"] == "plan":
            signal.raise_signal(signal.SIGINT)
        records.append(record)

    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(ScriptedModel(answer="2"), config=config, journal=False, on_record=listen)
    with Lines().traced(signal.default_int_handler):
        assert orchestrator.run("t", steps(add(1, 1))).status == "aborted"
    assert "plan" not in [record["type"] for record in records]


def test_a_programs_own_handler_that_exits_ends_the_run_in_a_tool_and_then_the_program() -> None:
    def terminated() -> str:
        """Is terminated."""
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the tool continued")

    records: list[dict[str, Any]] = []
    config = RunConfig(single_pass=True, durability="off", policy={"allow": ["terminated"]})
    orchestrator = Orchestrator(ScriptedModel(), [terminated], config=config, journal=False, on_record=records.append)
    with pytest.raises(SystemExit, match="7"), Lines().traced(lambda *_: sys.exit(7)):
        orchestrator.run("t", steps({"tool": "terminated", "arguments": {}}))
    assert (records[-1]["type"], records[-1]["result"]["status"]) == ("run_finished", "aborted")
    replays_the_same(records)


def test_an_interrupt_after_the_last_record_leaves_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(_: str) -> bool:
        signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr(setup, "holds_token", pressed)
    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(ScriptedModel(answer="2"), config=config, journal=False)
    with Lines().traced(signal.default_int_handler):
        assert orchestrator.run("t", steps(add(1, 1))).status == "completed"


def test_an_interrupted_replay_raises_keyboard_interrupt() -> None:
    records: list[dict[str, Any]] = []
    config = RunConfig(single_pass=True, durability="off")
    Orchestrator(ScriptedModel(answer="2"), config=config, journal=False, on_record=records.append).run(
        "t", steps(add(1, 1), add(2, 2))
    )
    replays_the_same(records)  # the first time, caches fill: it has more lines
    lines = Lines()
    with lines.traced(signal.default_int_handler):
        replay_lines(list(records))
    # Not the last lines: their number varies by some, with what fills a cache or is finalized.
    for place in range(1, lines.count - 50, lines.count // (20 if scope["all"] else 6)):
        with pytest.raises(KeyboardInterrupt), Lines(place).traced(signal.default_int_handler):
            replay_lines(list(records))
