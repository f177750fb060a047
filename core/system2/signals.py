"""Signals that end a workflow at a terminal or in a script."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(abort: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C, a termination and a terminal that hangs up end the work by `abort` and KeyboardInterrupt.

    A second one ends it at once. What is ignored stays so: it was started with nohup, or in the background.
    """
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in ENDING}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(number: int, _: FrameType | None) -> None:
        restore()
        if number == signal.SIGINT:
            _end_the_line()
        # Elsewhere: what this thread holds may be what the abort needs.
        threading.Thread(target=abort, daemon=True).start()
        raise KeyboardInterrupt

    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, end)
        yield
    finally:
        restore()


def _end_the_line() -> None:
    """Leave the line on which the terminal shows ^C; by the system, since the stream may be in use."""
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), b"\n")
