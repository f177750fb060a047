"""The stream of a run's records: recorded ones are compared, those after them are appended."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jiter import from_json
from pydantic_core import to_json

from aeon_core.config.schema import Durability
from aeon_core.effects.replay_cursor import ABORT_RECORDS, RecordingEnded, ReplayCursor
from aeon_core.errors import ReplayMismatchError, RunAborted
from aeon_core.journal.reader import ASKED
from aeon_core.journal.records import LLMRecord, PassRecord, Record, RunFinished, RunResumed, RunStarted, ToolRecord
from aeon_core.journal.values import ENVELOPE
from aeon_core.journal.writer import JournalWriter

T = TypeVar("T")
_ENDED = {"llm": "finished", "tool": "finished"} | dict.fromkeys(ASKED, "decided")
_OUTCOMES = frozenset({"policy", "observation"})
_COUNTED = frozenset({*_ENDED, *_OUTCOMES, "memory"})
ENDINGS = frozenset({PassRecord.tag, RunFinished.tag})
"""The types of records that end something and hold the digest."""
_DURATION = re.compile(rb'"\w*_ms":[-+.\deE]+,?')
"""A key with its number; inside a text, the quotes would be escaped."""


def _begins_effect(record: Record) -> bool:
    return record.tag in _ENDED and vars(record)["state"] != _ENDED[record.tag]


class OutcomeDigest:
    """Folds every outcome into one digest: of models, tools, approvals, policy, and of memory that others write."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def restore(self, outcomes: str) -> None:
        """Continue from the digest in a `pass` record."""
        self._sha256 = hashlib.sha256(outcomes.encode())

    def on(self, record: Record) -> Record:
        """Return the record, with the digest so far if it ends something."""
        if record.tag not in ENDINGS:
            return record
        outcomes = self._sha256.hexdigest()
        self.restore(outcomes)
        return record.model_copy(update={"outcomes": outcomes})

    def count(self, record: Record, body: bytes) -> None:
        """Fold in a record that was written as this body."""
        if record.tag == RunStarted.tag:
            self._begin(from_json(body).get("start"))
        elif record.tag in _COUNTED:
            # Not getattr: in pydantic, a missing field costs as much as the record.
            fields = vars(record)
            self._fold(record.tag, fields.get("state"), fields.get("source"), body)

    def count_line(self, line: Mapping[str, Any]) -> None:
        """Fold in a record from a journal, with its long texts in full."""
        tag = line["type"]
        if tag == RunStarted.tag:
            self._begin(line.get("start"))
        elif tag in _COUNTED:
            body = {key: value for key, value in line.items() if key not in ENVELOPE}
            self._fold(tag, line.get("state"), line.get("source"), to_json(body))

    def _begin(self, start: Any) -> None:
        """Fold in the start of a fork, which prompts may show only in part."""
        if start is not None:
            self._sha256.update(to_json(start))

    def _fold(self, tag: str, state: Any, source: Any, body: bytes) -> None:
        if tag in _OUTCOMES or (tag == "memory" and source == "external") or (tag in _ENDED and state == _ENDED[tag]):
            self._sha256.update(_DURATION.sub(b"", body) if b'_ms":' in body else body)


class RecordStream:
    """The run's position among its records, and whether a person asked it to end."""

    def __init__(
        self,
        journal: JournalWriter,
        recorded: ReplayCursor | None,
        durability: Durability,
        *,
        replays: bool = False,
        resumed: RunResumed | None = None,
    ) -> None:
        self._replays = replays
        self._resumed = resumed
        self._changes: list[Mapping[str, Any]] = []
        self.resumes_at: int | None = None
        """The seq from which a run that ends now continues when it is resumed; None for no mark."""
        self.appended: int = 0
        """The number of lines written after the recorded ones."""
        self.model_failed = False
        """Whether the last model call failed for good, which a resume may fix."""
        self.journal = journal
        self.aborted: threading.Event = threading.Event()
        self.sleep: Callable[[float], object] = self.aborted.wait
        """Waits some seconds; returns True if the run was aborted meanwhile."""
        self._performing = False
        self._interrupted = False
        """Whether a run that was already aborted is to end before its next effect."""
        self._recorded = recorded
        self._durability = durability
        self.calls: int = 0
        """The number of model and tool calls begun."""
        self._digest = OutcomeDigest()
        self._digested_repeats = 0
        self._repeats_appended = 0

    @property
    def recording(self) -> bool:
        """Whether there are recorded lines ahead."""
        return self._recorded is not None and not self._recorded.exhausted

    @property
    def now(self) -> str:
        """The stamp of the last line, ISO 8601 UTC."""
        return self._recorded.stamp if self._recorded is not None and self.recording else self.journal.stamp

    @property
    def next_seq(self) -> int:
        """The seq of the next line."""
        return self._recorded.seq if self._recorded is not None and self.recording else self.journal.seq

    def restore_checkpoint(self, line: Mapping[str, Any]) -> None:
        """Restore the state of a `pass` line."""
        self._digest.restore(str(line["outcomes"]))
        self._digested_repeats = len(self.repeats)

    def changes(self) -> list[Mapping[str, Any]]:
        """Return the changes made at each resume up to here."""
        if self._resumed is not None and not self.recording:
            record, self._resumed = self._resumed, None
            self.journal.append(record)
            self._changes.append(record.model_dump(mode="json"))
        return [*self.recorded_changes, *self._changes]

    @property
    def recorded_changes(self) -> list[Mapping[str, Any]]:
        """The recorded changes up to here."""
        return self._recorded.changes if self._recorded is not None else []

    @property
    def repeats(self) -> list[Mapping[str, Any]]:
        """The recorded outcomes, up to here, of calls that were repeated to recover a secret."""
        return self._recorded.repeats if self._recorded is not None else []

    @property
    def repeats_so_far(self) -> int:
        """The number of calls repeated to recover a secret, including recorded ones."""
        return len(self.repeats) + self._repeats_appended

    def append(self, record: LLMRecord | ToolRecord) -> None:
        """Write a record of a repeated call: the kernel did not request it, so no replay compares it."""
        if self._resumed is not None:
            self.changes()
        self.journal.append(record)
        self._digest.count(record, self.journal.body)
        self._repeats_appended += record.state == "finished"

    def _digest_repeats(self) -> None:
        repeats = self.repeats
        for line in repeats[self._digested_repeats :]:
            self._digest.count_line(line)
        self._digested_repeats = len(repeats)

    def emit(self, record: Record) -> int:
        """Append a record; return its `seq`. Raises JournalError, ReplayMismatchError, and as `follow_abort`; and
        KeyboardInterrupt instead of an intent, if a run that was already aborted is interrupted.
        """
        if self._recorded is not None:
            self._digest_repeats()
            if self.recording:
                return self._compare(record, self._recorded)
        if self._replays:
            raise RecordingEnded(f"the {record.tag!r} record that the kernel emits is not in the recording")
        if self._resumed is not None:
            self.changes()
        if self._interrupted and _begins_effect(record):
            raise KeyboardInterrupt
        ends = record.tag in ENDINGS
        if ends:
            record = self._digest.on(self._with_place_to_resume(record))
        written = self.journal.seq
        try:
            seq = self.journal.append(record)
        finally:
            # An interrupt may come when the record is already written.
            if self.journal.seq > written:
                self._digest.count(record, self.journal.body)
        self._heed_interrupt()
        self.appended += 1
        if ends and self._durability != "off":
            self.journal.sync()
        return seq

    def _compare(self, record: Record, recorded: ReplayCursor) -> int:
        """Compare a record with the recorded line that comes next; return its `seq`. Raises as `emit`."""
        line = self.ahead()
        if record.may_be_missing and line["type"] != record.tag:
            return int(line["seq"])
        try:
            seq = recorded.expect(self._digest.on(record))
        except ReplayMismatchError:
            if record.tag not in ABORT_RECORDS:
                # An interrupt may have come between any two records.
                self.follow_abort(in_a_cycle=True)
            raise
        self._digest.count_line(line)
        if self._replays:
            self.journal.append(record)
            self._heed_interrupt()
        return seq

    def _heed_interrupt(self) -> None:
        """Take the interrupt of a listener. Raises KeyboardInterrupt in a replay, which no abort ends."""
        if not self.journal.interrupted:
            return
        self.journal.interrupted = False
        if self._replays:
            raise KeyboardInterrupt
        self.interrupt()

    def interrupt(self) -> None:
        """Abort the run, or end it before its next effect if it is aborted already: a replay ends in the same state.

        Raises KeyboardInterrupt in the code of others, which may take long, and during which the state stays the same.
        """
        if self._performing or self.journal.listening:
            raise KeyboardInterrupt
        self._interrupted = self.aborted.is_set()
        self.aborted.set()

    def perform(self, act: Callable[[], T]) -> T:
        """Return what an effect returns. Raises KeyboardInterrupt if it is interrupted."""
        self._performing = True
        try:
            if self._interrupted:
                raise KeyboardInterrupt
            return act()
        finally:
            self._performing = False

    def _with_place_to_resume(self, record: Record) -> Record:
        if not isinstance(record, RunFinished):
            return record
        status = record.result.status
        resumable = status in ("aborted", "ttl_expired", "cost_ceiling") or (status == "failed" and self.model_failed)
        return record.model_copy(update={"resumes_at": self.resumes_at}) if resumable else record

    def ahead(self) -> dict[str, Any]:
        """Return the recorded line that comes next, {} if there is none."""
        return (self._recorded.peek() if self._recorded is not None else None) or {}

    def outcome(self, tag: str, key: dict[str, Any], missing: str | None = None) -> dict[str, Any] | None:
        """Return the recorded line of that type that holds all of `key`, None if none was recorded.

        Raises RecordingEnded with the message `missing` in a replay, and if other lines were recorded after its place:
        it is never made up for them.
        """
        line = self._recorded.outcome(tag, key) if self._recorded is not None and self.recording else None
        if line is None and missing is not None and (self._replays or self.recording):
            raise RecordingEnded(missing)
        return line

    def call_id(self) -> str:
        """Return the id of the next call."""
        self.calls += 1
        return f"c{self.calls}"

    def follow_abort(self, *, in_a_cycle: bool) -> None:
        """Raise RunAborted if the recorded run was aborted at this place, KeyboardInterrupt if the record says so."""
        if self._recorded is not None and self.recording:
            error = self._recorded.aborted_here(in_a_cycle=in_a_cycle)
            if error is not None:
                kind = KeyboardInterrupt if error["error_type"] == KeyboardInterrupt.__name__ else RunAborted
                raise kind(error["message"])

    def wait(self, seconds: float) -> None:
        """Wait before a model call is repeated; not at all in the recorded part. Raises RunAborted."""
        self.follow_abort(in_a_cycle=True)
        if not self.recording and not self._replays and self.perform(lambda: self.sleep(seconds)):
            raise RunAborted("the run was aborted while it waited to repeat a model call")

    def sync(self, needed: Durability) -> None:
        """Sync the journal to disk if the durability requires it at such a place."""
        if not self.recording and (self._durability == "full" or self._durability == needed):
            self.journal.sync()
