"""Tools that read, change and search the files of a project (REQ-020)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aeon_core.tools.base import Tool
from aeon_core.tools.files.edit import EditTool, WriteTool
from aeon_core.tools.files.text_files import ReadTool
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search import GlobTool, GrepTool


def file_tools(root: Path, hidden: Callable[[str], bool] | None = None) -> list[Tool]:
    """Return Read, Write, Edit, Grep and Glob for one project (REQ-020).

    Grep and Glob leave out paths for which `hidden` is true. Raises SandboxError if there is no such
    project.
    """
    sandbox = Sandbox(root)
    searching = [GrepTool(sandbox, hidden=hidden), GlobTool(sandbox, hidden=hidden)]
    return [ReadTool(sandbox), WriteTool(sandbox), EditTool(sandbox), *searching]
