"""A jump into the past of a run of 200,000 records: at once after it was opened, and once the whole was read.

× is to folding all records once, which is what a jump would cost that had to do so.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aeon_core.journal.index import OffsetIndex
from aeon_core.journal.view.incremental import IncrementalFold
from tests.benchmarks.flood_source import RUN_ID, Flood, head, result
from tests.benchmarks.measure import best_of
from tests.benchmarks.scale import row, told
from tests.benchmarks.terminal import Terminal

RECORDS, PASSES = 200_000, 5
LIMIT = 0.4
"""Times of folding all, which takes 5 s on the machine on which a jump may take 2 s."""
READ_SECONDS, SETTLE_SECONDS = 300.0, 1.0
JUMPS = 3


def write(path: Path) -> None:
    """Write a run of so many records in so many passes."""
    with path.open("wb", buffering=1 << 20) as file:
        flood = Flood(file.write, 1.0, 1.0)

        def put(*records: dict[str, Any]) -> None:
            for record in records:
                flood.put(json.dumps(record, separators=(",", ":"))[1:].encode() + b"\n")

        put(*head())
        bodies = flood.bodies()
        for number in range(1, PASSES + 1):
            for body in itertools.islice(bodies, RECORDS // PASSES):
                flood.put(body.replace(b'"pass":1', b'"pass":%d' % number))
            put({"type": "phase", "pass": number, "phase": "execute", "state": "finished"})
            put({"type": "pass", "pass_number": number})
            if number < PASSES:
                put({"type": "phase", "pass": number + 1, "phase": "execute", "state": "started"})
        put({"type": "run_finished", "result": {**result(), "status": "completed"}})


def _fold(path: Path) -> None:
    with OffsetIndex(path) as index:
        while index.extend(1.0):
            pass
        whole = IncrementalFold(index)
        while whole.step(1.0):
            pass


def _jumps(terminal: Terminal) -> list[float]:
    """Return the seconds from each `[` until the end of the pass before is on the screen."""
    seconds = []
    for number in range(PASSES, PASSES - JUMPS, -1):
        typed = terminal.type(b"[")
        seconds.append(terminal.wait_for(rb"pass %d of %d" % (number, PASSES), 60, after=typed) - typed)
    return seconds


def report() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"AEON_RUNS_DIR": folder, "XDG_CONFIG_HOME": folder}
        path = Path(folder, f"{RUN_ID}.jsonl")
        write(path)
        folded = best_of(2, {"fold": lambda: _fold(path)})["fold"]
        print(f"A jump into the past of {RECORDS:,} records, {path.stat().st_size / 1e6:.0f} MB")
        told("all records folded once", f"{folded:.1f} s", "")
        for when in ("at once", "once all was read"):
            terminal = Terminal([str(Path(sys.executable).with_name("aeon-tui")), "watch", str(path)])
            try:
                terminal.wait_for(b"reading [0-9]+ %", 30)
                terminal.wait_for(b"s0[1-9]", 30)
                if when != "at once":
                    terminal.wait_for(b"reading 9[0-9] %", READ_SECONDS)
                    time.sleep(5 * SETTLE_SECONDS)
                first, *others = _jumps(terminal)
                row(f"the first, {when}", f"{first / folded:.2f} ×", f"{LIMIT:g}", first / folded <= LIMIT)
                told("", f"{first:.2f} s", f"the next {', '.join(f'{each * 1000:.0f} ms' for each in others)}")
                _, most = terminal.memory(0.0, time.monotonic())
                told("memory", f"{most / 1e6:.0f} MB", "the most")
            finally:
                terminal.close()
    print()
