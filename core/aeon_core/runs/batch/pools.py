"""Where a batch's runs happen: processes of this machine, or any executor, such as Dask's. One slot holds one run."""

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
        """Start `work(job)` and return its future; None where every slot is taken."""

    def free(self, future: Running) -> None:
        """Take back the slot of a future that is done."""

    def kill(self) -> bool:
        """End what is running at once; return whether nothing runs any more, since some of it may be out of reach."""

    def close(self) -> None:
        """Release everything; what is running is waited for."""


class ExecutorPool:
    """The slots of an executor. `opened` makes it, and makes a fresh one after it broke; `slots` may change."""

    def __init__(self, opened: Callable[[], Executor], slots: Callable[[], int]) -> None:
        self._opened = opened
        self._slots = slots
        self._executor: Executor | None = None
        self._running: set[Running] = set()

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)`; None where every slot is taken."""
        if len(self._running) >= max(1, self._slots()):
            return None
        try:
            future = self._executor_now().submit(work, job)
        except BrokenExecutor:
            # A worker died while it had nothing to do.
            self._drop()
            future = self._executor_now().submit(work, job)
        self._running.add(future)
        return future

    def free(self, future: Running) -> None:
        """Take back the slot; where the executor broke the next run gets a fresh one."""
        self._running.discard(future)
        if not future.cancelled() and isinstance(future.exception(), BrokenExecutor):
            self._drop()

    def kill(self) -> bool:
        """Hand nothing out any more and wait for nothing. An executor has no way to end what runs."""
        for future in self._running:
            future.cancel()
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
        return not self._running

    def close(self) -> None:
        """Shut the executor down, once what runs has ended."""
        self._drop()

    def holds(self, future: Running) -> bool:
        """Return whether the future is of this pool and its slot was not taken back."""
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

    They are spawned, since a fork of a process with threads may hang, and end when this process ends, however it does.
    """

    def __init__(self, jobs: int) -> None:
        self._started: list[BaseProcess] = []
        self._lanes = [ExecutorPool(self._open, lambda: 1) for _ in range(jobs)]

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)` in a process; None where all are busy."""
        return next((future for lane in self._lanes if (future := lane.submit(work, job)) is not None), None)

    def free(self, future: Running) -> None:
        """Take the process back, or what is left of it."""
        for lane in self._lanes:
            if lane.holds(future):
                lane.free(future)

    def kill(self) -> bool:
        """Kill the processes; the journals of their runs stay as they are and can be continued."""
        for process in self._started:
            process.kill()
        return True

    def close(self) -> None:
        """End the processes, once what runs has ended."""
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
    """Let no Python that is started meanwhile import from the working directory, and tell whether it would not anyway.

    multiprocessing starts it with `-c`: a `re.py` in the folder at hand would run in its place.
    """
    was_safe = bool(os.environ.get(_SAFE_PATH))
    os.environ[_SAFE_PATH] = "1"
    try:
        yield was_safe
    finally:
        if not was_safe:
            del os.environ[_SAFE_PATH]


def dask_pool(scheduler: str, jobs: int | None = None) -> Pool:
    """Return the workers of a Dask cluster that exists: as many runs at once as they have threads, at most `jobs`.

    Dask itself gives a run whose worker died to another one. Raises MissingExtraError, and UsageError where
    the scheduler does not answer.
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
"""Seconds that a scheduler has to answer in."""
_LONGEST_GREETING = 1_000_000
"""Bytes; a scheduler's has some hundred."""


def _reach(scheduler: str) -> None:
    """Raise OSError or ValueError where no scheduler listens: a Client would take long to close, or wait forever."""
    parts = urlsplit(scheduler)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not parts.port:
        raise ValueError("not a scheduler address")
    with socket.create_connection((parts.hostname, parts.port), timeout=_ANSWER_WITHIN) as connection:
        # Of both sides' greetings, the first eight bytes tell the length; under TLS they cannot be read here.
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
