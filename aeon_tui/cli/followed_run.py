"""A run or workflow of another process, followed at the terminal: progress, questions, result."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.approval_inbox import how_to_decide
from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.follow import Follower
from aeon_core.journal.history import final_result
from aeon_core.journal.listing import Awaited
from aeon_core.journal.summary import is_workflow_start
from aeon_core.paths import run_command
from aeon_tui.cli.approval_prompt import print_question, question_of
from aeon_tui.cli.output import OutputStream, stderr, stdout
from aeon_tui.cli.run import progress_of
from aeon_tui.cli.run_output import NO_RESULT, ProgressPrinter, print_result
from aeon_tui.sessions.approval_broker import pending_request
from aeon_tui.sources.journal import AWAIT_SECONDS, POLL_SECONDS, near_runs, notice_of
from aeon_tui.sources.run_index import lacks_journal
from aeon_widgets.run_question import headline

if TYPE_CHECKING:
    from aeon_tui.cli.workflow import WorkflowLines


def follow_headless(args: Namespace, awaited: Awaited, path: Path | None) -> int:
    """Print a run or workflow as it is written; return the exit code of its result, or 1 if its process has died."""
    err = stderr()
    if path is None:
        near = awaited.near()
        _report_waiting(err, awaited, near_runs(near) if near else "")
    while path is None:
        time.sleep(AWAIT_SECONDS)
        path = awaited.find()
    followed = FollowedRun(path, err, partial(_printer, args))
    try:
        return _follow(args, followed, awaited, err)
    finally:
        followed.follower.close()


def _follow(args: Namespace, followed: FollowedRun, awaited: Awaited, err: OutputStream) -> int:
    waiting = False
    while True:
        followed.read_on()
        status, path = followed.follower.status, followed.follower.path
        if status == "ended":
            progress = followed.progress
            return _print(args, progress, path) if isinstance(progress, ProgressPrinter) else progress.result(path)
        followed.report_question()
        if notice := notice_of(status, path):
            is_resumable = status == "interrupted" and not lacks_journal(path)
            how = f"; continue it with {run_command('resume', path)}" if is_resumable else ""
            err.line(f"aeon-tui: {notice}{how}")
            return NO_RESULT
        if status == "awaited" and not waiting:
            waiting = True
            _report_waiting(err, awaited)
        time.sleep(POLL_SECONDS)


def _report_waiting(err: OutputStream, awaited: Awaited, near: str = "") -> None:
    err.line((f"waiting for {awaited.words} …{f' ({near})' if near else ''}", "dim"))


def _print(args: Namespace, progress: ProgressPrinter, path: Path) -> int:
    view = progress.view
    if (result := final_result(view)) is None:
        raise JournalError(f"the run in {str(path)!r} ended as {view.status}, but its result cannot be read")
    result = result.model_copy(update={"journal": str(path)})  # it may have been moved since
    return print_result(args, result, progress, f"journal {path}")


def _printer(args: Namespace, first: Mapping[str, Any]) -> ProgressPrinter | WorkflowLines:
    """Return what prints the progress of the run or workflow with this first record."""
    if not is_workflow_start(first):
        return progress_of(args)
    from aeon_tui.cli.workflow import WorkflowLines

    if args.json:
        raise UsageError("a workflow has no RunResult to print while it is followed; use `aeon-tui show --json`")
    return WorkflowLines(stdout(), stderr())


class FollowedRun:
    """A followed run or workflow, whose progress is printed as it arrives; nothing is printed twice."""

    def __init__(
        self, path: Path, err: OutputStream, progress: Callable[[Mapping[str, Any]], ProgressPrinter | WorkflowLines]
    ) -> None:
        self.follower = Follower(path)
        self.progress = progress({})
        self._new_progress = progress
        self._err = err
        self._generation = 0
        self._first: object = None
        self._last_seq = -1
        self._damage_reported = 0
        self._question_reported = -1

    def read_on(self) -> None:
        """Print what has arrived."""
        for generation, record in self.follower.read():
            if generation != self._generation:
                self._generation = generation
                self._restart(same_run=record == self._first)
            if record["seq"] == 0:
                self._first, self.progress = record, self._new_progress(record)
            if record["seq"] > self._last_seq:
                self._last_seq = record["seq"]
                self.progress(record)
            else:
                self.progress.fold(record)
        for problem in self.follower.damage[self._damage_reported :]:
            self._damage_reported += 1
            self._err.warning(f"the journal is damaged: {problem}")

    def report_question(self) -> None:
        """Print once what the run waits for, and how to decide it.

        This needs a process that accepts decisions from elsewhere: its inbox appears a moment later.
        """
        progress, since = self.progress, self.progress.waits_since
        if since is None or self._question_reported == since:
            return
        if (request := pending_request(self.follower.path)) is not None:
            self._question_reported = since
            if isinstance(progress, ProgressPrinter):
                print_question(self._err, question_of(request, progress.view), self.follower.path)
            else:
                self._err.line((headline(request.point, request.subject), "bold yellow"))
            self._err.line((f"to decide: {how_to_decide(self.follower.path, request)}", "bold yellow"))

    def _restart(self, *, same_run: bool) -> None:
        """Start over; if it is still the same run, nothing is printed twice."""
        self._damage_reported = 0
        if not same_run:
            self._last_seq = -1
            self._err.line(("this journal was replaced by another run's", "yellow"))
