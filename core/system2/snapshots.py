"""Snapshots of a project's files, kept beside the journal, so that a gate can show what has changed since the last.

The files are those that git lists, or else those that no `.gitignore` excludes. Each has a digest, and the contents of
small text files are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import subprocess
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from aeon_core.errors import ToolError
from aeon_core.paths import program_outside, real_path
from aeon_core.tools.listing import list_files
from aeon_core.tools.sandbox import Sandbox, listed_path

_GIT_SECONDS = 30
_SUBMODULE = b"160000 "
_SEALED = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
}
"""In a partial clone, git may fetch folders that its index lacks, with commands that the repository names."""
_WORDS = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitFiles:
    """Asks git about the repository that a project is in; an agent may have written its configuration.

    What that could have git run, or list from elsewhere, is overridden.
    """

    def __init__(self, project_root: Path) -> None:
        self._root = project_root
        found = (folder for folder in (project_root, *project_root.parents) if os.path.lexists(folder / ".git"))
        self._top = next(found, None)
        self._git = program_outside(project_root, "git") if self._top is not None else None

    def list(self) -> tuple[list[str], list[str]] | None:
        """Return the files that git tracks or does not ignore, and the folders of nested repositories, whose files it
        does not list; None if git fails, or the project belongs to no repository.

        A project inside a work tree that tracks none of its files belongs to no repository.
        """
        index = self._run("-s")
        if index is None or (not index and self._top != self._root):
            return None
        others = self._run("--others", "--exclude-standard")
        if others is None:
            return None
        files, folders = list[str](), list[str]()
        for entry in index.split(b"\0")[:-1]:
            path = os.fsdecode(entry.partition(b"\t")[2])
            (folders if entry.startswith(_SUBMODULE) else files).append(path)
        for path in map(os.fsdecode, others.split(b"\0")[:-1]):
            if path.endswith("/"):
                folders.append(path.rstrip("/"))
            elif _NO_WORK.isdisjoint(PurePosixPath(path).parts[:-1]):
                files.append(path)
        return files, folders

    def _run(self, *words: str) -> bytes | None:
        if self._top is None or self._git is None:
            return None
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(  # noqa: S603  # git, with words of our own
                [self._git, *_WORDS, "ls-files", "-z", *words],
                cwd=self._root,
                env={**environ, **_SEALED, "GIT_DIR": str(self._top / ".git"), "GIT_WORK_TREE": str(self._top)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # One of its files may be a FIFO: it is not asked again, so that only one gate is delayed.
            self._git = None
            return None
        except OSError:
            return None
        return done.stdout if done.returncode == 0 else None


_RECORD = struct.Struct(">32sQ")
"""Before each content: its digest, and the length of its compressed form."""


class ContentFile:
    """Stores the contents of files in one file, mode 0600; a partial record that a kill left at its end is overwritten.

    Without a path, or if it cannot be opened, a temporary file is used.
    """

    def __init__(self, path: Path | None) -> None:
        self._fd = _open(path)
        weakref.finalize(self, os.close, self._fd)
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end = 0
        size = os.fstat(self._fd).st_size
        while len(head := os.pread(self._fd, _RECORD.size, self._end)) == _RECORD.size:
            name, length = _RECORD.unpack(head)
            place = self._end + _RECORD.size
            if place + length > size:
                break
            self._places[name], self._end = (place, length), place + length

    def keep(self, content: bytes) -> str:
        """Store a content and return its SHA-256; if it cannot be written, it is not stored."""
        name = hashlib.sha256(content).digest()
        if name not in self._places:
            packed = zlib.compress(content, 1)
            record = _RECORD.pack(name, len(packed)) + packed
            with suppress(OSError):
                if os.pwrite(self._fd, record, self._end) == len(record):
                    self._places[name] = (self._end + _RECORD.size, len(packed))
                    self._end += len(record)
        return name.hex()

    def load(self, digest: str) -> bytes | None:
        """Return a stored content, or None if it is missing or damaged."""
        try:
            name = bytes.fromhex(digest)
            place, length = self._places[name]
            content = zlib.decompress(os.pread(self._fd, length, place))
        except (OSError, ValueError, KeyError, zlib.error):
            return None
        # An agent's command may have changed it.
        return content if hashlib.sha256(content).digest() == name else None


def _open(path: Path | None) -> int:
    if path is not None:
        with suppress(OSError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with tempfile.TemporaryFile() as temporary:
        return os.dup(temporary.fileno())


MAX_FILES = 50_000
"""The most files of a project that are compared."""
MAX_CONTENT = 1_000_000
"""Bytes of the largest file whose content is kept."""
MAX_KEPT = 200_000_000
"""The most bytes of contents that are kept in all."""
MAX_DIGESTED = 100_000_000
"""Bytes of the largest file that is read; larger ones are compared by size and times."""
_SECONDS = 60
_UNSETTLED_NS = 2_000_000_000
"""A file that changed this shortly before a snapshot may change again without a new timestamp."""
_HEAD = 8192
_NO_WORK = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".git", ".hg", ".svn"}
    | {".venv", "venv", "node_modules", ".tox", ".nox"}
)
"""Folders that hold no work of an agent, unless git tracks what is in them."""

Kind = Literal["text", "binary", "large", "link", "unread"]


@dataclass(frozen=True)
class FileState:
    """One file of a snapshot."""

    kind: Kind
    digest: str
    """SHA-256 of the content or of a link's target; for a file that was not read, its size and times, if known."""
    size: int
    executable: bool
    mark: tuple[int, ...] = (0, 0, 0)
    """Modification and change times in nanoseconds, and inode: if these and the size match, it is not read again."""

    @property
    def identity(self) -> tuple[str, bool, bool]:
        """What two states are compared by, which excludes times."""
        return self.digest, self.executable, self.kind == "link"


@dataclass(frozen=True)
class Snapshot:
    """The files of a project at one moment, by path."""

    files: Mapping[str, FileState]
    taken_ns: int = 0
    notes: tuple[str, ...] = ()
    """What is left out, in words for a person."""


@dataclass
class SnapshotStore:
    """Takes snapshots of one project and keeps them in the file `kept`, or without it in a temporary file.

    `hidden` returns true for paths that are not the project's work.
    """

    project_root: Path
    kept: Path | None = None
    hidden: Callable[[str], bool] = lambda _: False
    _size: int = 0

    def __post_init__(self) -> None:
        self._sandbox = Sandbox(self.project_root)
        self._root = str(self._sandbox.root)
        self._git = GitFiles(self._sandbox.root)
        self._streams = set(_standard_streams())

    @cached_property
    def _contents(self) -> ContentFile:
        return ContentFile(self.kept)

    def take(self, before: Snapshot | None = None, also: Iterable[str] = ()) -> Snapshot:
        """Return the files as they are now; `also` names some to include even if they are ignored.

        Given the snapshot `before`, only what changed since is read, and its files stay included even if ignored now.
        """
        known: Mapping[str, FileState] = before.files if before is not None else {}
        settled = (before.taken_ns if before is not None else 0) - _UNSETTLED_NS
        taken_ns = time.time_ns()
        listed, notes = self._list()
        wanted = dict.fromkeys([*known, *also])
        paths = self._distinct(path for path in [*wanted, *listed] if not self.hidden(path))
        if (total := len(paths)) > MAX_FILES:
            if before is not None:
                # An old file that the snapshot before left out must not look created.
                paths = [path for path in paths if path in wanted or self._has_changed(path, before.taken_ns)]
            # The files of the snapshot before stay: an additional file must not make another look deleted.
            paths = paths[: len(known) + MAX_FILES]
            if len(paths) < total:
                notes = (*notes, f"the project has {total:,} files; only {len(paths):,} are compared")
        # Git's index may name any path, and an agent may have replaced a folder with a link.
        is_inside = cache(lambda folder: real_path(f"{self._root}/{folder}").is_relative_to(self._root))
        paths = [path for path in paths if is_inside(path.rpartition("/")[0])]
        found = {path: self._state(path, known.get(path), settled) for path in paths}
        return Snapshot({path: state for path, state in found.items() if state is not None}, taken_ns, notes)

    def save(self, snapshot: Snapshot) -> str:
        """Store a snapshot, and return its digest for `load`."""
        files = {path: (*astuple(state)[:-1], *state.mark) for path, state in snapshot.files.items()}
        text = json.dumps({"taken_ns": snapshot.taken_ns, "notes": snapshot.notes, "files": files})
        return self._contents.keep(text.encode())

    def load(self, digest: str) -> Snapshot | None:
        """Return a snapshot that was saved, or None if it is no longer there."""
        try:
            stored = json.loads(self._contents.load(digest) or b"")
            # Earlier versions stored git's id of the content in the middle.
            files = {path: FileState(*[*state[:4], tuple(state[-3:])]) for path, state in stored["files"].items()}
            return Snapshot(files, stored["taken_ns"], tuple(stored["notes"]))
        except (ValueError, TypeError, KeyError):
            return None

    def content(self, state: FileState) -> bytes | None:
        """Return the content, or a link's target, in a state; None if it was not kept."""
        return self._contents.load(state.digest)

    def _list(self) -> tuple[list[str], tuple[str, ...]]:
        listed = self._git.list()
        if listed is None:
            return self._walk(".")
        paths, folders = listed
        notes: tuple[str, ...] = ()
        for folder in folders:
            files, more = self._walk(folder)
            paths, notes = [*paths, *files], (*notes, *more)
        return sorted(paths), notes

    def _walk(self, folder: str) -> tuple[list[str], tuple[str, ...]]:
        def unseen(path: str) -> bool:
            return self.hidden(path) or PurePosixPath(path).name in _NO_WORK

        deadline = time.monotonic() + _SECONDS
        try:
            found = list_files(self._sandbox, folder, hidden=unseen, include_ignored=False, deadline=deadline)
        except TimeoutError:
            return [], (f"{folder!r} has too many files to be listed in {_SECONDS} s: new ones are not shown",)
        except ToolError:
            return [], ()
        return sorted([*found.files, *found.links]), ()

    def _distinct(self, paths: Iterable[str]) -> list[str]:
        """Return the first path of each file: a file system that ignores case has it by others, too."""
        first, kept = dict[str, str](), dict[str, None]()
        for path in paths:
            other = first.setdefault(path.casefold(), path)
            if other == path or len({listed_path(self._root, PurePosixPath(each)) for each in (other, path)}) > 1:
                kept[path] = None
        return list(kept)

    def _has_changed(self, path: str, since_ns: int) -> bool:
        with suppress(OSError, ValueError):
            return os.lstat(f"{self._root}/{path}").st_ctime_ns >= since_ns
        return False

    def _state(self, path: str, known: FileState | None, settled: int) -> FileState | None:
        place = f"{self._root}/{path}"
        try:
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(place))  # noqa: PTH115  # a Path for each file takes as long as all else
                return FileState("link", self._contents.keep(target), len(target), executable=False)
        except PermissionError:
            # Its folder may not be searched, which says nothing about the file.
            return FileState("unread", "", 0, executable=known is not None and known.executable)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in self._streams:
            return None
        mark = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        if known is not None and (known.mark, known.size) == (mark, status.st_size) and max(mark[:2]) < settled:
            return known
        executable = bool(status.st_mode & stat.S_IXUSR)
        if status.st_size <= MAX_DIGESTED:
            with suppress(ToolError, OSError), self._open(path, place, status) as stream:
                return self._read(stream, status.st_size, executable, mark)
        return FileState("unread", f"{status.st_size}:{mark}", status.st_size, executable, mark)

    def _open(self, path: str, place: str, status: os.stat_result) -> BinaryIO:
        if status.st_nlink > 1:
            # It may be a hard link to a file outside the project.
            return self._sandbox.open_read(path)
        return os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0)

    def _read(self, stream: BinaryIO, size: int, executable: bool, mark: tuple[int, int, int]) -> FileState:
        if size > MAX_CONTENT:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
            return FileState("large", digest, size, executable, mark)
        content = stream.read(MAX_CONTENT + 1)
        is_text = b"\0" not in content[:_HEAD]
        if is_text and self._size < MAX_KEPT:
            self._size += len(content)
            digest = self._contents.keep(content)
        else:
            digest = hashlib.sha256(content).hexdigest()
        return FileState("text" if is_text else "binary", digest, size, executable, mark)


def _standard_streams() -> Iterator[tuple[int, int]]:
    """Yield the device and inode of what stdout and stderr are redirected to, which grows with our own log."""
    for descriptor in (1, 2):
        with suppress(OSError):
            status = os.fstat(descriptor)
            yield status.st_dev, status.st_ino
