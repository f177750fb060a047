"""Snapshots of a project's files, kept beside the transcript, so that a gate can show what has changed since another.

The files are those that git lists, else those that no `.gitignore` leaves out. Of each file there is a digest; the
contents of small texts are kept where git does not have them already.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search.listing import list_files
from system2.git_files import GitFiles

_RECORD = struct.Struct(">32sQ")
"""Before each content: its digest, and the length of its compressed form."""
_FLUSHED = 4_000_000
"""Bytes that wait in memory before they are written."""


class ContentFile:
    """The contents of one file, mode 0600; a half record at its end, as a kill leaves it, is written over."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end = 0
        self._waiting: dict[bytes, bytes] = {}
        self._size = 0
        if path is not None:
            with suppress(OSError):
                self._scan(path)

    def keep(self, content: bytes) -> str:
        """Keep a content, and return its digest."""
        name = hashlib.sha256(content).digest()
        if name not in self._places and name not in self._waiting:
            self._waiting[name] = zlib.compress(content, 1)
            self._size += len(self._waiting[name])
            if self._size > _FLUSHED:
                self.flush()
        return name.hex()

    def flush(self) -> None:
        """Write what waits. Where that fails it stays in memory."""
        if self._path is None or not self._waiting:
            return
        places, end = {}, self._end
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, 0o600), "wb") as stream:
                stream.seek(end)
                for name, packed in self._waiting.items():
                    end += stream.write(_RECORD.pack(name, len(packed)))
                    places[name] = (end, len(packed))
                    end += stream.write(packed)
                stream.truncate()
        except OSError:
            return
        self._places |= places
        self._end, self._size = end, 0
        self._waiting.clear()

    def load(self, digest: str) -> bytes | None:
        """Return a content, None where it is not there, or damaged."""
        try:
            name = bytes.fromhex(digest)
            packed = self._waiting.get(name) or self._read(*self._places[name])
            content = zlib.decompress(packed)
        except (OSError, ValueError, KeyError, zlib.error):
            return None
        # An agent's command may have been at it.
        return content if hashlib.sha256(content).digest() == name else None

    def _read(self, place: int, length: int) -> bytes:
        assert self._path is not None
        with self._path.open("rb") as stream:
            stream.seek(place)
            return stream.read(length)

    def _scan(self, path: Path) -> None:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            while len(head := stream.read(_RECORD.size)) == _RECORD.size:
                name, length = _RECORD.unpack(head)
                place = stream.tell()
                if place + length > size:
                    break
                self._places[name] = (place, length)
                self._end = stream.seek(place + length)


MAX_FILES = 50_000
"""How many files of a project are compared."""
MAX_CONTENT = 1_000_000
"""Bytes of a file up to which its content is kept."""
MAX_KEPT = 200_000_000
"""Bytes of contents that are kept in all."""
MAX_DIGESTED = 100_000_000
"""Bytes of a file up to which it is read: of a larger one its size and times decide."""
_SECONDS = 60
_UNSETTLED_NS = 2_000_000_000
"""A file that changed so short before a snapshot may change again without a sign of it."""
_HEAD = 8192
_NO_WORK = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".git", ".hg", ".svn"}
    | {".venv", "venv", "node_modules", ".tox", ".nox"}
)
"""Folders that hold no work of an agent, where git does not track what is in them."""

Kind = Literal["text", "binary", "large", "link", "unread"]


@dataclass(frozen=True)
class FileState:
    """One file of a snapshot."""

    kind: Kind
    digest: str
    """SHA-256 of the content, of a link's target; for what was not read, what stands for it."""
    size: int
    executable: bool
    blob: str
    """Git's id of the content where git has it, else empty."""
    modified_ns: int = 0
    changed_ns: int = 0
    inode: int = 0
    """With the same times, size and inode a file is not read again."""

    @property
    def mark(self) -> tuple[int, int, int]:
        """What is compared before a file is read again."""
        return self.modified_ns, self.changed_ns, self.inode

    def same_as(self, other: FileState) -> bool:
        """Return whether it is the same file as another: times make no difference."""
        return (self.digest, self.executable, self.kind == "link") == (
            other.digest,
            other.executable,
            other.kind == "link",
        )


@dataclass(frozen=True)
class Snapshot:
    """The files of a project at one moment, by path."""

    files: Mapping[str, FileState]
    taken_ns: int = 0
    notes: tuple[str, ...] = ()
    """What of the project is not in it, for a person."""


@dataclass
class SnapshotStore:
    """Takes snapshots of one project and keeps them in the file `kept`; without one, or where it fails, in memory.

    `hidden` is true for paths that are none of the project's work.
    """

    project_root: Path
    kept: Path | None = None
    hidden: Callable[[str], bool] = lambda _: False
    _size: int = 0

    def __post_init__(self) -> None:
        self._sandbox = Sandbox(self.project_root)
        self._root = str(self._sandbox.root)
        self._contents = ContentFile(self.kept)
        self._git = GitFiles(self._sandbox.root)

    def take(self, before: Snapshot | None = None, also: Iterable[str] = ()) -> Snapshot:
        """Return the files as they are now; `also` names some that count though they are ignored.

        With the snapshot `before`, only what has changed since is read, and nothing that was in it gets out of sight.
        """
        known: Mapping[str, FileState] = before.files if before is not None else {}
        settled = (before.taken_ns if before is not None else 0) - _UNSETTLED_NS
        taken_ns = time.time_ns()
        listed, blobs, notes = self._listed()
        paths = [path for path in dict.fromkeys([*listed, *known, *also]) if not self.hidden(path)]
        # What was in the snapshot before stays: one file more must not make another look deleted.
        most = MAX_FILES if before is None else len(known) + MAX_FILES
        if len(paths) > most:
            notes = (*notes, f"the project has {len(paths):,} files; only {most:,} are compared")
            paths = sorted(paths, key=lambda path: path not in known)[:most]
        found = {path: self._state(path, known.get(path), settled, blobs) for path in paths}
        return Snapshot({path: state for path, state in found.items() if state is not None}, taken_ns, notes)

    def save(self, snapshot: Snapshot) -> str:
        """Keep a snapshot, and return what `load` takes."""
        files = {path: astuple(state) for path, state in snapshot.files.items()}
        told = json.dumps({"taken_ns": snapshot.taken_ns, "notes": snapshot.notes, "files": files})
        name = self._contents.keep(told.encode())
        self._contents.flush()
        return name

    def load(self, digest: str) -> Snapshot | None:
        """Return a snapshot that was saved, None where it is there no more."""
        try:
            told = json.loads(self._contents.load(digest) or b"")
            files = {path: FileState(*state) for path, state in told["files"].items()}
            return Snapshot(files, told["taken_ns"], tuple(told["notes"]))
        except (ValueError, TypeError, KeyError):
            return None

    def content(self, state: FileState) -> bytes | None:
        """Return a text, or a link's target, as it was; None where it is not known any more."""
        content = self._git.content(state.blob) if state.blob else None
        if content is None or _digest(content) != state.digest:
            content = self._contents.load(state.digest)
        return content

    def _listed(self) -> tuple[Iterable[str], frozenset[str], tuple[str, ...]]:
        notes: tuple[str, ...] = ()
        listing = self._git.listing()
        if listing is None:
            files, notes = self._walked(".")
            return files, frozenset(), notes
        paths = [*listing.tracked, *(path for path in listing.untracked if not _is_cache(path))]
        for folder in listing.folders:
            files, more = self._walked(folder)
            paths, notes = [*paths, *files], (*notes, *more)
        return sorted(paths), listing.blobs, notes

    def _walked(self, folder: str) -> tuple[list[str], tuple[str, ...]]:
        def unseen(path: str) -> bool:
            return self.hidden(path) or PurePosixPath(path).name in _NO_WORK

        try:
            found = list_files(
                self._sandbox, folder, hidden=unseen, include_ignored=False, deadline=time.monotonic() + _SECONDS
            )
        except TimeoutError:
            return [], (f"{folder!r} has too many files to be listed in {_SECONDS} s: changes in it are not shown",)
        except ToolError:
            return [], ()
        return sorted([*found.files, *found.links]), ()

    def _state(self, path: str, known: FileState | None, settled: int, blobs: frozenset[str]) -> FileState | None:
        place = f"{self._root}/{path}"
        try:
            told = os.lstat(place)
            if stat.S_ISLNK(told.st_mode):
                target = os.fsencode(os.readlink(place))  # noqa: PTH115  # a Path for each file takes as long as all else
                return FileState("link", self._contents.keep(target), len(target), executable=False, blob="")
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(told.st_mode):
            return None
        mark = (told.st_mtime_ns, told.st_ctime_ns, told.st_ino)
        if known is not None and (known.mark, known.size) == (mark, told.st_size) and max(mark[:2]) < settled:
            return known
        executable = bool(told.st_mode & stat.S_IXUSR)
        if told.st_size <= MAX_DIGESTED:
            with suppress(ToolError, OSError), self._open(path, place, told) as stream:
                return self._read(stream, told.st_size, executable, mark, blobs)
        return FileState("unread", f"{told.st_size}:{mark}", told.st_size, executable, "", *mark)

    def _open(self, path: str, place: str, told: os.stat_result) -> BinaryIO:
        if told.st_nlink > 1:
            # It may be a link to a file that is none of the project's.
            return self._sandbox.open_read(path)
        return os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0)

    def _read(
        self, stream: BinaryIO, size: int, executable: bool, mark: tuple[int, int, int], blobs: frozenset[str]
    ) -> FileState:
        if size > MAX_CONTENT:
            sha256 = hashlib.sha256()
            for chunk in iter(lambda: stream.read(MAX_CONTENT), b""):
                sha256.update(chunk)
            return FileState("large", sha256.hexdigest(), size, executable, "", *mark)
        content = stream.read(MAX_CONTENT + 1)
        if b"\0" in content[:_HEAD]:
            return FileState("binary", _digest(content), size, executable, "", *mark)
        blob = ""
        if blobs:
            named = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
            blob = named if named in blobs else ""
        if not blob and self._size < MAX_KEPT:
            self._size += len(content)
            self._contents.keep(content)
        return FileState("text", _digest(content), size, executable, blob, *mark)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_cache(path: str) -> bool:
    return any(part in _NO_WORK for part in PurePosixPath(path).parts[:-1])
