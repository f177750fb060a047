"""The thread bridge: the kernel runs in a worker thread and never waits for the screen (Decision 5)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from aeon_core.errors import AeonError
from aeon_core.journal.view.formatting import words
from aeon_core.paths import run_command
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import Kernel, OnLine, Result, RunJob, RunnerJob
from aeon_tui.sessions.stream import Stream

if TYPE_CHECKING:
    from aeon_core.approvals import ApprovalRequest, Approver

logger = logging.getLogger("aeon")

JobT = TypeVar("JobT", bound=RunnerJob, default=RunJob)
Build = Callable[[Any, Path, OnLine, Stream, "Approver | None"], Kernel[Result]]


def _build(job: RunnerJob, journal: Path, on_line: OnLine, stream: Stream, approver: Approver | None) -> Kernel[Result]:
    return job.build(journal, on_line, stream, approver)


class Runner(Generic[JobT]):
    """Runs one job. `source`, `stream` and `broker` serve the screen.

    The app starts and ends it. Afterwards it has a `result`, or the `error` why there is none.
    """

    def __init__(self, job: JobT, journal: Path, build: Build = _build) -> None:
        self.job = job
        self.result: Result | None = None
        self.error: AeonError | None = None
        self.aborting = False
        self.source = job.source(journal)
        self.stream = Stream()
        self.broker = ApprovalBroker(journal)
        self.run_id = journal.stem
        self._build, self._new_journal = build, journal
        self._kernel: Kernel[Result] | None = None
        self._done = threading.Event()
        self._listener: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The waiting question, the same object for as long as it waits; None if there is none."""
        return self.broker.waiting

    @property
    def journal(self) -> Path | None:
        """The journal, which may not exist yet; None if it has turned out to be unwritable."""
        return self.source.journal

    @property
    def running(self) -> bool:
        """Whether it has started and not ended."""
        return self._thread is not None and not self._done.is_set()

    @property
    def active(self) -> bool:
        """Whether it is running and its outcome is open: what follows only closes files."""
        return self.running and self.result is None and self.error is None

    @property
    def ended(self) -> bool:
        """Whether it has started and ended."""
        return self._thread is not None and self._done.is_set()

    @property
    def status(self) -> str:
        """How it ended, in a few words; empty until then."""
        if self.error is not None:
            return f"failed: {self.error.message}"
        return words(self.result.status) if self.result is not None else ""

    @property
    def exit_code(self) -> int:
        """The exit code: the result's, the error's, or 1 if it has not ended."""
        if self.result is not None:
            return self.result.exit_code
        return self.error.exit_code if self.error is not None else 1

    def listen(self, listener: Callable[[], object]) -> None:
        """Set a listener, called on any thread when a question arrives or is decided and when the job has ended."""
        self._listener = self.broker.listener = listener

    def start(self) -> None:
        """Start the job; call this once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"aeon-{self.job.what}", daemon=True)
            try:
                self._thread.start()
            except BaseException:
                # Quitting would wait for its end.
                self._thread = None
                raise

    def abort(self) -> None:
        """Request the end; returns immediately."""
        self.aborting = True
        # The kernel first: it must know before its question is answered with an abort.
        if (kernel := self._kernel) is not None:
            kernel.abort()
        self.broker.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most this long if a limit is given; return whether it has ended."""
        return self._thread is None or self._done.wait(seconds)

    def ending(self) -> Any:
        """Return how it ended, a failure to start included; None while it is running."""
        return self.result if self.error is None else self.job.failure(self.run_id, self.error)

    def outcome(self) -> str:
        """Return one line about its end, with its id."""
        from aeon_widgets.text import one_line

        if self.error is not None:
            return f"aeon-tui: {one_line(self.error.message, 2_000)}"
        what, journal = f"{self.job.what} {self.run_id}", self.journal
        resume = f" · continue with {run_command('resume', journal)}" if journal is not None else ""
        if (result := self.result) is None:
            return f"aeon-tui: {what}: stopped during a tool call; its outcome is unknown{resume}"
        prefix = reason = ""
        if result.error is not None and result.status != "aborted":
            prefix = "aeon-tui: "
            message = result.error.get("message", "") if isinstance(result.error, dict) else result.error
            reason = f": {one_line(str(message), 500)}"
        label = " (simulated)" if getattr(result, "simulated", False) else ""
        see = f" · see {run_command('show', journal)}" if journal is not None else ""
        next_step = resume if self.job.continues_after(result) else see
        return f"{prefix}{what}{label}: {words(result.status)}{reason}{next_step}"

    def run(self) -> None:
        """Build the kernel and run it, on the job's own thread. May raise any error."""
        self._kernel = kernel = self._build(self.job, self._new_journal, self._on_line, self.stream, self.broker)
        if self.aborting:
            kernel.abort()
        self.source.notice = self.job.warning()
        self.result = kernel.run()

    def _work(self) -> None:
        try:
            self.run()
        except AeonError as error:
            self.error = error
        except Exception as error:
            logger.exception("the %s failed before it started", self.job.what)
            self.error = AeonError(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._close()
            self._done.set()
            self._listener()

    def _close(self) -> None:
        """Close the kernel, release every waiting question, and end the source."""
        try:
            if self._kernel is not None:
                self._kernel.close()
        except Exception:
            logger.exception("could not close what the %s had open", self.job.what)
        self.broker.close()
        self.source.finish()

    def _on_line(self, line: bytes) -> None:
        if not self.job.keeps_journal:
            self.source.journal = None
        if b'"type":"llm"' in line[:200]:
            self.stream.clear()
        self.source.put(line)


AnyRunner = Runner[Any]
