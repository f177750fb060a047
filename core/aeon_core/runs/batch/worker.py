"""One run of a batch, in any process: plain data in, plain data out, and no exception for a failed run."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from aeon_core.approval_inbox import RemoteApprover, about
from aeon_core.config.journal_trust import check_journal, recorded_rules, remembers_run
from aeon_core.config.schema import RunConfig, recorded_config
from aeon_core.entities import RunResult
from aeon_core.errors import AeonError
from aeon_core.journal.history import open_history
from aeon_core.journal.reader import head, read_records, tail
from aeon_core.journal.recovery import sound_records
from aeon_core.journal.summary import is_being_written, last_state
from aeon_core.json_safe import clean_text
from aeon_core.plan.models import Plan
from aeon_core.process import hide_process
from aeon_core.redaction import redact_text
from aeon_core.runs.batch.rate_limit import rate_limited
from aeon_core.runs.batch.tasks import BatchTask
from aeon_core.runs.factory import build_tools, connect_model, telemetry
from aeon_core.runs.orchestrator import Orchestrator, PreparedRun
from aeon_core.runs.resume import Resumption
from aeon_core.units import seconds_between

_POLL = 0.2
"""Seconds between two checks whether the batch is to stop."""


@dataclass(frozen=True)
class Job:
    """A worker's job. `trusts_project` lets a run continue with whatever its journal names; `stop` is a file that, once
    there, ends the run; `plan` is what a new run executes, None if the model makes it."""

    task: BatchTask
    journal: Path
    stop: Path
    trusts_project: bool
    plan: Plan | None = None

    @property
    def config(self) -> RunConfig:
        """The task's configuration."""
        return self.task.config


def work(job: Job) -> dict[str, Any]:
    """Run or continue one task, and return its summary, as `run_job` does."""
    return run_job(job, _performed)


def run_job(job: Job, perform: Callable[[Job], RunResult]) -> dict[str, Any]:
    """Return the summary of a task, which `perform` runs or continues. A finished run is not run again.

    A Ctrl-C or a failure becomes the summary's status; nothing is raised, so that an executor needs no knowledge of
    Aeon's errors.
    """
    began = time.perf_counter()
    path = job.journal
    try:
        if (ended := ended_result(path)) is not None:
            return summary(job, ended, run_seconds(path), "before")
        if job.stop.exists():
            return no_result(job, "not_run", "the batch was stopped before this run started")
        if path.exists() and is_being_written(path):
            return no_result(
                job, "running", f"another process is writing {str(path)!r}; wait until it ends, then try again"
            )
        result = perform(job)
        return summary(job, result, time.perf_counter() - began, "now")
    except AeonError as error:
        return no_result(job, "failed", error.message, error.exit_code)
    except (Exception, SystemExit) as error:
        return no_result(job, "failed", f"internal error: {type(error).__name__}: {error}")


def has_begun(path: Path) -> bool:
    """Return whether a journal can be continued; a journal without a usable start is set aside."""
    if not path.exists():
        return False
    if head(path) is None:
        set_aside(path, "interrupted")
        return False
    return True


def _performed(job: Job) -> RunResult:
    """Run a task, or continue its journal. Raises AeonError."""
    path, config, root = job.journal, job.config, None
    continues = has_begun(path)
    if continues:
        started = next(sound_records(path))
        rules, recorded = recorded_rules(read_records(path)), recorded_config(started)
        check_journal(started, recorded, config, rules=rules, trusts_project=job.trusts_project)
        root = recorded.project_root
    waiting = _waiting(path, config)
    with contextlib.ExitStack() as opened:
        tools = build_tools(config)
        opened.callback(tools.close)
        llm = rate_limited(connect_model(config), path.parent, config.base_url)
        opened.callback(llm.close)
        llm.check()
        parts: dict[str, Any] = {"llm": llm, "tools": tools, "approver": about(config.approve, waiting)}
        parts |= {"on_record": telemetry(config), "on_line": remembers_run(root)}
        run = (
            Resumption(path, **parts)
            if continues
            else PreparedRun(Orchestrator(config=config, journal=path, **parts), job.task.task, job.plan)
        )
        with contextlib.closing(run), stopped_by(job.stop, run.abort, waiting):
            return run.run()


def _waiting(path: Path, config: RunConfig) -> RemoteApprover | None:
    """Return the approver that waits for decisions from another terminal; None if none is to."""

    def say(line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"run {path.stem}: {line}\n")

    return RemoteApprover(path, config.wait, say) if config.wait else None


@contextlib.contextmanager
def stopped_by(stop: Path, abort: Callable[[], None], waiting: RemoteApprover | None = None) -> Iterator[None]:
    """Abort the run when the file appears; unlike a signal, it also reaches a worker on another machine."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_POLL):
            if stop.exists():
                abort()
                if waiting is not None:
                    waiting.abort()
                return

    watching = threading.Thread(target=watch, name="aeon-batch-stop", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def prepare_process(was_safe: bool) -> None:
    """Prepare a process to be a pool's worker: prints go to stderr, Ctrl-C and a hang-up are left to the parent, and it
    ends with the parent.

    Whether its commands' Python looks for modules in the working directory is as it `was_safe` in the parent.
    """
    import multiprocessing

    hide_process()
    if not was_safe:
        os.environ.pop("PYTHONSAFEPATH", None)

    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # A handler, since the programs that tools start would inherit an ignored signal.
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    logger = logging.getLogger("aeon")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent.join,), name="aeon-batch-parent", daemon=True).start()


def _end_with(parent_ends: Callable[[], None]) -> None:
    """End this process as soon as its parent is gone: a pool's workers would wait forever."""
    parent_ends()
    os._exit(1)


def ended_result(path: Path) -> RunResult | None:
    """Return how a journal's run ended, None if it did not, was aborted, or there is not a journal.

    Raises AeonError.
    """
    if not path.is_file() or head(path) is None:
        return None
    last = last_state(tail(path))
    if last.get("type") != "run_finished":
        return None
    try:
        result: RunResult | None = RunResult.model_validate(last["result"])
    except (ValidationError, KeyError):
        # A long text is stored elsewhere in the journal.
        result = open_history(path).final_result
    resumable = last.get("resumes_at") is not None
    return None if result is not None and result.status == "aborted" and resumable else result


def run_seconds(path: Path) -> float | None:
    """Return the seconds from a journal's first record to its last, None if unknown."""
    first, last = head(path) or {}, last_state(tail(path))
    try:
        return seconds_between(first["ts"], last["ts"])
    except (KeyError, TypeError, ValueError):
        return None


def set_aside(path: Path, why: str) -> Path:
    """Rename a journal to `<run_id>.<why>-<n>.jsonl` and return the new path; nothing is ever overwritten."""
    for number in itertools.count(1):
        aside = path.with_name(f"{path.stem}.{why}-{number}{path.suffix}")
        if not os.path.lexists(aside):
            return path.rename(aside)
    raise AssertionError("there is always a next number")


def summary(job: Job, result: RunResult, seconds: float | None, ended: Literal["now", "before"]) -> dict[str, Any]:
    """Return a batch's report on a finished run, whether it ended in this call or earlier."""
    return {
        "id": job.task.id,
        "run_id": result.run_id,
        "status": result.status,
        "exit_code": result.exit_code,
        "answer": result.answer,
        "passes": result.passes,
        "cost_usd": result.cost_usd,
        "usage": result.usage.model_dump(),
        "seconds": None if seconds is None else round(seconds, 3),
        "model": result.model,
        "simulated": result.simulated,
        "error": result.error,
        "journal": str(job.journal),
        "ended": ended,
    }


def no_result(job: Job, status: str, message: str, exit_code: int = 1) -> dict[str, Any]:
    """Return a batch's report on a task without a result: `status` is not a RunResult's if the run did not end."""
    return {
        "id": job.task.id,
        "run_id": job.task.run_id,
        "status": status,
        "exit_code": exit_code,
        "answer": None,
        "passes": 0,
        "cost_usd": None,
        "usage": None,
        "seconds": None,
        "model": None,
        "simulated": False,
        "error": {"message": redact_text(clean_text(message))},
        "journal": str(job.journal) if job.journal.exists() else None,
        "ended": None,
    }
