"""Finds a workflow by its id, a prefix of that, a path, or `last`."""

from __future__ import annotations

from collections.abc import Iterator
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
        found = next(workflows_of(project_root, runs_dir), None)
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


def workflows_of(project_root: Path, runs_dir: Path) -> Iterator[Path]:
    """Yield the journals of the project's workflows, the newest first."""
    for each in list_runs(runs_dir):
        workflow = (head(Path(each.path)) or {}).get("workflow") if each.kind == WORKFLOW else None
        if isinstance(workflow, dict) and workflow.get("project_root") == str(project_root):
            yield Path(each.path)
