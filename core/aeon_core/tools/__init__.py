"""Tools: what a model may call.

`base.Tool` is the port, `decorator.tool` makes one of a function, `registry.ToolRegistry` holds those of a run.
"""

from collections.abc import Mapping

TOOL_SETS: Mapping[str, str] = {
    "files": "let the model read, search and change the project's files",
    "shell": "let the model run commands",
    "mcp": "start the configured MCP servers",
}
"""What `tools` may name besides Python, each with what consent to it allows."""
