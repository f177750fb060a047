"""The thread bridge: the kernel runs in a worker thread and never waits for the screen (design: Decision 5)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.journal.view.formatting import words
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import Kernel, OnDelta, OnLine, RunJob, isolation_warning
from aeon_tui.sessions.session import Session
from aeon_tui.sessions.stream import Stream

if TYPE_CHECKING:
    from aeon_core.approvals.pending import ApprovalRequest, Approver
    from aeon_core.entities import RunResult

logger = logging.getLogger("aeon")

Build = Callable[[RunJob, Path, OnLine, OnDelta, "Approver | None"], Kernel]


def _build(job: RunJob, journal: Path, on_line: OnLine, on_delta: OnDelta, approver: Approver | None) -> Kernel:
    return job.build(journal, on_line, on_delta, approver)


class Runner(Session["RunResult"]):
    """Does one job. `source`, `stream` and `broker` are what the screen needs."""

    def __init__(self, job: RunJob, journal: Path, build: Build = _build) -> None:
        super().__init__()
        self.job = job
        self._build = build
        self._journal = journal
        self.source = job.source(journal)
        self.stream = Stream()
        self.broker = ApprovalBroker(journal)
        self._kernel: Kernel | None = None

    @property
    def task(self) -> str:
        """The task of the run."""
        return self.job.task

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The approval that the run waits for."""
        return self.broker.waiting

    @property
    def journal(self) -> Path:
        """The journal; there may be none yet."""
        return self._journal

    def listen(self, listener: Callable[[], object]) -> None:
        """Have it called when a question comes or goes, too."""
        super().listen(listener)
        self.broker.listener = listener

    def abort(self) -> None:
        """Ask the run to end; returns at once."""
        self.aborting = True
        self.broker.close()
        if (kernel := self._kernel) is not None:
            kernel.abort()

    def ending(self) -> RunResult | None:
        """Return how the run ended, a failure to start included; None while it is running."""
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
        resume = f"continue with `aeon-tui resume {self.run_id}`"
        if self.result is None:
            return f"aeon-tui: run {self.run_id}: stopped during a tool call; its outcome is unknown · {resume}"
        prefix = reason = ""
        if self.result.error is not None and self.result.status != "aborted":
            prefix = "aeon-tui: "
            reason = f": {one_line(str(self.result.error.get('message', '')), 500)}"
        label = " (simulated)" if self.result.simulated else ""
        status = words(self.result.status)
        next_step = resume if self.result.status == "aborted" else f"see `aeon-tui show {self.run_id}`"
        return f"{prefix}run {self.run_id}{label}: {status}{reason} · {next_step}"

    def run(self) -> None:
        """Build the kernel and run it."""
        self._kernel = kernel = self._build(self.job, self.journal, self._on_line, self.stream.add, self.broker)
        if self.aborting:
            kernel.abort()
        self.source.notice = isolation_warning(self.job.config)
        self.result = kernel.run()

    def close(self) -> None:
        """Close the kernel, and let the source end."""
        try:
            if self._kernel is not None:
                self._kernel.close()
        except Exception:
            logger.exception("could not close what the run had open")
        self.source.finish()

    def _on_line(self, line: bytes) -> None:
        if b'"type":"llm"' in line[:200]:
            self.stream.clear()
        self.source.put(line)
