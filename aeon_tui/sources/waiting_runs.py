"""Which runs of a folder wait for a decision, whatever process they run in."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def waiting_runs(runs_dir: Path) -> list[Path]:
    """Return the journals of live runs that take a decision now, in their order. Reads one folder: for a thread.

    No journal is read: a waiting run has an inbox next to its journal, and a live one holds its lock.
    """
    from aeon_core.journal.summary import INBOX, SUFFIX, is_being_written

    try:
        with os.scandir(runs_dir) as entries:
            found = sorted(entry.name for entry in entries if entry.name.endswith(INBOX))
    except OSError:
        return []
    waiting = []
    for name in found:
        journal = runs_dir / f"{name.removesuffix(INBOX)}{SUFFIX}"
        with contextlib.suppress(OSError):
            if is_being_written(journal):
                waiting.append(journal)
    return waiting
