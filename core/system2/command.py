"""What the command `system2` does: the gated workflow at a terminal, or without one (REQ-001…005)."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shlex
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import TextIO

from aeon_core.config.loading import checked_text
from aeon_core.errors import AeonError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.paths import expanded, git_root, named_project_root, program
from aeon_core.process import (
    can_answer,
    ending_signals,
    handled,
    hide_process,
    is_terminal,
    logged_to,
    one_more_ignored,
    standard_input,
)
from aeon_core.redaction import redact_text
from system2.agents import copy_shipped
from system2.documents import UNDECIDED, earlier_documents
from system2.logs import Log
from system2.orchestrator import Orchestrator
from system2.policies import AutoApproveGatePolicy
from system2.terminal import Terminal
from system2.trust import applied_settings
from system2.workflow_journal import find_workflow, lock_project

NO_ONE = "there is no terminal to decide the gates on; run this in one, or add --auto-approve or --wait SECONDS"


def execute(args: argparse.Namespace) -> int:
    """Run the command with these options and return its exit code; an error is one line on stderr."""
    hide_process()
    if isinstance(sys.stdin, TextIOWrapper):
        # Typed text may not be valid UTF-8, but what is sent must be.
        sys.stdin.reconfigure(errors="replace")
    try:
        for name in ("config", "runs_dir"):
            if (given := getattr(args, name)) is not None:
                setattr(args, name, expanded(given, f"--{name.replace('_', '-')}"))
        if args.init and (args.task is not None or args.resume is not None):
            raise UsageError("--init only copies the shipped agents; drop the task and --resume")
        check_options(args)
        root = project_root(args.project_root)
        code = _init(root) if args.init else _work(args, root)
    except KeyboardInterrupt:
        code = _report("interrupted", 1)
    except AeonError as error:
        code = _report(escape_controls(" ".join(redact_text(error.message).split())), error.exit_code)
    except OSError as error:
        what = f"{error.filename!r}: " if error.filename is not None else ""
        code = _report(f"{what}{error.strerror or error}", 1)
    return code


def check_options(args: argparse.Namespace) -> None:
    """Raise UsageError for an empty option, and for what only a new workflow takes, together with `--resume`."""
    for name in ("model", "base_url", "log_file"):
        if getattr(args, name, None) == "":
            raise UsageError(f"--{name.replace('_', '-')} is empty; give it a value, or leave it out")
    if args.resume is not None and args.task is not None:
        raise UsageError("--resume continues the workflow's own task; drop the task")
    if args.resume is not None and args.spec is not None:
        raise UsageError("--spec is for a new workflow; drop it, or give the task instead of --resume")


def project_root(given: str | None) -> Path:
    """Return the given folder, else the git root around the working directory, else the latter. Raises UsageError."""
    return named_project_root(given) if given is not None else git_root()


def _init(root: Path) -> int:
    written, left = copy_shipped(root, lambda warning: _line(f"WARNING: {warning}"))
    for path in written:
        _line(f"written: {path.relative_to(root)}")
    for name, reason in left.items():
        _line(f"not changed: {name}, {reason}")
    return 0


def _work(args: argparse.Namespace, root: Path) -> int:
    wait = checked_text("wait", args.wait, "--wait")
    task = None if args.resume is not None else _task(args.task)
    with _log_of(args, root) as log, logged_to(_ToLog(log)):
        try:
            return _run(args, root, task, wait, log)
        except AeonError as error:
            return _report_stop(error.message, error.exit_code, None, args, log)


def _run(args: argparse.Namespace, root: Path, task: str | None, wait: float, log: Log) -> int:
    terminal = Terminal(sys.stdin, sys.stderr) if can_answer() else None
    orchestrator = Orchestrator(
        root,
        args.config,
        AutoApproveGatePolicy() if args.auto_approve else None,
        approver=terminal,
        unsafe_bash=args.unsafe_bash,
        model=args.model,
        base_url=args.base_url,
        log=log,
        trust="apply" if args.trust_project else "require",
        runs_dir=args.runs_dir,
    )
    if task is not None:
        start = partial(orchestrator.run, task, spec=args.spec)
    else:
        known = find_workflow(args.resume, root, orchestrator.runs_dir, orchestrator.transcripts)
        start = partial(orchestrator.resume, known)
    if not (terminal or wait or args.auto_approve):
        raise UsageError(NO_ONE)
    if terminal is None and wait:
        is_json = log.path is None and log.log_format == "json"
        show = Terminal(sys.stdin, sys.stderr).present if sys.stderr is not None and not is_json else None
        orchestrator.wait_for_decisions(wait, log.info if is_json else _line, show)
    elif terminal is None and task is not None and args.spec is None and earlier_documents(root):
        # Those of a workflow that still runs are not an earlier one's.
        with lock_project(root, orchestrator.runs_dir, log.warning):
            raise UsageError(UNDECIDED)
    with one_more_ignored():
        try:
            with _interruptible(orchestrator.abort):
                result = start()
        except KeyboardInterrupt:
            return _report_stop("interrupted", 1, orchestrator.journal, args, log)
        if result.error is None:
            return result.exit_code
        return _report_stop(result.error, result.exit_code, result.journal, args, log)


def _task(given: str | None) -> str:
    """Return the task: `-` reads it from stdin, and None asks for it at the terminal (REQ-003). Raises UsageError."""
    task = given
    if task == "-":
        task = standard_input()
    elif task is None and is_terminal(sys.stdin):
        sys.stderr.write("What should be done? ")
        sys.stderr.flush()
        task = sys.stdin.readline()
    if task is None:
        raise UsageError('no task given, and no terminal to ask on; run system2 "the task"')
    if not task.strip():
        raise UsageError("the task is empty; describe it")
    return task


class _ToLog(logging.Handler):
    """Writes diagnostics to the log, at its debug level."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.debug(self.format(record))


@contextlib.contextmanager
def _log_of(args: argparse.Namespace, root: Path) -> Iterator[Log]:
    """Yield the log, which writes to the configured file or to stderr (REQ-124)."""
    # The orchestrator says, once, what is wrong with the settings.
    mode = "apply" if args.trust_project else "require"
    settings, _ = applied_settings(root, args.config, args.model, mode, lambda _: None)  # type: ignore[arg-type]
    destination = args.log_file or settings.log_destination
    path = root / expanded(destination, "the log file") if destination != "stderr" else None
    stream = sys.stderr
    if path is not None:
        stream = _open_log(path, chosen=args.log_file is not None or args.config is not None)

    is_lost = False

    def write(line: str) -> None:
        # A log that cannot be written does not stop the work.
        nonlocal is_lost
        try:
            if stream is not None:
                stream.write(f"{line}\n")
                stream.flush()
        except OSError as error:
            if path is not None and not is_lost:
                is_lost = True
                why = f"cannot write the log file {str(path)!r}: {error.strerror}"
                _line(f"WARNING: {why}; the work continues, but is not logged")

    try:
        yield Log(write, args.log_format or settings.log_format, verbose=args.verbose, path=path)
    finally:
        if path is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _open_log(path: Path, *, chosen: bool) -> TextIO:
    """Open a log file for appending; unless the user chose it, it must be a regular file and not a link."""
    careful = 0 if chosen else os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | careful, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write the log file {str(path)!r}: {error.strerror}") from None
    state = os.fstat(fd)
    if not chosen and (not stat.S_ISREG(state.st_mode) or state.st_nlink > 1):
        os.close(fd)
        raise UsageError(f"the log file {str(path)!r} is not a regular file of its own; choose another with --log-file")
    return os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace")


@contextlib.contextmanager
def _interruptible(abort: Callable[[], object]) -> Iterator[None]:
    """Turn each Ctrl-C, termination and hang-up of a terminal into a call of `abort` and a KeyboardInterrupt.

    A second one cuts short what the first one began.
    """

    def end(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and is_terminal(sys.stderr):
            # End the line on which the terminal shows ^C; with os.write, since the stream may be in use.
            with contextlib.suppress(OSError, ValueError):
                os.write(sys.stderr.fileno(), b"\n")
        # On another thread, since this one may hold a lock that the abort needs.
        threading.Thread(target=abort, daemon=True).start()
        raise KeyboardInterrupt

    with handled(end, *ending_signals()):
        yield


def _report_stop(why: str, code: int, journal: Path | None, args: argparse.Namespace, log: Log) -> int:
    """Print why the workflow did not complete, and the command that continues it with the same options.

    Where stderr is a log in JSON, these are lines of it. A log in a file also has the reason.
    """
    is_json = log.path is None and log.log_format == "json"
    why = " ".join(redact_text(why).split())
    if is_json or log.path is not None:
        log.error(why)
    if not is_json:
        _report(why, code)
    if journal is not None:
        command = ["--resume", journal.stem]
        for option in ("project_root", "config", "model", "base_url", "log_format", "log_file", "runs_dir", "wait"):
            if (given := getattr(args, option)) not in (None, "0"):
                command += [f"--{option.replace('_', '-')}", str(given)]
        for flag in ("auto_approve", "unsafe_bash", "trust_project", "verbose"):
            command += [f"--{flag.replace('_', '-')}"] if getattr(args, flag) else []
        (log.info if is_json else _line)(f"continue with: {program('system2')} {shlex.join(command)}")
    return code


def _line(text: str) -> None:
    # Nobody reads a stderr that is closed.
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(f"{escape_controls(text)}\n")


def _report(message: str, code: int) -> int:
    _line(f"system2: {message}")
    return code
