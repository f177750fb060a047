"""The runs, workflows and transcripts that can be listed or opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.listing import RunListing
from aeon_core.journal.reader import head
from aeon_core.journal.summary import WORKFLOW, RunSummary, is_workflow_start, journal_entries, journal_named
from aeon_core.paths import git_root

_FOLDER = Path(".system2")
_CONFIG = "config.yml"
_DEFAULT = _FOLDER / "runs"


def transcripts_folder(project_root: Path | None = None) -> Path:
    """Return the folder of a project's transcripts. Settings are read only if the project has any."""
    root = project_root if project_root is not None else git_root()
    if not (root / _FOLDER / _CONFIG).is_file():
        return root / _DEFAULT
    from system2.trust import applied_settings

    try:
        return root / applied_settings(root, None, None, "ignore", lambda _: None)[0].transcript_dir
    except UsageError:
        return root / _DEFAULT  # no workflow starts with such settings


def is_workflow(path: Path) -> bool:
    """Return whether a file is the journal of a workflow, or a transcript of one. Reads its first line."""
    first = _first_of(path)
    return first is not None and is_workflow_start(first)


def lacks_journal(path: Path) -> bool:
    """Return whether a file is a transcript of an earlier version, which had no journal. Reads its first line."""
    first = _first_of(path) or {}
    return first.get("type") == "workflow_start" and "journal" not in first


def _first_of(path: Path) -> dict[str, Any] | None:
    try:
        return head(path)
    except (UsageError, OSError):
        return None


def find_journal(run: str, runs_dir: Path, *, newest_of_all: bool = False) -> Path:
    """Return the journal of a run or a workflow as `find_run` does, else the transcript of the project with that id.

    A transcript leads to the journal that it was written from, if that exists. With `newest_of_all`, `last` may be
    a transcript of an earlier version, which had no journal. Raises UsageError.
    """
    from aeon_core.journal.listing import find_run
    from system2.workflow_journal import journal_of

    of_all = newest_of_all and run == "last"
    try:
        found = find_run(run, runs_dir)
    except UsageError:
        if (named := newest_transcript() if of_all else transcript_of(run)) is not None:
            return journal_of(named, runs_dir)
        raise
    return (newest_transcript(after=found) if of_all else None) or journal_of(found, runs_dir)


def transcript_of(run: str | None) -> Path | None:
    """Return the project's transcript with an id, or a prefix of one; None if there is none."""
    return journal_named(run, transcripts_folder()) if run and "/" not in run else None


def newest_transcript(*, after: Path | None = None) -> Path | None:
    """Return the project's newest transcript of an earlier version, which had no journal, if it began after a run."""
    known = [Path(each.path) for each in journal_entries(transcripts_folder())]
    newest = max(filter(lacks_journal, known), key=_began, default=None)
    return newest if newest is not None and (after is None or _began(newest) > _began(after)) else None


def _began(path: Path) -> str:
    return str((_first_of(path) or {}).get("ts", ""))


class RunIndex:
    """Lists runs and the current project's workflows repeatedly, reading only what has changed."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs = RunListing(runs_dir)
        self._workflows = RunListing(transcripts_folder(), cache=False)

    @property
    def unlisted(self) -> list[str]:
        """Names of files in the runs directory that are no journals, or damaged in the first line."""
        return self._runs.unlisted

    def runs(self) -> list[RunSummary]:
        """Return runs and workflows, newest first. Raises UsageError if the runs directory cannot be read."""
        return self._all(RunListing.runs)

    def live(self) -> list[RunSummary]:
        """Return those that a process is writing, as `Listing.live` does."""
        return self._all(RunListing.live)

    def _all(self, listed: Callable[[RunListing], list[RunSummary]]) -> list[RunSummary]:
        runs, workflows = listed(self._runs), self._found_workflows(listed)
        if not workflows:
            return runs
        known = {run.path for run in runs}
        both = [*runs, *(each for each in workflows if each.path not in known)]
        return sorted(both, key=lambda run: (run.started, run.run_id), reverse=True)

    def _found_workflows(self, listed: Callable[[RunListing], list[RunSummary]]) -> list[RunSummary]:
        try:
            return [each for each in listed(self._workflows) if each.kind == WORKFLOW]
        except UsageError:
            # Runs are listed even if a project's folder cannot be read.
            return []
