"""Signals that are handled otherwise for a while."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Handle these signals so, and as before in the end; nothing where the thread is not the one that takes signals."""
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:
        # Only the main thread takes signals.
        yield
        return
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
