"""The terminal: its title, its notifications while the user looks elsewhere, and Ctrl-Z.

In its place, there may be a page in a browser: the app is then a child of `aeon-tui serve`, connected over standard
input and output.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aeon_core.escape import escape_controls
from aeon_tui.platform.stdio_capture import reserve_terminal

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver


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
    if os.getpgrp() == os.getsid(0):  # no shell made this a job, so nobody would continue a stopped process
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


def is_served() -> bool:
    """Return whether the app is drawn in a browser instead of a terminal."""
    return os.environ.get("TEXTUAL_DRIVER") == "textual.drivers.web_driver:WebDriver"


@contextlib.contextmanager
def pipe_to_itself() -> Iterator[None]:
    """Reserve the pipe to the server for Python's own `sys.__stdout__`, on which the app draws; drop other prints.

    The app ends when the server does, as if its terminal had been closed.
    """
    before = sys.__stdout__
    threading.Thread(target=_hang_up_with_the_server, name="aeon-server", daemon=True).start()
    with os.fdopen(os.dup(1), "w") as pipe, reserve_terminal():
        sys.__stdout__ = pipe  # type: ignore[misc]
        try:
            yield
        finally:
            sys.__stdout__ = before  # type: ignore[misc]


def _hang_up_with_the_server() -> None:
    server = select.poll()
    # Without events to wait for, poll reports only the end of the pipe: its content belongs to the driver.
    server.register(0, 0)
    server.poll()
    os.kill(os.getpid(), signal.SIGHUP)
