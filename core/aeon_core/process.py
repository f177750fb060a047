"""This process: its standard streams, whether a person is there, signals, diagnostics, and privacy."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import FrameType
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether this stream is a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def can_answer() -> bool:
    """Return whether the person of a headless run can see a question, on stderr, and answer it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def standard_input() -> str:
    """Return all of standard input: UTF-8 without a byte order mark, wrong bytes replaced; empty if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        return ""
    binary = getattr(sys.stdin, "buffer", None)
    return binary.read().decode("utf-8-sig", "replace") if binary is not None else sys.stdin.read()


def drop_typed_ahead(stream: TextIO) -> None:
    """Discard what was typed so far: it does not answer what comes next. Does nothing without an open terminal."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(stream.fileno(), termios.TCIFLUSH)


class _Redacted(logging.Formatter):
    """Replaces secrets by tokens in a line and its traceback."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner if inner is not None else logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        from aeon_core.redaction import redact_text

        return redact_text(self._inner.format(record))


@contextlib.contextmanager
def logged_to(handler: logging.Handler) -> Iterator[None]:
    """Send everything that Aeon logs meanwhile, without secrets, only to this handler."""
    logger = logging.getLogger("aeon")
    handler.setFormatter(_Redacted(handler.formatter))
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a command: Ctrl-C, a termination, a hang-up.

    Without those that are ignored, as under `nohup` or by a script that starts the command in the background.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [each for each in numbers if signal.getsignal(each) is not signal.SIG_IGN]


def in_this_process(handler: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
    """Return a handler that lets a termination end a process that a tool forked, which has inherited the handler."""
    own = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM and os.getpid() != own:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        handler(number, frame)

    return handle


@contextlib.contextmanager
def handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Handle these signals with a function meanwhile; does nothing on a thread that cannot set handlers."""
    handler = in_this_process(handler)
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:
        # Only the main thread can set handlers.
        yield
        return
    try:
        yield
    finally:
        for number, old in before.items():
            if signal.getsignal(number) == handler:  # else the program has set another meanwhile
                signal.signal(number, old)


@contextlib.contextmanager
def forwarded_signals(wish: Callable[[], None], message: bytes = b"") -> Iterator[None]:
    """Call `wish` at the first Ctrl-C, termination or hang-up, and report it; the next raises KeyboardInterrupt."""
    asked = False

    def pass_on(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        with contextlib.suppress(OSError):
            os.write(2, message)
        wish()

    with handled(pass_on, *ending_signals()):
        yield


def one_more_ignored() -> contextlib.AbstractContextManager[None]:
    """Ignore one more signal after a run, whose result is still to be printed."""
    return forwarded_signals(lambda: None)


@contextlib.contextmanager
def interrupts_passed_to(take: Callable[[], object]) -> Iterator[None]:
    """Call `take` instead of raising KeyboardInterrupt between any two instructions, whoever handles the signals that
    end a command; does nothing on a thread that gets no signals. `take` may raise it. What else a handler raises, such
    as SystemExit, is raised at the end.
    """
    found = {number: signal.getsignal(number) for number in ending_signals()}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    leaving: list[BaseException] = []

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handlers[signal.Signals(number)](number, frame)
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                leaving.append(error)
            take()

    with handled(handle, *handlers):
        yield
    if leaving:
        raise leaving[0]


_PR_SET_DUMPABLE = 4


@lru_cache(maxsize=1)
def hide_process() -> None:
    """Keep unprivileged processes from tracing this one, or reading its environment, memory or descriptors (Linux).

    Programs that it starts are not affected: `exec` undoes it for them. It also means no core dumps and no debugger,
    except for root, who can read every process. Elsewhere, and if the kernel refuses, nothing changes.
    """
    if sys.platform != "linux":
        return
    import ctypes

    try:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):  # a C library without it
        return
