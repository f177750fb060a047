"""A workflow that is gone on with, as its transcript tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aeon_core.config.journal_trust import remembers
from aeon_core.errors import UsageError
from aeon_core.journal.reader import head, tail
from aeon_tui.sessions.workflow_session import WorkflowRequest, started_by
from aeon_tui.sources.transcripts import root_of_project, transcripts_folder


def resume_request(
    path: Path, model: str | None = None, base_url: str | None = None, project_root: Path | None = None
) -> WorkflowRequest:
    """Return what goes on with a transcript's workflow, in its project and with its model where none is named.

    Who decides is asked anew: a person does, whatever was said before. Raises UsageError where the file is no
    transcript, where its project is not there any more, or where the workflow is complete.
    """
    first = head(path)
    if first is None or first.get("type") != "workflow_start":
        raise UsageError(f"{str(path)!r} is not a workflow transcript; to continue a run, use `aeon-tui resume`")
    last = next(tail(path), {})
    if last.get("type") == "workflow_end" and last.get("status") == "completed":
        raise UsageError(f"the workflow {path.stem!r} is complete; start a new one with `aeon-tui workflow`")
    config = first.get("config")
    known = str((config if isinstance(config, dict) else {}).get("project_root") or "")
    root = project_root or Path(known)
    if not root.is_absolute() or not root.is_dir():
        raise UsageError(f"the project of the workflow, {str(root)!r}, is no longer a folder; --project-root names one")
    if not remembers(root, started_by(first)):
        _check(path, root, first, model, project_root)
    return WorkflowRequest(root, str(first.get("task", "")), path, model or str(first["model"]), base_url)


def _check(path: Path, root: Path, first: Mapping[str, Any], model: str | None, project_root: Path | None) -> None:
    """Raise UsageError where only a transcript, which anybody may have written, names the folder or the model."""
    known = root == root_of_project() or path.absolute().parent == transcripts_folder(root)
    if project_root is None and not known:
        raise UsageError(
            f"the workflow belongs to another project, {str(root)!r}; to continue it there, add --project-root"
        )
    named = str(first.get("model"))
    if model is None and not named.startswith(("simulated:", "bedrock:")):
        raise UsageError(
            f"the transcript names the model {named!r}, but you did not start it here; confirm with --model"
        )
