"""The journal of a workflow: written, found by name, forked, and one at a time in a project (REQ-126)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.listing import find_run, list_runs
from aeon_core.journal.lock import holder, lock, release
from aeon_core.journal.reader import head, parse_line
from aeon_core.journal.records import Record
from aeon_core.journal.recovery import sound_records
from aeon_core.journal.summary import WORKFLOW, is_being_written, journal_named, last_state, run_id_of
from aeon_core.journal.writer import JournalWriter, LineListener, OpenFile, new_run_id
from aeon_core.json_safe import clean_text
from aeon_core.paths import make_runs_folder, real_path
from aeon_core.units import utc_timestamp


class WorkflowJournal(JournalWriter):
    """Continues without its file if writing fails; `warn` gets the reason."""

    path: Path | None
    warn: Callable[[str], None] = staticmethod(lambda _: None)

    def __init__(
        self, path: Path | None, run_id: str, listener: LineListener | None = None, *, file: OpenFile | None = None
    ) -> None:
        self.problem: str | None = None
        try:
            super().__init__(path, run_id, listener, file=file)
        except UsageError as error:
            self.problem = error.message
            super().__init__(None, run_id, listener)

    def append(self, record: Record) -> int:
        """Append a record and return its `seq`. Raises KeyboardInterrupt if a listener did: it ends the workflow."""
        seq = super().append(record)
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        return seq

    def _write(self, line: bytes) -> None:
        try:
            super()._write(line)
        except JournalError as error:
            self._continue_without(error)

    def sync(self) -> None:
        """Wait until all lines are on the disk, if there is a file."""
        try:
            super().sync()
        except JournalError as error:
            self._continue_without(error)

    def _continue_without(self, error: JournalError) -> None:
        self.problem = f"{error.message}; the work continues, but it cannot be resumed"
        self._broken = self.path = None
        if self._fd is not None:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = None
        self.warn(self.problem)


def first_record(path: Path) -> dict[str, Any]:
    """Return the first record of a workflow's journal. Raises UsageError if the file is anything else."""
    first = head(path) or {}
    if first.get("type") == "workflow_start":
        how = "it can only be shown; start a new workflow with --spec continue"
        raise UsageError(f"the transcript {str(path)!r} has no journal: {how}")
    workflow = first.get("workflow")
    if not isinstance(workflow, dict):
        raise UsageError(f"{str(path)!r} is not the journal of a workflow; see `aeon-tui runs`")
    if not all(isinstance(workflow.get(key), str) for key in ("project_root", "transcript")):
        why = "its first record does not name the project or the transcript"
        raise UsageError(f"the journal {str(path)!r} is damaged: {why}; see what is left with `aeon-tui show`")
    return first


def resume_point(path: Path, newest_first: Iterable[dict[str, Any]]) -> int | None:
    """Return the seq from which a workflow that was ended continues; None if it was cut off.

    Raises UsageError if it is complete.
    """
    last = last_state(newest_first)
    if last.get("type") != "run_finished":
        return None
    if last.get("resumes_at") is None:
        raise UsageError(f"the workflow {path.stem!r} is complete; start a new one")
    return int(last["resumes_at"])


def journal_of(path: Path, runs_dir: Path) -> Path:
    """Return the journal that a transcript was written from, if it is there; else the file itself."""
    first = head(path) or {}
    journal = runs_dir / f"{first.get('journal')}.jsonl"
    return journal if first.get("type") == "workflow_start" and journal.is_file() else path


def find_workflow(run: Path | str, project_root: Path, runs_dir: Path, transcripts: Path) -> Path:
    """Return the journal or transcript of a workflow; `last` is the project's newest one.

    Raises UsageError if none matches, or more than one does, or if the file that a path names cannot be read.
    """
    if run == "last":
        found = next(workflows_of(project_root, runs_dir), None)
        if found is None:
            raise UsageError(f"no workflow of {str(project_root)!r} in {str(runs_dir)!r}")
        return found
    try:
        return find_run(run, runs_dir)
    except UsageError:
        if (named := journal_named(str(run), transcripts)) is None:
            raise
        return named


def workflows_of(project_root: Path, runs_dir: Path) -> Iterator[Path]:
    """Yield the journals of the project's workflows, the newest first."""
    for each in list_runs(runs_dir):
        workflow = (head(Path(each.path)) or {}).get("workflow") if each.kind == WORKFLOW else None
        if isinstance(workflow, dict) and _is_at(str(workflow.get("project_root")), project_root):
            yield Path(each.path)


def _is_at(recorded: str, project_root: Path) -> bool:
    try:
        return real_path(recorded) == real_path(project_root)
    except ValueError:  # no path, such as one with a NUL
        return False


def fork(path: Path, gate: int, runs_dir: Path, feedback: str | None = None) -> Path:
    """Write the journal of a workflow that waits where a gate of another was last asked; return its path.

    With `feedback` the gate is rejected, and its agent continues with these words. The new workflow has a copy of all
    that came before, including its cost, but not the rules that a person allowed in the other. The project's files stay
    as they are now.
    Raises UsageError if the file is not a sound journal of a workflow, the gate was not decided, or writing fails.
    """
    decided = decided_gates(path)
    if gate not in decided:
        there = f"gate {', '.join(map(str, decided))}" if decided else "none"
        raise UsageError(f"gate {gate} was not decided in the workflow {run_id_of(str(path))!r}; decided: {there}")
    run_id = new_run_id()
    child = runs_dir / f"{run_id}.jsonl"
    lines = b"".join(_copy_lines(path, decided[gate], run_id, gate, feedback))
    try:
        make_runs_folder(runs_dir)
        fd = os.open(child, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(lines)
        if (snapshots := path.with_suffix(".files")).is_file():
            shutil.copy(snapshots, child.with_suffix(".files"))  # keeps the mode: only the user can read it
    except OSError as error:
        discard(child)
        raise UsageError(f"cannot write to the runs directory {str(runs_dir)!r}: {error.strerror}") from None
    return child


def discard(child: Path) -> None:
    """Remove a fork that could not start."""
    child.unlink(missing_ok=True)
    child.with_suffix(".files").unlink(missing_ok=True)


def decided_gates(path: Path) -> dict[int, int]:
    """Return the gates that a fork can start from, in order, each with the seq of its last decision.

    Raises UsageError if the file is not a sound journal of a workflow.
    """
    first_record(path)
    decided: dict[int, int] = {}
    asked = -1
    for record in sound_records(path):
        if record["type"] == "gate" and record["state"] == "asked":
            asked = record["subject"]["gate"]
        elif record["type"] == "gate" and record["decision"] != "abort":
            decided[asked] = record["seq"]
    return dict(sorted(decided.items()))


def _copy_lines(path: Path, end: int, run_id: str, gate: int, feedback: str | None) -> Iterator[bytes]:
    """Yield the lines before seq `end` with the new run's id; with `feedback`, a rejection replaces that record."""
    from aeon_core.approvals import ApprovalDecision  # not loaded by whoever only finds a journal

    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            record = parse_line(line, number, [])
            if record is None or record["seq"] >= end:
                if record is not None and feedback is not None:
                    decision = ApprovalDecision(decision="reject", feedback=clean_text(feedback)).model_dump()
                    yield _line(record | decision | {"run": run_id, "ts": utc_timestamp()})
                return
            if record.pop("allow", None) is not None:
                yield _line(record | {"run": run_id})
                continue
            if record["seq"]:
                old = b'"run":' + json.dumps(record["run"]).encode()
                yield line.replace(old, b'"run":' + json.dumps(run_id).encode(), 1)
                continue
            workflow = record["workflow"]
            transcript = free_path(Path(workflow["transcript"]).parent, run_id)
            parent = {"run_id": record["run"], "gate": gate, "ts": utc_timestamp()}
            record |= {"run": run_id, "parent": parent}
            record["workflow"] = {**workflow, "transcript": str(transcript)}
            yield _line(record)


def free_path(folder: Path, run_id: str) -> Path:
    """Return an unused path for a transcript: `<YYYYMMDD-HHMMSS>.jsonl`, or the same with `-2`, `-3` and so on."""
    second, number = run_id[:15], 1
    while (path := folder / (f"{second}.jsonl" if number == 1 else f"{second}-{number}.jsonl")).exists():
        number += 1
    return path


def _line(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


@contextmanager
def lock_project(project_root: Path, runs_dir: Path, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the project's lock. Raises UsageError, which names the holder, if another workflow has it.

    If the project cannot be locked, `warn` is called and the work continues.
    """
    with ExitStack() as held:
        try:
            # Not the project's folder: the commands that a workflow runs hold a lock on that.
            folder = project_root / ".system2"
            folder.mkdir(exist_ok=True)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(release, fd)
            if not lock(fd):
                running = filter(is_being_written, workflows_of(project_root, runs_dir))
                which = next((path.stem for path in running), None)
                what = f"the workflow {which!r}" if which is not None else "another workflow"
                where = f"is running in {str(project_root)!r}, by {holder(fd)}"
                raise UsageError(f"{what} {where}; wait until it ends, or stop it")
        except OSError as error:
            warn(f"the project cannot be locked, so another workflow could run in it too: {error.strerror}")
        yield
