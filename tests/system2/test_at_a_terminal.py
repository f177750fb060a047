"""The command at a real terminal: it asks for the task, and at the first gate (REQ-001, REQ-003, REQ-042)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system2.workflows import last_transcript, transcript
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("default_signals")


def _lead() -> None:
    """Have the terminal be the process's own, so that it is told when that hangs up."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class AtTerminal:
    """A process whose terminal is ours."""

    def __init__(self, folder: Path, *args: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "system2", *args],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
            preexec_fn=_lead,
        )
        os.close(theirs)
        self.shown = ""

    def see(self, text: str) -> None:
        """Wait until a text is shown."""

        def is_shown() -> bool:
            while text not in self.shown and select.select([self._ours], [], [], 0)[0]:
                self.shown += os.read(self._ours, 65536).decode("utf-8", "replace")
            return text in self.shown

        wait_until(is_shown, lambda: f"{text!r} in {self.shown!r}")

    def type(self, line: str | bytes) -> None:
        self.shown = ""
        os.write(self._ours, (line if isinstance(line, bytes) else line.encode()) + b"\n")

    def hang_up(self) -> None:
        os.close(self._ours)
        self._ours = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[AtTerminal]:
    opened = AtTerminal(tmp_path, "--model", "simulated:default")
    yield opened
    opened.close()


def test_the_task_is_prompted_for_and_a_rejection_returns_to_the_gate(terminal: AtTerminal, tmp_path: Path) -> None:
    terminal.see("What should be done? ")
    terminal.type("count the invoices")
    terminal.see("approve, reject or abort?")
    assert "count the invoices" in terminal.shown
    terminal.type("w name the users\n\nand their roles")
    terminal.see("approve, reject or abort?")
    terminal.type("w")
    terminal.see("> ")
    terminal.type("count them")
    terminal.see("> ")
    terminal.type("by country")
    terminal.see("> ")
    terminal.type("")
    terminal.see("approve, reject or abort?")
    terminal.type("X")
    assert terminal.process.wait(PATIENCE) == 1
    assert not (tmp_path / "spec/context.md").exists()
    lines = transcript(last_transcript(tmp_path))
    feedback = [line.get("feedback") for line in lines if line["type"] == "gate_decision"]
    assert feedback == ["name the users\n\nand their roles", "count them\nby country", None]


GATE = "approve, reject or abort? [a, w REASON, X] "


def started(terminal: AtTerminal) -> AtTerminal:
    terminal.see("What should be done? ")
    terminal.type("count the invoices")
    return terminal


def test_input_typed_before_a_gate_is_not_an_answer(terminal: AtTerminal, tmp_path: Path) -> None:
    started(terminal).type("a\na\na")
    terminal.see(GATE)
    terminal.type("X")
    assert terminal.process.wait(PATIENCE) == 1
    lines = transcript(last_transcript(tmp_path))
    assert [line["decision"] for line in lines if line["type"] == "gate_decision"] == ["abort"]


def test_a_terminal_that_hangs_up_ends_the_workflow_at_the_gate(terminal: AtTerminal, tmp_path: Path) -> None:
    started(terminal).see(GATE)
    terminal.hang_up()
    assert terminal.process.wait(PATIENCE) == 1
    lines = transcript(last_transcript(tmp_path))
    assert [line["type"] for line in lines if line["type"] == "gate_decision" and line["decision"] == "approve"] == []
    assert lines[-1]["status"] == "aborted"


@pytest.mark.exhaustive
def test_the_end_of_the_input_aborts_at_the_gate(terminal: AtTerminal) -> None:
    started(terminal).see(GATE)
    terminal.type(b"\x04")
    terminal.see("aborted at gate 0 (scope): the input ended without an answer")
    assert terminal.process.wait(PATIENCE) == 1


@pytest.mark.exhaustive
def test_input_may_be_undecodable(terminal: AtTerminal, tmp_path: Path) -> None:
    started(terminal).see(GATE)
    terminal.type(b"w name the caf\xe9 \xff")
    terminal.see(GATE)
    assert "name the caf" in (tmp_path / "spec/scope.md").read_text()
    terminal.type("X")
    assert terminal.process.wait(PATIENCE) == 1


def test_ctrl_c_at_a_gate_ends_it_on_its_own_line(terminal: AtTerminal) -> None:
    started(terminal).see(GATE)
    terminal.type(b"\x03")
    terminal.see("continue with: ")
    assert "\n=== Workflow Summary ===" in terminal.shown
    assert terminal.process.wait(PATIENCE) == 1
