"""Redirects the prints of tools, including those of programs and libraries that bypass Python."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def capture_stdio() -> Iterator[None]:
    """Redirect everything printed meanwhile to standard error: standard output is reserved for the result."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_descriptor_as(1, 2))
        if sys.stderr is not None and not sys.stderr.closed:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


@contextlib.contextmanager
def reserve_stdio() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Reserve standard input and output for a protocol: other code reads nothing, and prints to stderr."""
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(os.fdopen(os.dup(0), "rb"))
        writer = stack.enter_context(os.fdopen(os.dup(1), "wb", 0))
        nothing = stack.enter_context(open(os.devnull, "rb"))  # noqa: PTH123  # a descriptor is what is needed
        stack.enter_context(_descriptor_as(0, nothing.fileno()))
        stack.enter_context(capture_stdio())
        yield reader, writer


@contextlib.contextmanager
def reserve_terminal() -> Iterator[None]:
    """Reserve the terminal for Python's own `sys.__stderr__`, on which the app draws; drop everything else printed.

    A program that opens the terminal by its name (`/dev/tty`) still reaches it.
    """
    before = sys.stderr, sys.__stderr__
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        screen = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    except OSError:
        yield
        return
    with screen, _descriptor_as(1, nowhere), _descriptor_as(2, nowhere):
        os.close(nowhere)
        try:
            sys.__stderr__ = screen  # type: ignore[misc]
            if before[0] is before[1]:
                sys.stderr = screen
            yield
        finally:
            sys.stderr, sys.__stderr__ = before  # type: ignore[misc]


@contextlib.contextmanager
def _descriptor_as(fd: int, other: int) -> Iterator[None]:
    """Replace a descriptor by another one meanwhile. If either is closed, nothing changes."""
    _flush()
    try:
        kept = os.dup(fd)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(other, fd)
        yield
    finally:
        _flush()
        os.dup2(kept, fd)
        os.close(kept)


def _flush() -> None:
    """Flush all buffers, C's too, while they still go where they were meant to."""
    for stream in {id(each): each for each in (sys.stdout, sys.__stdout__, sys.stderr)}.values():
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).fflush(None)
