"""The journal of a workflow: like that of a run, but if it cannot be written, the work continues (REQ-126)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.writer import JournalWriter, LineListener, OpenFile


class WorkflowJournal(JournalWriter):
    """Continues without its file if writing fails; `warn` gets the reason."""

    path: Path | None
    warn: Callable[[str], None] = staticmethod(lambda _: None)

    def __init__(
        self, path: Path | None, run_id: str, listener: LineListener | None = None, *, file: OpenFile | None = None
    ) -> None:
        self.problem: str | None = None
        """Why the file is not written."""
        try:
            super().__init__(path, run_id, listener, file=file)
        except UsageError as error:
            self.problem = error.message
            super().__init__(None, run_id, listener)

    def _write(self, line: bytes) -> None:
        try:
            super()._write(line)
        except JournalError as error:
            self._continue_without(error)

    def sync(self) -> None:
        """Wait until all lines are on the disk, if there is a file."""
        try:
            super().sync()
        except JournalError as error:
            self._continue_without(error)

    def _continue_without(self, error: JournalError) -> None:
        why = error.message.removesuffix("; the run stops here")
        self.problem, self._broken, self.path = f"{why}; the work continues, but it cannot be resumed", None, None
        if self._fd is not None:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = None
        self.warn(self.problem)
