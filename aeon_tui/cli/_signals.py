"""Ctrl-C and a termination as a wish: the first one is passed on, the second one interrupts."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

ABORTING = b"aeon-tui: aborting; once more stops at once\n"


@contextlib.contextmanager
def passed_on(wish: Callable[[], None], said: bytes = ABORTING) -> Iterator[None]:
    """Call `wish` at the first Ctrl-C or termination, and say so on stderr; the next one is a KeyboardInterrupt."""
    asked = False

    def pass_on(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        with contextlib.suppress(OSError):
            os.write(2, said)
        wish()

    try:
        before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        # Only the main thread takes signals.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
