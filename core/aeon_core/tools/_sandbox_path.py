"""Following a path inside the project root, component by component and by directory descriptors (REQ-110)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from aeon_core.errors import ToolError
from aeon_core.tools.hard_links import link_fault

MAX_LINKS = 40
MAX_PATH = 4096
MAX_NAME = 255
_MAX_SHOWN = 300

# A folder that may be entered need not be readable; O_PATH asks for no more than that, where there is one.
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class SandboxError(ToolError):
    """A path leads outside the project root, or cannot be a path at all (REQ-110)."""


def shown(path: str) -> str:
    """Return the path quoted for an error message, cut where it is very long."""
    return repr(path if len(path) <= _MAX_SHOWN else path[:_MAX_SHOWN] + "…")


@dataclass(frozen=True)
class Root:
    """The project root as it was when it was named: another folder put in its place is not taken for it."""

    path: str
    """Its real, absolute path."""
    owner: int
    """The user to whom the folder belongs."""
    _spellings: tuple[list[str], ...]
    _identity: tuple[int, int]

    @classmethod
    def at(cls, path: Path) -> Root:
        """Return the root at `path`. Raises SandboxError where there is no such folder."""
        given, real = os.path.abspath(path), os.path.realpath(path)  # noqa: PTH100  # Path keeps a double slash
        try:
            status = os.stat(real)  # noqa: PTH116
        except OSError as error:
            raise SandboxError(f"project root {shown(given)}: {error.strerror}; give an existing folder") from None
        if not stat.S_ISDIR(status.st_mode):
            raise SandboxError(f"project root {shown(given)} is no folder; give an existing folder")
        return cls(real, status.st_uid, (_significant(given), _significant(real)), (status.st_dev, status.st_ino))

    def open(self) -> int:
        """Return a new descriptor of the root. Raises SandboxError where it is no longer the folder that it was."""
        try:
            fd = os.open(self.path, FOLDER)
        except OSError as error:
            raise SandboxError(f"project root {shown(self.path)}: {error.strerror}; start the run again") from None
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self._identity:
            os.close(fd)
            raise SandboxError(f"project root {shown(self.path)} was replaced meanwhile; start the run again")
        return fd

    def descend(self, folders: list[str]) -> int:
        """Return a descriptor of a folder below the root; a symbolic link among its components raises OSError."""
        fd = self.open()
        for folder in folders:
            try:
                deeper = os.open(folder, FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = deeper
        return fd

    def components(self, path: str) -> list[str]:
        """Return a path's components below the root. Raises SandboxError for an absolute path that is not below it.

        The last one is empty where the path can only mean a folder.
        """
        parts = _significant(path)
        if path.startswith("/"):
            below = [parts[len(root) :] for root in self._spellings if parts[: len(root)] == root]
            if not below:
                raise self.outside(path)
            parts = below[0]
        return [*parts, ""] if path.endswith(("/", "/.")) else parts

    def outside(self, path: str) -> SandboxError:
        """Return the error for a path that leaves the root."""
        return SandboxError(f"Path outside project root: {shown(path)}; give a path inside {shown(self.path)}")


def _significant(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


@dataclass
class Place:
    """Where a path leads: an open folder, and the names below it that are no folders. Whoever has it closes `fd`."""

    root: Root
    path: str
    """As it was given."""
    fd: int
    folders: list[str] = field(default_factory=list)
    """The way from the root to the open folder, without symbolic links."""
    rest: list[str] = field(default_factory=list)
    """Nothing for a folder; one existing name for another thing; else what does not exist (yet)."""
    exists: bool = True
    as_folder: bool = False
    """The path can only mean a folder, by a slash at its end."""

    def file_name(self) -> str:
        """Return the name of the file in the open folder. Raises OSError where the path is no file's."""
        if not self.rest or self.as_folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return self.rest[-1]

    def open_file(self, flags: int) -> int:
        """Return a descriptor of the existing regular file. Raises OSError for all else; never waits for a FIFO."""
        name = self.file_name()
        if not self.exists:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        # Looked at before, as opening a device may do something; and after, as it may be another by then.
        _require_regular(os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        fd = os.open(name, flags | FILE, dir_fd=self.fd)
        try:
            status = os.fstat(fd)
            _require_regular(status)
            self._refuse_link(status)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def check_links(self) -> None:
        """Raises SandboxError where the place is a hard link to a file that is none of the project's."""
        if self.rest and self.exists:
            self._refuse_link(os.stat(self.rest[0], dir_fd=self.fd, follow_symlinks=False))

    def _refuse_link(self, status: os.stat_result) -> None:
        if fault := link_fault(status, self.root.owner):
            raise SandboxError(f"{shown(self.path)} is refused: {fault}; make a copy of the file in its place")

    def make_parents(self) -> None:
        """Make the missing folders above the file and go down to the last of them. Raises OSError."""
        while len(self.rest) > 1:
            # Another may have made it meanwhile; a symbolic link is refused when it is entered.
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.rest[0], dir_fd=self.fd)
            self._go(os.open(self.rest[0], FOLDER, dir_fd=self.fd))
            self.folders.append(self.rest.pop(0))

    def up(self) -> None:
        """Follow `..`."""
        if self.rest:
            self.require_folder()
            self.rest.pop()
            self.exists = not self.rest
            return
        if self.folders:
            self._go(self.root.descend(self.folders[:-1]))
            self.folders.pop()
        elif self.root.path != "/":
            raise self.root.outside(self.path)

    def down(self, name: str) -> str | None:
        """Follow a name; return the target where it is a symbolic link, which is not followed."""
        if self.rest:
            self.require_folder()
            self.rest.append(name)
            return None
        try:
            self._go(os.open(name, FOLDER, dir_fd=self.fd))
        except FileNotFoundError:
            self.rest, self.exists = [name], False
            return None
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
        else:
            self.folders.append(name)
            return None
        return self._target(name)

    def restart(self) -> None:
        """Go back to the root."""
        self._go(self.root.open())
        self.folders.clear()

    def require_folder(self) -> None:
        """Raises NotADirectoryError where something else than a folder stands at the place."""
        if self.rest and self.exists:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _target(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        self.rest, self.exists = [name], True
        return None

    def _go(self, fd: int) -> None:
        os.close(self.fd)
        self.fd = fd


def follow(root: Root, path: str) -> Place:
    """Return where a path leads; its descriptor is the caller's to close.

    A name that does not exist leads nowhere, and `..` after it back again. Raises SandboxError for what leaves the root
    or is no path, OSError for what the system refuses.
    """
    _check(path)
    place = Place(root, path, root.open())
    try:
        _follow(place)
    except BaseException:
        os.close(place.fd)
        raise
    return place


def _follow(place: Place) -> None:
    pending = deque(place.root.components(place.path))
    links = 0
    while pending:
        name = pending.popleft()
        place.as_folder = name in ("", "..")
        if name == "..":
            place.up()
            continue
        if not name:
            place.require_folder()
            continue
        if (target := place.down(name)) is None:
            continue
        links += 1
        if links > MAX_LINKS:
            raise SandboxError(f"path {shown(place.path)} goes through more than {MAX_LINKS} symbolic links")
        try:
            pending.extendleft(reversed(place.root.components(target)))
        except SandboxError:
            raise place.root.outside(place.path) from None
        if target.startswith("/"):
            place.restart()


def _check(path: str) -> None:
    if not path:
        raise SandboxError("path '' is empty; give a path inside the project root, '.' for the root itself")
    if "\0" in path:
        raise SandboxError(f"path {shown(path)} holds a NUL character, which no path can")
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise SandboxError(f"path {shown(path)} holds a character that no file name can; give plain text") from None
    if len(raw) > MAX_PATH or any(len(name) > MAX_NAME for name in raw.split(b"/")):
        raise SandboxError(
            f"path {shown(path)} is too long, expected at most {MAX_PATH} bytes, and {MAX_NAME} in each name"
        )


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
    raise OSError(errno.EINVAL, f"it is {kind}, expected a regular file")
