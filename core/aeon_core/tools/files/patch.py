"""Applying a unified diff to one file: all of it, or nothing (REQ-023a)."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from heapq import nlargest
from itertools import zip_longest

from aeon_core.errors import ToolError
from aeon_core.tools.files.text_files import encoded, uses_crlf

_MAX_LINE = 200
_MAX_SHOWN = 12
_AROUND = 2
_MAX_CANDIDATES = 200
"""Lines that are compared in full: those that share the most words."""
_MAX_SEARCHED = 250_000
"""Lines; in a file with more, no text is looked for that may have been meant: it would take many seconds."""
_NUMBERED = re.compile(r"^ *\d+\t", re.MULTILINE)


def found_instead(data: bytes, wanted: str, expected: int = 0) -> str:
    """Return what is found where `wanted` may have been meant: the first difference, and the lines, numbered.

    `expected` is the line (from 0) to show where nothing is similar. A file of very many lines is not searched.
    """
    if not data:
        return "the file is empty"
    if (count := data.count(b"\n")) > _MAX_SEARCHED:
        return f"its {count:,} lines are too many to look for similar text; find the place with Grep, then Read it"
    lines, sought = (text.removesuffix("\n").split("\n") for text in (data.decode("utf-8", "replace"), wanted))
    hint = ""
    if all(map(_NUMBERED.match, sought)):
        hint = "leave out the line numbers that Read puts before each line; "
        sought = [_NUMBERED.sub("", line) for line in sought]
    start = _closest(lines, sought)
    if start is None:
        first = max(0, min(expected, len(lines) - 1))
        return f"{hint}nothing in the file is similar; around line {first + 1} it has:\n{_snippet(lines, first, 1)}"
    difference = "there the text around the line ends differs"
    for at, (actual, line) in enumerate(zip_longest(lines[start : start + len(sought)], sought)):
        if actual is None:
            difference = f"the file ends before {_quoted_line(line)}"
            break
        is_part = (at == 0 and actual.endswith(line)) or (at == len(sought) - 1 and actual.startswith(line))
        if actual != line and not is_part:
            difference = (
                f"line {start + at + 1} is {_quoted_line(actual)}, the text looked for has {_quoted_line(line)}"
            )
            break
    return f"{hint}the closest text is around line {start + 1}; {difference}:\n{_snippet(lines, start, len(sought))}"


def _closest(lines: list[str], sought: list[str]) -> int | None:
    """Return the line where the first of the sought lines would be, by lines that are the same except for whitespace.

    Without any, it is where the longest of them is most similar to one of the file.
    """
    places: dict[str, list[int]] = {}
    for index, line in enumerate(sought):
        places.setdefault("".join(line.split()), []).append(index)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for index in places.get("".join(line.split()), ())[:_MAX_SHOWN] if line.strip() else ():
            votes[max(0, number - index)] += len(line)
    if votes:
        return min(votes, key=lambda start: (-votes[start], start))
    index, anchor = max(enumerate(line.strip()[:_MAX_LINE] for line in sought), key=lambda item: len(item[1]))
    words = set(re.findall(r"\w+", anchor))

    def shared(place: int) -> tuple[int, int]:
        return sum(len(word) for word in words if word in lines[place]), -place

    ranked = nlargest(_MAX_CANDIDATES, range(len(lines)), shared)
    near = {lines[place].strip()[: 2 * _MAX_LINE]: place for place in reversed(ranked)}
    part = next((place for place in ranked if anchor and anchor in lines[place]), None)
    alike = get_close_matches(anchor, near, 1)
    found = part if part is not None else near[alike[0]] if alike else None
    return None if found is None else max(0, found - index)


def _quoted_line(line: str) -> str:
    return repr(line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "…")


def _snippet(lines: list[str], start: int, count: int) -> str:
    first = max(0, start - _AROUND)
    last = min(len(lines), start + min(count, _MAX_SHOWN) + _AROUND)
    shown = (line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "…" for line in lines[first:last])
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(shown, first + 1))


_RANGES = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_HEADERS = (b"diff ", b"index ", b"--- ", b"+++ ")
_BOM = b"\xef\xbb\xbf"
_MAX_QUOTED = 100


@dataclass
class _Hunk:
    number: int
    start: int | None
    """The line in the old file that it says to begin at; None if it does not say."""
    old: list[bytes] = field(default_factory=list)
    new: list[bytes] = field(default_factory=list)
    old_ends: bool = False
    """The diff marks the last old line as the file's last, without a newline."""
    new_ends: bool = False

    def error(self, reason: str) -> ToolError:
        return ToolError(f"nothing was changed: hunk {self.number} of the diff {reason}")


def apply_diff(data: bytes, diff: str, path: str, *aliases: str) -> tuple[bytes, int]:
    """Return the file's new content and the number of hunks.

    A hunk whose line number is off is applied at the nearest place where all its old lines match. A diff without CR
    fits a CRLF file, one without a byte order mark a file with one; both are kept. Raises ToolError if the diff is
    malformed or possibly cut off, names a file other than `path` and `aliases`, or has a hunk that does not apply.
    """
    raw = encoded("diff", diff)
    mark = _BOM if data.startswith(_BOM) and _BOM not in raw else b""
    text = data[len(mark) :]
    if uses_crlf(raw) and b"\r\n" not in text:
        raw = raw.replace(b"\r\n", b"\n")
    hunks = _parse(raw, {posixpath.normpath(name) for name in (path, *aliases)})
    crlf = uses_crlf(text) and b"\r" not in raw
    text = _applied(text.replace(b"\r\n", b"\n") if crlf else text, hunks, path)
    return mark + (text.replace(b"\n", b"\r\n") if crlf else text), len(hunks)


def _parse(diff: bytes, names: set[str]) -> list[_Hunk]:
    lines = diff.removesuffix(b"\n").split(b"\n")
    # A line of a hunk begins with a space, a sign or a backslash, so this is never one.
    starts = [index for index, line in enumerate(lines) if line.startswith(b"@@")]
    if not starts:
        raise ToolError("the diff has no hunk: expected '@@ -1,3 +1,4 @@', then lines that begin with ' ', '-' or '+'")
    _check_header(lines[: starts[0]], names)
    ends = [*starts[1:], len(lines)]
    return [
        _hunk(number, lines[start], lines[start + 1 : end], names)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def _check_header(lines: list[bytes], names: set[str]) -> None:
    for line in lines:
        if line.startswith((b"--- ", b"+++ ")):
            _check_name(line[4:].split(b"\t")[0].decode("utf-8", "replace").strip().strip('"'), names)
        elif line.strip() not in (b"", b"---", b"+++") and not line.startswith(_HEADERS):
            raise ToolError(f"the diff has a line {_quoted(line)} outside its hunks; give '---', '+++' and hunks alone")


def _check_name(name: str, names: set[str]) -> None:
    if name == "/dev/null":
        raise ToolError("the diff makes or deletes a file, expected a change of one; to make a file, use Write")
    spellings = {posixpath.normpath(name), posixpath.normpath(re.sub(r"^[ab]/", "", name))}
    if name and not spellings & names:
        raise ToolError(f"the diff names the file {name[:_MAX_QUOTED]!r}, expected {' or '.join(sorted(names))!r}")


def _hunk(number: int, header: bytes, lines: list[bytes], names: set[str]) -> _Hunk:
    ranges = _RANGES.match(header)
    if ranges is None:
        return _filled(_Hunk(number, None), lines[: _length(lines)])
    hunk = _Hunk(number, int(ranges[1]))
    counts = tuple(1 if count is None else int(count) for count in ranges.group(2, 3))
    length = _counted(lines, *counts)
    if not any(line.strip() for line in lines[length:]) or lines[length].startswith(_HEADERS):
        _check_header(lines[length:], names)
    else:
        length = _length(lines)
    _filled(hunk, lines[:length])
    if len(hunk.old) < counts[0] or len(hunk.new) < counts[1]:
        found = f"has {len(hunk.old)} old and {len(hunk.new)} new lines, its header says {counts[0]} and {counts[1]}"
        raise hunk.error(f"{found}: it may be cut off; correct the header, or give '@@' alone")
    return hunk


def _counted(lines: list[bytes], old: int, new: int) -> int:
    """Return how many lines belong to a hunk that has so many old and new ones; at most all."""
    for index, line in enumerate(lines):
        if old <= 0 and new <= 0 and not line.startswith(b"\\"):
            return index
        if not line.startswith((b"+", b"\\")):
            old -= 1
        if not line.startswith((b"-", b"\\")):
            new -= 1
    return len(lines)


def _length(lines: list[bytes]) -> int:
    """Return how many lines a hunk has that does not say so, or says too few: all but blank ones at the end."""
    length = len(lines)
    while length and not lines[length - 1].strip(b"\r"):
        length -= 1
    return length


def _filled(hunk: _Hunk, lines: list[bytes]) -> _Hunk:
    last = b""
    for line in lines:
        # Many a tool takes the space off a blank line.
        kind, content = (b" ", line) if line in (b"", b"\r") else (line[:1], line[1:])
        if kind == b"\\" and last:
            hunk.old_ends = hunk.old_ends or last != b"+"
            hunk.new_ends = hunk.new_ends or last != b"-"
            continue
        if kind not in (b" ", b"-", b"+"):
            raise hunk.error(f"has a line {_quoted(line)}, expected it to begin with ' ', '-' or '+'")
        if (kind != b"+" and hunk.old_ends) or (kind != b"-" and hunk.new_ends):
            raise hunk.error(f"continues with {_quoted(line)} after the end of the file")
        if kind != b"+":
            hunk.old.append(content)
        if kind != b"-":
            hunk.new.append(content)
        last = kind
    if not hunk.old and not hunk.new:
        raise hunk.error("is empty")
    return hunk


def _applied(text: bytes, hunks: list[_Hunk], path: str) -> bytes:
    is_terminated = not text or text.endswith(b"\n")
    lines = text.removesuffix(b"\n").split(b"\n") if text else []
    result: list[bytes] = []
    done = drift = 0
    ends = is_terminated
    for hunk in hunks:
        at = _place(hunk, lines, done, drift, is_terminated, path)
        if hunk.start is not None:
            drift = at - _expected(hunk, 0)
        result += lines[done:at] + hunk.new
        done = at + len(hunk.old)
        if hunk.new_ends and done < len(lines):
            raise hunk.error(f"says that the file ends after it, but line {done + 1} of {path!r} follows")
        if hunk.old_ends != hunk.new_ends:
            ends = hunk.old_ends
    result += lines[done:]
    return b"\n".join(result) + (b"\n" if ends and result else b"")


def _expected(hunk: _Hunk, drift: int) -> int:
    # Without old lines, the number is that of the line before.
    return (hunk.start or 0) - bool(hunk.old) + drift


def _place(hunk: _Hunk, lines: list[bytes], done: int, drift: int, is_terminated: bool, path: str) -> int:
    expected = _expected(hunk, drift)
    if not hunk.old:
        if hunk.start is None:
            raise hunk.error("has neither line numbers nor lines around it; give some of the lines around the change")
        if not done <= expected <= len(lines):
            raise hunk.error(f"adds lines after line {expected}, and {path!r} has {len(lines)} lines")
        return expected
    places = [
        at
        for at in _occurrences(lines, hunk.old, done)
        if not hunk.old_ends or (at + len(hunk.old) == len(lines) and not is_terminated)
    ]
    if not places:
        wanted = b"\n".join(hunk.old).decode("utf-8", "replace")
        found = found_instead(b"\n".join(lines), wanted, expected)
        raise hunk.error(f"does not apply to {path!r}: {found}")
    if hunk.start is None and len(places) == 1:
        return places[0]
    distance = min(abs(at - expected) for at in places)
    nearest = [at for at in places if abs(at - expected) == distance]
    if hunk.start is None or len(nearest) > 1:
        numbers = ", ".join(str(at + 1) for at in places[:10])
        raise hunk.error(f"fits {len(places)} places of {path!r}, at lines {numbers}; give its line, or more around it")
    return nearest[0]


def _occurrences(lines: list[bytes], wanted: list[bytes], start: int) -> list[int]:
    found = []
    last = len(lines) - len(wanted)
    try:
        while (start := lines.index(wanted[0], start)) <= last:
            if lines[start : start + len(wanted)] == wanted:
                found.append(start)
            start += 1
    except ValueError:
        pass
    return found


def _quoted(line: bytes) -> str:
    return repr(line[:_MAX_QUOTED].decode("utf-8", "replace"))
