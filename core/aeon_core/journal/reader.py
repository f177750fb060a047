"""Reads a journal: whole lines, long texts resolved, damage reported by line number (core FR-037).

A last line without a newline is torn and does not count. A file that is not a journal raises UsageError.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from jiter import from_json

from aeon_core.errors import JournalError, UsageError, reason_of
from aeon_core.regular_file import closing_fd, open_regular
from aeon_core.suggest import shown

_MARK = b'"type":"run_resumed"'
_CHUNK = 4 * 1024 * 1024
_FIRST_CHUNK, _LINES_CHUNK = 64 * 1024, 1024 * 1024
_MAX_LINE = 1024 * 1024


def superseded_lines(path: Path) -> list[range]:
    """Return the seqs of the lines that a resume superseded; none if the run was not resumed.

    Scans the file once, without parsing it. Unreadable lines supersede nothing.
    """
    try:
        fd = open_regular(path)
    except OSError:
        return []
    with closing_fd(fd):
        return superseded_in(fd)


def superseded_in(fd: int) -> list[range]:
    """Return the same for an open file."""
    found = []
    try:
        for offset in marks(fd, _MARK):
            line = _line_at(fd, offset)
            try:
                record = from_json(line, allow_inf_nan=False)
                found.append(range(int(record["continues_at"]), int(record["seq"])))
            except (ValueError, TypeError, LookupError):
                continue
    except OSError:
        return []
    return [each for each in found if each]


def marks(fd: int, mark: bytes) -> Iterator[int]:
    """Yield the offsets of a quoted mark, such as a line's type. Inside a text, its quotes would be escaped.

    Raises OSError.
    """
    start, kept = 0, b""
    while chunk := os.pread(fd, _CHUNK, start):
        text = kept + chunk
        place = text.find(mark)
        while place >= 0:
            yield start - len(kept) + place
            place = text.find(mark, place + 1)
        start += len(chunk)
        kept = text[-(len(mark) - 1) :]


def _line_at(fd: int, offset: int) -> bytes:
    """Return the whole line around an offset in its envelope; b"" if its end has not been written yet."""
    start = max(0, offset - 4096)
    before = os.pread(fd, offset - start, start)
    begin = start + before.rfind(b"\n") + 1
    line = os.pread(fd, _MAX_LINE, begin)
    end = line.find(b"\n")
    return line[:end] if end >= 0 else b""


VERSION = 1
MAX_LINE = 256 * 1024 * 1024
"""Bytes; a longer line is reported as broken and skipped."""
_MOST = 2**63
"""The exclusive limit of a seq, which must fit an array; a larger number is damage."""
BEGINNINGS = ("run_started", "workflow_start")
"""Types of which a journal's first record is one: a run's, and a workflow's."""
ENDS = ("run_finished", "workflow_end")
ASKED = frozenset({"approval", "gate", "question"})
"""Types of records that ask a person and hold the decision."""
STATE_TYPES = frozenset(
    (
        *("run_started", "run_resumed", "phase", "plan", "step", "llm", "tool", "supervisor", "memory", "ttl"),
        *("approval", "policy", "profile", "validation", "convergence", "refinement", "notice", "cycle", "pass"),
        *("run_finished", "workflow_start", "workflow_resumed", "agent_start", "agent_skipped", "agent"),
        *("observation", "api_request", "api_response", "tool_exec", "question", "gate_asked", "gate", "gate_decision"),
        *("agent_complete", "note", "workflow_end"),
    )
)
"""Types of records that say where a run or a workflow is.

Any other, a new one or one that this version does not know, may follow any record, also the last one of a run. It needs
no place here unless a run can end or wait with it: what the kernel writes after an end follows a `run_resumed`.
"""
END_BYTES = 64 * 1024
"""Bytes that `tail` reads; more only if they hold no state record."""

FindTexts = Callable[[set[str]], dict[str, str]]
"""Returns the texts that a journal holds further up, by sha256."""

_ENVELOPE = re.compile(rb'\{\s*"v"\s*:\s*(\d+)\s*,\s*"seq"\s*:\s*\d+\s*,\s*"ts"\s*:.*?"type"\s*:\s*"(\w+)"', re.DOTALL)
_BEGINNING = b'{"v":'
"""The beginning of every line that Aeon writes."""
_LINES_TO_TRY = 20


def record_type(line: bytes) -> str | None:
    """Return the type of a line's record, from its beginning alone; None if it is not a record."""
    match = _ENVELOPE.match(line[:2_000].removeprefix(BOM_UTF8))
    return match[2].decode() if match is not None and int(match[1]) <= VERSION else None


def read_records(
    path: Path,
    *,
    texts: bool = True,
    damage: list[str] | None = None,
    check: Callable[[dict[str, Any]], str | None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal in order.

    `texts` replaces each `{"$text": sha256}` with its long text. What cannot be read is left out and reported in
    `damage`, one line each with the line number; so is what `check` returns for a record. Lines that a resume
    superseded are left out. Raises UsageError, on the first record, for a file that is not a journal.
    """
    found = damage if damage is not None else []
    with opened(path) as file:
        fd = file.fileno()
        if _is_binary(fd):
            raise no_journal(path)
        lines, records = JournalLines(fd, found), RecordReader(found, superseded_in(fd), texts=texts, check=check)
        known = False
        for line in lines.read():
            known = known or is_known_beginning(path, lines.number, line)
            record = records.read(lines.number, line)
            if record is not None:
                yield record
        if not known:
            raise no_journal(path, why_no_line(fd) if lines.number == 0 else None)


class JournalLines:
    """The whole lines of an open file; each read continues where the last one ended.

    `number` is the last line's, from 1; the next line begins at `offset`. A line that is too long is skipped and
    reported in `damage`.
    """

    def __init__(self, fd: int, damage: list[str], *, offset: int = 0, number: int = 0) -> None:
        self.offset: int = offset
        self.number: int = number
        self._fd, self._damage = fd, damage

    def read(self, until: int | None = None) -> Iterator[bytes]:
        """Yield each line without its newline; only those that begin before `until`. Raises OSError."""
        wanted = _FIRST_CHUNK
        while until is None or self.offset < until:
            chunk = os.pread(self._fd, wanted, self.offset)
            *whole, _ = chunk.split(b"\n")
            for line in whole:
                self.offset += len(line) + 1
                self.number += 1
                yield line
            if whole:
                wanted = _LINES_CHUNK
            elif len(chunk) < wanted:
                return
            elif wanted < MAX_LINE:
                wanted *= 4
            elif not self._pass_over():
                return

    def _pass_over(self) -> bool:
        """Skip a line that is too long; return False if its end has not been written yet."""
        place = self.offset
        while chunk := os.pread(self._fd, _CHUNK, place):
            if (end := chunk.find(b"\n")) >= 0:
                self.number += 1
                self.offset = place + end + 1
                self._damage.append(f"line {self.number}: longer than {MAX_LINE} bytes")
                return True
            place += len(chunk)
        return False


def wrong_seq(seq: int, expected: int, unread: int) -> str | None:
    """Return what a line with another `seq` than the expected one says about the journal, None for the expected one.

    The `unread` lines right before it are already reported; each may have been a record.
    """
    if expected <= seq <= expected + unread:
        return None
    why = "lines are missing" if seq > expected else "lines are repeated or out of order"
    if seq == 0:
        why = "a run begins here, but a journal holds only one; put each run into a file of its own"
    return f"seq {seq} where {expected} was expected; {why}"


class RecordReader:
    """Turns a journal's lines into records, one after the other.

    Long texts are resolved unless `texts` is False; what cannot be read, and what `check` returns for a record, is
    reported in `damage`; the lines in `gone` are left out, except texts. The first line, after line
    `number`, has the seq `expected`; earlier texts are requested from `find_texts`.
    """

    def __init__(
        self,
        damage: list[str],
        gone: list[range],
        *,
        texts: bool = True,
        check: Callable[[dict[str, Any]], str | None] | None = None,
        number: int = 0,
        expected: int = 0,
        find_texts: FindTexts | None = None,
    ) -> None:
        self._damage, self._gone, self._texts, self._check = damage, gone, texts, check
        self._table: dict[str, str] = {}
        self._number = number
        self._expected = expected
        self._find_texts = find_texts
        self._newer = False

    def read(self, number: int, line: bytes) -> dict[str, Any] | None:
        """Return the record of the next line; None if it is not a record or is superseded."""
        record = parse_line(line, number, self._damage)
        if record is None:
            return None
        if problem := wrong_seq(record["seq"], self._expected, number - self._number - 1):
            self._note(number, problem)
        self._number, self._expected = number, record["seq"] + 1
        if record["type"] == "text":
            self._table[str(record.get("sha256"))] = str(record.get("text", ""))
        elif self._texts and b'"$text"' in line and record["seq"] > 0:
            missing: set[str] = set()
            whole = resolved(record, self._table, missing)
            if missing and self._find_texts is not None:
                self._table.update(self._find_texts(missing))
                missing = set()
                whole = resolved(record, self._table, missing)
            record = whole
            for sha256 in sorted(missing):
                self._note(number, f"the text {shown(sha256)} is missing")
        checked = self._check(record) if self._check is not None else None
        if problem := checked or self._version_fault(record):
            self._note(number, problem)
        if self._gone and record["type"] != "text" and any(record["seq"] in span for span in self._gone):
            return None
        return record

    def _version_fault(self, record: dict[str, Any]) -> str | None:
        """Return, once, that a newer Aeon continued the journal, whose records may mean something else."""
        if self._newer or record.get("v") == VERSION:
            return None
        self._newer = True
        return f"its version is {shown(record.get('v'))}, but this Aeon supports {VERSION}; new details are not shown"

    def _note(self, number: int, problem: str) -> None:
        self._damage.append(f"line {number}: {problem}")


def is_known_beginning(path: Path, number: int, line: bytes) -> bool:
    """Return whether one of a file's first lines is a record. Raises UsageError if it shows that the file is not a
    journal.
    """
    if record_type(line) is not None:
        return True
    if number >= _LINES_TO_TRY or _is_foreign(line):
        raise no_journal(path)
    return False


def open_journal(path: Path) -> IO[bytes]:
    """Return the file, open for reading. Raises UsageError if there is no file that could be a journal."""
    try:
        if path.is_dir():
            raise no_journal(path, "it is a folder")
        return os.fdopen(open_regular(path), "rb")
    except FileNotFoundError:
        raise UsageError(f"the journal {str(path)!r} does not exist; see `aeon-tui runs`") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the journal {str(path)!r}: {reason_of(error)}") from None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the file of `open_journal`; the error of a disk that fails while it is read names the journal."""
    try:
        with open_journal(path) as file:
            yield file
    except OSError as error:
        error.filename = str(path)
        raise


def no_journal(path: Path, why: str | None = None) -> UsageError:
    """Return the error that a file is not a journal, with the reason."""
    reason = why or "its lines are not Aeon records, or a newer version wrote them"
    return UsageError(f"{str(path)!r} is not a journal: {reason}; expected a run's <run_id>.jsonl file")


def why_no_line(fd: int) -> str | None:
    """Return why a file has no whole line: it is empty or cut off in its first record; None if it holds no record at
    all.
    """
    size = os.fstat(fd).st_size
    if size == 0:
        return "it is empty"
    if not _BEGINNING.startswith(os.pread(fd, len(_BEGINNING), 0)):
        return None
    return f"its first line ends after {size:,} bytes, so nothing of the run was recorded"


def unreadable(path: Path | None, why: OSError | str) -> JournalError:
    """Return the error that says that a journal that was opened cannot be read."""
    reason = reason_of(why) if isinstance(why, OSError) else why
    return JournalError(f"cannot read the journal {str(path)!r}: {reason}")


def _is_binary(fd: int) -> bool:
    """Whether a file's first line cannot be a run's, however long it is."""
    return b"\x00" in os.pread(fd, 4_096, 0).partition(b"\n")[0]


def _is_foreign(line: bytes) -> bool:
    """Whether a line is valid but not ours, or binary, which damage would not explain."""
    if b"\x00" in line[:4_096]:
        return True
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError:
        return False
    return not (isinstance(value, dict) and value.get("v") == VERSION and "seq" in value)


def parse_line(line: bytes, number: int, damage: list[str]) -> dict[str, Any] | None:
    """Return the record of a line, long texts by reference; None if it is not a record, and `damage` says why."""
    try:
        record = from_json(line.removeprefix(BOM_UTF8), allow_inf_nan=False)
    except ValueError as error:
        reason = str(error).partition(" at line ")[0]
        damage.append(f"line {number}: broken ({reason})")
        return None
    if not isinstance(record, dict) or not isinstance(record.get("type"), str) or not _is_count(record.get("seq")):
        damage.append(f"line {number}: not a record (no type or no seq)")
        return None
    return record


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def is_marked(value: dict[str, Any]) -> bool:
    """Return whether an object looks like a reference or an escaped object.

    Such an object from a tool or a model is written as `{"$text": null, "literal": <the object>}`.
    """
    return "$text" in value and len(value) <= 2


def resolved(value: Any, table: dict[str, str], missing: set[str]) -> Any:
    """Return a value with its references replaced by the texts in `table`; missing sha256s are added to `missing`."""
    # The parser allows 200 levels, so recursion ends well before the interpreter's limit.
    if isinstance(value, dict):
        if is_marked(value) and isinstance(literal := value.get("literal"), dict) and value["$text"] is None:
            return {key: resolved(item, table, missing) for key, item in literal.items()}
        if len(value) == 1 and isinstance(sha256 := value.get("$text"), str):
            if sha256 in table:
                return table[sha256]
            missing.add(sha256)
            return value
        return {key: resolved(item, table, missing) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, table, missing) for item in value]
    return value


def head(path: Path) -> dict[str, Any] | None:
    """Return the `run_started` or `workflow_start` record, with its task in full; None if the file begins otherwise.

    Reads no further than that record. Raises UsageError if the file cannot be opened.
    """
    table: dict[str, str] = {}
    with opened(path) as file:
        fd = file.fileno()
        for line in JournalLines(fd, []).read() if not _is_binary(fd) else ():
            kind = record_type(line)
            record = parse_line(line, 0, []) if kind in ("text", *BEGINNINGS) else None
            if record is None:
                return None
            if kind in BEGINNINGS:
                record["task"] = resolved(record.get("task"), table, set())
                return record
            table[str(record.get("sha256"))] = str(record.get("text", ""))
    return None


def tail(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the last whole records, newest first, references unresolved: those in the file's last 64 kB, and as many
    before them as needed to have one of a type in STATE_TYPES.

    Raises UsageError if the file cannot be opened.
    """
    with opened(path) as file:
        end = file.seek(0, os.SEEK_END)
        wanted = END_BYTES
        while True:
            start = max(0, end - wanted)
            file.seek(start)
            chunk = file.read(end - start)
            whole = chunk[: chunk.rfind(b"\n") + 1]
            if start > 0:
                whole = whole[whole.find(b"\n") + 1 :]
            lines = whole.split(b"\n")
            if start == 0 or wanted > MAX_LINE or any(record_type(line) in STATE_TYPES for line in lines):
                break
            wanted *= 4
    for line in reversed(lines):
        if record_type(line) is not None and (record := parse_line(line, 0, [])) is not None:
            yield record
