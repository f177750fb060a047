"""Full-text search of a journal without an index: a fast filter for whole blocks, then a check of what passes."""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jiter import from_json
from pydantic_core import SchemaValidator, ValidationError, core_schema, to_json

from aeon_core.errors import UsageError
from aeon_core.journal.index import seq_of
from aeon_core.journal.reader import MAX_LINE, open_journal, record_type, unreadable
from aeon_core.journal.values import ENVELOPE
from aeon_core.json_safe import clean_text

BLOCK = 512 * 1024
"""Bytes searched at a time; a search can be cancelled between two blocks."""
AROUND = 250
"""Characters of an excerpt before and after the match: as many as fit on a line of the widest terminals."""
_FILTER_CHARACTERS = 64
"""Characters of the searched text that the filter uses."""
_HOLDER_LINES, _HOLDER_BYTES = 16, 1024 * 1024
"""How far after a long text to search for the record that refers to it."""


@dataclass(frozen=True)
class SearchHit:
    """A record that contains the text."""

    offset: int
    """Where its line begins, in bytes."""
    end: int
    """Where it ends."""
    seq: int | None
    """None if the line is damaged."""
    type: str | None
    excerpt: str
    """The match with its context, on one line; `…` marks omitted text."""
    step_id: str | None = None
    pass_number: int | None = None
    """The pass that the record names."""
    part: str = ""
    """The record's type and the field with the text, such as `llm.request`; empty if the line is damaged."""
    holder: int | None = None
    """For a long text, the seq of the record that it was written for; step, pass and part are that record's."""


def search_journal(
    path: Path, text: str, *, cancelled: Callable[[], bool] = lambda: False, newest_first: bool = False
) -> Iterator[SearchHit]:
    """Yield the records with a value that contains a text, as they are found, ignoring case.

    JSON escapes in values are decoded; a long text is found in its `text` record. A line that is not JSON is searched
    as it is, and an incomplete last line is skipped. Ends within 50 ms after `cancelled` returns True, provided no line
    has more than a few megabytes. Raises UsageError for an empty text and if the file cannot be opened, JournalError if
    it cannot be read.
    """
    wanted = clean_text(text)
    if not wanted:
        raise UsageError("nothing to search for; enter at least one character")
    return _search(path, _Needle(wanted), cancelled, newest_first)


def _search(path: Path, needle: _Needle, cancelled: Callable[[], bool], newest_first: bool) -> Iterator[SearchHit]:
    with open_journal(path) as file:
        try:
            blocks = _newest_blocks if newest_first else _oldest_blocks
            for start, block in blocks(file.fileno(), cancelled):
                if not needle.may_be_in(block):
                    continue
                for offset, line in _lines(start, block, newest_first):
                    if cancelled():
                        return
                    if needle.may_be_in(line) and (found := needle.find(line)) is not None:
                        match = SearchHit(offset, offset + len(line), seq_of(line), record_type(line), *found)
                        yield _placed(file.fileno(), match, line) if match.type == "text" else match
        except OSError as error:
            raise unreadable(path, error) from None


def _oldest_blocks(fd: int, cancelled: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines in blocks, with the offset of each."""
    start, size, end = 0, BLOCK, os.fstat(fd).st_size
    while start < end and not cancelled():
        data = os.pread(fd, min(size, end - start), start)
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) == size and size < MAX_LINE:
            size *= 2
            continue
        if not data or (not whole and len(data) < size):
            return
        # A line that is too long is searched in parts.
        whole = whole or len(data)
        yield start, data[:whole]
        start, size = start + whole, BLOCK


def _newest_blocks(fd: int, cancelled: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines in blocks, the last block first, with the offset of each."""
    end, size, torn = os.fstat(fd).st_size, BLOCK, True
    while end > 0 and not cancelled():
        start = max(0, end - size)
        data = os.pread(fd, end - start, start)
        if torn:
            data = data[: data.rfind(b"\n") + 1]
        first = data.find(b"\n", 0, len(data) - 1) + 1 if start else 0
        if start and not first and size < MAX_LINE:
            size *= 2
            continue
        if data[first:]:
            yield start + first, data[first:]
        end, size, torn = start + first, BLOCK, torn and not data


def _lines(start: int, block: bytes, newest_first: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a block with the offset of each."""
    if not newest_first:
        at = 0
        while at < len(block):
            end = block.find(b"\n", at) + 1 or len(block)
            yield start + at, block[at:end]
            at = end
        return
    end = len(block)
    while end > 0:
        at = block.rfind(b"\n", 0, end - 1) + 1
        yield start + at, block[at:end]
        end = at


def _placed(fd: int, match: SearchHit, line: bytes) -> SearchHit:
    """Return the match in a long text, with the step, pass and part of the record that it was written for."""
    try:
        reference = to_json({"$text": from_json(line)["sha256"]})
        for each in os.pread(fd, _HOLDER_BYTES, match.end).split(b"\n")[:_HOLDER_LINES]:
            if b'"$text"' not in each or not isinstance(record := from_json(each), dict):
                continue
            for field, value in record.items():
                if reference in to_json(value):
                    step_id, pass_number, part = _place_of(record, field)
                    return replace(match, step_id=step_id, pass_number=pass_number, part=part, holder=record["seq"])
    except (OSError, ValueError, LookupError, TypeError):
        pass  # it is listed as a long text of the run
    return match


class _Needle:
    """A text to search for, and a filter that passes everything that may contain it.

    The filter uses pydantic's regular expressions, which search a gigabyte in a fifth of a second; in Python, changing
    the case alone takes a second.
    """

    def __init__(self, text: str) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        beginning = text[:_FILTER_CHARACTERS]
        ways = [re.escape(json.dumps(beginning, ensure_ascii=False)[1:-1]), *sorted(_escapes(beginning))]
        schema = core_schema.str_schema(pattern=f"(?i:{'|'.join(ways)})", regex_engine="rust-regex")
        self._filter = SchemaValidator(schema)

    def may_be_in(self, data: bytes) -> bool:
        """Return False only if none of the values in these lines contains the text."""
        try:
            self._filter.validate_python(data)
        except ValidationError as error:
            # The filter accepts only UTF-8.
            kind = error.errors(include_url=False, include_context=False, include_input=False)[0]["type"]
            return kind != "string_pattern_mismatch"
        return True

    def find(self, line: bytes) -> tuple[str, str | None, int | None, str] | None:
        """Return the first match in a line's values with its context, None if there is none.

        Also return the step, the pass and the part of the record.
        """
        try:
            record = from_json(line, allow_inf_nan=False)
        except ValueError:
            record = line.decode("utf-8", "replace").rstrip("\r\n")
        fields = record if isinstance(record, dict) else {"": record}
        if fields.get("type") == "run_finished" and isinstance(result := fields.get("result"), dict):
            # The answer comes first: the rest repeats earlier records.
            fields = {"answer": None, **result, **{name: held for name, held in fields.items() if name != "result"}}
        for field, held in fields.items():
            for value in _texts(held) if field not in ENVELOPE else ():
                if (match := self._pattern.search(value)) is not None:
                    return _around(value, match.start(), match.end()), *_place_of(fields, field)
        return None


def _place_of(record: dict[str, Any], field: str) -> tuple[str | None, int | None, str]:
    """Return the step, the pass and the part that a field of a record belongs to."""
    step_id, pass_number, kind = record.get("step_id"), record.get("pass"), record.get("type")
    return (
        step_id if isinstance(step_id, str) else None,
        pass_number if isinstance(pass_number, int) else None,
        f"{kind}.{field}" if isinstance(kind, str) else "",
    )


def _escapes(text: str) -> set[str]:
    """Return patterns for the JSON escapes of the text's characters that other writers may use."""
    variants = {unit for char in text for each in (char, char.lower(), char.upper()) for unit in _units(each)}
    return {rf"\\u{unit:04x}" for unit in variants} | ({r"\\/"} if "/" in text else set())


def _units(text: str) -> array[int]:
    return array("H", text.encode("utf-16", "surrogatepass"))[1:]


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts among a record's values, in order."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            stack.extend(reversed(each.values()))
        elif isinstance(each, list):
            stack.extend(reversed(each))


def _around(value: str, start: int, end: int) -> str:
    before, after = max(0, start - AROUND), min(len(value), end + AROUND)
    found = " ".join(value[before:after].split())
    return f"{'…' if before else ''}{found}{'…' if after < len(value) else ''}"
