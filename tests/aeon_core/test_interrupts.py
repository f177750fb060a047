"""Ctrl-C where Python cannot raise it."""

from __future__ import annotations

import signal
import sys
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_core import SchemaError

from aeon_core.interrupts import interrupts_raised
from tests.waiting import PATIENCE


def test_a_ctrl_c_that_python_drops_in_a_callback_is_raised() -> None:
    class Loaded:
        """What an import holds weakly."""

    hook, before = sys.unraisablehook, signal.signal(signal.SIGINT, signal.default_int_handler)
    held = weakref.ref(loaded := Loaded(), lambda _: signal.raise_signal(signal.SIGINT))

    def command() -> None:
        nonlocal loaded
        with interrupts_raised():
            del loaded
            threading.Event().wait(PATIENCE)

    try:
        with pytest.raises(KeyboardInterrupt):
            command()
    finally:
        signal.signal(signal.SIGINT, before)
    assert held() is None
    assert sys.unraisablehook is hook


def test_a_dropped_ctrl_c_is_not_raised_after_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[Any] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, act: Any, given: Any) -> None:
            self.waits = False
            timers.append(self)

        def start(self) -> None:
            self.waits = True

        def cancel(self) -> None:
            self.waits = False

    monkeypatch.setattr(threading, "Timer", Timer)
    with interrupts_raised():
        sys.unraisablehook(SimpleNamespace(exc_type=KeyboardInterrupt))
        assert [each.waits for each in timers] == [True]
    assert [each.waits for each in timers] == [False]


def test_what_else_python_cannot_raise_reaches_the_hook_there_was(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    dropped: Any = SimpleNamespace(exc_type=ValueError)
    monkeypatch.setattr(sys, "unraisablehook", got.append)
    with interrupts_raised():
        sys.unraisablehook(dropped)
    assert got == [dropped]


@pytest.mark.parametrize(
    ("error", "cause", "raised"),
    [
        (RuntimeError("Error calling __set_name__"), KeyboardInterrupt(), KeyboardInterrupt),
        (SchemaError('Error building "model" validator:\n  KeyboardInterrupt: '), None, KeyboardInterrupt),
        (RuntimeError("Error calling __set_name__"), ValueError(), RuntimeError),
    ],
)
def test_another_error_for_a_ctrl_c_is_a_keyboard_interrupt(
    error: Exception, cause: BaseException | None, raised: type[BaseException]
) -> None:
    with pytest.raises(raised), interrupts_raised():
        raise error from cause
