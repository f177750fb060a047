"""The terminal's title, and its notifications while the user looks elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

from textual.driver import Driver

from aeon_core.escape import escape_controls


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


LIMIT = 80
"""Characters of a title."""
_KEEP, _GIVE_BACK = "\x1b[22;2t", "\x1b[23;2t"


def title(text: str) -> str:
    """Return what names the terminal's window or tab; nothing in the text can steer the terminal."""
    return f"\x1b]2;{_one_line(text)}\x07"


def notification(text: str) -> str:
    """Return what shows a notification in terminals that have them; others ignore it."""
    return f"\x1b]9;{_one_line(text)}\x07"


@contextlib.contextmanager
def title_given_back() -> Iterator[None]:
    """Leave the terminal with the title that it had."""
    _write(_KEEP)
    try:
        yield
    finally:
        _write(_GIVE_BACK)


def sized(driver: type[Driver]) -> type[Driver]:
    """Return a driver that asks the screen's own descriptor for its size: standard output is away meanwhile."""

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
