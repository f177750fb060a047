"""The terminal: its title, its notifications while the user looks elsewhere, and Ctrl-Z."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.driver import Driver

from aeon_core.escape import escape_controls

if TYPE_CHECKING:
    from textual.app import App


LIMIT = 80
"""The most characters of a title."""
_KEEP, _GIVE_BACK = "\x1b[22;2t", "\x1b[23;2t"


def title(text: str) -> str:
    """Return the sequence that sets the terminal's title; nothing in the text can control the terminal."""
    return f"\x1b]2;{_one_line(text)}\x07"


def notification(text: str) -> str:
    """Return the sequence that shows a notification in terminals that support it; others ignore it."""
    return f"\x1b]9;{_one_line(text)}\x07"


@contextlib.contextmanager
def title_given_back() -> Iterator[None]:
    """Restore the terminal's title."""
    _write(_KEEP)
    try:
        yield
    finally:
        _write(_GIVE_BACK)


def sized(driver: type[Driver]) -> type[Driver]:
    """Return a driver that asks the screen's own descriptor for its size, since standard output is redirected."""

    class Sized(driver):  # type: ignore[misc,valid-type]
        def _get_terminal_size(self) -> tuple[int, int]:
            try:
                return tuple(os.get_terminal_size(sys.__stderr__.fileno()))  # type: ignore[union-attr,return-value]
            except (AttributeError, OSError, ValueError):
                return super()._get_terminal_size()  # type: ignore[no-any-return]

    return Sized


def _one_line(text: str) -> str:
    return escape_controls(" ".join(text[:LIMIT].split()))


def _write(sequence: str) -> None:
    stream = sys.__stderr__
    with contextlib.suppress(OSError, ValueError):
        if stream is not None and stream.isatty():
            stream.write(sequence)
            stream.flush()


NO_SHELL = "Cannot suspend: no shell could bring the app back."
NO_TERMINAL = "Cannot suspend: the app has no terminal of its own."


def suspend(app: App[Any], running: int) -> str:
    """Stop this process and its children until the shell continues it; return why that is impossible, if it is."""
    from textual.app import SuspendNotSupported

    if app.is_headless or not hasattr(signal, "SIGTSTP"):
        return NO_TERMINAL
    if not _has_job_control():
        return NO_SHELL
    try:
        with app.suspend():
            if running:
                them = "1 run stops" if running == 1 else f"{running} runs stop"
                sys.stderr.write(f"aeon-tui: {them} until you continue with fg\n")
                sys.stderr.flush()
            # Stop the whole job, so that a shell waiting for a parent program notices.
            os.killpg(0, signal.SIGTSTP)
    except SuspendNotSupported:
        return NO_TERMINAL
    return ""


def _has_job_control() -> bool:
    """Return whether a shell made this a job: otherwise nobody would continue a stopped process."""
    return os.getpgrp() != os.getsid(0)
