"""The Read tool, and the base of all tools that work on one file of the project (REQ-020, REQ-021)."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from aeon_core.errors import ToolError
from aeon_core.tools.base import CallVerdict, Effect, Tool, exact_pattern, object_schema
from aeon_core.tools.protected_paths import change_reason
from aeon_core.tools.sandbox import Sandbox, SandboxError
from aeon_core.units import count

FILE_PATH = {
    "type": "string",
    "minLength": 1,
    "description": "The file: relative to the project root, or an absolute path inside it.",
}


class FileTool(Tool):
    """A tool that works on the file named by `file_path`, inside the sandbox (REQ-110)."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def verdict(self, arguments: dict[str, Any]) -> CallVerdict | None:
        """Deny paths outside the project, without asking anybody.

        Require approval, whatever the rules allow, before changing files that other programs act upon later,
        beyond the tools' limits: another policy, a server to start, a hook, a task of the editor.
        """
        try:
            places = [self._sandbox.relative(arguments["file_path"]), self._sandbox.listed(arguments["file_path"])]
        except SandboxError as error:
            return CallVerdict("deny", error.message)
        except ToolError:
            return None
        for place in places if self.effect != "pure" else ():
            if what := change_reason(self._sandbox.root, place):
                return CallVerdict("ask", f"{str(place)!r} {what}: every change to it needs approval")
        return None

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments with `file_path` resolved, relative to the project root.

        None if it leads outside or cannot be followed: no rule can allow that.
        """
        try:
            return [{**arguments, "file_path": str(self._sandbox.relative(arguments["file_path"]))}]
        except ToolError:
            return None

    def spellings(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the arguments with the file's listed name, since a rule that asks or denies may have it."""
        try:
            return [{**arguments, "file_path": str(self._sandbox.listed(arguments["file_path"]))}]
        except ToolError:
            return []

    def rule_pattern(self, arguments: dict[str, Any]) -> str | None:
        """Return a pattern for the files in the file's folder; for the file alone if it is at the root or hidden."""
        place = self._sandbox.relative(arguments["file_path"])
        if len(place.parts) < 2 or any(part.startswith(".") for part in place.parts):
            return exact_pattern(str(place))
        return f"{exact_pattern(str(place.parent))}/**"


MAX_LINE = 2000
"""The most characters of a line that are shown."""
MAX_CHARACTERS = 250_000
"""The most characters of one window."""
CUT = "… [line cut]"

_HEAD = 8192
_CHUNK = 1 << 20
# The most bytes of MAX_LINE characters in UTF-8, plus a line break.
_LINE_BYTES = 4 * MAX_LINE + 2


def refuse_binary(path: str, head: bytes) -> None:
    """Raise ToolError if the start of a file is not text: if its first 8,192 bytes contain a NUL."""
    if b"\0" not in head[:_HEAD]:
        return
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ToolError(f"{path!r} is UTF-16 text, expected UTF-8; convert it first")
    raise ToolError(f"{path!r} is a binary file, expected text")


def encoded(name: str, text: str) -> bytes:
    """Return the text as UTF-8. Raises ToolError, which names the argument, if it cannot be encoded."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"{name} has a lone surrogate at character {error.start}, expected plain text") from None


def uses_crlf(data: bytes) -> bool:
    """Return whether every complete line ends in CRLF, so that converting to LF and back is lossless."""
    return 0 < data.count(b"\n") == data.count(b"\r\n")


def is_utf8(data: bytes) -> bool:
    """Return whether the content is valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass
class Window:
    """Some lines of a file, and what is unusual about them."""

    lines: list[str] = field(default_factory=list)
    """Without line ends and byte order mark."""
    total: int = 0
    """The number of lines in the file."""
    cut: bool = False
    """Whether a line was longer than MAX_LINE characters."""
    not_utf8: bool = False
    """Whether a line had bytes that are not UTF-8, which are U+FFFD here."""
    crlf: bool = False
    """Whether a line ended in CRLF."""
    bom: bool = False
    """Whether the file begins with the byte order mark of UTF-8."""


def read_window(stream: BinaryIO, path: str, start: int, limit: int) -> Window:
    """Return at most `limit` lines from line `start` (1-based), fewer if they exceed MAX_CHARACTERS.

    Holds no more than a megabyte of the file at a time. Raises ToolError for a binary file, and for a start beyond the
    end.
    """
    head = stream.read(_HEAD)
    refuse_binary(path, head)
    window = Window(bom=head.startswith(codecs.BOM_UTF8))
    stream.seek(len(codecs.BOM_UTF8) if window.bom else 0)
    window.total = _skip(stream, start - 1)
    size = 0
    while len(window.lines) < limit and size < MAX_CHARACTERS and (raw := stream.readline(_LINE_BYTES)):
        complete = raw.endswith(b"\n") or _finish_line(stream)
        window.lines.append(_shown_line(window, raw, complete))
        size += len(window.lines[-1])
    window.total += len(window.lines) + _count(stream)
    if not window.lines and start > 1:
        lines = count(window.total, "line")
        raise ToolError(f"line {start} is beyond the end of {path!r}, which has {lines}; read from before")
    return window


def _shown_line(window: Window, raw: bytes, complete: bool) -> str:
    if raw.endswith(b"\r\n"):
        window.crlf = True
        raw = raw[:-2]
    raw = raw.removesuffix(b"\n")
    try:
        # If the line was cut, its last character may be cut too.
        line = codecs.getincrementaldecoder("utf-8")("strict").decode(raw, final=complete)
    except UnicodeDecodeError:
        window.not_utf8 = True
        line = raw.decode("utf-8", "replace")
    if complete and len(line) <= MAX_LINE:
        return line
    window.cut = True
    return line[:MAX_LINE] + CUT


def _finish_line(stream: BinaryIO) -> bool:
    """Read to the end of the line; return whether it had already ended."""
    complete = True
    while rest := stream.readline(_CHUNK):
        complete = False
        if rest.endswith(b"\n"):
            break
    return complete


def _skip(stream: BinaryIO, count: int) -> int:
    """Skip this many lines; return the number of lines skipped."""
    skipped, chunk = 0, b""
    while skipped < count and (read := stream.read(_CHUNK)):
        chunk = read
        found = chunk.count(b"\n")
        if skipped + found >= count:
            behind = chunk.split(b"\n", count - skipped)[-1]
            stream.seek(-len(behind), os.SEEK_CUR)
            return count
        skipped += found
    return skipped + _unterminated(chunk)


def _count(stream: BinaryIO) -> int:
    lines, chunk = 0, b""
    while read := stream.read(_CHUNK):
        chunk = read
        lines += chunk.count(b"\n")
    return lines + _unterminated(chunk)


def _unterminated(chunk: bytes) -> int:
    return int(bool(chunk) and not chunk.endswith(b"\n"))


DEFAULT_LINES = 2000


class ReadTool(FileTool):
    """Returns numbered lines of a text file (REQ-021)."""

    name = "Read"
    description: str = (
        "Reads a text file of the project and returns its lines, each with its number and a tab before it. "
        f"Returns {DEFAULT_LINES:,} lines from the beginning unless offset and limit say otherwise."
    )
    input_schema: dict[str, Any] = object_schema(
        {
            "file_path": FILE_PATH,
            "offset": {"type": "integer", "minimum": 1, "description": "The first line to return, counted from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines to return at most."},
        },
        ["file_path"],
    )
    output_schema: dict[str, Any] = object_schema(
        {
            "content": {"type": "string"},
            "file_path": {"type": "string"},
            "start_line": {"type": "integer"},
            "lines": {"type": "integer"},
            "total_lines": {"type": "integer"},
            "truncated": {"type": "boolean"},
            "notes": {"type": "array", "items": {"type": "string"}},
        }
    )
    effect: Effect = "pure"
    examples: tuple[dict[str, Any], ...] = (
        {"file_path": "README.md"},
        {"file_path": "src/main.py", "offset": 120, "limit": 40},
    )

    def invoke(self, file_path: str, offset: int = 1, limit: int = DEFAULT_LINES) -> dict[str, Any]:
        """Return the numbered lines, their total, and in `notes` what is unusual about them."""
        start = int(offset)
        path = str(self._sandbox.relative(file_path))
        with self._sandbox.open_read(file_path) as stream:
            window = read_window(stream, path, start, int(limit))
        return {
            "content": "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(window.lines, start)),
            "file_path": path,
            "start_line": start,
            "lines": len(window.lines),
            "total_lines": window.total,
            "truncated": start - 1 + len(window.lines) < window.total,
            "notes": _notes(window, start),
        }


def _notes(window: Window, start: int) -> list[str]:
    last = start - 1 + len(window.lines)
    facts = {
        "the file is empty": window.total == 0,
        f"lines {start} to {last} of {window.total}; read on with offset {last + 1}": last < window.total,
        f"a line ending in '{CUT}' has more than {MAX_LINE:,} characters; Grep shows those around a match": window.cut,
        "the file is not UTF-8 throughout; U+FFFD replaces each byte that is not": window.not_utf8,
        "lines end in CRLF, which is not shown; Edit keeps it": window.crlf,
        "the file begins with a byte order mark, which is not shown; Edit keeps it": window.bom,
    }
    return [note for note, applies in facts.items() if applies]
