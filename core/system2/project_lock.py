"""One workflow at a time in a project: a lock on its folder, which ends with the process that holds it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.lock import holder, lock
from aeon_core.journal.summary import is_being_written


@contextmanager
def lock_project(project_root: Path, transcripts: Path, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the project's lock. Raises UsageError that names the holder where another workflow has it.

    Where the file system knows no such locks, `warn` is told, and the work goes on.
    """
    fd = None
    try:
        fd = os.open(project_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if not lock(fd):
            which = next((path.stem for path in _newest(transcripts) if is_being_written(path)), None)
            what = f"the workflow {which!r}" if which is not None else "another workflow"
            raise UsageError(
                f"{what} is running in {str(project_root)!r}, by {holder(fd)}; wait until it ends, or stop it"
            )
    except OSError as error:
        warn(f"the project cannot be locked, so another workflow could run in it too: {error.strerror}")
    except UsageError:
        _close(fd)
        raise
    try:
        yield
    finally:
        _close(fd)


def _newest(transcripts: Path) -> list[Path]:
    return sorted(transcripts.glob("*.jsonl"), reverse=True)[:20]


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)
