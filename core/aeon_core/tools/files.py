"""The tools for a project's files: Write replaces one, Edit changes a part (REQ-020, REQ-022 to REQ-023a, REQ-096).

`file_tools` returns them with Read, Grep and Glob.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from itertools import islice, takewhile, zip_longest
from pathlib import Path
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.escape import escape_controls
from aeon_core.tools.base import Effect, NoDiffError, Tool, object_schema
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search import GlobTool, GrepTool
from aeon_core.tools.text_files import FILE_PATH, FileTool, ReadTool, encoded, is_utf8, refuse_binary, uses_crlf
from aeon_core.units import count

_MAX_SHOWN_LINE = 200
_MAX_SHOWN = 12
_AROUND = 2
_MAX_CANDIDATES = 200
"""The number of lines compared in full: those that share the most words."""
_MAX_SEARCHED = 250_000
"""The most lines of a file in which similar text is searched: beyond it, the search would take many seconds."""
LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
"""What Read writes before each line."""


def found_instead(data: bytes, wanted: str, expected: int = 0) -> str:
    """Return the place that `wanted` probably means: the first difference, and the numbered lines.

    `expected` is the line (from 0) to show if nothing is similar. A file of very many lines is not searched.
    """
    if not data:
        return "the file is empty"
    if (count := data.count(b"\n")) > _MAX_SEARCHED:
        return f"its {count:,} lines are too many to look for similar text; find the place with Grep, then Read it"
    lines, sought = (text.removesuffix("\n").split("\n") for text in (data.decode("utf-8", "replace"), wanted))
    hint = ""
    if all(map(LINE_NUMBER.match, sought)):
        hint = "leave out the line numbers that Read puts before each line; "
        sought = [LINE_NUMBER.sub("", line) for line in sought]
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
    """Return the line where the first of the sought lines would be, matching lines up to whitespace.

    Without a match, align the longest of them with the most similar line of the file.
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
    index, anchor = max(enumerate(line.strip()[:_MAX_SHOWN_LINE] for line in sought), key=lambda item: len(item[1]))
    words = set(re.findall(r"\w+", anchor))

    def shared(place: int) -> tuple[int, int]:
        return sum(len(word) for word in words if word in lines[place]), -place

    ranked = nlargest(_MAX_CANDIDATES, range(len(lines)), shared)
    near = {lines[place].strip()[: 2 * _MAX_SHOWN_LINE]: place for place in reversed(ranked)}
    part = next((place for place in ranked if anchor and anchor in lines[place]), None)
    alike = get_close_matches(anchor, near, 1)
    found = part if part is not None else near[alike[0]] if alike else None
    return None if found is None else max(0, found - index)


def _quoted_line(line: str) -> str:
    return repr(line if len(line) <= _MAX_SHOWN_LINE else line[:_MAX_SHOWN_LINE] + "…")


def _snippet(lines: list[str], start: int, count: int) -> str:
    first = max(0, start - _AROUND)
    last = min(len(lines), start + min(count, _MAX_SHOWN) + _AROUND)
    shown = (line if len(line) <= _MAX_SHOWN_LINE else line[:_MAX_SHOWN_LINE] + "…" for line in lines[first:last])
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(shown, first + 1))


_RANGES = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_HEADERS = (b"diff ", b"index ", b"--- ", b"+++ ")
_BOM = b"\xef\xbb\xbf"
_MAX_QUOTED = 100


@dataclass
class _Hunk:
    number: int
    start: int | None
    """The line in the old file at which it starts; None if it has none."""
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
            raise ToolError(f"the diff has a line {_quoted(line)} outside its hunks; give only '---', '+++' and hunks")


def _check_name(name: str, names: set[str]) -> None:
    if name == "/dev/null":
        raise ToolError("the diff creates or deletes a file, expected a change to one; to create a file, use Write")
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
    """Return the number of lines of a hunk with this many old and new lines, at most all."""
    for index, line in enumerate(lines):
        if old <= 0 and new <= 0 and not line.startswith(b"\\"):
            return index
        if not line.startswith((b"+", b"\\")):
            old -= 1
        if not line.startswith((b"-", b"\\")):
            new -= 1
    return len(lines)


def _length(lines: list[bytes]) -> int:
    """Return the number of lines of a hunk with no count, or too low a one: all except blank lines at the end."""
    length = len(lines)
    while length and not lines[length - 1].strip(b"\r"):
        length -= 1
    return length


def _filled(hunk: _Hunk, lines: list[bytes]) -> _Hunk:
    last = b""
    for line in lines:
        # Many tools strip the space of a blank line.
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
            raise hunk.error(f"adds lines after line {expected}, and {path!r} has {count(len(lines), 'line')}")
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
        raise hunk.error(f"fits {len(places)} places in {path!r}, at lines {numbers}; give its line, or more around it")
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


MAX_SHOWN = 200
"""The most lines of a diff that are shown."""
MAX_PREVIEWED = 5_000
"""The most lines of a diff shown before a decision."""
CUT_AT = "… ["
"""The prefix of the line that marks where a diff was cut."""
_MAX_LINE = 500
_MAX_COMPARED = 5_000
_CONTEXT = 3
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def diff_view(path: str, before: bytes, after: bytes, most: int = MAX_SHOWN, longest: int = _MAX_LINE) -> str:
    """Return the unified diff of two versions of a file, cut after this many lines, with a note.

    A line is cut after `longest` characters.
    """
    return "\n".join(cut_diff(islice(diff_lines(path, before, after, longest), most + 1), most))


def cut_diff(lines: Iterable[str], most: int) -> list[str]:
    """Return the lines of a diff, cut after this many, with a note."""
    shown = list(lines)
    return shown if len(shown) <= most else [*shown[:most], f"{CUT_AT}the diff is cut after {most} lines]"]


def whole_diff(path: str, before: bytes, after: bytes) -> str:
    """Return the diff for a decision: no line is cut, and only a diff of very many lines is."""
    return diff_view(path, before, after, MAX_PREVIEWED, max(len(before), len(after)) + 1)


def diff_lines(path: str, before: bytes, after: bytes, longest: int) -> Iterator[str]:
    """Yield the lines of a unified diff, each cut after `longest` characters.

    Only lines between the first and the last change are compared, and not all of these.
    """
    old, new = _LINE.findall(before), _LINE.findall(after)
    yield from (f"{sign}{escape_controls(path)}" for sign in ("--- a/", "+++ b/"))
    head = _common(old, new)
    tail = min(_common(reversed(old), reversed(new)), min(len(old), len(new)) - head)
    first = max(0, head - _CONTEXT)
    old_part = old[first : len(old) - max(0, tail - _CONTEXT)]
    new_part = new[first : len(new) - max(0, tail - _CONTEXT)]
    is_long = max(len(old_part), len(new_part)) > _MAX_COMPARED
    matcher = SequenceMatcher(None, old_part[:_MAX_COMPARED], new_part[:_MAX_COMPARED])
    groups = list(matcher.get_grouped_opcodes(_CONTEXT))
    end = _MAX_COMPARED
    if is_long and len(groups) > 1 and max(groups[-1][-1][2], groups[-1][-1][4]) == _MAX_COMPARED:
        # If the comparison stops early, unchanged lines look changed.
        end = groups.pop()[0][1]
    for group in groups:
        yield _header(group, first)
        for kind, old_start, old_end, new_start, new_end in group:
            yield from _marked(" " if kind == "equal" else "-", old_part[old_start:old_end], longest)
            if kind != "equal":
                yield from _marked("+", new_part[new_start:new_end], longest)
    if is_long:
        yield f"{CUT_AT}changes after line {first + end} are not shown]"


def _common(old: Iterable[bytes], new: Iterable[bytes]) -> int:
    """Return how many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _header(group: list[tuple[str, int, int, int, int]], first: int) -> str:
    old = _span(first + group[0][1], first + group[-1][2])
    new = _span(first + group[0][3], first + group[-1][4])
    return f"@@ -{old} +{new} @@"


def _span(start: int, end: int) -> str:
    # An empty range starts at the line before it.
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _marked(mark: str, lines: list[bytes], longest: int) -> Iterator[str]:
    for raw in lines:
        line = raw.decode("utf-8", "replace").removesuffix("\n")
        yield mark + (line if len(line) <= longest else line[:longest] + "…")
        if not raw.endswith(b"\n"):
            yield "\\ No newline at end of file"


MAX_BYTES = 20_000_000
"""Files larger than this are not edited."""
_MAX_LISTED = 10


class WriteTool(FileTool):
    """Creates or replaces a file (REQ-022)."""

    name = "Write"
    description = (
        "Writes a file of the project: makes it and the folders above it, or replaces all of its content. "
        "To change a part of a file, use Edit."
    )
    input_schema: dict[str, Any] = object_schema(
        {
            "file_path": FILE_PATH,
            "content": {"type": "string", "description": "The whole content of the file, written as UTF-8."},
        }
    )
    output_schema: dict[str, Any] = object_schema(
        {
            "file_path": {"type": "string"},
            "bytes": {"type": "integer"},
            "lines": {"type": "integer"},
            "created": {"type": "boolean"},
        }
    )
    effect: Effect = "idempotent"
    needs_approval = True
    examples: tuple[dict[str, Any], ...] = ({"file_path": "docs/notes.md", "content": "# Notes\n"},)

    def preview(self, arguments: dict[str, Any]) -> str | None:
        """Return the change of an existing file, or of a new one behind a link; None for any other new one, whose
        content is the change.
        """
        file_path, data = arguments["file_path"], encoded("content", arguments["content"])
        path = str(self._sandbox.relative(file_path))
        if not self._sandbox.exists(file_path):
            is_there = self._sandbox.root / file_path == self._sandbox.root / path
            return None if is_there else whole_diff(path, b"", data)
        with self._sandbox.open_read(file_path) as stream:
            before = stream.read(MAX_BYTES + 1)
        try:
            refuse_binary(path, before)
        except ToolError:
            raise NoDiffError(f"all of {path!r} will be replaced, without a diff: it is no UTF-8 text") from None
        if len(before) > MAX_BYTES:
            raise NoDiffError(
                f"all of {path!r} will be replaced, without a diff: it is larger than {MAX_BYTES:,} bytes"
            )
        return whole_diff(path, before, data)

    def invoke(self, file_path: str, content: str) -> dict[str, Any]:
        """Return what was written, and whether the file is new."""
        data = encoded("content", content)
        path = str(self._sandbox.relative(file_path))
        created = self._sandbox.write_bytes(file_path, data)
        lines = data.count(b"\n") + int(bool(data) and not data.endswith(b"\n"))
        return {"file_path": path, "bytes": len(data), "lines": lines, "created": created}


class EditTool(FileTool):
    """Changes a part of a file and no other byte (REQ-023)."""

    name = "Edit"
    description = (
        "Changes a part of a text file of the project. Replaces old_string, which must occur exactly once unless "
        "replace_all is true, with new_string; copy old_string exactly as it is in the file, without the line "
        "numbers of Read. Or applies a unified diff: alone, or where old_string is not found or not unique."
    )
    input_schema: dict[str, Any] = object_schema(
        {
            "file_path": FILE_PATH,
            "old_string": {"type": "string", "description": "The text to replace, with its whitespace."},
            "new_string": {"type": "string", "description": "What to put in its place."},
            "replace_all": {"type": "boolean", "description": "Whether to replace every occurrence."},
            "diff": {"type": "string", "description": "A unified diff of this file; '---' and '+++' may be left out."},
        },
        ["file_path"],
    )
    output_schema: dict[str, Any] = object_schema(
        {
            "file_path": {"type": "string"},
            "replacements": {"type": "integer", "description": "Occurrences replaced, or hunks applied."},
            "method": {"type": "string", "enum": ["exact", "diff"]},
            "diff": {"type": "string", "description": "What changed."},
        }
    )
    effect: Effect = "unsafe"
    needs_approval = True
    examples: tuple[dict[str, Any], ...] = (
        {"file_path": "src/main.py", "old_string": "retries = 2", "new_string": "retries = 3"},
        {"file_path": "src/main.py", "diff": "@@ -4,2 +4,2 @@\n import os\n-retries = 2\n+retries = 3\n"},
    )

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        """Return what was replaced and how. If anything does not match, the file stays unchanged."""
        path, before, after, count, method = self._edited(**arguments)
        self._sandbox.write_bytes(arguments["file_path"], after, before)
        return {"file_path": path, "replacements": count, "method": method, "diff": diff_view(path, before, after)}

    def preview(self, arguments: dict[str, Any]) -> str | None:
        """Return the diff that the edit would make in the file as it is now."""
        path, before, after, *_ = self._edited(**arguments)
        return whole_diff(path, before, after)

    def _edited(
        self,
        file_path: str,
        old_string: str | None = None,
        new_string: str | None = None,
        replace_all: bool = False,
        diff: str | None = None,
    ) -> tuple[str, bytes, bytes, int, str]:
        """Return the path, the content before and after, and the number and kind of changes."""
        _check(old_string, new_string, diff)
        path = str(self._sandbox.relative(file_path))
        before = self._sandbox.read_bytes(file_path, MAX_BYTES)
        refuse_binary(path, before)
        if not ((new_string or "") + (diff or "")).isascii() and not is_utf8(before):
            raise ToolError(f"{path!r} is not UTF-8; only ASCII text can be inserted, to keep it in one encoding")
        method = "exact" if old_string else "diff"
        try:
            if old_string:
                after, count = _replaced(path, before, old_string, new_string or "", replace_all)
            else:
                after, count = apply_diff(before, diff or "", path, file_path)
        except _NoUniqueMatchError as error:
            if not diff:
                raise
            method = "diff"
            try:
                after, count = apply_diff(before, diff, path, file_path)
            except ToolError as second:
                raise ToolError(f"{error.message}\nThe diff did not help: {second.message}") from None
        if after == before:
            raise ToolError(f"the edit would leave {path!r} as it is; check what is to change")
        return path, before, after, count, method


class _NoUniqueMatchError(ToolError):
    """The text to replace is not in the file, or more than once."""


def _check(old: str | None, new: str | None, diff: str | None) -> None:
    if not old and diff:
        return
    if old == "":
        raise ToolError("old_string is empty, expected the text to replace; to create or fill a file, use Write")
    if old is None or new is None:
        raise ToolError("give old_string and new_string, or diff")
    if old == new:
        raise ToolError("old_string and new_string are the same; nothing would change")


def _replaced(path: str, data: bytes, old: str, new: str, replace_all: bool) -> tuple[bytes, int]:
    # Read shows no CR, so text without one should match a CRLF file.
    crlf = uses_crlf(data) and "\r" not in old
    text = data.replace(b"\r\n", b"\n") if crlf else data
    wanted, replacement = encoded("old_string", old), encoded("new_string", new)
    places = list(islice(_places(text, wanted), _MAX_LISTED + 1))
    if not places:
        raise _NoUniqueMatchError(f"old_string is not in {path!r}: {found_instead(text, old)}")
    if len(places) > 1 and not replace_all:
        numbers = ", ".join(str(text.count(b"\n", 0, at) + 1) for at in places[:_MAX_LISTED])
        more = ", …" if len(places) > _MAX_LISTED else ""
        raise _NoUniqueMatchError(
            f"old_string is not unique: {path!r} has it {max(len(places), text.count(wanted))} times, "
            f"at lines {numbers}{more}; add text around it, or set replace_all"
        )
    count = text.count(wanted)
    text = text.replace(wanted, replacement.replace(b"\r\n", b"\n") if crlf else replacement)
    return (text.replace(b"\n", b"\r\n") if crlf else text), count


def _places(text: bytes, wanted: bytes) -> Iterator[int]:
    """Yield the text's positions, also of occurrences that overlap."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def file_tools(root: Path, hidden: Callable[[str], bool] | None = None) -> list[Tool]:
    """Return Read, Write, Edit, Grep and Glob for one project (REQ-020).

    Grep and Glob leave out paths for which `hidden` is true. Raises SandboxError if there is no such
    project.
    """
    sandbox = Sandbox(root)
    searching = [GrepTool(sandbox, hidden=hidden), GlobTool(sandbox, hidden=hidden)]
    return [ReadTool(sandbox), WriteTool(sandbox), EditTool(sandbox), *searching]
