"""The path sandbox of all file tools: nothing outside the project root is read, changed or listed (REQ-110)."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from aeon_core.errors import ToolError
from aeon_core.tools._sandbox_path import Place, Root, SandboxError, follow, shown
from aeon_core.tools.hard_links import link_fault, own_secrets

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
