"""The transcript, appended as things happen; where it cannot be written the work goes on (REQ-125, REQ-126)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.records import Record
from aeon_core.journal.recovery import reopen
from aeon_core.journal.writer import JournalWriter, LineListener
from aeon_core.redaction import conceal_json

_MAX_PER_SECOND = 1000
_SYNCED = frozenset({"agent_complete", "gate_decision", "workflow_end"})
"""Entries that are on the disk before the work goes on: a resume begins behind them."""

Warn = Callable[[str], None]


class Transcript:
    """Writes entries to `<folder>/<YYYYMMDD-HHMMSS>.jsonl`, mode 0600, and never raises.

    A folder that it makes is kept out of git by a `.gitignore` of its own.
    Two runs of one second are kept apart: the later one's name ends in `-2`. The file is locked while the workflow is
    alive. `listener` gets each line, long texts in full, also where no file can be written. `warn` is told once when
    writing fails, and again by each `remind`. Secrets are redacted. May be written from several threads.
    """

    def __init__(self, folder: Path, warn: Warn, listener: LineListener | None = None) -> None:
        self._warn, self._listener = warn, listener
        self._problem: str | None = None
        self._lock = threading.Lock()
        self.run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
        self._writer = self._made(folder)

    @classmethod
    def reopened(
        cls,
        path: Path,
        warn: Warn,
        listener: LineListener | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
    ) -> Transcript:
        """Return the transcript of a workflow that is gone on with; `on_record` gets each entry that there is.

        A torn last line is set aside. Raises UsageError where the file is none, is damaged, or is being written.
        """
        made = cls.__new__(cls)
        made._warn, made._listener = warn, listener
        made._problem, made._lock = None, threading.Lock()
        made._writer = _concealing(reopen(path, listener, on_record))
        made.run_id = made._writer.run_id
        return made

    @property
    def path(self) -> Path | None:
        """The file; None where it cannot be written, or no longer."""
        return self._writer.path

    def write(self, entry: Record, *, redacted: bool = False) -> int | None:
        """Append an entry, and return its `seq`; None where it has no form as JSON.

        Where that fails a person is warned, and the entries to come go to the listener alone. `redacted` says that the
        caller has put tokens in place of secrets.
        """
        with self._lock:
            try:
                return self._append(entry, redacted)
            except ValueError as error:
                self._warn(f"an entry {entry.tag!r} of the transcript cannot be written as JSON: {error}")
                return None

    def remind(self) -> None:
        """Warn again where writing has failed; to be called once for each agent (REQ-126)."""
        if self._problem is not None:
            self._warn(self._problem)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._writer.close()

    def _append(self, entry: Record, redacted: bool) -> int:
        try:
            seq = self._writer.append(entry, raw=not redacted)
        except AeonError as error:
            self._fail(error)
            seq = self._writer.append(entry, raw=not redacted)
        if entry.tag in _SYNCED:
            try:
                self._writer.sync()
            except AeonError as error:
                self._fail(error)
        return seq

    def _made(self, folder: Path) -> JournalWriter:
        _make_folder(folder)
        second = self.run_id
        for number in range(1, _MAX_PER_SECOND):
            self.run_id = second if number == 1 else f"{second}-{number}"
            path = folder / f"{self.run_id}.jsonl"
            try:
                return _concealing(JournalWriter(path, self.run_id, self._listener))
            except UsageError as error:
                if not path.exists():
                    return self._without_file(error)
        return self._without_file(UsageError(f"the folder {str(folder)!r} has too many runs from this second"))

    def _without_file(self, error: AeonError) -> JournalWriter:
        why = error.message.removesuffix("; the run stops here")
        self._problem = f"cannot write the transcript; the work continues: {why}"
        self._warn(self._problem)
        return _concealing(JournalWriter(None, self.run_id, self._listener))

    def _fail(self, error: AeonError) -> None:
        broken, self._writer = self._writer, self._without_file(error)
        try:
            broken.close()
        except OSError:
            # A disk that fails may fail at this, too.
            return


def _concealing(writer: JournalWriter) -> JournalWriter:
    """Return the writer of a transcript: what comes from outside is written as a resume can take it back."""
    writer.redact = conceal_json
    return writer


def _make_folder(folder: Path) -> None:
    """Make the folder where it is not there, so that git leaves out what is in it: whole conversations."""
    if folder.is_dir():
        return
    try:
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n")
    except OSError:
        # Whether it can be written is told where the transcript is made.
        return
