"""The path sandbox of all file tools: nothing outside the project root is read, changed or listed (REQ-110)."""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from aeon_core.errors import ToolError, reason_of
from aeon_core.regular_file import closing_fd, replace_file, require_regular
from aeon_core.tools.protected_paths import folded
from aeon_core.tools.shell.secret_paths import secret_files

MAX_LINKS = 40
MAX_PATH = 4096
MAX_NAME = 255
_MAX_SHOWN = 300

# A folder that can be entered need not be readable; O_PATH, where it exists, requires no more than entering.
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)


class SandboxError(ToolError):
    """A path leads outside the project root, or cannot be a path at all (REQ-110)."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry found by a walk. A symbolic link is neither folder nor file here, wherever it leads."""

    path: str
    """Relative to the project root, with forward slashes."""
    is_dir: bool
    is_file: bool
    """A regular file."""
    is_symlink: bool


@dataclass
class _Place:
    """The target of a path: the deepest existing folder, opened, and the names below it."""

    fd: int
    folders: list[str]
    """The folders from the root to the open folder, without symbolic links."""
    rest: list[str]
    """Empty for a folder; one existing name for anything else; otherwise the names that do not exist (yet)."""
    exists: bool
    as_folder: bool
    """The path can only mean a folder, as with a slash at its end."""

    def file_name(self) -> str:
        """Return the name of the file in the open folder. Raises OSError for a folder."""
        if not self.rest or self.as_folder:
            raise IsADirectoryError
        return self.rest[-1]

    def make_parents(self) -> None:
        """Make the missing folders above the file, and open the last of them. Raises OSError."""
        for name in self.rest[:-1]:
            # Another process may have created it meanwhile; a symbolic link is refused when it is opened.
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.fd)
            self._enter(name)

    def _enter(self, name: str) -> None:
        deeper = os.open(name, FOLDER, dir_fd=self.fd)
        os.close(self.fd)
        self.fd = deeper
        self.folders.append(name)

    def descend(self, names: list[str]) -> None:
        """Open the folders on the way to the last of the names. Raises OSError."""
        for depth, name in enumerate(names):
            try:
                self._enter(name)
            except FileNotFoundError:
                self.rest, self.exists = names[depth:], False
                return
            except OSError as error:
                if error.errno not in _NO_FOLDER:
                    raise
                if depth < len(names) - 1:
                    raise NotADirectoryError from None
                self.rest = [name]


class Sandbox:
    """Gives access to the files below one folder by paths that may be hostile.

    Relative paths start at the root, whatever the working directory; absolute ones must lie below it. `~` is a name
    like any other. A symbolic link is followed if it leads inside, and refused if it leads outside. Links are resolved
    first; then each folder is opened from the one before it, without following links, so that replacing a folder by a
    link between check and use has no effect. A hard link to a file of another user, or to one with keys, is refused;
    writing through any other replaces the name inside and leaves the linked file unchanged. It holds no descriptor
    between calls, and may be used from several threads.
    """

    def __init__(self, root: Path) -> None:
        """Raises SandboxError if `root` is not a folder."""
        given, self._path = os.path.abspath(root), os.path.realpath(root)  # noqa: PTH100  # Path keeps a double slash
        try:
            status = os.stat(self._path)  # noqa: PTH116
        except OSError as error:
            raise SandboxError(f"project root {_shown(given)}: {error.strerror}; use an existing folder") from None
        if not stat.S_ISDIR(status.st_mode):
            raise SandboxError(f"project root {_shown(given)} is not a folder; use an existing folder")
        self._owner = status.st_uid
        self._identity = status.st_dev, status.st_ino
        self._spellings = _names(given), _names(self._path)

    @property
    def root(self) -> Path:
        """The project root, absolute and without symbolic links."""
        return Path(self._path)

    def relative(self, path: str) -> PurePosixPath:
        """Return where the path really leads, relative to the root; the target need not exist.

        Raises SandboxError if it leads outside, also by a hard link, ToolError if it cannot be followed.
        """
        with self._place(path) as place:
            if place.rest and place.exists:
                self._refuse_link(os.stat(place.rest[0], dir_fd=place.fd, follow_symlinks=False), path)
            return PurePosixPath(*place.folders, *place.rest)

    def listed(self, path: str) -> PurePosixPath:
        """Return what `relative` returns with each name as its folder lists it, in case the file system ignores case.

        Raises what `relative` raises.
        """
        return listed_path(self._path, self.relative(path))

    def open_walked(self, path: str, secrets: Secrets) -> BinaryIO | None:
        """Return a file that a walk found, open for reading; the caller closes it.

        None if it is no longer a regular file, or a refused hard link; `secrets` is called for hard links. Raises
        OSError.
        """
        *folders, name = path.split("/")
        with closing_fd(functools.reduce(_open_below, folders, self._open_root())) as folder:
            fd = os.open(name, os.O_RDONLY | FILE, dir_fd=folder)
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and link_fault(status, self._owner, secrets) is None:
            return os.fdopen(fd, "rb", buffering=0)
        os.close(fd)
        return None

    def open_read(self, path: str) -> BinaryIO:
        """Return the regular file at the path, open for reading; the caller closes it.

        Raises SandboxError if it leads outside, ToolError if it does not exist or is a folder, a FIFO or a device.
        """
        with self._place(path) as place:
            return os.fdopen(self._open_file(place, path, os.O_RDONLY), "rb")

    def exists(self, path: str) -> bool:
        """Return whether the path exists. Raises what `relative` raises."""
        with self._place(path) as place:
            return place.exists

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return a file's content. Raises what `open_read` raises, and ToolError beyond `limit` bytes."""
        with self.open_read(path) as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise ToolError(f"{_shown(path)} is too large: it has more than {limit:,} bytes")
        return content

    def write_bytes(self, path: str, data: bytes, instead_of: bytes | None = None) -> bool:
        """Create or replace the file at the path atomically, with missing folders above it; return whether it is new.

        For a symbolic link, its target is written. An existing file keeps its mode. Raises SandboxError if the path
        leads outside, ToolError if it names anything but a regular file, the system refuses, or the content is no
        longer `instead_of`.
        """
        with self._place(path) as place:
            name, status = place.file_name(), None
            if place.exists:
                fd = self._open_file(place, path, os.O_WRONLY)
                status = os.fstat(fd)
                os.close(fd)
            place.make_parents()
            during = self._unchanged(place, path, instead_of)
            replace_file(Path(name), data, status, mode=0o666, folder=place.fd, during=during)
            return status is None

    @contextmanager
    def _unchanged(self, place: _Place, path: str, expected: bytes | None) -> Iterator[None]:
        """Exclude other edits by this process. Raises ToolError if the file's content is not the expected one."""
        with _replacing:
            if expected is not None:
                with os.fdopen(self._open_file(place, path, os.O_RDONLY), "rb") as stream:
                    if stream.read(len(expected) + 1) != expected:
                        why = "has been changed meanwhile, so it was left as it is; Read it again"
                        raise ToolError(f"{_shown(path)} {why}")
            yield

    def walk(self, path: str = ".", enter: Callable[[FolderEntry], bool] | None = None) -> Iterator[FolderEntry]:
        """Return what is below a folder, each folder before its content and names in order; a file gives itself.

        `enter` returns whether to walk into a folder; by default, all. Symbolic links are listed and not followed; a
        folder that cannot be read is skipped. Raises SandboxError if the path leads outside, ToolError if it does not
        exist.
        """
        with self._place(path) as place:
            if not place.exists:
                raise FileNotFoundError
            if place.rest:
                status = os.stat(place.rest[0], dir_fd=place.fd, follow_symlinks=False)
                where = "/".join([*place.folders, *place.rest])
                return iter([FolderEntry(where, False, stat.S_ISREG(status.st_mode), stat.S_ISLNK(status.st_mode))])
            return self._below(_listed(place.fd, place.folders), enter)

    def _below(self, entries: list[FolderEntry], enter: Callable[[FolderEntry], bool] | None) -> Iterator[FolderEntry]:
        pending = entries[::-1]
        while pending:
            entry = pending.pop()
            yield entry
            if not entry.is_dir or (enter is not None and not enter(entry)):
                continue
            # A folder that has vanished or become a link meanwhile has no entries.
            with suppress(OSError):
                folders = entry.path.split("/")
                with closing_fd(functools.reduce(_open_below, folders, self._open_root())) as fd:
                    pending += _listed(fd, folders)[::-1]

    @contextmanager
    def _place(self, path: str) -> Iterator[_Place]:
        """Yield the target of a path. A missing name is kept, and `..` after it goes back.

        Raises SandboxError for a path that leaves the root or is invalid, ToolError if the system refuses.
        """
        _check(path)
        try:
            names, as_folder = self._resolved(path)
            place = _Place(self._open_root(), [], [], True, as_folder)
            try:
                place.descend(names)
                yield place
            finally:
                os.close(place.fd)
        except FileNotFoundError:
            raise ToolError(f"there is no {_shown(path)} in the project; look for it with Glob") from None
        except IsADirectoryError:
            raise ToolError(f"{_shown(path)} names a folder, expected a file") from None
        except NotADirectoryError:
            raise ToolError(f"{_shown(path)} goes through a file as if it were a folder") from None
        except OSError as error:
            raise ToolError(f"cannot use {_shown(path)}: {reason_of(error)}") from None

    def _resolved(self, path: str) -> tuple[list[str], bool]:
        """Return the names from the root to the target of a path, and whether it can only be a folder."""
        pending, names = deque(self._components(path)), list[str]()
        links, as_folder = 0, False
        while pending:
            name = pending.popleft()
            as_folder = name in ("", "..")
            if as_folder and _is_file(self._path, names):
                raise NotADirectoryError
            if name == ".." and names:
                names.pop()
            elif name == ".." and self._path != "/":
                raise self._outside(path)
            if as_folder:
                continue
            try:
                target = os.readlink("/".join((self._path, *names, name)))  # noqa: PTH115  # Path drops a final slash
            except OSError:
                names.append(name)  # not a link
                continue
            links += 1
            if links > MAX_LINKS:
                raise SandboxError(f"path {_shown(path)} goes through more than {MAX_LINKS} symbolic links")
            try:
                pending.extendleft(reversed(self._components(target)))
            except SandboxError:
                raise self._outside(path) from None
            names = [] if target.startswith("/") else names
        return names, as_folder

    def _components(self, path: str) -> list[str]:
        """Return a path's components below the root. Raises SandboxError for an absolute path that is not below it.

        The last one is empty if the path can only mean a folder.
        """
        names = _names(path)
        if path.startswith("/"):
            below = [names[len(root) :] for root in self._spellings if names[: len(root)] == root]
            if not below:
                raise self._outside(path)
            names = below[0]
        return [*names, ""] if path.endswith(("/", "/.")) else names

    def _outside(self, path: str) -> SandboxError:
        return SandboxError(f"Path outside project root: {_shown(path)}; give a path inside {_shown(self._path)}")

    def _open_root(self) -> int:
        """Return a descriptor of the root. Raises SandboxError if another folder has its name by now."""
        try:
            fd = os.open(self._path, FOLDER)
        except OSError as error:
            raise SandboxError(f"project root {_shown(self._path)}: {error.strerror}; start the run again") from None
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self._identity:
            os.close(fd)
            raise SandboxError(f"project root {_shown(self._path)} was replaced during the run; start the run again")
        return fd

    def _open_file(self, place: _Place, path: str, flags: int) -> int:
        """Return a descriptor of an existing regular file. Raises OSError for anything else; never waits for a FIFO."""
        name = place.file_name()
        if not place.exists:
            raise FileNotFoundError
        # Checked before opening, since opening a device may have effects, and after, since the file may be another by
        # then.
        require_regular(os.stat(name, dir_fd=place.fd, follow_symlinks=False).st_mode)
        fd = os.open(name, flags | FILE, dir_fd=place.fd)
        try:
            status = os.fstat(fd)
            require_regular(status.st_mode)
            self._refuse_link(status, path)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _refuse_link(self, status: os.stat_result, path: str) -> None:
        if fault := link_fault(status, self._owner):
            raise SandboxError(f"{_shown(path)} was refused: {fault}; replace it with a copy of the file")


def _shown(path: str) -> str:
    return repr(path if len(path) <= _MAX_SHOWN else path[:_MAX_SHOWN] + "…")


def _names(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _check(path: str) -> None:
    if not path:
        raise SandboxError("path '' is empty; give a path inside the project root, '.' for the root itself")
    if "\0" in path:
        raise SandboxError(f"path {_shown(path)} holds a NUL character, which no path can")
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise SandboxError(f"path {_shown(path)} holds a character that no file name can; give plain text") from None
    if len(raw) > MAX_PATH or any(len(name) > MAX_NAME for name in raw.split(b"/")):
        raise SandboxError(
            f"path {_shown(path)} is too long, expected at most {MAX_PATH} bytes, and {MAX_NAME} in each name"
        )


def listed_path(root: str, path: PurePosixPath) -> PurePosixPath:
    """Return a path below a folder with each name as its own folder lists it; links are not followed."""
    names: list[str] = []
    for name in path.parts:
        names.append(_listed_name("/".join((root, *names)), name))
    return PurePosixPath(*names)


def _listed_name(folder: str, name: str) -> str:
    """Return the name by which the folder lists what a name leads to: in another case, or instead of a short name."""
    other = name.swapcase()
    if other == name or not all(os.path.lexists(f"{folder}/{each}") for each in (other, name)):
        return name
    with suppress(OSError):
        found, status = os.listdir(folder), os.lstat(f"{folder}/{name}")  # noqa: PTH208  # as above
        if name not in found:
            near = (each for each in found if folded(each) == folded(name))
            same = (each for each in found if os.path.samestat(os.lstat(f"{folder}/{each}"), status))
            return next(near, None) or next(same, name)
    return name


def _is_file(root: str, names: list[str]) -> bool:
    try:
        return bool(names) and not stat.S_ISDIR(os.lstat("/".join((root, *names))).st_mode)
    except NotADirectoryError:
        return True  # a path below a file
    except OSError:
        return False


def _open_below(fd: int, name: str) -> int:
    """Return a descriptor of a folder in another, which is closed. Raises OSError, also for a symbolic link."""
    with closing_fd(fd):
        return os.open(name, FOLDER, dir_fd=fd)


Secrets = Callable[[], frozenset[tuple[int, int]]]
"""Returns device and inode of the user's secret files."""


def own_secrets() -> frozenset[tuple[int, int]]:
    """Return device and inode of this user's secret files."""
    return secret_files(os.environ)


def link_fault(status: os.stat_result, project_owner: int, secrets: Secrets = own_secrets) -> str | None:
    """Return why a file is refused because of its links; None if it is not.

    `secrets` returns device and inode of the user's secret files; it is only called for a file with several names.
    """
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return None
    if status.st_uid not in {os.geteuid(), project_owner}:
        return "it is a hard link to a file of another user"
    if not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and not _keeps_all_private():
        return "it is a hard link to a file that only its owner may read"
    if (status.st_dev, status.st_ino) in secrets():
        return "it is a hard link to a file with settings or keys in your home"
    return None


@functools.cache
def _keeps_all_private() -> bool:
    with suppress(OSError):
        found = re.search(r"(?m)^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text())
        return found is not None and int(found[1], 8) & 0o077 == 0o077
    return False


_replacing = threading.Lock()
"""Held from the last check of a file to its replacement, so that no edit of another run is lost."""


def _listed(folder: int, folders: list[str]) -> list[FolderEntry]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with closing_fd(os.open(".", flags, dir_fd=folder)) as readable, os.scandir(readable) as found:
        entries = [
            FolderEntry(
                "/".join([*folders, item.name]),
                item.is_dir(follow_symlinks=False),
                item.is_file(follow_symlinks=False),
                item.is_symlink(),
            )
            for item in found
        ]
    return sorted(entries, key=lambda entry: entry.path)
