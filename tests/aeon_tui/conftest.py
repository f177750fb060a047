"""Screens are drawn in one time zone, and without colours being taken away by the surroundings."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from textual.app import App
from textual.notifications import Notification
from textual.widgets import Input, TextArea
from textual.worker import Worker, WorkerCancelled, WorkerState
from textual.worker_manager import WorkerManager

from tests.headless_app import drawn_frames, parsed_style_sheets, undrawn_frames

__all__ = ["drawn_frames", "parsed_style_sheets", "undrawn_frames"]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _collectable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app exempts what it has read from collection for the rest of its process; a test run continues after it."""
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.fixture(autouse=True)
def _lasting_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that looks at a notification may do so late: none expires."""
    monkeypatch.setattr(Notification, "time_left", property(lambda notification: 600.0))


@pytest.fixture(autouse=True)
def _eager_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal Textual starts the tasks of an app eagerly where Python can (3.12); so it does under test."""
    if (factory := getattr(asyncio, "eager_task_factory", None)) is None:
        return
    process = App._process_messages

    async def process_eagerly(app: App[Any], *args: Any, **options: Any) -> None:
        asyncio.get_running_loop().set_task_factory(factory)
        await process(app, *args, **options)

    monkeypatch.setattr(App, "_process_messages", process_eagerly)


@pytest.fixture(autouse=True)
def _steady_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that is taken late shows the cursor as one that is taken at once: none blinks."""
    monkeypatch.setattr(Input, "_toggle_cursor", lambda field: None)
    monkeypatch.setattr(TextArea, "_toggle_cursor_blink_visible", lambda area: None)


@pytest.fixture(autouse=True)
def _replaced_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a slow look at the runs is cancelled by the next one, waiting for the workers waits for that one."""

    async def wait_for_complete(manager: WorkerManager, workers: Iterable[Worker[Any]] | None = None) -> None:
        seen: set[int] = set()
        while new := [each for each in (workers or list(manager)) if id(each) not in seen]:
            for worker in new:
                seen.add(id(worker))
                while worker.state is WorkerState.PENDING:
                    await asyncio.sleep(0)
                with suppress(WorkerCancelled):
                    await worker.wait()

    monkeypatch.setattr(WorkerManager, "wait_for_complete", wait_for_complete)
