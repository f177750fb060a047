"""What agents were to produce, and whether it is there: decided by the files alone, never by what an agent says."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

_NOT_THE_PROJECT = frozenset({".git", ".hg", ".svn", ".system2", ".venv", "venv", "node_modules", "__pycache__"})
"""Folders that hold no work of an agent."""
_READ_AT_ONCE = 1 << 20

ProjectFiles = dict[str, tuple[int, int, int, int]]
"""Each file by its path in the project: its size, inode, and times of change."""


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


def project_files(project_root: Path) -> ProjectFiles:
    """Return every file of the project; one that cannot be looked at is left out."""
    found: ProjectFiles = {}
    for folder, below, names in os.walk(project_root):
        below[:] = [name for name in below if name not in _NOT_THE_PROJECT]
        for name in names:
            path = Path(folder, name)
            try:
                told = path.lstat()
            except OSError:
                continue
            place = path.relative_to(project_root).as_posix()
            found[place] = (told.st_size, told.st_ino, told.st_mtime_ns, told.st_ctime_ns)
    return found


def changed_files(before: ProjectFiles, after: ProjectFiles) -> set[str]:
    """Return the paths of what was made, changed or removed in between."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


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
