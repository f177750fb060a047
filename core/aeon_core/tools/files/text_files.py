"""The file tools: Read and Write, and the list of all that work on the project's files (REQ-020)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core.tools.base import Effect, Tool, object_schema
from aeon_core.tools.files.edit import MAX_BYTES, EditTool, whole_diff
from aeon_core.tools.files.file_tool import (
    CUT,
    FILE_PATH,
    MAX_LINE,
    FileTool,
    Window,
    encoded,
    read_window,
    refuse_binary,
)
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search.tools import GlobTool, GrepTool

DEFAULT_LINES = 2000


def file_tools(root: Path, hidden: Callable[[str], bool] | None = None) -> list[Tool]:
    """Return Read, Write, Edit, Grep and Glob for one project (REQ-020).

    Paths for which `hidden` is true are left out of what Grep and Glob find. Raises SandboxError where there is no such
    project.
    """
    sandbox = Sandbox(root)
    searching = [GrepTool(sandbox, hidden=hidden), GlobTool(sandbox, hidden=hidden)]
    return [ReadTool(sandbox), WriteTool(sandbox), EditTool(sandbox), *searching]


class ReadTool(FileTool):
    """Gives lines of a text file, numbered (REQ-021)."""

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

    def _run(self, file_path: str, offset: int = 1, limit: int = DEFAULT_LINES) -> dict[str, Any]:
        """Return the numbered lines, how many there are in all, and in `notes` what is special about them."""
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
        """Return how the file that is there would change; None where the content as such says it, of a new file."""
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


def _notes(window: Window, start: int) -> list[str]:
    last = start - 1 + len(window.lines)
    facts = {
        "the file is empty": window.total == 0,
        f"lines {start} to {last} of {window.total}; read on with offset {last + 1}": last < window.total,
        f"a line that ends in '{CUT}' has more than {MAX_LINE:,} characters": window.cut,
        "the file is not UTF-8 throughout; U+FFFD replaces each byte that is not": window.not_utf8,
        "lines end in CRLF, which is not shown; Edit keeps it": window.crlf,
        "the file begins with a byte order mark, which is not shown; Edit keeps it": window.bom,
    }
    return [note for note, holds in facts.items() if holds]
