"""Where an MCP server's program runs, and what it inherits."""

from __future__ import annotations

import os
from pathlib import Path

from aeon_core.tools.mcp._faults import Unusable
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.shell.environment import child_environment

_PLACES = ("TMPDIR", "XDG_CACHE_HOME")


def folder(server: McpServer, project_root: Path) -> Path:
    """Return where a server's program runs. Raises Unusable where that is no folder."""
    place = project_root / (server.cwd or Path()).expanduser()
    if not place.is_dir():
        raise Unusable(f"its 'cwd' {str(place)!r} is no folder; correct it")
    return place


def surroundings() -> dict[str, str]:
    """Return the variables that a program gets beside its own: no keys, no sockets of the session."""
    kept = child_environment(os.environ, _PLACES)
    return {name: value for name, value in kept.items() if name not in _PLACES or name in os.environ}
