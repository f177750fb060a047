"""One workflow at a time in a project: a lock on its `.system2` folder, which ends with the process that holds it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.lock import holder, lock
from aeon_core.journal.summary import is_being_written
from system2.lookup import workflows_of


@contextmanager
def lock_project(project_root: Path, runs_dir: Path, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the project's lock. Raises UsageError that names the holder where another workflow has it.

    Where the file system knows no such locks, `warn` is told, and the work goes on.
    """
    fd = None
    try:
        # Not the project's folder: the commands that a workflow runs hold a lock on that.
        folder = project_root / ".system2"
        folder.mkdir(exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if not lock(fd):
            running = filter(is_being_written, workflows_of(project_root, runs_dir))
            which = next((path.stem for path in running), None)
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


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)
