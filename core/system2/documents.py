"""What agents were to produce, and whether it is there: decided by the files alone, never by what an agent says."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from aeon_core.effects.port import Effects

_READ_AT_ONCE = 1 << 20


class Documents:
    """The documents of one workflow, seen through its port. `before` has the digests of those from before it."""

    def __init__(self, effects: Effects, project_root: Path, before: Mapping[str, str]) -> None:
        self._effects, self._root, self._before = effects, project_root, before

    def problem(self, path: str, written: Collection[str]) -> str | None:
        """Return why a document was not produced, None where it was. `written` are the paths that agents wrote to."""
        found = self._effects.observe("document", lambda: _state(self._root, path))
        if found["problem"] is None and found["digest"] == self._before.get(path) and path not in written:
            return f"{path} was not written: it is from before this workflow"
        problem: str | None = found["problem"]
        return problem


def _state(root: Path, path: str) -> dict[str, str | None]:
    """Return a document's digest, or what is wrong with it."""
    problem, digest = None, None
    try:
        if any(part.is_symlink() for part in _parts(root, path)):
            problem = f"{path} is reached through a symbolic link; it must be a file in the project"
        elif not stat.S_ISREG((root / path).stat().st_mode):
            problem = f"{path} is not a regular file"
        else:
            digest, blank = _digest(root / path)
            problem = f"{path} is empty" if blank else None
    except FileNotFoundError:
        problem = f"{path} was not written"
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror}"
    return {"problem": problem, "digest": digest}


def digests(project_root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each of these files that can be read."""
    found = {}
    for path in paths:
        try:
            if stat.S_ISREG((project_root / path).stat().st_mode):
                found[path] = _digest(project_root / path)[0]
        except OSError:
            continue
    return found


def _parts(root: Path, path: str) -> Iterator[Path]:
    part = root
    for name in Path(path).parts:
        part /= name
        yield part


def _digest(file: Path) -> tuple[str, bool]:
    """Return the SHA-256 of a file, and whether nothing but white space is in it."""
    sha256, blank = hashlib.sha256(), True
    with file.open("rb") as opened:
        while content := opened.read(_READ_AT_ONCE):
            sha256.update(content)
            blank = blank and not content.strip()
    return sha256.hexdigest(), blank
