"""Deleting a run: its journal, and the files next to it that belong to it alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.lock import holder, lock
from aeon_core.journal.summary import SUFFIX, is_being_written
from aeon_core.regular_file import open_regular

_BESIDE = re.compile(r"\.(?:inbox|files|torn-\d+)")
"""What follows the run's id in the names of those files.

Decisions from another terminal, the snapshots of a workflow, and what a crash left.
"""


def belongings(journal: Path) -> list[Path]:
    """Return the files that a run consists of, its journal first. Raises OSError where the folder cannot be read."""
    run_id = journal.name.removesuffix(SUFFIX)
    with os.scandir(journal.parent) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    beside = [name for name in names if name.startswith(run_id) and _BESIDE.fullmatch(name[len(run_id) :])]
    return [journal, *(journal.with_name(name) for name in beside)]


def size_of(journal: Path) -> int:
    """Return the bytes of the files that a run consists of. Raises OSError."""
    return sum(path.stat().st_size for path in belongings(journal))


def refuse_live(journal: Path) -> None:
    """Raise UsageError where a process writes the run."""
    if is_being_written(journal):
        raise UsageError(f"the run {journal.stem!r} is still running; abort it or wait until it ends, then delete it")


def remove_run(journal: Path) -> None:
    """Delete the files that a run consists of; its forks stay as they are, for they need nothing of it.

    Of a symbolic link only the link is deleted. Raises UsageError where a process writes the run, and where there is no
    such run or a file cannot be deleted.
    """
    try:
        fd = open_regular(journal)
    except OSError as error:
        raise _refused(journal, error) from None
    try:
        # Held until the file is gone, so that nobody can resume the run.
        if not lock(fd):
            raise UsageError(
                f"the run {journal.stem!r} is being written by {holder(fd)}; abort it or wait until it ends"
            )
        # The journal last: where something fails, the run is still in the list and can be deleted again.
        for path in reversed(belongings(journal)):
            path.unlink()
    except OSError as error:
        raise _refused(journal, error) from None
    finally:
        os.close(fd)


def _refused(journal: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot delete the run {journal.stem!r}: {error.strerror}")
