"""Empty stand-ins for protected files that do not exist: a mount, which keeps a command from making one, needs a place.

They are in the project only while a command runs. Those that a killed process left are recognised by their mode, and
are removed with the next ones.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from aeon_core.paths import is_placeholder

_COMMON = "commondir"
_SAME = b".\n"
"""What git takes for no other folder than its own; it does not start where that file is empty or a folder."""
_LONGEST_WAIT = 1.0


@contextmanager
def placeholders(root: Path, missing: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Make a stand-in for each of `missing`, yield those that are there now, and remove them.

    Nobody's own file is taken for one or lost: what has content is left alone. The last process that has a command
    running in the project removes them. A path that cannot be made here can be made by no command either.
    """
    lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(lock)
        yield tuple(path for path in missing if _made(path))
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in missing:
                _remove(path)
    finally:
        os.close(lock)


def _lock(descriptor: int) -> None:
    """Say that stand-ins are in use. A file system without locks, or a lock of another program, does not hinder."""
    latest = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < latest:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return
        else:
            return


def _made(path: Path) -> bool:
    try:
        if path.name == _COMMON:
            _make_whole(path, _SAME)
        else:
            path.mkdir()
            path.chmod(0o1755)
    except FileExistsError:
        return is_placeholder(path)
    except OSError:
        return False
    return True


def _make_whole(path: Path, content: bytes) -> None:
    """Make a file that nobody sees without its content. Raises FileExistsError."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(content)
        temporary.chmod(0o1644)
        path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if not is_placeholder(path):
            return
        if stat.S_ISDIR(path.lstat().st_mode):
            path.rmdir()
        elif path.read_bytes() == _SAME:
            path.unlink()
