"""The tools that change a file: Write as a whole, Edit in part (REQ-022, REQ-023, REQ-023a, REQ-096)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.tools.base import Effect, object_schema
from aeon_core.tools.files.patch import apply_diff, found_instead
from aeon_core.tools.files.text_files import FILE_PATH, FileTool, encoded, is_utf8, refuse_binary, uses_crlf

MAX_SHOWN = 200
"""Lines of a diff that are shown."""
MAX_PREVIEWED = 5_000
"""Lines of a diff that a person sees before they decide."""
CUT_AT = "… ["
"""What a line begins with that says where a diff was cut."""
_MAX_LINE = 500
_MAX_COMPARED = 5_000
_CONTEXT = 3
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def diff_view(path: str, before: bytes, after: bytes, most: int = MAX_SHOWN, longest: int = _MAX_LINE) -> str:
    """Return the unified diff of two versions of a file, cut after so many lines; it says where it was cut.

    A line is cut after `longest` characters.
    """
    shown = list(islice(_diff(path, _LINE.findall(before), _LINE.findall(after), longest), most + 1))
    if len(shown) > most:
        shown[-1] = f"{CUT_AT}the diff is cut after {most} lines]"
    return "\n".join(shown)


def whole_diff(path: str, before: bytes, after: bytes) -> str:
    """Return the same for a person to decide about: no line is cut, and only a diff of very many lines is."""
    return diff_view(path, before, after, MAX_PREVIEWED, max(len(before), len(after)) + 1)


def _diff(path: str, old: list[bytes], new: list[bytes], longest: int) -> Iterator[str]:
    """Yield the diff's lines. Only lines between the first and the last change are compared, and not all of these."""
    yield from (f"--- a/{path}", f"+++ b/{path}")
    head = _common(old, new, from_end=False)
    tail = min(_common(old, new, from_end=True), min(len(old), len(new)) - head)
    first = max(0, head - _CONTEXT)
    old_part = old[first : len(old) - max(0, tail - _CONTEXT)]
    new_part = new[first : len(new) - max(0, tail - _CONTEXT)]
    is_long = max(len(old_part), len(new_part)) > _MAX_COMPARED
    matcher = SequenceMatcher(None, old_part[:_MAX_COMPARED], new_part[:_MAX_COMPARED])
    groups = list(matcher.get_grouped_opcodes(_CONTEXT))
    end = _MAX_COMPARED
    if is_long and len(groups) > 1 and max(groups[-1][-1][2], groups[-1][-1][4]) == _MAX_COMPARED:
        # Where the comparison breaks off, lines look changed that are not.
        end = groups.pop()[0][1]
    for group in groups:
        yield _header(group, first)
        for kind, old_start, old_end, new_start, new_end in group:
            yield from _marked(" " if kind == "equal" else "-", old_part[old_start:old_end], longest)
            if kind != "equal":
                yield from _marked("+", new_part[new_start:new_end], longest)
    if is_long:
        yield f"{CUT_AT}changes after line {first + end} are not shown]"


def _common(old: list[bytes], new: list[bytes], *, from_end: bool) -> int:
    pairs = zip(reversed(old), reversed(new), strict=False) if from_end else zip(old, new, strict=False)
    count = 0
    for left, right in pairs:
        if left != right:
            break
        count += 1
    return count


def _header(group: list[tuple[str, int, int, int, int]], first: int) -> str:
    old = _span(first + group[0][1], first + group[-1][2])
    new = _span(first + group[0][3], first + group[-1][4])
    return f"@@ -{old} +{new} @@"


def _span(start: int, end: int) -> str:
    # An empty range begins at the line before it.
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
    """Makes a file, or replaces one as a whole (REQ-022)."""

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
        """Return how the file that is there would change; None if the content as such says it, of a new file."""
        file_path, data = arguments["file_path"], encoded("content", arguments["content"])
        path = str(self._sandbox.relative(file_path))
        if not self._sandbox.exists(file_path):
            return None
        before = self._sandbox.read_bytes(file_path, MAX_BYTES)
        refuse_binary(path, before)
        return whole_diff(path, before, data)

    def _run(self, file_path: str, content: str) -> dict[str, Any]:
        """Return what was written, and whether the file is new."""
        data = encoded("content", content)
        path = str(self._sandbox.relative(file_path))
        created = self._sandbox.write_bytes(file_path, data)
        lines = data.count(b"\n") + int(bool(data) and not data.endswith(b"\n"))
        return {"file_path": path, "bytes": len(data), "lines": lines, "created": created}


class EditTool(FileTool):
    """Changes a part of a file and leaves every other byte as it is (REQ-023)."""

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

    def _run(self, **arguments: Any) -> dict[str, Any]:
        """Return what was replaced and how. Where anything does not fit, the file stays as it was."""
        path, before, after, count, method = self._edited(**arguments)
        self._sandbox.write_bytes(arguments["file_path"], after)
        return {
            "file_path": path,
            "replacements": count,
            "method": method,
            "diff": diff_view(path, before, after),
        }

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
        """Return the path, the file before and after, and how often it would change how."""
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
            after, count = _applied_instead(error, before, diff, path, file_path)
        if after == before:
            raise ToolError(f"the edit would leave {path!r} as it is; check what is to change")
        return path, before, after, count, method


class _NoUniqueMatchError(ToolError):
    """The text to replace is not in the file, or more than once."""


def _check(old: str | None, new: str | None, diff: str | None) -> None:
    if not old and diff:
        return
    if old == "":
        raise ToolError("old_string is empty, expected the text to replace; to make or fill a file, use Write")
    if old is None or new is None:
        raise ToolError("give old_string and new_string, or diff")
    if old == new:
        raise ToolError("old_string and new_string are the same; nothing would change")


def _replaced(path: str, data: bytes, old: str, new: str, replace_all: bool) -> tuple[bytes, int]:
    # Read shows no CR, so text without one is meant to fit a CRLF file.
    crlf = uses_crlf(data) and "\r" not in old
    text = data.replace(b"\r\n", b"\n") if crlf else data
    wanted, replacement = encoded("old_string", old), encoded("new_string", new)
    places = list(islice(_places(text, wanted), _MAX_LISTED + 1))
    if not places:
        raise _NoUniqueMatchError(f"old_string is not in {path!r}: {found_instead(text, old)}")
    if len(places) > 1 and not replace_all:
        raise _not_unique(path, text, wanted, places)
    count = text.count(wanted)
    text = text.replace(wanted, replacement.replace(b"\r\n", b"\n") if crlf else replacement)
    return (text.replace(b"\n", b"\r\n") if crlf else text), count


def _places(text: bytes, wanted: bytes) -> Iterator[int]:
    """Yield the text's positions, also of occurrences that overlap."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _not_unique(path: str, text: bytes, wanted: bytes, places: list[int]) -> ToolError:
    numbers = ", ".join(str(text.count(b"\n", 0, at) + 1) for at in places[:_MAX_LISTED])
    more = ", …" if len(places) > _MAX_LISTED else ""
    count = max(len(places), text.count(wanted))
    return _NoUniqueMatchError(
        f"old_string is not unique: {path!r} has it {count} times, at lines {numbers}{more}; "
        "add text around it, or set replace_all"
    )


def _applied_instead(error: ToolError, data: bytes, diff: str, path: str, file_path: str) -> tuple[bytes, int]:
    try:
        return apply_diff(data, diff, path, file_path)
    except ToolError as second:
        raise ToolError(f"{error.message}\nThe diff did not help: {second.message}") from None
