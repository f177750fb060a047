"""Tools: what a model may call.

`base.Tool` is the port, `decorator.tool` makes one of a function, `registry.ToolRegistry` holds those of a run.
"""

from collections.abc import Mapping
from typing import NamedTuple


class ToolSet(NamedTuple):
    """A set of built-in tools that a run gets together."""

    consent: str
    """What it lets a model do, for the person asked to consent."""
    names: tuple[str, ...] = ()
    """Its tools; none if servers name them."""


TOOL_SETS: Mapping[str, ToolSet] = {
    "files": ToolSet(
        "let the model read, search and change the project's files", ("Read", "Write", "Edit", "Grep", "Glob")
    ),
    "shell": ToolSet("let the model run commands", ("Bash",)),
    "mcp": ToolSet("start the configured MCP servers"),
}
"""The sets that `tools` can name besides Python specs. Defined here so that reading it loads no tool."""
