"""Many runs at once, each with its own journal; a second call does what is missing (contract: `batch`).

tasks = read_tasks(lines, name="nightly", config=config, where="nightly.jsonl")
results = Batch(tasks, ProcessPool(4), runs_dir).run()
"""

from __future__ import annotations

import contextlib
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, wait
from pathlib import Path
from typing import Any

from aeon_core.errors import AeonError, UsageError
from aeon_core.runs.batch.pools import ExecutorPool, Pool, ProcessPool, Running, Work, dask_pool
from aeon_core.runs.batch.tasks import BatchTask, check_journals, read_tasks, run_name
from aeon_core.runs.batch.worker import Job, ended_result, no_result, run_seconds, set_aside, summary, work

__all__ = [
    "Batch",
    "BatchTask",
    "ExecutorPool",
    "Pool",
    "ProcessPool",
    "Work",
    "check_journals",
    "dask_pool",
    "exit_code",
    "read_tasks",
    "run_name",
]

MAX_TRIES = 3
"""How often a task is tried whose worker dies, including the first time."""
_POLL = 0.25
"""Seconds within which a stop is noticed."""


class Batch:
    """The runs of some tasks over a pool. `stop` may be called from a signal handler or another thread.

    `retry_failed` repeats runs that ended without a usable result; the old journal gets another name. `trusts_project`
    lets a run continue with whatever its journal names. `workflows` runs the tasks that are workflows, in a worker.
    `on_result` gets each task's result as soon as it is known, in the form that `run` returns.
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
        on_result: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._tasks = tasks
        self._pool = pool
        self._runs_dir = runs_dir
        self._retry_failed = retry_failed
        self._trusts_project = trusts_project
        self._workflows = workflows
        self._on_result = on_result
        self._stop_file = runs_dir / f".batch-{secrets.token_hex(6)}.stop"
        self._stopped = False
        self._waiting: deque[BatchTask] = deque()
        self._running: dict[Running, BatchTask] = {}
        self._tries: dict[str, int] = {}
        self._results: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        """Start nothing more, and abort what is running as a person would: the journals say so."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._stop_file.touch(mode=0o600)

    def run(self) -> list[dict[str, Any]]:
        """Return one result a task, in their order, when all have ended; a run that fails is a result.

        `status` is a RunResult's, or `not_run` (the batch was stopped before), `running` (another process is at it),
        `interrupted` (its worker died three times); `exit_code` what `aeon-tui run` would have ended with; `ended` is
        `now`, `before` or None. Closes the pool. Raises UsageError if the runs directory cannot be made. Whatever ends
        the loop from outside, such as KeyboardInterrupt, kills the pool.
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
        """Remove the file that tells workers to stop; if some cannot be killed, it stays for them to see."""
        with contextlib.suppress(OSError):
            self._stop_file.unlink(missing_ok=True)

    def _make_directory(self) -> None:
        try:
            self._runs_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot create the runs folder {str(self._runs_dir)!r}: {error.strerror}; choose another"
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
                self._report(task, summary(task.id, ended, run_seconds(path), "before"))

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
            result = self._interrupted(task, f"its worker died, at try {tries} of {MAX_TRIES}: {error}")
        except (Exception, CancelledError) as error:
            result = self._interrupted(task, f"its worker was lost: {type(error).__name__}: {error}")
        self._pool.free(future)
        self._report(task, result)
        return None

    def _interrupted(self, task: BatchTask, why: str) -> dict[str, Any]:
        return no_result(self._job(task), "interrupted", why)

    def _job(self, task: BatchTask) -> Job:
        return Job(task, task.journal(self._runs_dir), self._stop_file, self._trusts_project)

    def _report(self, task: BatchTask, result: dict[str, Any]) -> None:
        self._results[task.run_id] = result
        if self._on_result is not None:
            self._on_result(result)


def exit_code(results: Sequence[Mapping[str, Any]]) -> int:
    """Return 0 if every run's exit code is 0, else the highest exit code."""
    return max((int(result["exit_code"]) for result in results), default=0)
