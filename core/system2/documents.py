"""What agents were to produce, and whether it is there: decided by the files alone, never by what an agent says."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

_READ_AT_ONCE = 1 << 20


class Documents:
    """The documents of one workflow. `before` has the digests of those that were there when it began."""

    def __init__(self, project_root: Path, before: Mapping[str, str]) -> None:
        self._root, self._before = project_root, before

    def problem(self, path: str, written: Collection[str]) -> str | None:
        """Return why a document was not produced, None where it was. `written` are the paths that agents wrote to."""
        file = self._root / path
        if any(part.is_symlink() for part in _parts(self._root, path)):
            return f"{path} is reached through a symbolic link; it must be a file in the project"
        try:
            if not stat.S_ISREG(file.stat().st_mode):
                return f"{path} is no regular file"
            digest, blank = _digest(file)
        except FileNotFoundError:
            return f"{path} was not written"
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
        if blank:
            return f"{path} is empty"
        if digest == self._before.get(path) and path not in written:
            return f"{path} was not written: it is from before this workflow"
        return None


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
