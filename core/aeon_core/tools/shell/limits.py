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
    """Places with keys: neither read nor write, but for what is `shown` in them. May hold the root."""
    shown: tuple[Path, ...] = ()
    """What may be read within what is hidden, or among the temporary files. May be symbolic links."""
    protected: tuple[Path, ...] = ()
    """What may be read and not changed, within what may be written to. bubblewrap alone holds commands to it."""
    placeholders: tuple[Path, ...] = ()
    """Stand-ins for what must not be made: to a command they are empty and cannot be changed."""
    git_folders: tuple[Path, ...] = ()
    """Repositories outside the root that its `.git` belongs to: read and write."""
