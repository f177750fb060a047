"""A real terminal: tmux, with a server of its own for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.waiting import PATIENCE, wait_until

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
START = """#!/bin/sh
sh -c 'echo $$ > "$1.pid"; name=$0; shift; exec "$name" -m aeon_tui "$@"' "$PYTHON" "$@"
echo "exit $?"
"""
"""The program as a child of the shell, which outlives it: what it leaves of the terminal can be looked at."""


class Pane:
    """One pane with a shell in it."""

    def __init__(self, tmux: Tmux, name: str) -> None:
        self._tmux, self.name, self.folder = tmux, name, tmux.folder

    def start(self, label: str, *arguments: str) -> None:
        """Run the program in the pane; `label` names the file that gets its process id."""
        words = " ".join(f"'{each}'" for each in (label, *arguments))
        self.keys(f"clear; ./start.sh {words}", "Enter")

    def keys(self, *keys: str) -> None:
        """Type keys, by tmux's names or as text."""
        self._tmux("send-keys", "-t", self.name, *keys)

    @property
    def text(self) -> str:
        """The pane's text."""
        return self._tmux("capture-pane", "-p", "-t", self.name)

    def flag(self, name: str) -> str:
        """Return what tmux knows of the pane's terminal."""
        return self._tmux("display-message", "-p", "-t", self.name, f"#{{{name}}}").strip()

    def wait_until(self, holds: Callable[[], T]) -> T:
        """Return what it returns once that is true; a failure shows the pane's text."""
        return wait_until(holds, lambda: f"\n{self.text}")

    def until(self, *texts: str) -> str:
        """Wait until the pane contains all these; return its text."""

        def shown() -> str:
            text = self.text
            return text if all(each in text for each in texts) else ""

        return wait_until(shown, lambda: f"{texts!r} in\n{self.text}")

    def until_there_for(self, text: str, seconds: float) -> None:
        """Wait until a text has stood in the pane for so long."""
        self.until(text)
        begun = time.monotonic()
        self.wait_until(lambda: time.monotonic() - begun > seconds and text in self.text)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-t", self.name, "-x", str(columns), "-y", str(rows))


class Tmux:
    """A server with a pane for each name that is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = str(folder / "tmux")

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments],
            cwd=self.folder,
            env=surroundings(self.folder),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout

    def pane(self, name: str, columns: int = 80, rows: int = 24) -> Pane:
        """Open a terminal of that size."""
        self("new-session", "-d", "-s", name, "-x", str(columns), "-y", str(rows), "sh")
        pane = Pane(self, name)
        pane.wait_until(lambda: "$" in pane.text or "#" in pane.text)
        return pane

    def pid(self, label: str) -> int:
        """Return the process id of the program that was started under a label."""
        return int((self.folder / f"{label}.pid").read_text())


def surroundings(folder: Path) -> dict[str, str]:
    """Return the environment of a person who has just installed it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    roots = [str(ROOT / name) for name in ("", "core", "widgets", "themes")]
    return {
        "LANG": "C.UTF-8",
        **kept,
        "HOME": str(folder),
        "PS1": "$ ",
        "PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(roots),
        "AEON_RUNS_DIR": str(folder / "runs"),
        "OPENAI_API_KEY": "no-" + "secret",
    }


@pytest.fixture
def tmux(programs_on_path: None, tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed: there is no real terminal to try it in")
    (tmp_path / "start.sh").write_text(START)
    (tmp_path / "start.sh").chmod(0o755)
    server = Tmux(tmp_path)
    try:
        yield server
    finally:
        subprocess.run(["tmux", "-S", str(tmp_path / "tmux"), "kill-server"], capture_output=True, check=False)
