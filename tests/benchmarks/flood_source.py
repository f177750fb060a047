"""A run that writes far more records a second than any real one, as a journal's lines, at a steady rate."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aeon_core.journal.lock import lock

Listener = Callable[[bytes], object]
STEPS = 40
LIMIT = 100_000
"""Cycles: one is spent each millisecond, so what the screen shows of them tells how old it is."""
BATCH_SECONDS = 0.002
RUN_ID = "20261120-093000-f100d5"
_ENVELOPE = b'{"v":1,"seq":%%d,"ts":"2026-11-20T09:30:%%02d.%%06dZ","run":"%s",' % RUN_ID.encode()
_CALL = b'"call_id":"c%(n)d","state":"%(state)s","purpose":"reason","pass":1,"step_id":"%(step)s","attempt":1,'
_INVOCATION = b'"call_id":"t%(n)d","state":"%(state)s","pass":1,"step_id":"%(step)s","tool_name":"calculator",'
_STARTED, _FINISHED = {b"state": b"started"}, {b"state": b"finished"}
_REQUEST = b'"request":{"system":{"$text":"%(sha)s"},"messages":[{"role":"user","content":"Go on with %(n)d."}]}}\n'
_RESPONSE = (
    b'"response":{"text":"{\\"tool_name\\": \\"calculator\\", \\"arguments\\": {\\"a\\": %(n)d}}","tool_calls":[]},'
    b'"usage":{"input_tokens":693,"output_tokens":131},"cost_usd":0.0,"latency_ms":1.25}\n'
)
_TEXT = b'"type":"text","sha256":"%(sha)s","text":"' + b"You say what a task asks for. " * 30 + b'"}\n'
_CYCLES = b'"limit":100000,"allocated":100000,"spent":%(ms)d,"remaining":%(left)d,"reason":"reason",'
_CYCLE_ENDS = (
    b'"plan_state":{"since":%(n)d,"steps":{"%(step)s":{"status":"complete"}}},'
    b'"llm_output":{},"supervisor_actions":[],"tool_calls":[],"ttl_remaining":%(left)d,"errors":[]}\n'
)
_BODIES: tuple[tuple[bytes, dict[bytes, bytes]], ...] = (
    (b'"type":"step","pass":1,"step_id":"%(step)s","status":"running"}\n', {}),
    (_TEXT, {}),
    (b'"type":"llm",' + _CALL + _REQUEST, _STARTED),
    (b'"type":"llm",' + _CALL + _RESPONSE, _FINISHED),
    (b'"type":"ttl",' + _CYCLES + b'"usage":{"input_tokens":%(n)d,"output_tokens":%(n)d},"cost_usd":0.0}\n', {}),
    (b'"type":"tool",' + _INVOCATION + b'"arguments":{"a":%(n)d,"b":10},"effect":"pure"}\n', _STARTED),
    (b'"type":"tool",' + _INVOCATION + b'"result":{"sum":%(n)d},"error":null,"duration_ms":0.5}\n', _FINISHED),
    (b'"type":"memory","key":"%(step)s","value":{"sum":%(n)d}}\n', {}),
    (b'"type":"step","pass":1,"step_id":"%(step)s","status":"complete","mode":"tool","output":{"sum":%(n)d}}\n', {}),
    (b'"type":"cycle","step_number":%(n)d,' + _CYCLE_ENDS, {}),
)
"""What one step of a plan writes, in the proportions of a real run of tool steps; about 310 bytes a record."""


@dataclass(frozen=True)
class Written:
    """What a flood was like for the one that wrote it. Times are of the monotonic clock, which processes share."""

    records: int
    began: float
    ended: float
    cpu_s: float
    longest_delay_s: float
    """How far it ever was behind its schedule."""

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / (self.ended - self.began)


def head() -> list[dict[str, Any]]:
    """Return the records that the run begins with."""
    steps = [{"step_id": f"s{number:02d}", "description": f"add number {number}"} for number in range(1, STEPS + 1)]
    config = {"ttl": LIMIT, "single_pass": False}
    return [
        {"type": "run_started", "task": "a flood", "config": config, "model": "simulated:flood", "simulated": True},
        {"type": "plan", "pass": 1, "cause": "given", "plan": {"goal": "keep up", "steps": steps}},
        {"type": "phase", "pass": 1, "phase": "execute", "state": "started"},
    ]


def result() -> dict[str, Any]:
    """Return the RunResult that the flood ends with."""
    ttl = {"limit": LIMIT, "allocated": LIMIT, "spent": 1, "remaining": LIMIT - 1}
    return {"run_id": RUN_ID, "status": "completed", "ttl": ttl, "model": "simulated:flood", "simulated": True}


class Flood:
    """Hands the lines of such a run to `write`, one by one, so many a second for so long."""

    def __init__(self, write: Callable[[bytes], object], rate: float, seconds: float) -> None:
        self._write, self._rate, self._seconds = write, rate, seconds
        self._seq = 0
        self._began = 0.0

    def run(self) -> Written:
        """Write all of it."""
        for record in head():
            self.put(json.dumps(record, separators=(",", ":"))[1:].encode() + b"\n")
        self._began, cpu, delay = time.monotonic(), time.thread_time(), 0.0
        bodies, records = self.bodies(), 0
        wanted = int(self._rate * self._seconds)
        while records < wanted:
            due = min(wanted, int((time.monotonic() - self._began) * self._rate))
            delay = max(delay, (due - records) / self._rate)
            for _ in range(records, due):
                self.put(next(bodies))
            records = max(records, due)
            time.sleep(BATCH_SECONDS)
        written = Written(records, self._began, time.monotonic(), time.thread_time() - cpu, delay)
        end = {"type": "run_finished", "result": result()}
        self.put(json.dumps(end, separators=(",", ":"))[1:].encode() + b"\n")
        return written

    def put(self, body: bytes) -> None:
        """Write a record's line behind its envelope."""
        envelope = self._envelope % (self._seq, self._seq // 1_000_000 % 60, self._seq % 1_000_000)
        self._seq += 1
        self._write(envelope + body)

    _envelope = _ENVELOPE.replace(b"%%", b"%")

    def bodies(self) -> Iterator[bytes]:
        """Yield what the run writes, without envelopes, and without end."""
        number = 0
        while True:
            number += 1
            step, sha = b"s%02d" % (number % STEPS + 1), b"%064x" % number
            for body, more in _BODIES:
                spent = int((time.monotonic() - self._began) * 1000)
                yield body % {
                    b"n": number, b"step": step, b"sha": sha, b"ms": spent, b"left": LIMIT - spent, **more
                }  # fmt: skip


def write_journal(path: Path, rate: float, seconds: float, listener: Listener | None = None) -> Written:
    """Write a flood to a journal as its process does: locked, a line a write; a listener gets each line after it."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        lock(fd)

        def write(line: bytes) -> None:
            os.write(fd, line)
            if listener is not None:
                listener(line)

        return Flood(write, rate, seconds).run()
    finally:
        os.close(fd)


def main() -> None:
    """Write a flood to the path, at the rate and for the seconds that the command line names; print what it was."""
    path, rate, seconds = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    print(json.dumps(asdict(write_journal(path, rate, seconds))))


if __name__ == "__main__":
    main()
