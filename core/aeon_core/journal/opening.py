"""Where a run's journal is opened: in the runs directory, at a path, or nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from aeon_core.journal.writer import JournalWriter, LineListener, new_run_id
from aeon_core.json_safe import clean_text


def open_journal(
    journal: Path | str | Literal[False] | None, runs_dir: Path, listener: LineListener | None
) -> JournalWriter:
    """Return the writer of a new run: `journal` names its file, None puts it in `runs_dir`, False keeps none."""
    if journal is False:
        return JournalWriter(None, new_run_id(), listener)
    if journal is not None:
        return JournalWriter(Path(journal), clean_text(Path(journal).stem), listener)
    run_id = new_run_id()
    return JournalWriter(runs_dir / f"{run_id}.jsonl", run_id, listener)
