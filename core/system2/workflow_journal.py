"""The journal of a workflow: written, found by name, and one at a time in a project (REQ-126)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.listing import find_run, is_path, list_runs
from aeon_core.journal.lock import holder, lock
from aeon_core.journal.reader import head
from aeon_core.journal.summary import WORKFLOW, is_being_written, journal_named, last_state
from aeon_core.journal.writer import JournalWriter, LineListener, OpenFile
from aeon_core.paths import expanded


class WorkflowJournal(JournalWriter):
    """Continues without its file if writing fails; `warn` gets the reason."""

    path: Path | None
    warn: Callable[[str], None] = staticmethod(lambda _: None)

    def __init__(
        self, path: Path | None, run_id: str, listener: LineListener | None = None, *, file: OpenFile | None = None
    ) -> None:
        self.problem: str | None = None
        """Why the file is not written."""
        try:
            super().__init__(path, run_id, listener, file=file)
        except UsageError as error:
            self.problem = error.message
            super().__init__(None, run_id, listener)

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
        why = error.message.removesuffix("; the run stops here")
        self.problem, self._broken, self.path = f"{why}; the work continues, but it cannot be resumed", None, None
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


def find_workflow(run: str, project_root: Path, runs_dir: Path, transcripts: Path) -> Path:
    """Return the journal or transcript of a workflow; `last` is the project's newest one.

    Raises UsageError if none matches, or more than one does.
    """
    if is_path(run):
        return expanded(run, "the journal")
    if run == "last":
        found = next(workflows_of(project_root, runs_dir), None)
        if found is None:
            raise UsageError(f"no workflow of {str(project_root)!r} in {str(runs_dir)!r}")
        return found
    try:
        return find_run(run, runs_dir)
    except UsageError:
        if (named := journal_named(run, transcripts)) is None:
            raise
        return named


def workflows_of(project_root: Path, runs_dir: Path) -> Iterator[Path]:
    """Yield the journals of the project's workflows, the newest first."""
    for each in list_runs(runs_dir):
        workflow = (head(Path(each.path)) or {}).get("workflow") if each.kind == WORKFLOW else None
        if isinstance(workflow, dict) and workflow.get("project_root") == str(project_root):
            yield Path(each.path)


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
            held.callback(os.close, fd)
            if not lock(fd):
                running = filter(is_being_written, workflows_of(project_root, runs_dir))
                which = next((path.stem for path in running), None)
                what = f"the workflow {which!r}" if which is not None else "another workflow"
                where = f"is running in {str(project_root)!r}, by {holder(fd)}"
                raise UsageError(f"{what} {where}; wait until it ends, or stop it")
        except OSError as error:
            warn(f"the project cannot be locked, so another workflow could run in it too: {error.strerror}")
        yield
