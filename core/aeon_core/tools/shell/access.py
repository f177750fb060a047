"""What a command may see of the file system: all but homes and keys, and of those the toolchains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from aeon_core.tools.shell.secret_paths import hidden_paths, homes, outermost
from aeon_core.tools.shell.toolchains import visible_paths


def hidden_and_shown(
    root: Path, environ: Mapping[str, str], readable: Iterable[Path] = ()
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return `hidden` and `shown` for Limits; `readable` is what a user wants to be seen besides."""
    hidden = hidden_paths(root, environ)
    shown, masked = visible_paths(homes(environ), hidden, environ, root)
    wanted = (path.expanduser() for path in readable)
    shown += [path for path in wanted if path.is_absolute() and path.exists()]
    return tuple(outermost((*hidden, *masked), (root, *shown))), tuple(shown)
