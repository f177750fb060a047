"""Scrolling a plan of 2,000 steps with nested subplans, and the log of a journal of a million records."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.flood_source import RUN_ID, result
from tests.benchmarks.scale import row, told
from tests.benchmarks.terminal import Terminal, at

STEPS = 2_000
RECORDS = 1_000_000
ROUNDS = 12
KEY_SECONDS = 0.15
READ_SECONDS = 300.0
PLAN, LOG = b"1", b"8"
KEYS = {"down": b"j", "page down": b"\x04", "end": b"G", "page up": b"\x15", "up": b"k", "home": b"g"}
MEDIAN_MS, MOST_MS = 10, 50


def _steps(first: int, count: int, depth: int) -> list[dict[str, Any]]:
    """Return steps of which each tenth has a subplan, three levels deep."""
    steps: list[dict[str, Any]] = []
    number = first
    while number < first + count:
        step: dict[str, Any] = {"step_id": f"s{number:04d}", "description": f"work on part {number}"}
        below = min(9, first + count - number - 1) if depth < 3 else 0
        if below:
            step["subplan"] = {"goal": "a part", "substeps": _steps(number + 1, below, depth + 1)}
        steps.append(step)
        number += 1 + below
    return steps


def _records() -> Iterator[dict[str, Any]]:
    yield {"type": "run_started", "task": "a long run", "config": {"ttl": 50}, "model": "simulated:scroll"}
    yield {"type": "plan", "pass": 1, "cause": "given", "plan": {"goal": "all", "steps": _steps(1, STEPS, 1)}}
    for number in range(RECORDS - 3):
        yield {"type": "memory", "key": f"k{number % 500}", "value": number}
    yield {"type": "run_finished", "result": {**result(), "status": "completed"}}


def _write(path: Path) -> None:
    with path.open("w", buffering=1 << 20) as file:
        for seq, record in enumerate(_records()):
            envelope = {"v": 1, "seq": seq, "ts": "2026-11-20T09:30:00.000000Z", "run": RUN_ID}
            file.write(json.dumps({**envelope, **record}, separators=(",", ":")) + "\n")


def _keys(terminal: Terminal, pane: bytes) -> tuple[list[float], float]:
    """Return the seconds each key took until something was painted, and processor seconds a key."""
    terminal.type(pane + KEYS["home"])
    time.sleep(1.0)
    answers: list[float] = []
    cpu = terminal.samples[-1][1]
    for _ in range(ROUNDS):
        for key in KEYS.values():
            typed = terminal.type(key)
            answers.append(terminal.wait_for(b"(?s).", 2, after=typed) - typed)
            time.sleep(max(0.0, KEY_SECONDS - answers[-1]))
    time.sleep(0.2)
    return answers, (terminal.samples[-1][1] - cpu) / len(answers)


def report() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"AEON_RUNS_DIR": folder, "XDG_CONFIG_HOME": folder}
        path = Path(folder, f"{RUN_ID}.jsonl")
        _write(path)
        print(f"A plan of {STEPS:,} steps and a journal of {RECORDS:,} records, {path.stat().st_size / 1e6:.0f} MB")
        terminal = Terminal([str(Path(sys.executable).with_name("aeon-tui")), "watch", str(path)])
        try:
            terminal.wait_for(b"reading", 30)
            began = time.monotonic()
            terminal.wait_for(b"reading 9[0-9] %", READ_SECONDS)
            time.sleep(5.0)
            told("the whole is there after", f"{time.monotonic() - began:.0f} s", "read behind the screen")
            for name, pane in {"the plan": PLAN, "the log": LOG}.items():
                answers, cpu = _keys(terminal, pane)
                middle, most = at(answers, 0.5) * 1000, at(answers, 0.95) * 1000
                row(
                    f"{name}: a key is answered after, median",
                    f"{middle:.1f} ms",
                    f"{MEDIAN_MS} ms",
                    middle <= MEDIAN_MS,
                )
                row("95 of 100 within", f"{most:.1f} ms", f"{MOST_MS} ms", most <= MOST_MS)
                told("processor time a key", f"{cpu * 1000:.1f} ms", f"{len(answers)} keys")
        finally:
            terminal.close()
