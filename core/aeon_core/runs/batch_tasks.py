"""The tasks of a batch, and how a worker runs one.

Each line of a JSONL file is a task, checked before any run starts, and its journal is named after its id. A worker may
be any process: it gets and returns plain data, and raises nothing for a failed run.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from aeon_core.approval_inbox import RemoteApprover, about
from aeon_core.config.journal_trust import REACHING, check_journal, foreign_rules, remembers_run
from aeon_core.config.keys import KEYS, PATH_KEYS
from aeon_core.config.loading import joined
from aeon_core.config.schema import RunConfig, recorded_config
from aeon_core.entities import RunResult
from aeon_core.errors import AeonError, ReplayMismatchError, UsageError
from aeon_core.journal.history import open_history
from aeon_core.journal.reader import head, read_records, tail
from aeon_core.journal.recovery import sound_records
from aeon_core.journal.summary import is_being_written, last_state
from aeon_core.json_safe import clean_text, parse_json
from aeon_core.paths import expanded
from aeon_core.plan.models import Plan
from aeon_core.process import ending_signals, hide_process, in_this_process
from aeon_core.redaction import redact_text
from aeon_core.runs.factory import build_tools, connect_model, telemetry
from aeon_core.runs.orchestrator import Orchestrator, PreparedRun
from aeon_core.runs.rate_limit import rate_limited
from aeon_core.runs.resume import Resumption, current_rules
from aeon_core.suggest import nearest, shown
from aeon_core.units import seconds_between

MAX_LINE = 10_000_000
"""The longest line in bytes: a task is a text, not a data set."""
_MAX_ID = 500
_READABLE = 48
_FORM = '{"id": "a", "task": "what is to be done"} and fields of RunConfig'
AUTO_APPROVE = "auto-approve"
"""A line's `workflow` value that approves its gates without a person."""
_OF_WORKFLOWS = ("model", "base_url", "project_root", "wait")
_PLAIN_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{_READABLE - 1}}}")
_LIKE_HASHED = re.compile(r".*-[0-9a-f]{10}")
_POLL = 0.2
"""Seconds between two checks whether the batch should stop."""


@dataclass(frozen=True)
class BatchTask:
    """One line of the file: `config` is the batch's configuration, overridden by the line."""

    id: str
    task: str
    run_id: str
    config: RunConfig
    line: int
    workflow: bool | str = False
    """Whether it is a workflow of system2: True, or AUTO_APPROVE."""

    def journal(self, runs_dir: Path) -> Path:
        """Return the path of the run's journal, which may not exist yet."""
        return runs_dir / f"{self.run_id}.jsonl"


def read_tasks(
    lines: Iterable[bytes], *, name: str, config: RunConfig, where: str, folder: Path | None = None
) -> list[BatchTask]:
    """Return the tasks of a JSONL file; blank lines are left out.

    `name` is the batch's: the run ids begin with it. Relative paths on a line are relative to `folder` (the working
    directory). Raises UsageError with `where` and the number of the first bad line, before anything starts.
    """
    found: list[BatchTask] = []
    ids: dict[str, int] = {}
    for number, line in _numbered(lines, where):
        task = _task(line, f"{where}, line {number}", name, config, folder or Path.cwd(), number)
        if (first := ids.setdefault(task.run_id, number)) != number:
            raise UsageError(f"{where}, line {number}: duplicate id {task.id!r}, first on line {first}")
        found.append(task)
    if not found:
        raise UsageError(f"{where} has no tasks; expected lines such as {_FORM}")
    return found


def check_journals(tasks: Iterable[BatchTask], runs_dir: Path, where: str) -> None:
    """Raise UsageError if a task's journal belongs to another task, whose result would be taken for this one's."""
    for task in tasks:
        path = task.journal(runs_dir)
        try:
            first = head(path) if path.is_file() else None
        except UsageError:
            continue  # it cannot be read, which fails the task alone
        recorded = first.get("task") if first is not None else None
        if isinstance(recorded, str) and recorded not in (clean_text(task.task), redact_text(clean_text(task.task))):
            raise UsageError(
                f"{where}, line {task.line}: the run {task.run_id!r} already exists with another task, "
                f"{shown(recorded)}; change the id, or name the batch with --name"
            )


def run_name(text: str) -> str:
    """Return a part of a run id for any text: lower-case ASCII letters, digits, `-` and `_`, at most 59 of them.

    Such a text stays as it is; any other keeps its valid characters and gets a hash, so that two texts have different
    names even on a case-insensitive file system.
    """
    if _PLAIN_NAME.fullmatch(text) and not _LIKE_HASHED.fullmatch(text):
        return text
    kept = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:_READABLE].strip("-_")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{kept or 'id'}-{digest}"


def _numbered(lines: Iterable[bytes], where: str) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise UsageError(f"{where}, line {number} is longer than {MAX_LINE} bytes; expected {_FORM}")
        # Also one in the middle: the file may be several that were joined.
        if (line := line.removeprefix(b"\xef\xbb\xbf")).strip():
            yield number, line


def _task(line: bytes, place: str, name: str, config: RunConfig, folder: Path, number: int) -> BatchTask:
    fields = _fields(line, place)
    task_id, task = _id(fields.pop("id", None), place), fields.pop("task", None)
    if not isinstance(task, str) or not task.strip():
        raise UsageError(f"{place}: 'task' is {_given(task)}; expected non-empty text")
    workflow = _workflow(fields, place)
    run_id = f"{run_name(name)}.{run_name(task_id)}"
    return BatchTask(task_id, task, run_id, _config(fields, config, folder, place), number, workflow)


def _workflow(fields: dict[str, Any], place: str) -> bool | str:
    """Remove the key that makes the task a workflow, and return its value. Raises UsageError."""
    value = fields.pop("workflow", None) or False
    if not isinstance(value, bool) and value != AUTO_APPROVE:
        raise UsageError(f"{place}: 'workflow' is {shown(value)}; expected true or {AUTO_APPROVE!r}")
    if value and (other := [key for key in fields if key in KEYS and key not in _OF_WORKFLOWS]):
        allowed = ", ".join(map(repr, _OF_WORKFLOWS))
        raise UsageError(f"{place}: {other[0]!r} does not apply to a workflow, which takes {allowed}")
    return value


def _fields(line: bytes, place: str) -> dict[str, Any]:
    try:
        fields = parse_json(line.decode().rstrip(), unique_keys=True)
    except UnicodeDecodeError:
        raise UsageError(f"{place} is not UTF-8; save the file as UTF-8") from None
    except ValueError as error:
        reason = " ".join(str(error).replace("line 1 ", "").split())
        raise UsageError(f"{place} is not JSON: {reason}; expected one object per line, such as {_FORM}") from None
    if not isinstance(fields, dict):
        found = "null" if fields is None else shown(fields)
        raise UsageError(f"{place} is {found}; expected an object such as {_FORM}")
    return fields


def _id(value: Any, place: str) -> str:
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_ID:
        raise UsageError(f"{place}: 'id' is {_given(value)}; expected text of 1 to {_MAX_ID} characters, or a number")
    return value


def _given(value: Any) -> str:
    return "missing" if value is None else shown(value)


def _config(fields: dict[str, Any], config: RunConfig, folder: Path, place: str) -> RunConfig:
    """Return the batch's configuration with the line's fields. Raises UsageError."""
    if "runs_dir" in fields:
        raise UsageError(f"{place}: 'runs_dir' applies to the whole batch; set it with --runs-dir")
    known = ["id", "task", "workflow", *(key for key in KEYS if key != "runs_dir")]
    for key in fields:
        if key not in known:
            raise UsageError(f"{place}: unknown field {key!r}{nearest(key, known)}")
    given = {key: value for key, value in fields.items() if value is not None}
    try:
        line = RunConfig(**given)
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}") from None
    values = {key: _value(key, getattr(line, key), getattr(config, key), folder, place) for key in given}
    return config.model_copy(update=values)


def _value(key: str, value: Any, before: Any, folder: Path, place: str) -> Any:
    """Return the line's value combined with the batch's; a path is relative to the folder."""
    return folder / expanded(value, f"{place}: {key!r}") if key in PATH_KEYS else joined(before, value)


@dataclass(frozen=True)
class BatchJob:
    """A worker's job. `trusts_project` lets a run continue with whatever its journal names; `stop` is a file that ends
    the run once it exists; `plan` is what a new run executes, None if the model makes it; `retry_failed` repeats a run
    that this version cannot continue."""

    task: BatchTask
    journal: Path
    stop: Path
    trusts_project: bool
    plan: Plan | None = None
    retry_failed: bool = False

    @property
    def config(self) -> RunConfig:
        """The task's configuration."""
        return self.task.config


def work(job: BatchJob) -> dict[str, Any]:
    """Run or continue one task, and return its summary, as `run_job` does."""
    return run_job(job, _performed)


def run_job(job: BatchJob, perform: Callable[[BatchJob], RunResult]) -> dict[str, Any]:
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
        if (running := _running_elsewhere(job)) is not None:
            return running
        try:
            result = perform(job)
        except ReplayMismatchError:
            if not job.retry_failed:
                raise
            set_aside(path, "failed")
            result = perform(job)
        return summary(job, result, time.perf_counter() - began, "now")
    except AeonError as error:
        # Another batch may have started the run in the meantime.
        return _running_elsewhere(job) or no_result(job, "failed", error.message, error.exit_code)
    except (Exception, SystemExit) as error:
        return no_result(job, "failed", f"internal error: {type(error).__name__}: {error}")


def _running_elsewhere(job: BatchJob) -> dict[str, Any] | None:
    """Return the summary of a task whose journal another process is writing; None for any other task."""
    path = job.journal
    try:
        running = path.exists() and is_being_written(path)
    except OSError:
        running = False  # the run itself reports what is wrong with its journal
    if not running:
        return None
    return no_result(job, "running", f"another process is writing {str(path)!r}; wait until it ends, then try again")


def has_begun(path: Path) -> bool:
    """Return whether a journal can be continued; a journal without a usable start is set aside."""
    if not path.exists():
        return False
    if head(path) is None:
        set_aside(path, "interrupted")
        return False
    return True


def _performed(job: BatchJob) -> RunResult:
    """Run a task, or continue its journal. Raises AeonError."""
    path, config = job.journal, job.config
    options: dict[str, Any] = {}
    if continues := has_begun(path):
        started = next(sound_records(path))
        rules, recorded = foreign_rules(read_records(path), config.root), recorded_config(started)
        check_journal(started, recorded, config, REACHING, rules=rules, trusts_project=job.trusts_project)
        options = current_rules(recorded, config.policy)
    waiting = _waiting(path, config)
    with contextlib.ExitStack() as opened:
        tools = build_tools(config)
        opened.callback(tools.close)
        llm = rate_limited(connect_model(config), path.parent, config.base_url)
        opened.callback(llm.close)
        llm.check()
        parts: dict[str, Any] = {"llm": llm, "tools": tools, "approver": about(config.approve, waiting)}
        parts |= {"on_record": telemetry(config), "on_line": remembers_run()}
        run = (
            Resumption(path, **parts, options=options, checked=True, trusts_project=job.trusts_project)
            if continues
            else PreparedRun(Orchestrator(config=config, journal=path, **parts), job.task.task, job.plan)
        )
        with contextlib.closing(run), stopped_by(job.stop, run.abort, waiting):
            return run.run()


def _waiting(path: Path, config: RunConfig) -> RemoteApprover | None:
    """Return the approver that waits for decisions from another terminal; None without `wait`."""

    def say(line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"run {path.stem}: {line}\n")

    return RemoteApprover(path, config.wait, say) if config.wait else None


@contextlib.contextmanager
def stopped_by(stop: Path, abort: Callable[[], None], waiting: RemoteApprover | None = None) -> Iterator[None]:
    """Abort the run when the file appears; unlike a signal, a file also reaches a worker on another machine."""
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
    """Prepare a process to be a pool's worker: prints go to stderr, the signals that end a command are left to the
    parent, and it ends with the parent.

    `was_safe` says whether the parent's commands import no modules from the working directory; this process's do the
    same.
    """
    import multiprocessing

    hide_process()
    if not was_safe:
        os.environ.pop("PYTHONSAFEPATH", None)

    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # A handler, since the programs that tools start would inherit an ignored signal.
    for number in (numbers := ending_signals()):
        signal.signal(number, in_this_process(lambda *_: None))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
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
    """Return how a journal's run ended, None if it did not end, was aborted, or has no journal.

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
    names = (path.with_name(f"{path.stem}.{why}-{number}{path.suffix}") for number in itertools.count(1))
    return path.rename(next(name for name in names if not os.path.lexists(name)))


def summary(job: BatchJob, result: RunResult, seconds: float | None, ended: Literal["now", "before"]) -> dict[str, Any]:
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


def no_result(job: BatchJob, status: str, message: str, exit_code: int = 1) -> dict[str, Any]:
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
