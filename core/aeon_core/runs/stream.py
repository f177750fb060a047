"""A run on a thread of its own, and its records as an iterator, plain or async."""

from __future__ import annotations

import contextlib
import contextvars
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from aeon_core.errors import UsageError

if TYPE_CHECKING:
    from aeon_core.entities import RunResult
    from aeon_core.journal.writer import LineListener

ABORT_SECONDS = 1.0
"""How long a cancelled task waits for its run to end: a tool is never interrupted and may take longer."""


class Worker:
    """One run, on a thread that ends with it. `abort` asks the run to end, from any thread."""

    def __init__(self, run: Callable[[LineListener], RunResult], abort: Callable[[], None]) -> None:
        self.abort = abort
        self._run = run
        self._thread: threading.Thread | None = None
        self._result: RunResult | None = None
        self._error: BaseException | None = None

    def start(self, push: Callable[[bytes | None], None]) -> None:
        """Start the run; `push` gets each line of its journal on its thread, and None when it has ended."""
        context = contextvars.copy_context()
        # A daemon: a program that exits does not wait for it, and the run can be resumed.
        self._thread = threading.Thread(target=context.run, args=(self._work, push), name="aeon-run", daemon=True)
        self._thread.start()

    def _work(self, push: Callable[[bytes | None], None]) -> None:
        try:
            self._result = self._run(push)
        except BaseException as error:
            self._error = error
        finally:
            push(None)

    def join(self) -> None:
        """Wait until the run has ended."""
        if self._thread is not None:
            self._thread.join()

    def result(self) -> RunResult:
        """Return how the run ended. Raises what the run raised, UsageError if it has not ended."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise UsageError("the run has not ended; iterate to the end of the stream, or close it")
        return self._result

    def records(self) -> Generator[dict[str, Any]]:
        """Run, and yield each record. If closed early, the run is aborted and has ended."""
        queue: SimpleQueue[bytes | None] = SimpleQueue()
        self.start(queue.put)
        try:
            while (line := queue.get()) is not None:
                yield json.loads(line)
        finally:
            self.abort()
            self.join()
        self.result()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Run, and yield each line of the journal. If closed or cancelled, the run is aborted and has a second to
        end.
        """
        import asyncio  # slow to import, and loaded already where this is called

        loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

        def push(line: bytes | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(queue.put_nowait, line)

        self.start(push)
        line: bytes | None = b""
        try:
            while (line := await queue.get()) is not None:
                yield line
        finally:
            self.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ABORT_SECONDS):
                    while line is not None:
                        line = await queue.get()
        self.result()

    async def wait(self) -> RunResult:
        """Run to the end and return how it ended."""
        async with contextlib.aclosing(self.lines()) as lines:
            async for _ in lines:
                pass
        return self.result()


class RunStream(Iterator[dict[str, Any]]):
    """The records of a run while it runs, as `Orchestrator.stream` returns them. A `with` block closes it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._records = worker.records()

    def __next__(self) -> dict[str, Any]:
        return next(self._records)

    @property
    def result(self) -> RunResult:
        """How the run ended. Raises UsageError if it has not ended yet."""
        return self._worker.result()

    def close(self) -> None:
        """Abort the run unless it has ended, and wait for its end."""
        self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncRunStream(AsyncIterator[dict[str, Any]]):
    """A RunStream for `async for`, as `Orchestrator.astream` returns it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lines = worker.lines()

    async def __anext__(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(await anext(self._lines))
        return record

    @property
    def result(self) -> RunResult:
        """How the run ended. Raises UsageError if it has not ended yet."""
        return self._worker.result()

    async def aclose(self) -> None:
        """Abort the run unless it has ended; it has a second to end."""
        await self._lines.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
