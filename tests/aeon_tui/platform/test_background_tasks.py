"""Work on threads of an app."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import App

from aeon_tui.platform.background_tasks import LatestWorker
from tests.waiting import until


async def test_work_continues_after_a_failure() -> None:
    """Such as reading a journal that is deleted while it is read."""
    done: list[str] = []

    def fail() -> Callable[[], None]:
        raise FileNotFoundError

    app = App[None]()
    async with app.run_test() as pilot:
        worker = LatestWorker(app.screen, "reading")
        worker.submit(fail)
        worker.submit(lambda: lambda: done.append("next"))
        await until(pilot, lambda: not worker.busy)
        assert done == ["next"]


async def test_work_continues_after_a_result_that_could_not_be_shown() -> None:
    done: list[str] = []

    def refuse() -> None:
        raise LookupError("the widget is gone")

    app = App[None]()
    async with app.run_test() as pilot:
        worker = LatestWorker(app.screen, "reading")
        worker.submit(lambda: refuse)
        await until(pilot, lambda: not worker.busy)
        worker.submit(lambda: lambda: done.append("next"))
        await until(pilot, lambda: done)
        assert done == ["next"]
