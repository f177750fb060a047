"""Which transcript is meant by an id, its beginning, a path, or `last`, and whether it can be gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from system2.entries import check
from system2.replay_log import ReplayLog
from system2.view import WorkflowView, view_of


def find_transcript(run: str, folder: Path) -> Path:
    """Return the transcript. Raises UsageError where there is none, or several could be meant."""
    if "/" in run or run.endswith(".jsonl"):
        return Path(run).expanduser()
    known = sorted(folder.glob("*.jsonl"), key=lambda path: (path.stat().st_mtime_ns, path.stem))
    if not known:
        raise UsageError(f"no transcript in {str(folder)!r}")
    if run == "last":
        return known[-1]
    fitting = [path for path in known if path.stem == run] or [path for path in known if path.stem.startswith(run)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(path.stem for path in (fitting or known)[-5:])
    what = "could be any of" if fitting else "does not exist; there are"
    raise UsageError(f"the workflow {run!r} {what} {names} in {str(folder)!r}")


def unfinished(path: Path, records: list[dict[str, Any]]) -> tuple[WorkflowView, ReplayLog]:
    """Return what a transcript tells of its workflow, and what is done of it.

    Raises UsageError where it tells of none, or of a complete one, or lacks what going on with it needs.
    """
    if not records or records[0]["type"] != "workflow_start":
        raise UsageError(f"{str(path)!r} is not a workflow transcript; to continue a run, use `aeon-tui resume`")
    try:
        for record in records:
            check(record)
        view, replay_log = view_of(records), ReplayLog(records)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UsageError(f"cannot resume the transcript {str(path)!r}: an entry is damaged ({what})") from None
    if view.end is not None and view.end["status"] == "completed":
        raise UsageError(f"the workflow of {str(path)!r} is complete; start a new one")
    return view, replay_log
