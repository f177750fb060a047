"""What goes on in this process, whatever it is: a run, or a workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Session(Protocol):
    """Works on a thread of its own; the app starts it, ends it, and says at its end how it went."""

    @property
    def journal(self) -> Path | None:
        """The file that its records are in; None where there is none yet."""

    @property
    def run_id(self) -> str:
        """Its id."""

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""

    @property
    def result(self) -> object:
        """How it ended; None where it has not, or could not begin."""

    @property
    def exit_code(self) -> int:
        """What a command ends with."""

    def start(self) -> None:
        """Begin; once."""

    def abort(self) -> None:
        """Ask it to end; returns at once."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most so long, or as long as it takes; return whether it has ended."""

    def outcome(self) -> str:
        """Return one line about how it ended."""
