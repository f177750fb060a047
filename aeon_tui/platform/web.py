"""The app in a browser: a child of `aeon-tui serve`, which it talks to over its standard input and output."""

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
    """Return whether the app is drawn in a browser, and not in a terminal."""
    return os.environ.get("TEXTUAL_DRIVER") == _DRIVER


@contextlib.contextmanager
def pipe_to_itself() -> Iterator[None]:
    """Keep the pipe to the server to Python's own `sys.__stdout__`, on which the app draws; drop what is printed.

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
    # Without an event to wait for, poll reports the end of the pipe alone: what comes through it is the driver's.
    server.register(0, 0)
    server.poll()
    os.kill(os.getpid(), signal.SIGHUP)
