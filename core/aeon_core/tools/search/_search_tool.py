"""What Grep and Glob have in common: they look through the sandbox's files, within bounds of time."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.tools.base import Effect, Tool
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search.globs import GlobError, compile_glob
from aeon_core.tools.search.listing import Listing, list_files

MAX_SECONDS = 20.0
"""How long one search may take."""
MAX_SHOWN = 200
"""Characters of an argument that an error shows."""


class SearchTool(Tool):
    """A tool that looks through the files of the sandbox (REQ-110).

    Paths for which `hidden` is true, given relative to the project root, are treated as if they were not there, and
    so is all below them: deny rules on files reach a search that way.
    """

    effect: Effect = "pure"

    def __init__(self, sandbox: Sandbox, *, hidden: Callable[[str], bool] | None = None) -> None:
        self.sandbox = sandbox
        self.hidden = hidden

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments with `path` as where it really leads, relative to the project root, `.` for the root.

        None where it leads outside or cannot be followed: no rule can allow that.
        """
        try:
            return [{**arguments, "path": str(self.sandbox.relative(arguments.get("path", ".")))}]
        except ToolError:
            return None

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        """Return what was found. Raises ToolError for all that goes wrong, with the tool's name."""
        try:
            return self.run(time.monotonic() + MAX_SECONDS, **arguments)
        except TimeoutError:
            raise ToolError(
                f"{self.name}: the search took longer than {MAX_SECONDS:g} s; name a 'path', or simplify the pattern",
                tool_name=self.name,
            ) from None
        except ToolError as error:
            error.context.setdefault("tool_name", self.name)
            raise

    # *args stands here for type checkers alone, as in Tool.invoke.
    @abstractmethod
    def run(self, deadline: float, *args: Any, **arguments: Any) -> dict[str, Any]:
        """Return what was found. Raises ToolError, and TimeoutError at the deadline (monotonic seconds)."""

    def listed(self, path: str, include_ignored: bool, deadline: float) -> Listing:
        """Return the files below `path` that the tool may see. Raises as `list_files`."""
        return list_files(self.sandbox, path, hidden=self.hidden, include_ignored=include_ignored, deadline=deadline)

    def matcher(self, argument: str, pattern: str) -> Callable[[str], bool]:
        """Return whether a path fits a glob pattern. Raises ToolError, which names the argument, for a bad one."""
        try:
            regex = compile_glob(pattern)
        except GlobError as error:
            raise ToolError(f"{self.name}: {argument} {pattern[:MAX_SHOWN]!r}: {error}") from None
        return lambda path: regex.fullmatch(path) is not None


def by_path(paths: Iterable[str]) -> list[str]:
    """Return the paths in the order of what is shown of them, by code points."""
    return sorted(paths, key=lambda path: (shown_path(path), path))


def shown_path(path: str) -> str:
    r"""Return a path as text: bytes that are not UTF-8 as `\xff`."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
