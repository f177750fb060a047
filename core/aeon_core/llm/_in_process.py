"""Running calls that cannot be interrupted on a helper thread, so that a person can leave them behind at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal

Mark = Literal["loaded", "ended", "cut"]


class CallCut(Exception):
    """The call was left behind, since the engine was closed."""


class Engine:
    """An object that is made when first needed and streams the answer to one request after another.

    Each call runs on a thread of its own. It is no daemon, since one that comes back from native code while Python
    ends would abort the process: it ends by itself, at its next event, when it is cut or the main thread is done.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._made: Any = None
        self._calls: set[_Call] = set()
        self._closings = 0

    def events(self, run: Callable[[Any, Callable[[Any], bool]], None], timeout: float) -> Generator[Any, None, None]:
        """Yield what `run(made, take)` hands to `take`, which returns whether to stop.

        Raises TimeoutError after `timeout` seconds of silence (making the object does not count), CallCut after
        `close()`, and what making and running raise.
        """
        call = _Call()
        with self._lock:
            self._calls.add(call)
        try:
            threading.Thread(target=self._run, args=(call, run), name="aeon-in-process", daemon=False).start()
            yield from call.events(timeout)
        finally:
            call.cut()
            with self._lock:
                self._calls.discard(call)

    def close(self) -> None:
        """Cut the calls in flight and let go of the object; from any thread, any number of times."""
        with self._lock:
            self._closings += 1
            self._made = None
            calls = list(self._calls)
        for call in calls:
            call.cut()

    def _run(self, call: _Call, run: Callable[[Any, Callable[[Any], bool]], None]) -> None:
        try:
            made = self._object()
            if not call.is_over():
                call.put("loaded")
                run(made, call.take)
            call.put("ended")
        except Exception as error:
            # Its frames would keep the object, and the memory it holds.
            call.put(error.with_traceback(None))

    def _object(self) -> Any:
        with self._loading:
            with self._lock:
                made, closings = self._made, self._closings
            if made is None:
                made = self._make()
                with self._lock:
                    if self._closings == closings:
                        self._made = made
            return made


class _Call:
    """One call's events on their way from the helper thread to the caller."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._is_cut = False

    def take(self, event: Any) -> bool:
        self._items.put((True, event))
        return self.is_over()

    def put(self, mark: Mark | Exception) -> None:
        self._items.put((False, mark))

    def cut(self) -> None:
        self._is_cut = True
        self.put("cut")

    def is_over(self) -> bool:
        return self._is_cut or not threading.main_thread().is_alive()

    def events(self, timeout: float) -> Iterator[Any]:
        wait: float | None = None
        while True:
            try:
                is_event, item = self._items.get(timeout=wait)
            except queue.Empty:
                raise TimeoutError from None
            if is_event:
                yield item
            elif isinstance(item, Exception):
                raise item
            elif item == "loaded":
                wait = timeout
            elif item == "cut":
                raise CallCut
            else:
                return
