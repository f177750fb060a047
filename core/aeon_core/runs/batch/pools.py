"""Where a batch's runs happen: in processes on this machine, or in any executor, such as Dask's. One slot holds one
run.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from typing import Any, Protocol
from urllib.parse import urlsplit

from aeon_core.errors import UsageError
from aeon_core.installation import missing_extra
from aeon_core.runs.batch.worker import prepare_process

Work = Callable[[Any], dict[str, Any]]
Running = Future[dict[str, Any]]


class Pool(Protocol):
    """Slots for runs."""

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)` and return its future; None if every slot is taken."""

    def free(self, future: Running) -> None:
        """Free the slot of a finished future."""

    def kill(self) -> bool:
        """Kill what is running; return whether everything ended, since some of it may be out of reach."""

    def close(self) -> None:
        """Release everything, after waiting for what is running."""


class ExecutorPool:
    """The slots of an executor. `opened` makes the executor, and a new one after it broke; `slots` may change."""

    def __init__(self, opened: Callable[[], Executor], slots: Callable[[], int]) -> None:
        self._opened = opened
        self._slots = slots
        self._executor: Executor | None = None
        self._running: set[Running] = set()

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)`; None if every slot is taken."""
        if len(self._running) >= max(1, self._slots()):
            return None
        try:
            future = self._executor_now().submit(work, job)
        except BrokenExecutor:
            # A worker died while it was idle.
            self._drop()
            future = self._executor_now().submit(work, job)
        self._running.add(future)
        return future

    def free(self, future: Running) -> None:
        """Free the slot; if the executor broke, the next run gets a new one."""
        self._running.discard(future)
        if not future.cancelled() and isinstance(future.exception(), BrokenExecutor):
            self._drop()

    def kill(self) -> bool:
        """Start nothing more and wait for nothing. An executor has no way to end what runs."""
        for future in self._running:
            future.cancel()
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
        return not self._running

    def close(self) -> None:
        """Shut the executor down once what runs has ended."""
        self._drop()

    def holds(self, future: Running) -> bool:
        """Return whether the future belongs to this pool and its slot is not free yet."""
        return future in self._running

    def _executor_now(self) -> Executor:
        if self._executor is None:
            self._executor = self._opened()
        return self._executor

    def _drop(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None


class ProcessPool:
    """Processes of this machine, each in an executor of its own: one that dies takes no other run with it.

    They are spawned, since forking a process with threads may hang, and they end when this process ends, however that
    happens.
    """

    def __init__(self, jobs: int) -> None:
        self._started: list[BaseProcess] = []
        self._lanes = [ExecutorPool(self._open, lambda: 1) for _ in range(jobs)]

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)` in a process; None if all are busy."""
        return next((future for lane in self._lanes if (future := lane.submit(work, job)) is not None), None)

    def free(self, future: Running) -> None:
        """Free the process, or what is left of it."""
        for lane in self._lanes:
            if lane.holds(future):
                lane.free(future)

    def kill(self) -> bool:
        """Kill the processes; their runs' journals stay as they are and can be continued."""
        for process in self._started:
            process.kill()
        return True

    def close(self) -> None:
        """End the processes once what runs has ended."""
        for lane in self._lanes:
            lane.close()

    def _open(self) -> Executor:
        context = SpawnContext()

        def process(*args: Any, **options: Any) -> BaseProcess:
            self._started.append(made := _SafeProcess(*args, **options))
            return made

        context.Process = process  # type: ignore[assignment, misc]
        with _safe_path() as was_safe:
            return ProcessPoolExecutor(1, mp_context=context, initializer=prepare_process, initargs=(was_safe,))


class _SafeProcess(SpawnProcess):
    """A process whose Python imports nothing from the working directory before our code is in charge."""

    def start(self) -> None:
        """Start it."""
        with _safe_path():
            super().start()


_SAFE_PATH = "PYTHONSAFEPATH"


@contextlib.contextmanager
def _safe_path() -> Iterator[bool]:
    """Keep any Python started meanwhile from importing from the working directory; return whether it was already safe.

    multiprocessing starts it with `-c`, so a `re.py` in the working directory would run.
    """
    was_safe = bool(os.environ.get(_SAFE_PATH))
    os.environ[_SAFE_PATH] = "1"
    try:
        yield was_safe
    finally:
        if not was_safe:
            del os.environ[_SAFE_PATH]


def dask_pool(scheduler: str, jobs: int | None = None) -> Pool:
    """Return the workers of an existing Dask cluster: as many runs at once as they have threads, at most `jobs`.

    Dask itself gives a run to another worker if its own died. Raises MissingExtraError, and UsageError if the scheduler
    does not answer.
    """
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra("--scheduler", "dask") from None
    connect: Any = Client
    try:
        _reach(scheduler)
        client = connect(scheduler, timeout=_ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(
            f"cannot use the scheduler {scheduler!r}: {reason}; expected tcp://HOST:PORT of a running one"
        ) from None
    return _DaskPool(client, jobs)


_ANSWER_WITHIN = 10
"""Seconds a scheduler has to answer."""
_LONGEST_GREETING = 1_000_000
"""Bytes; a scheduler's has a few hundred."""


def _reach(scheduler: str) -> None:
    """Raise OSError or ValueError if no scheduler listens: a Client would take long to close, or wait forever."""
    parts = urlsplit(scheduler)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not parts.port:
        raise ValueError("not a scheduler address")
    with socket.create_connection((parts.hostname, parts.port), timeout=_ANSWER_WITHIN) as connection:
        # The first eight bytes of each side's greeting are its length; under TLS they cannot be read here.
        if parts.scheme == "tcp" and not 0 < int.from_bytes(connection.recv(8), "little") <= _LONGEST_GREETING:
            raise ValueError("the server there is not a Dask scheduler")


class _DaskPool(ExecutorPool):
    def __init__(self, client: Any, jobs: int | None) -> None:
        # With `pure` the same work asked for twice would be done once.
        super().__init__(lambda: client.get_executor(pure=False), self._threads)
        self._client = client
        self._jobs = jobs

    def kill(self) -> bool:
        ended = super().kill()
        self._client.close()
        return ended

    def close(self) -> None:
        super().close()
        self._client.close()

    def _threads(self) -> int:
        threads: int = sum(self._client.nthreads().values())
        return threads if self._jobs is None else min(threads, self._jobs)
