"""The thread bridge: the kernel runs in a worker thread and never waits for the screen (design: Decision 5)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.errors import AeonError
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import Kernel, OnDelta, OnLine, RunJob, isolation_warning

if TYPE_CHECKING:
    from aeon_core.approvals.pending import Approver
    from aeon_core.entities import RunResult

logger = logging.getLogger("aeon")

STREAM_LIMIT = 20_000
"""Characters of a reply in progress that are kept for the screen."""


class Stream:
    """The reply that is being written. Filled on the call's thread, read by the screen."""

    def __init__(self) -> None:
        self.step_id: str | None = None
        self.version = 0
        self._parts: list[str] = []
        self._length = 0

    def add(self, step_id: str | None, text: str) -> None:
        """Append what has arrived."""
        self.step_id = step_id
        if self._length < STREAM_LIMIT:
            self._parts.append(text)
            self._length += len(text)
            self.version += 1

    def clear(self) -> None:
        """Forget it: the call has ended, or another begins."""
        if self._parts:
            self._parts = []
            self._length = 0
            self.version += 1

    @property
    def text(self) -> str:
        """What has arrived so far."""
        return "".join(self._parts)


Build = Callable[[RunJob, Path, OnLine, OnDelta, "Approver | None"], Kernel]


def _build(job: RunJob, journal: Path, on_line: OnLine, on_delta: OnDelta, approver: Approver | None) -> Kernel:
    return job.build(journal, on_line, on_delta, approver)


class Runner:
    """Does one work on a thread of its own, and says how it went.

    `source` and `stream` are what the screen reads. In the end `result` is the RunResult, or `error` why there is none.
    """

    def __init__(self, job: RunJob, journal: Path, build: Build = _build) -> None:
        self.job = job
        self._build = build
        self.journal = journal
        self.source = job.source(journal)
        self.stream = Stream()
        self.broker = ApprovalBroker(journal)
        self.result: RunResult | None = None
        self.error: AeonError | None = None
        self.aborting = False
        self._kernel: Kernel | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.journal.stem

    @property
    def running(self) -> bool:
        """Whether the run has begun and not ended."""
        return self._thread is not None and not self._done.is_set()

    @property
    def exit_code(self) -> int:
        """What a command ends with: the result's code, the error's, or 1 where the run has not ended."""
        if self.result is not None:
            return self.result.exit_code
        return self.error.exit_code if self.error is not None else 1

    def start(self) -> None:
        """Begin the run; once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="aeon-kernel", daemon=True)
            self._thread.start()

    def abort(self) -> None:
        """Ask the run to end; returns at once."""
        self.aborting = True
        self.broker.close()
        if (kernel := self._kernel) is not None:
            kernel.abort()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run's end, at most so long, or as long as it takes; return whether it has ended."""
        return self._thread is None or self._done.wait(seconds)

    def ending(self) -> RunResult | None:
        """Return how the run ended, a failure to start included; None where it goes on."""
        if self.error is None:
            return self.result
        from aeon_core.entities import RunResult, TTLState

        config = self.job.config
        model = next(iter(config.models), "")
        return RunResult(
            run_id=self.run_id,
            status="failed",
            error={"error_type": type(self.error).__name__, "message": self.error.message},
            ttl=TTLState(limit=config.ttl, allocated=config.ttl, spent=0, remaining=config.ttl),
            model=model,
            simulated=model.startswith("simulated:"),
        )

    def outcome(self) -> str:
        """Return one line about how the run ended, with its id."""
        from aeon_widgets.text import one_line

        if self.error is not None:
            return f"aeon-tui: {one_line(self.error.message, 2_000)}"
        see = f"see `aeon-tui show {self.run_id}`"
        if self.result is None:
            return f"aeon-tui: run {self.run_id}: stopped during a tool call; its outcome is unknown · {see}"
        prefix = reason = ""
        if self.result.error is not None and self.result.status != "aborted":
            prefix = "aeon-tui: "
            reason = f": {one_line(str(self.result.error.get('message', '')), 500)}"
        label = " (simulated)" if self.result.simulated else ""
        status = self.result.status.replace("_", " ")
        return f"{prefix}run {self.run_id}{label}: {status}{reason} · {see}"

    def _work(self) -> None:
        try:
            self._kernel = kernel = self._build(self.job, self.journal, self._on_line, self.stream.add, self.broker)
            if self.aborting:
                kernel.abort()
            self.source.notice = isolation_warning(self.job.config)
            self.result = kernel.run()
        except AeonError as error:
            self.error = error
        except Exception as error:
            logger.exception("the run failed before it started")
            self.error = AeonError(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._release()
            self.source.finish()
            self._done.set()

    def _release(self) -> None:
        try:
            if self._kernel is not None:
                self._kernel.close()
        except Exception:
            logger.exception("could not close what the run had open")

    def _on_line(self, line: bytes) -> None:
        if b'"type":"llm"' in line[:200]:
            self.stream.clear()
        self.source.put(line)
