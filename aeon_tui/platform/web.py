"""The app in a browser: a child of `aeon-tui serve`, connected over standard input and output."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator

from aeon_tui.platform.stdio_capture import reserve_terminal

_DRIVER = "textual.drivers.web_driver:WebDriver"


def is_served() -> bool:
    """Return whether the app is drawn in a browser instead of a terminal."""
    return os.environ.get("TEXTUAL_DRIVER") == _DRIVER


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
