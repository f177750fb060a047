"""What the tools have in common that work on one file of the project."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.tools.base import Tool, Verdict
from aeon_core.tools.protected_paths import change_reason
from aeon_core.tools.sandbox import Sandbox, SandboxError

FILE_PATH = {
    "type": "string",
    "minLength": 1,
    "description": "The file: relative to the project root, or an absolute path inside it.",
}


class FileTool(Tool):
    """A tool that works on the file named by `file_path`, inside the sandbox (REQ-110)."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def verdict(self, arguments: dict[str, Any]) -> Verdict | None:
        """Deny what leads outside the project: nobody need be asked about it.

        Have a person asked, whatever the rules allow, before what is changed that other programs act upon later,
        outside all that holds a tool back: another policy, a server to start, a hook, a task of the editor.
        """
        try:
            place = self._sandbox.relative(arguments["file_path"])
        except SandboxError as error:
            return Verdict("deny", error.message)
        except ToolError:
            return None
        if self.effect != "pure" and (what := change_reason(self._sandbox.root, place)):
            return Verdict("ask", f"{str(place)!r} {what}: every change of it needs approval")
        return None

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments with `file_path` as where it really leads, relative to the project root.

        None where it leads outside or cannot be followed: no rule can allow that.
        """
        try:
            return [{**arguments, "file_path": str(self._sandbox.relative(arguments["file_path"]))}]
        except ToolError:
            return None

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        """Return the tool's result. Raises ToolError for all that goes wrong, with the tool's name."""
        try:
            return self._run(**arguments)
        except ToolError as error:
            error.context.setdefault("tool_name", self.name)
            raise

    # *_ stands here for type checkers alone, as *args in Tool.invoke.
    @abstractmethod
    def _run(self, *_: Any, **arguments: Any) -> dict[str, Any]: ...
