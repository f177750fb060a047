"""What the app uses of a processor while nothing happens: on a run that waits, on one that has ended."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from aeon_core.journal.lock import lock
from tests.benchmarks.scale import row, told
from tests.benchmarks.starts import past_run
from tests.benchmarks.terminal import Terminal

SECONDS = 10.0
SETTLE_SECONDS = 4.0
LIMIT = 0.01


def _idle(path: Path, sign: bytes) -> tuple[float, int]:
    """Return the share of one core that is used, and the bytes that are painted a second."""
    terminal = Terminal([str(Path(sys.executable).with_name("aeon-tui")), "watch", str(path)])
    try:
        terminal.wait_for(sign, 30)
        time.sleep(SETTLE_SECONDS)
        began, painted = time.monotonic(), len(terminal.painted)
        time.sleep(SECONDS)
        bytes_painted = sum(len(data) for _, data in terminal.painted[painted:])
        return terminal.cpu(began, time.monotonic()), int(bytes_painted / SECONDS)
    finally:
        terminal.close()


def report() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"AEON_RUNS_DIR": folder, "XDG_CONFIG_HOME": folder}
        past = past_run(Path(folder))
        live = Path(folder, "live.jsonl")
        live.write_bytes(b"".join(past.read_bytes().splitlines(keepends=True)[:60]))
        fd = os.open(live, os.O_RDWR)
        assert lock(fd)
        assert json.loads(past.read_bytes().splitlines()[-1])["type"] == "run_finished"
        print(f"The app while nothing happens, for {SECONDS:g} s")
        for name, path in {"a live run that waits": live, "a run that has ended": past}.items():
            cpu, painted = _idle(path, b"Log")
            row(name, f"{cpu:.2%}", f"{LIMIT:.0%} of one core", cpu <= LIMIT)
            told("painted", f"{painted:,} B/s", "")
        os.close(fd)
