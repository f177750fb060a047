"""What a command may reach, whichever way of isolation holds it to that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """All paths are absolute, resolved, and exist."""

    root: Path
    """The project root: read and write."""
    scratch: Path
    """A folder for temporary files: read and write."""
    network: bool
    hidden: tuple[Path, ...] = ()
    """Places with keys: neither read nor write."""
    shown: tuple[Path, ...] = ()
    """Folders among the temporary files that may be read."""
