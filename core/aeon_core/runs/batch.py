"""Many runs at once, each with its own journal, in processes or on any executor; a second call runs what is missing."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from aeon_core.errors import AeonError, UsageError
from aeon_core.installation import missing_extra
from aeon_core.paths import make_runs_folder
from aeon_core.plan.models import Plan
from aeon_core.process import ending_signals
from aeon_core.runs.batch_tasks import (
    BatchJob,
    BatchTask,
    ended_result,
    no_result,
    prepare_process,
    run_seconds,
    set_aside,
    summary,
    work,
)

Work = Callable[[Any], dict[str, Any]]
Running = Future[dict[str, Any]]


class Pool(Protocol):
    """Slots for runs."""

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)` and return its future; None if no slot is free."""

    def free(self, future: Running) -> None:
        """Free the slot of a finished future."""

    def kill(self) -> bool:
        """Kill the running work; return whether all of it ended, since some may be out of reach."""

    def close(self) -> None:
        """Release everything, after waiting for the running work."""


class ExecutorPool:
    """The slots of an executor. `opened` makes the executor, and a new one after it broke; `slots` may change."""

    def __init__(self, opened: Callable[[], Executor], slots: Callable[[], int]) -> None:
        self._opened = opened
        self._slots = slots
        self._executor: Executor | None = None
        self._running: set[Running] = set()

    def submit(self, work: Work, job: Any) -> Running | None:
        """Start `work(job)`; return None if no slot is free."""
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
        """Start nothing more; return whether nothing runs, since an executor has no way to end running work."""
        for future in self._running:
            future.cancel()
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
        return not self._running

    def close(self) -> None:
        """Shut the executor down once the running work has ended."""
        self._drop()

    @property
    def is_idle(self) -> bool:
        """Whether no work is running."""
        return not self._running

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
    """Processes on this machine, each in its own executor, so that the death of one affects no other run.

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
        """Free the process, dead or alive."""
        for lane in self._lanes:
            if lane.holds(future):
                lane.free(future)

    def kill(self) -> bool:
        """Kill all processes; the journals of their runs can be continued."""
        for process in self._started:
            if process.pid is not None:  # None if it could not be started
                process.kill()
        return True

    def close(self) -> None:
        """End the processes once the running work has ended; idle ones at once, since to end takes them a second."""
        if all(lane.is_idle for lane in self._lanes):
            self.kill()
        for lane in self._lanes:
            lane.close()

    def _open(self) -> Executor:
        context = SpawnContext()

        def process(*args: Any, **options: Any) -> BaseProcess:
            self._started.append(made := _SafeProcess(*args, **options))
            return made

        context.Process = process  # type: ignore[assignment, misc]
        # With the signals blocked, since the first one also starts multiprocessing's own helper process.
        with _safe_path() as was_safe, _ending_signals_blocked():
            return ProcessPoolExecutor(1, mp_context=context, initializer=prepare_process, initargs=(was_safe,))


class _SafeProcess(SpawnProcess):
    """A process whose Python imports nothing from the working directory before our code runs, and whose imports are not
    cut short by a terminal's Ctrl-C, which every process gets. `prepare_process` handles signals."""

    def start(self) -> None:
        """Start it."""
        with _safe_path(), _ending_signals_blocked():
            super().start()

    terminate = SpawnProcess.kill


@contextlib.contextmanager
def _ending_signals_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
            f"cannot use the scheduler {scheduler!r}: {reason}; expected the address of a running one, tcp://HOST:PORT"
        ) from None
    return _DaskPool(client, jobs)


_ANSWER_WITHIN = 10
"""Seconds to wait for a scheduler's answer."""
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
        # With `pure`, two identical pieces of work would be done only once.
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


MAX_TRIES = 3
"""The number of attempts at a task whose worker dies, including the first."""
_POLL = 0.25
"""Seconds within which a stop is noticed."""


class Batch:
    """The runs of some tasks over a pool. `stop` may be called from a signal handler or another thread.

    `retry_failed` repeats runs that ended without a usable result, or that this version cannot continue; the old
    journal gets another name. `trusts_project` lets a run continue with whatever its journal names. `workflows` runs
    the tasks that are workflows, in a worker. Each new run executes a copy of `plan`, if one is given. `on_result` gets
    each task's result as soon as it is known, in the form that `run` returns.
    """

    def __init__(
        self,
        tasks: Sequence[BatchTask],
        pool: Pool,
        runs_dir: Path,
        *,
        retry_failed: bool = False,
        trusts_project: bool = False,
        workflows: Work | None = None,
        plan: Plan | None = None,
        on_result: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._tasks = tasks
        self._pool = pool
        self._runs_dir = runs_dir
        self._retry_failed = retry_failed
        self._trusts_project = trusts_project
        self._workflows = workflows
        self._plan = plan
        self._on_result = on_result
        self._stop_file = runs_dir / f".batch-{secrets.token_hex(6)}.stop"
        self._stopped = False
        self._waiting: deque[BatchTask] = deque()
        self._running: dict[Running, BatchTask] = {}
        self._tries: dict[str, int] = {}
        self._results: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        """Start nothing more, and abort the running tasks as a person would, so that the journals record it."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._stop_file.touch(mode=0o600)

    def run(self) -> list[dict[str, Any]]:
        """Return one result per task, in order, when all have ended; a failed run has a result, too.

        `status` is a RunResult's, or `not_run` (the batch was stopped before), `running` (another process runs it), or
        `interrupted` (its worker died three times); `exit_code` is what `aeon-tui run` would have returned; `ended` is
        `now`, `before` or None. Closes the pool. Raises UsageError if the runs directory cannot be created. Whatever
        ends the loop from outside, such as KeyboardInterrupt, kills the pool.
        """
        try:
            self._make_directory()
            self._sort()
            while self._running or (self._waiting and not self._stopped):
                self._submit()
                done, _ = wait(self._running, timeout=_POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    self._collect(future)
            for task in self._waiting:
                self._report(
                    task, no_result(self._job(task), "not_run", "the batch was stopped before this run started")
                )
            self._remove_stop_file()
        except BaseException:
            self.stop()
            if self._pool.kill():
                self._remove_stop_file()
            raise
        finally:
            self._pool.close()
        return [self._results[task.run_id] for task in self._tasks]

    def _remove_stop_file(self) -> None:
        """Remove the file that tells workers to stop, unless some cannot be killed and still need to see it."""
        with contextlib.suppress(OSError):
            self._stop_file.unlink(missing_ok=True)

    def _make_directory(self) -> None:
        try:
            make_runs_folder(self._runs_dir)
        except OSError as error:
            raise UsageError(
                f"cannot create the runs directory {str(self._runs_dir)!r}: {error.strerror}; choose another"
            ) from None

    def _sort(self) -> None:
        """Report the tasks that already have a result; the others wait."""
        for task in self._tasks:
            path = task.journal(self._runs_dir)
            try:
                ended = ended_result(path)
            except (AeonError, OSError) as error:
                self._report(task, no_result(self._job(task), "failed", f"cannot read {str(path)!r}: {error}", 2))
                continue
            if ended is None or (self._retry_failed and ended.exit_code):
                self._waiting.append(task)
            else:
                self._report(task, summary(self._job(task), ended, run_seconds(path), "before"))

    def _submit(self) -> None:
        while self._waiting and not self._stopped:
            task = self._waiting[0]
            first = not self._tries.get(task.run_id)
            if first and self._retry_failed and ended_result(path := task.journal(self._runs_dir)) is not None:
                set_aside(path, "failed")
            doing = self._workflows if task.workflow and self._workflows is not None else work
            future = self._pool.submit(doing, self._job(task))
            if future is None:
                return
            self._waiting.popleft()
            self._tries[task.run_id] = self._tries.get(task.run_id, 0) + 1
            self._running[future] = task

    def _collect(self, future: Running) -> None:
        task = self._running.pop(future)
        try:
            result = future.result()
        except BrokenExecutor as error:
            if self._tries[task.run_id] < MAX_TRIES and not self._stopped:
                self._waiting.appendleft(task)
                return self._pool.free(future)
            tries = self._tries[task.run_id]
            result = self._interrupted(task, f"its worker died on try {tries} of {MAX_TRIES}: {error}")
        except (Exception, CancelledError) as error:
            result = self._interrupted(task, f"its worker was lost: {type(error).__name__}: {error}")
        self._pool.free(future)
        self._report(task, result)
        return None

    def _interrupted(self, task: BatchTask, why: str) -> dict[str, Any]:
        return no_result(self._job(task), "interrupted", why)

    def _job(self, task: BatchTask) -> BatchJob:
        plan = self._plan.model_copy(deep=True) if self._plan is not None else None
        journal = task.journal(self._runs_dir)
        return BatchJob(task, journal, self._stop_file, self._trusts_project, plan, self._retry_failed)

    def _report(self, task: BatchTask, result: dict[str, Any]) -> None:
        self._results[task.run_id] = result
        if self._on_result is not None:
            self._on_result(result)


def exit_code(results: Sequence[Mapping[str, Any]]) -> int:
    """Return 0 if every run's exit code is 0, else the highest exit code."""
    return max((int(result["exit_code"]) for result in results), default=0)
