"""Ctrl-C and a termination as a wish: the first one is passed on, the second one interrupts."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from aeon_tui.platform.terminal import handled

ABORTING = b"aeon-tui: aborting; press Ctrl-C again to stop at once\n"


@contextlib.contextmanager
def forwarded_signals(wish: Callable[[], None], said: bytes = ABORTING) -> Iterator[None]:
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

    with handled(pass_on, signal.SIGINT, signal.SIGTERM):
        yield
