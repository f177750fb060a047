"""One event loop on a thread of its own, for callers that block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopClosed(Exception):  # it says what is, not what went wrong
    """The loop ended before the work was done."""


class LoopThread:
    """Runs coroutines on its thread. The thread starts with the first one and ends with `close()`."""

    def __init__(self, name: str, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`last` runs on the loop when it is closed, before what is still under way there is cancelled."""
        self._name = name
        self._last = last
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._closed = False

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what the coroutine of `work` returns, or raise what it raises. Raises LoopClosed after `close()`.

        Whatever interrupts the waiting thread, such as Ctrl-C, cancels the work.
        """
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            raise LoopClosed from None
        finally:
            future.cancel()

    def close(self) -> None:
        """End the loop and wait for its thread; from any thread, any number of times."""
        with self._lock:
            self._closed = True
            thread, loop, end = self._thread, self._loop, self._end
            if loop is not None and end is not None:
                # Under the lock, so that all that was submitted before is on the loop by now.
                with contextlib.suppress(RuntimeError):  # closed already
                    loop.call_soon_threadsafe(end.set)
        # A finalizer may run on the loop's own thread, which cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        with self._lock:
            if self._closed:
                raise LoopClosed
            if self._loop is None:
                self._start()
            assert self._loop is not None
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    def _start(self) -> None:
        started = threading.Event()
        # A daemon: an interpreter that ends must reach the finalizer that closes it.
        self._thread = threading.Thread(target=self._main, args=(started,), name=self._name, daemon=True)
        self._thread.start()
        started.wait()

    def _main(self, started: threading.Event) -> None:
        asyncio.run(self._serve(started))

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._end.wait()
        await self._last()
