"""The path sandbox of all file tools: nothing outside the project root is read, changed or listed (REQ-110)."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import secrets
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from aeon_core.errors import ToolError
from aeon_core.tools.shell.secret_paths import secret_files

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
            raise SandboxError(f"project root {shown(given)}: {error.strerror}; use an existing folder") from None
        if not stat.S_ISDIR(status.st_mode):
            raise SandboxError(f"project root {shown(given)} is not a folder; use an existing folder")
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
            raise SandboxError(f"project root {shown(self.path)} was replaced during the run; start the run again")
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
            raise SandboxError(f"{shown(self.path)} was refused: {fault}; replace it with a copy of the file")

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
        """Raises NotADirectoryError if the path is something other than a folder."""
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
    raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")


Secrets = Callable[[], frozenset[tuple[int, int]]]
"""Gives device and inode of the user's secret files; only asked for where a file has several names."""


def own_secrets() -> frozenset[tuple[int, int]]:
    """Return device and inode of this user's secret files."""
    return secret_files(os.environ)


def link_fault(status: os.stat_result, project_owner: int, secrets: Secrets = own_secrets) -> str | None:
    """Return why a file is refused for its links; None where it is not."""
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return None
    if status.st_uid not in {os.geteuid(), project_owner}:
        return "it is a hard link to a file of another user"
    if not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and not _keeps_all_private():
        return "it is a hard link to a file that only its owner may read"
    if (status.st_dev, status.st_ino) in secrets():
        return "it is a hard link to a file with settings or keys in your home"
    return None


@cache
def _keeps_all_private() -> bool:
    with suppress(OSError):
        found = re.search(r"(?m)^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text())
        return found is not None and int(found[1], 8) & 0o077 == 0o077
    return False


__all__ = ["FolderEntry", "Sandbox", "SandboxError"]


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """What a walk finds. A symbolic link is neither folder nor file here, wherever it leads."""

    path: str
    """Relative to the project root, with forward slashes."""
    is_dir: bool
    is_file: bool
    """A regular file."""
    is_symlink: bool


class Sandbox:
    """Files below one folder, by paths that may be hostile.

    Relative paths start at the root, whatever the working directory; absolute ones must lie below it. `~` is a name
    like any other. A symbolic link is followed where it stays inside, and refused where it leaves. Each component is
    opened in the folder before it and never by its whole path, so that swapping one for a link between check and use
    gains nothing. A hard link to a file of another user, or to one with keys, is refused (`hard_links.py`); a write to
    any other replaces the name inside and leaves the other file as it was. Holds no descriptor between calls; may be
    used from several threads.
    """

    def __init__(self, root: Path) -> None:
        """Raises SandboxError where `root` is no folder."""
        self._root = Root.at(root)

    @property
    def root(self) -> Path:
        """The project root, absolute and without symbolic links."""
        return Path(self._root.path)

    def relative(self, path: str) -> PurePosixPath:
        """Return where the path really leads, relative to the root; what it names need not exist.

        Raises SandboxError where it leads outside, also by a hard link, ToolError where it cannot be followed.
        """
        with self._place(path) as place:
            place.check_links()
            return PurePosixPath(*place.folders, *place.rest)

    def without_foreign_links(self, paths: list[str]) -> list[str]:
        """Return the paths, as a walk gives them, without hard links that are refused and without what is gone."""
        secrets = functools.cache(own_secrets)
        kept = []
        for path in paths:
            with contextlib.suppress(OSError):
                status = os.lstat(f"{self._root.path}/{path}")
                if link_fault(status, self._root.owner, secrets) is None:
                    kept.append(path)
        return kept

    def open_read(self, path: str) -> BinaryIO:
        """Return the regular file at the path, open for reading; the caller closes it.

        Raises SandboxError where it leads outside, ToolError where there is none or it is a folder, a FIFO or a device.
        """
        with self._place(path) as place:
            return os.fdopen(place.open_file(os.O_RDONLY), "rb")

    def exists(self, path: str) -> bool:
        """Return whether there is something at the path. Raises as `relative`."""
        with self._place(path) as place:
            return place.exists

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return a file's whole content. Raises as `open_read`, and ToolError where it has more than `limit` bytes."""
        with self._place(path) as place, os.fdopen(place.open_file(os.O_RDONLY), "rb") as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise ToolError(f"{shown(path)} is too large: it has more than {limit:,} bytes")
        return content

    def write_bytes(self, path: str, data: bytes) -> bool:
        """Make or replace the file at the path in one step, with the folders above it; return whether it is new.

        Through a symbolic link its target is written. An existing file keeps its mode. Raises SandboxError where the
        path leads outside, ToolError where it names no regular file or the system refuses.
        """
        with self._place(path) as place:
            name = place.file_name()
            status = _status_for_writing(place) if place.exists else None
            place.make_parents()
            _replace(place.fd, name, data, status)
            return status is None

    def walk(self, path: str = ".", enter: Callable[[FolderEntry], bool] | None = None) -> Iterator[FolderEntry]:
        """Return what is below a folder, each folder before its content and names in order; a file gives itself.

        `enter` says which folders to go into, else all. Symbolic links are listed and not followed; a folder that
        cannot be read is passed over. Raises SandboxError where the path leads outside, ToolError where there is
        nothing.
        """
        with self._place(path) as place:
            if not place.exists:
                raise FileNotFoundError
            if place.rest:
                return iter([_entry_of(place)])
            entries = _listed(place.fd, place.folders)
        return self._below(entries, enter)

    def _below(self, entries: list[FolderEntry], enter: Callable[[FolderEntry], bool] | None) -> Iterator[FolderEntry]:
        pending = entries[::-1]
        while pending:
            entry = pending.pop()
            yield entry
            if not entry.is_dir or (enter is not None and not enter(entry)):
                continue
            # A folder that vanished, or was swapped for a link, has nothing to list.
            with contextlib.suppress(OSError):
                pending += self._content(entry.path.split("/"))[::-1]

    def _content(self, folders: list[str]) -> list[FolderEntry]:
        fd = self._root.descend(folders)
        try:
            return _listed(fd, folders)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _place(self, path: str) -> Iterator[Place]:
        with _as_tool_error(path):
            place = follow(self._root, path)
            try:
                yield place
            finally:
                os.close(place.fd)


@contextlib.contextmanager
def _as_tool_error(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ToolError(f"there is no {shown(path)} in the project; look for it with Glob") from None
    except IsADirectoryError:
        raise ToolError(f"{shown(path)} names a folder, expected a file") from None
    except NotADirectoryError:
        raise ToolError(f"{shown(path)} goes through a file as if it were a folder") from None
    except OSError as error:
        raise ToolError(f"cannot use {shown(path)}: {error.strerror}") from None


def _status_for_writing(place: Place) -> os.stat_result:
    fd = place.open_file(os.O_WRONLY)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _replace(folder: int, name: str, data: bytes, existing: os.stat_result | None) -> None:
    temporary = f".aeon-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666 if existing is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            if existing is not None:
                _keep_owner_and_mode(fd, existing)
            os.fsync(fd)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _keep_owner_and_mode(fd: int, existing: os.stat_result) -> None:
    # Only root may give a file away; for others the file becomes theirs, as with any editor that replaces files.
    with contextlib.suppress(PermissionError):
        os.fchown(fd, existing.st_uid, existing.st_gid)
    os.fchmod(fd, stat.S_IMODE(existing.st_mode) & 0o777)


def _entry_of(place: Place) -> FolderEntry:
    status = os.stat(place.rest[0], dir_fd=place.fd, follow_symlinks=False)
    path = "/".join([*place.folders, *place.rest])
    return FolderEntry(path, False, stat.S_ISREG(status.st_mode), stat.S_ISLNK(status.st_mode))


def _listed(folder: int, folders: list[str]) -> list[FolderEntry]:
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(readable) as found:
            entries = [
                FolderEntry(
                    "/".join([*folders, item.name]),
                    item.is_dir(follow_symlinks=False),
                    item.is_file(follow_symlinks=False),
                    item.is_symlink(),
                )
                for item in found
            ]
    finally:
        os.close(readable)
    return sorted(entries, key=lambda entry: entry.path)
