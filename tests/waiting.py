"""The one place where tests wait for what a thread, a timer or another process does.

A wait ends as soon as its condition holds. Only a test that fails waits for as long as `PATIENCE`, so that a machine
may be busy with other jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from textual.pilot import Pilot

T = TypeVar("T")
What = str | Callable[[], str]
"""What is waited for, or what can be seen instead, for the message of a failure."""

PATIENCE = 120.0
"""Seconds, also for waits on an event, a thread or a process."""
LOOK_SECONDS = 0.01
LONGEST_PAUSE = 0.1
"""Seconds between two looks without an app: more as time passes, since a look may start a process."""


def wait_until(holds: Callable[[], T], what: What = "") -> T:
    """Return what `holds()` returns once it is true; fail after `PATIENCE`."""
    __tracebackhide__ = True
    latest, pause = monotonic() + PATIENCE, LOOK_SECONDS
    while not (found := holds()):
        _check(latest, found, what)
        sleep(pause)
        pause = min(pause * 1.1, LONGEST_PAUSE)
    return found


async def until(pilot: Pilot[Any], holds: Callable[[], T], what: What = "") -> T:
    """Return what `holds()` returns once it is true, while the app of `pilot` runs; fail after `PATIENCE`.

    A screen that was just opened is looked at once it has its widgets.
    """
    __tracebackhide__ = True
    latest, found = monotonic() + PATIENCE, None
    while not (all(screen.is_mounted for screen in pilot.app.screen_stack[-1:]) and (found := holds())):
        _check(latest, found, what)
        await pilot.pause(LOOK_SECONDS)
    return found


async def painted(pilot: Pilot[Any]) -> None:
    """Wait until the screen shows all that has changed so far."""
    await pilot.pause()
    done: list[bool] = []
    pilot.app.screen.call_after_refresh(done.append, True)
    await until(pilot, lambda: done, "a refresh of the screen")


def _check(latest: float, found: object, what: What) -> None:
    __tracebackhide__ = True
    if monotonic() > latest:
        told = what() if callable(what) else what
        pytest.fail(f"not within {PATIENCE:.0f} s, still {found!r}" + (f": {told}" if told else ""))
