"""A source and a kernel that tests script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core.entities import RunResult, TTLState
from aeon_tui.sessions.run_jobs import Kernel, OnLine, RunJob
from aeon_tui.sessions.runner import Build
from aeon_tui.sessions.stream import Stream
from aeon_tui.sources.base import RecordSource
from tests.waiting import PATIENCE


class ListSource(RecordSource[Any]):
    """Hands over records when told to."""

    live = follows = False
    ended = True
    waiting: Any = False
    notice = reading = ""
    snapshots: Any = None

    def __init__(self, records: list[dict[str, Any]], live: bool = False) -> None:
        super().__init__()
        self.live = live
        self.closed = False
        self.waiting = list(records)

    def take(self, seconds: float) -> list[dict[str, Any]]:
        taken, self.waiting = self.waiting, []
        return taken

    def close(self) -> None:
        self.closed = True


class ScriptedKernel:
    """Writes some records, then stays in a model call until it is aborted or released."""

    def __init__(self, records: list[dict[str, Any]], on_line: OnLine, stream: Stream) -> None:
        self._records, self._on_line, self.on_delta = records, on_line, stream.add
        self._go = threading.Event()
        self.aborted = False
        self.deaf = False

    def close(self) -> None:
        """Holds nothing open."""

    def run(self) -> RunResult:
        for record in self._records:
            self._on_line(json.dumps(record).encode() + b"\n")
        self._go.wait(10 * PATIENCE)  # longer than a test waits for the end of what it should not hold up
        return self._end("aborted" if self.aborted else "completed")

    def _end(self, status: Any) -> RunResult:
        result = RunResult(
            run_id="r",
            status=status,
            answer=None if self.aborted else "15",
            ttl=TTLState(limit=1, allocated=1, spent=0, remaining=1),
            model="simulated:default",
            simulated=True,
        )
        last = self._records[-1]
        line = {**last, "seq": last["seq"] + 1, "type": "run_finished", "result": result.model_dump(mode="json")}
        self._on_line(json.dumps(line).encode() + b"\n")
        return result

    def abort(self) -> None:
        self.aborted = True
        if not self.deaf:
            self._go.set()

    def release(self) -> None:
        self._go.set()


def build_scripted(
    records: list[dict[str, Any]], keep: Callable[[ScriptedKernel], None] = lambda kernel: None
) -> Build:
    """Return a factory of scripted kernels; `keep` gets the one that is made."""

    def build(job: RunJob, journal: Path, on_line: OnLine, stream: Stream, approver: object) -> Kernel:
        kernel = ScriptedKernel(records, on_line, stream)
        keep(kernel)
        return kernel

    return build
