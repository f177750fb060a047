"""Opens files with untrusted names: only regular files, without waiting, and reading no more than a limit.

Also replaces files atomically: a reader sees the old content or the new one, never a part.

A name in a project or on a command line may lead to a pipe that nobody writes to, a terminal, a device without end or
a socket. Reading one would hang the command that meets it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from aeon_core.errors import UsageError, reason_of

_CHUNK = 1 << 20
_KINDS = (
    (stat.S_ISFIFO, "it is a pipe, not a regular file; save its output to a file"),
    (stat.S_ISCHR, "it is a device, not a regular file"),
    (stat.S_ISBLK, "it is a device, not a regular file"),
    (stat.S_ISSOCK, "it is a socket, not a regular file"),
)


def open_regular(path: Path | str) -> int:
    """Return a descriptor of a regular file, not inherited by children; the caller closes it.

    Raises OSError for anything else, whose `strerror` says what it is; a device or a socket is not even opened.
    """
    try:
        require_regular(Path(path).stat().st_mode)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except UnicodeEncodeError:
        raise OSError(errno.EINVAL, "its name contains a lone surrogate") from None
    except ValueError:
        raise OSError(errno.EINVAL, "its name contains a NUL character") from None
    try:
        # The name may lead to another file by now.
        require_regular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def closing_fd(descriptor: int) -> Iterator[int]:
    """Yield a file descriptor, and close it afterwards."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_start(path: Path | str, size: int) -> bytes:
    """Return at most `size` bytes of the beginning of a regular file. Raises OSError."""
    with closing_fd(open_regular(path)) as descriptor:
        chunks, left = [], size
        while left > 0 and (chunk := os.read(descriptor, min(left, _CHUNK))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)


def start_of_text(path: Path | str, size: int) -> str:
    """Return the text of the first `size` bytes of a regular file, or in parentheses why it cannot be read."""
    try:
        return read_start(path, size).decode("utf-8", "replace")
    except OSError as error:
        return f"({reason_of(error).lower()})"


def read_whole(path: Path | str, most: int) -> bytes:
    """Return all of a regular file. Raises OSError, also for one of more than `most` bytes."""
    data = read_start(path, most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes")
    return data


def read_text(path: Path | str, where: str, most: int, *, encoding: str = "utf-8-sig") -> str:
    """Return the UTF-8 text of a regular file; `where` names it in errors.

    A byte order mark is left out, but not with the `encoding` utf-8. Raises UsageError in one line.
    """
    try:
        data = read_start(path, most + 1)
    except OSError as error:
        raise UsageError(f"cannot read {where}: {reason_of(error)}") from None
    if len(data) > most:
        raise UsageError(f"{where} is larger than {most:,} bytes; shorten it")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise UsageError(f"{where} is not UTF-8 text: byte {error.start} is {byte:#04x}; save it as UTF-8") from None


def require_regular(mode: int) -> None:
    """Raise OSError for the mode of anything but a regular file; `strerror` says what it is."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        reason = next((reason for is_kind, reason in _KINDS if is_kind(mode)), "it is not a regular file")
        raise OSError(errno.EINVAL, reason)


def replace_file(
    file: Path,
    data: bytes,
    like: os.stat_result | None = None,
    *,
    mode: int = 0o600,
    durable: bool = True,
    folder: int | None = None,
    during: AbstractContextManager[None] | None = None,
) -> None:
    """Replace a file's content; if that fails, the file stays as it was.

    The file takes the owner and permissions of `like`, or `mode` less the umask. With `durable` the content is on the
    disk before the file is replaced. `folder` is a descriptor that a relative path starts at; the replacement itself
    is made within `during`. Raises OSError.
    """
    new = file.with_name(f".{file.name.lstrip('.')[:40]}-{os.urandom(4).hex()}")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    # The system applies the umask: reading it means changing it, which would affect files that runs write meanwhile.
    descriptor = os.open(new, flags, mode if like is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(data)
            if durable:
                written.flush()
                os.fsync(descriptor)
            if like is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
                os.fchmod(descriptor, like.st_mode & 0o777)
        with during or contextlib.nullcontext():
            os.replace(new, file, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise
