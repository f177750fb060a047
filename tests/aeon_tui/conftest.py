"""Screens are drawn in one time zone, and without colours being taken away by the surroundings."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest
from textual.notifications import Notification


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """The app tunes the garbage collector for its process; a test run goes on after it."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.fixture(autouse=True)
def _lasting_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that looks at a notification may do so late: none expires."""
    monkeypatch.setattr(Notification, "time_left", property(lambda notification: 600.0))
