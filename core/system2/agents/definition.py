"""An agent as its file defines it, and the error of a file that defines none (REQ-081, REQ-095)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aeon_core.errors import UsageError


@dataclass(frozen=True)
class AgentDefinition:
    """An agent, read from one file (REQ-081)."""

    name: str
    description: str
    tools: list[str]
    """As the file names them; `allow` says which of our tools they are."""
    system_prompt: str
    """After the transforms, with the completion protocol."""
    raw_system_prompt: str
    """The Markdown body as it stands in the file."""
    source_path: Path


class AgentParseError(UsageError):
    """A file that is no agent: the message names the file, what is wrong and what to do."""
