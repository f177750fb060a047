"""Finds a workflow by its id, a prefix of that, a path, or `last`."""

from __future__ import annotations

from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.listing import find_run, is_path, list_runs
from aeon_core.journal.reader import head
from aeon_core.journal.summary import WORKFLOW, journal_entries


def find_workflow(run: str, project_root: Path, runs_dir: Path, transcripts: Path) -> Path:
    """Return the journal, or the transcript that has such an id. `last` is the newest workflow of the project.

    Raises UsageError where there is none, or several could be meant.
    """
    if is_path(run):
        return Path(run).expanduser()
    if run == "last":
        mine = (Path(each.path) for each in list_runs(runs_dir) if each.kind == WORKFLOW)
        found = next((path for path in mine if _root_of(path) == str(project_root)), None)
        if found is None:
            raise UsageError(f"no workflow of {str(project_root)!r} in {str(runs_dir)!r}")
        return found
    try:
        return find_run(run, runs_dir)
    except UsageError:
        named = [Path(each.path) for each in journal_entries(transcripts) if each.name.startswith(run)]
        exact = [path for path in named if path.stem == run] or named
        if len(exact) != 1:
            raise
        return exact[0]


def _root_of(path: Path) -> str:
    workflow = (head(path) or {}).get("workflow")
    return str(workflow.get("project_root")) if isinstance(workflow, dict) else ""
