"""How long starting takes, beside `python -c pass`, and the first screen beside a bare five-pane app."""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BARE_APP = """
from textual.app import App
from textual.containers import Grid
from textual.widgets import Footer, Header, Static
class Bare(App):
    CSS = "Grid { grid-size: 3 2; } Static { border: round white; }"
    def compose(self):
        yield Header()
        with Grid():
            for n in range(5):
                yield Static(f"pane {n}")
        yield Footer()
Bare().run()
"""
ROUNDS = 11


def run_seconds(command: Sequence[str]) -> float:
    """Return how long a command takes, in seconds."""
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def first_paint_seconds(command: Sequence[str], sign: bytes) -> float:
    """Return how long it takes until a command in a terminal has painted `sign`."""
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "LINES": "40", "COLUMNS": "120"}
        os.execvp(command[0], list(command))
    seen = b""
    try:
        while sign not in seen:
            seen += os.read(terminal, 65536)
        return time.perf_counter() - began
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def past_run(folder: Path) -> Path:
    """Return the journal of a run of the simulated model that has ended."""
    from aeon_core import Orchestrator, RunConfig, connect

    path = folder / "past.jsonl"
    Orchestrator(connect("simulated:default"), config=RunConfig(), journal=path).run("design a REST API for invoices")
    return path


def medians(measures: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in measures.items()}


def report() -> None:
    """Print the ratios."""
    command = str(Path(sys.executable).with_name("aeon-tui"))
    with tempfile.TemporaryDirectory() as folder:
        # Neither what this person has configured is measured, nor the compiling of modules that were edited.
        for name in [name for name in os.environ if name.startswith("AEON_") or name == "PYTHONDONTWRITEBYTECODE"]:
            del os.environ[name]
        runs, compiled = Path(folder, "runs"), Path(folder, "compiled")
        os.environ |= {"AEON_RUNS_DIR": str(runs), "XDG_CONFIG_HOME": folder, "PYTHONPYCACHEPREFIX": str(compiled)}
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import pydantic": [sys.executable, "-c", "import pydantic"],
            "import Orchestrator, connect": [sys.executable, "-c", "from aeon_core import Orchestrator, connect"],
            "aeon-tui --help": [command, "--help"],
            "aeon-tui runs": [command, "runs"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for words in commands.values():
            run_seconds(words)
        for _ in range(ROUNDS):
            for name, words in commands.items():
                times[name].append(run_seconds(words))
        median = medians(times)
        print("Starting (median of wall times; × is the ratio to the first row in the same run)")
        for name, seconds in median.items():
            print(f"{name:>28} {seconds * 1000:>7.0f} ms {seconds / median['python -c pass']:>6.1f} ×")
        screens = {
            "bare five-pane Textual app": ([sys.executable, "-c", BARE_APP], b"pane 4"),
            "aeon-tui, its first screen": ([command], b"Runs"),
            "aeon-tui watch, a past run": ([command, "watch", str(past_run(Path(folder)))], b"Log"),
        }
        paints: dict[str, list[float]] = {name: [] for name in screens}
        for words, sign in screens.values():
            first_paint_seconds(words, sign)
        for _ in range(ROUNDS):
            for name, (words, sign) in screens.items():
                paints[name].append(first_paint_seconds(words, sign))
        median = medians(paints)
        for name, seconds in median.items():
            ratio = seconds / median["bare five-pane Textual app"]
            print(f"{name:>28} {seconds * 1000:>7.0f} ms {ratio:>6.2f} ×  limit 1.5{'  OVER' * (ratio > 1.5)}")
