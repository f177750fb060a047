"""The Orchestrator, which runs tasks, and a run's records as an iterator, plain or async.

The kernel and the data models are loaded when an Orchestrator is made.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Self

from aeon_core.errors import UsageError

if TYPE_CHECKING:
    from aeon_core.approvals import Approver
    from aeon_core.config.schema import RunConfig
    from aeon_core.convergence import ConvergenceCriteria
    from aeon_core.effects.replay_cursor import ReplayCursor
    from aeon_core.effects.secret_recovery import RunSecrets
    from aeon_core.entities import RunResult
    from aeon_core.journal.records import RunResumed
    from aeon_core.journal.writer import JournalWriter, LineListener
    from aeon_core.kernel.state import OrchestrationState
    from aeon_core.llm.base import LLMAdapter
    from aeon_core.memory import Memory
    from aeon_core.plan.models import Plan
    from aeon_core.runs.setup import RunStart
    from aeon_core.tools.base import Tools
    from aeon_core.tools.registry import ToolRegistry

ABORT_SECONDS = 1.0
"""Seconds that a cancelled task, or the next run, waits for a run to end; a tool is never interrupted and may take
longer.
"""


class Orchestrator:
    """Runs tasks, one at a time; `abort` and `state` may be used from another thread.

    `llm` is `PROVIDER:NAME`, several of them, or an adapter; by default the one that `config` names. `tools` is a list
    of functions and Tools, or a registry, by default those that `config` names, else echo and calculator; `config` a
    RunConfig or a dict of its fields. `memory` defaults to a new store in memory, `journal` to a new file in the
    runs directory (a path names the file, False keeps none). `approver` is asked before tools that need approval.
    `on_record` gets every record as a dict, long texts in full, on the kernel's thread after it was written; `on_line`
    the same as one line of JSON; `on_delta` gets (purpose, step_id, text) as a reply streams in, on the call's thread.
    `criteria` of convergence and `requirements` override the files that the configuration names.
    `recorded` makes the run repeat recorded lines; `llm=None` with it is a replay, which performs nothing. With a
    `journal` that is already open, the run continues after them, as `resumed` says. `start` is where it begins;
    `secrets` are those of the run, by default those of the environment and the configuration. Raises AeonError, one
    line that says what to write, for a wrong argument, and if the model cannot be used.
    """

    def __init__(
        self,
        llm: LLMAdapter | str | Sequence[str] | None = None,
        tools: Tools | None = None,
        memory: Memory | None = None,
        config: RunConfig | Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        journal: JournalWriter | Path | str | Literal[False] | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        on_line: LineListener | None = None,
        on_delta: Callable[[str, str | None, str], None] | None = None,
        recorded: ReplayCursor | None = None,
        criteria: ConvergenceCriteria | None = None,
        requirements: Sequence[str] | None = None,
        resumed: RunResumed | None = None,
        start: RunStart | None = None,
        secrets: RunSecrets | None = None,
    ) -> None:
        from aeon_core.runs.setup import RunSetup

        self._setup = RunSetup(
            llm,
            tools,
            memory,
            config,
            approver,
            journal,
            on_record,
            on_line=on_line,
            on_delta=on_delta,
            recorded=recorded,
            criteria=criteria,
            requirements=requirements,
            resumed=resumed,
            start=start,
            secrets=secrets,
        )
        self.llm: LLMAdapter = self._setup.llm
        self.config: RunConfig = self._setup.config
        self.tools: ToolRegistry = self._setup.tools
        self.memory: Memory = self._setup.memory
        self._abort_asked = threading.Event()
        self._running = threading.Lock()

    @property
    def state(self) -> OrchestrationState | None:
        """The state of the current or last run (core FR-011)."""
        return self._setup.state

    def abort(self) -> None:
        """End the run from another thread: at the next cycle, or within a second if a model call is in flight."""
        self._abort(self._abort_asked)

    def _abort(self, asked: threading.Event) -> None:
        asked.set()
        if self._setup.effects is not None and asked is self._abort_asked:
            self._setup.effects.abort()

    def close(self) -> None:
        """Release the model's connections unless another run uses it, what the tools hold open, and a listener that can
        be closed.
        """
        self._setup.close()

    def run(self, task: str, plan: Plan | Mapping[str, Any] | None = None) -> RunResult:
        """Run a task, with a given plan or one the model makes, and return how it ended, whatever happens.

        A given Plan object is executed in place: its steps hold the outcome afterwards. Raises AeonError only before
        the run has started: for a blank task, an invalid or already executed plan, a journal that cannot be created,
        or another run in progress; and ReplayMismatchError if the kernel does not do what was recorded.
        """
        return self._run(task, plan, None, threading.Event())

    def stream(self, task: str, plan: Plan | Mapping[str, Any] | None = None) -> RunStream:
        """Run a task, and return an iterator over its records, dicts as in the journal, long texts in full.

        The run starts with the first `next()`, on its own thread, and does not wait for the reader. Closing or dropping
        the iterator early aborts the run. Afterwards `result` is how it ended. `next()` raises what `run` raises.
        """
        return RunStream(self._worker(task, plan))

    def astream(self, task: str, plan: Plan | Mapping[str, Any] | None = None) -> AsyncRunStream:
        """Run a task as `stream` does, for `async for`. Cancelling it or leaving it early aborts the run."""
        return AsyncRunStream(self._worker(task, plan))

    async def arun(self, task: str, plan: Plan | Mapping[str, Any] | None = None) -> RunResult:
        """Run a task as `run` does, on its own thread. Cancelling it aborts the run, which `resume` can continue."""
        return await self._worker(task, plan).wait()

    def _worker(self, task: str, plan: Plan | Mapping[str, Any] | None) -> Worker:
        asked = threading.Event()
        return Worker(lambda push: self._run(task, plan, push, asked), lambda: self._abort(asked))

    def _run(
        self,
        task: str,
        plan: Plan | Mapping[str, Any] | None,
        listener: LineListener | None,
        abort_asked: threading.Event,
    ) -> RunResult:
        # A run that was left by `break` is aborted when the event loop closes its stream, a little later.
        aborted, patience = self._abort_asked, ABORT_SECONDS if listener is not None else 0
        is_free = self._running.acquire(blocking=False)
        if not is_free and not (aborted.wait(patience) and self._running.acquire(timeout=ABORT_SECONDS)):
            raise UsageError(
                "this Orchestrator is running a task already; make another one for this task, or close the open stream"
            )
        if self._abort_asked.is_set():
            abort_asked.set()
        self._abort_asked = abort_asked
        try:
            return self._setup.run(task, plan, listener, abort_asked)
        finally:
            self._setup.effects, self._abort_asked = None, threading.Event()
            self._running.release()


class PreparedRun:
    """An Orchestrator with a task to run. Call `run` once and `close` at the end; `abort` from any thread."""

    def __init__(self, orchestrator: Orchestrator, task: str, plan: Plan | Mapping[str, Any] | None = None) -> None:
        self.task: str = task
        self._orchestrator, self._plan = orchestrator, plan

    def run(self) -> RunResult:
        """Run the task, and return how it ended. Raises AeonError only before the run has started."""
        return self._orchestrator.run(self.task, self._plan)

    def abort(self) -> None:
        """End the run, as `Orchestrator.abort` does."""
        self._orchestrator.abort()

    def close(self) -> None:
        """Release what the run holds open, as `Orchestrator.close` does."""
        self._orchestrator.close()


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
        # A daemon thread: a program that exits does not wait for it, and the run can be resumed.
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
        """Return how the run ended. Raises what the run raised, or UsageError if it has not ended."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            if self._thread is None:
                raise UsageError("the run has not started; iterate over the stream")
            raise UsageError("the run has not ended; iterate to the end of the stream, or close it")
        return self._result

    def records(self) -> Generator[dict[str, Any]]:
        """Run, and yield each record. Closing it early aborts the run and waits for its end."""
        queue: SimpleQueue[bytes | None] = SimpleQueue()
        self.start(queue.put)
        line: bytes | None = b""
        try:
            while (line := queue.get()) is not None:
                yield json.loads(line)
        finally:
            if line is not None:
                self.abort()
            if not sys.is_finalizing():  # when the program exits, its thread no longer runs
                self.join()
        self.result()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Run, and yield each line of the journal. If closed or cancelled, the run is aborted and has a second to
        end.
        """
        import asyncio  # slow to import, but already loaded wherever this is called

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
            if line is not None:
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
    """The records of a run as they are written; `Orchestrator.stream` returns it. A `with` block closes it."""

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
        """Abort the run unless it has ended, and wait at most a second for its end."""
        await self._lines.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
