"""Searching the files of a project line by line with a regular expression that ends in time (REQ-024)."""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import regex

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import FOLDER

SECONDS = 2.0
"""How long one match may compute: a pattern that backtracks without end is an error then."""
_QUICK_STEPS = 10_000_000
"""As many steps are taken without looking at the clock: to set a timeout takes longer than to search a line."""
_MAX_SIZE = 200_000
"""What the repeats of a pattern may add up to: they are written out when it is compiled."""
_GROUP = re.compile(r"\(\?(?::|P<\w+>)")
_OF_LINES = re.compile(r"\(\?|\(\*|[*+?}]\+|\\(?![dDwWsSbtnr.]|\W)")
"""What a pattern may see of the whole text, or keep from matching in it: look-around, possessive repeats, `\\Z`…"""
_FIRST_LOOK = 0.1


class PatternError(ValueError):
    """A pattern that cannot be used; the message says why, in a few words."""


class Expression:
    """A compiled pattern, in Python's syntax with the additions of `regex` (version 0).

    `label` names it in an error, `stars` is how often a glob repeats something: with that known, short texts are
    searched without a timeout. Raises PatternError for a pattern that is not well formed, or too large.
    """

    def __init__(self, label: str, pattern: str, flags: int = 0, *, stars: int | None = None) -> None:
        self._label = label
        self._quick_length = 0 if stars is None else int(_QUICK_STEPS ** (1 / (stars + 1)))
        counts = [int(count) for count in re.findall(r"\{\s*(\d+)", pattern)]
        of_groups = math.prod(int(count) for count in re.findall(r"\)\{\s*(\d+)", pattern))
        if of_groups * (len(pattern) + sum(counts)) > _MAX_SIZE:
            raise PatternError("its repeats multiply to too much, give smaller numbers")
        try:
            self._regex = regex.compile(pattern, flags | regex.V0)
            across = _OF_LINES.search(_GROUP.sub("(", pattern))
            self._lines = None if across else regex.compile(pattern, flags | regex.V0 | regex.MULTILINE)
        except MemoryError:
            raise PatternError("it needs too much memory") from None
        except (regex.error, RecursionError, OverflowError, ValueError) as error:
            raise PatternError(str(error)) from None

    def candidate(self, text: str, start: int) -> int:
        """Return a place in the next line from `start` on that may have a match; -1 where no line has one."""
        if self._lines is not None:
            try:
                found = self._lines.search(text, start, timeout=_FIRST_LOOK)
            except (TimeoutError, MemoryError):
                self._lines = None
            else:
                return -1 if found is None else found.start()
        return start

    def search(self, text: str, deadline: float) -> regex.Match[str] | None:
        """Return the first match. Raises ToolError after SECONDS, TimeoutError at the deadline (monotonic seconds)."""
        if len(text) <= self._quick_length:
            return self._regex.search(text)
        with self._limited(deadline) as seconds:
            return self._regex.search(text, timeout=seconds)

    def matches(self, text: str, deadline: float) -> Iterator[regex.Match[str]]:
        """Yield the matches from left to right, none within another. Raises as `search`, SECONDS for all of them."""
        with self._limited(deadline) as seconds:
            yield from self._regex.finditer(text, timeout=seconds)

    @contextmanager
    def _limited(self, deadline: float) -> Iterator[float]:
        seconds = min(SECONDS, deadline - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        try:
            yield seconds
        except TimeoutError:
            if seconds < SECONDS:
                raise
            raise ToolError(
                f"{self._label} takes more than {SECONDS:g} s on one text; "
                "write it without a repeat inside a repeat, such as a+ for (a|aa)+"
            ) from None
        except MemoryError:
            raise ToolError(f"{self._label} needs too much memory; make it match less at once") from None


MAX_FILE = 50_000_000
"""Bytes of the largest file that is searched."""
MAX_LINE = 2_000
"""Characters of a line that are shown."""
MAX_TOTAL = 100_000
"""Bytes of paths and lines in one answer."""
_BINARY_CHECK = 8_000
_ENTRY_COST = 40
_LEAD = 200
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)

Mode = Literal["files_with_matches", "content", "count"]


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for, and what is returned of it."""

    pattern: str
    ignore_case: bool = False
    multiline: bool = False
    """Match across lines: `.` then takes line ends, and every line that a match touches is a matching one."""
    mode: Mode = "files_with_matches"
    before: int = 0
    after: int = 0
    """Lines of context around each match."""
    limit: int = 250
    """How many files, or in the mode `content` matching lines, are returned."""


@dataclass(slots=True)
class Answer:
    """What was found. `files` and `lines` count all that match."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    """`path` with `lines` or, in the mode `content`, with `line`, `text` and `context` (true for a line of context)."""
    shown: int = 0
    """How many of the entries are no context."""
    cut: bool = False
    """Whether others were left out."""
    files: int = 0
    lines: int = 0
    large: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


class Searcher:
    """Searches files below a folder. Raises PatternError for a pattern that cannot be used."""

    def __init__(self, query: Query, deadline: float) -> None:
        flags = regex.IGNORECASE if query.ignore_case else 0
        if query.multiline:
            flags |= regex.MULTILINE | regex.DOTALL
        self._query = query
        self._deadline = deadline
        self._regex = Expression(f"Grep: pattern {query.pattern[:200]!r}", query.pattern, flags)

    def search(self, root: str, paths: list[str]) -> Answer:
        """Return what the files hold, in the order of the paths.

        Lines end with LF or CR LF. Files with a NUL at their start are binary and hold no lines; what is not UTF-8 is
        read as U+FFFD. No symbolic link is followed. Raises as `Expression.search`.
        """
        answer, room = Answer(), MAX_TOTAL
        for path, text in self._texts(root, paths, answer):
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            matching = self._touched(text, len(lines)) if self._query.multiline else self._matching(text, lines)
            if not matching:
                continue
            answer.files += 1
            answer.lines += len(matching)
            for entry in self._entries(path, lines, matching, self._query.limit - answer.shown):
                room -= _ENTRY_COST + len(os.fsencode(path)) + len(entry.get("text", "").encode())
                if room < 0:
                    answer.cut = True
                    break
                answer.entries.append(entry)
                answer.shown += not entry.get("context", False)
        answer.cut = answer.cut or answer.shown < (answer.lines if self._query.mode == "content" else answer.files)
        return answer

    def _texts(self, root: str, paths: list[str], answer: Answer) -> Iterator[tuple[str, str]]:
        """Yield path and text of every file, and note in the answer which cannot be searched."""
        for path in paths:
            if time.monotonic() > self._deadline:
                raise TimeoutError
            try:
                data = _data(root, path)
            except OSError as error:
                # What is gone, or a link by now, is not there.
                if error.errno not in _GONE:
                    answer.unreadable.append(path)
                continue
            if data is None:
                answer.large.append(path)
            else:
                yield path, data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")

    def _matching(self, text: str, lines: list[str]) -> list[int]:
        found = []
        at = number = 0
        while number < len(lines) and (place := self._regex.candidate(text, at)) >= 0:
            number += text.count("\n", at, place)
            if number < len(lines) and self._regex.search(lines[number], self._deadline):
                found.append(number)
            at = text.find("\n", place) + 1
            number += 1
            if not at:
                break
        return found

    def _touched(self, text: str, count: int) -> list[int]:
        touched: list[int] = []
        line = at = 0
        for match in self._regex.matches(text, self._deadline):
            line += text.count("\n", at, match.start())
            at = match.start()
            # A line end belongs to the line that it ends.
            last = line + text.count("\n", at, max(at, match.end() - 1))
            first = max(line, touched[-1] + 1 if touched else 0)
            touched += range(first, min(last + 1, count))
        return touched

    def _entries(self, path: str, lines: list[str], matching: list[int], limit: int) -> Iterator[dict[str, Any]]:
        """Yield a file's entries, with at most `limit` matches."""
        query = self._query
        if limit <= 0:
            return
        if query.mode != "content":
            yield {"path": path, "lines": len(matching)}
            return
        # Context ends where a match begins that is not shown any more.
        end = matching[limit] if len(matching) > limit else len(lines)
        hits, following = set(matching), 0
        for hit in matching[:limit]:
            for number in range(max(following, hit - query.before), min(end, hit + query.after + 1)):
                entry = {"path": path, "line": number + 1, "text": self._cut(lines[number])}
                yield entry if number in hits else {**entry, "context": True}
                following = number + 1

    def _cut(self, line: str) -> str:
        """Return the line, of a long one the part around its first match."""
        if len(line) <= MAX_LINE:
            return line
        match = self._regex.search(line, self._deadline)
        start = max(0, min(match.start() - _LEAD, len(line) - MAX_LINE)) if match else 0
        part = line[start : start + MAX_LINE]
        return f"{part} [characters {start + 1} to {start + len(part)} of {len(line)}]"


def _data(root: str, path: str) -> bytes | None:
    """Return a regular file's bytes, None for too many, nothing for what is no file or binary. Raises OSError."""
    descriptor = _opened(root, path)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size > MAX_FILE:
            return None
        data = file.read(_BINARY_CHECK)
        if b"\0" in data:
            return b""
        while more := file.read(max(status.st_size - len(data), 0) + _BINARY_CHECK):
            data += more
            if len(data) > MAX_FILE:
                return None
        return data


def _opened(root: str, path: str) -> int:
    """Return a descriptor of a file below the root; no symbolic link is followed. Raises OSError."""
    *folders, name = path.split("/")
    current = os.open(root, FOLDER)
    for flags, part in (*((FOLDER, folder) for folder in folders), (_FILE, name)):
        try:
            following = os.open(part, flags, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current
