"""The command line of bubblewrap that shuts a command in: the first and best rung of isolation."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aeon_core.paths import is_placeholder
from aeon_core.tools.shell.settings import Limits

_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
"""The bit that marks a call in the x32 form, which has numbers of its own."""
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which put text into a terminal as if it were typed."""
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_NETLINK = 16
"""It lists network interfaces. Without AF_UNIX no local service can be reached."""
_TYPE_BITS, _DATAGRAM = 0xF, 2


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    """The kernel's AUDIT_ARCH of its native calls."""
    socket: int
    socketpair: int
    clone: int
    ioctl: int
    refused: tuple[int, ...]
    """ptrace and process_vm_*, keys, userfaultfd, mounts and namespaces, bpf and perf, file handles, modules, kexec,
    swap, quotas, accounting, the clock, the host's name, the kernel's log, fanotify, kcmp, vhangup, dcookies."""


_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 467)
"""io_uring, the newer calls for mounts, pidfd_getfd, process_madvise, quotactl_fd: the same numbers on all machines."""
_CLONE3 = 435
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 41, 53, 56, 16,
        (101, 310, 311, 248, 249, 250, 323, 165, 166, 155, 161, 272, 308, 321, 298, 303, 304, 175, 313, 176, 246, 320,
         167, 168, 179, 163, 164, 227, 170, 171, 103, 300, 312, 153, 212, 154, 169, 172, 173),
    ),
    "aarch64": _Machine(
        0xC00000B7, 198, 199, 220, 29,
        (117, 270, 271, 217, 218, 219, 282, 40, 39, 41, 51, 97, 268, 280, 241, 264, 265, 105, 273, 106, 104, 294,
         224, 225, 60, 89, 170, 112, 161, 162, 116, 262, 272, 58, 18, 142),
    ),
}  # fmt: skip


@cache
def filter_program(machine: str | None = None, *, internet: bool = True) -> bytes | None:
    """Return the filter as the kernel takes it, for this machine or another (`os.uname().machine`); None if unknown.

    Calls fail with EPERM: sockets other than netlink and, with `internet`, IPv4 and IPv6 (a `socketpair` works, unless
    of datagrams, which could be sent elsewhere), new namespaces, typing into a terminal, and `_Machine.refused`. Every
    call in another form than the machine's own (i386, x32, 32-bit ARM) fails too, and `clone3`, whose flags cannot be
    seen, does not exist.
    """
    known = _MACHINES.get(machine if machine is not None else os.uname().machine)
    if known is None or sys.byteorder != "little":
        return None
    refuse = _statement(_RETURN, _FAIL | errno.EPERM)
    allow = _statement(_RETURN, _ALLOW)
    lines = [_statement(_LOAD, _ARCHITECTURE), _unless(_EQUALS, known.architecture, refuse)]
    lines += [_statement(_LOAD, _NUMBER), _if(_AT_LEAST, _X32, refuse)]
    lines += [_if(_EQUALS, number, refuse) for number in (*known.refused, *_EVERYWHERE)]
    lines.append(_if(_EQUALS, _CLONE3, _statement(_RETURN, _FAIL | errno.ENOSYS)))
    domains = [_if(_EQUALS, domain, allow) for domain in (_NETLINK, *(_INTERNET if internet else ()))]
    lines.append(_if(_EQUALS, known.socket, _argument(0) + b"".join(domains) + refuse))
    kind = _argument(1) + _statement(_AND, _TYPE_BITS) + _if(_EQUALS, _DATAGRAM, refuse) + allow
    lines.append(_if(_EQUALS, known.socketpair, kind))
    lines.append(_if(_EQUALS, known.clone, _argument(0) + _if(_HAS_BITS, _NEW_NAMESPACES, refuse) + allow))
    requests = [_if(_EQUALS, request, refuse) for request in _TERMINAL_INPUT]
    lines.append(_if(_EQUALS, known.ioctl, _argument(1) + b"".join(requests) + allow))
    return b"".join(lines) + allow


def filter_file(program: bytes) -> int:
    """Return a descriptor from which a filter program can be read once, to its end; the caller closes it."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(program)  # far less than a pipe holds
    return reading


def _argument(index: int) -> bytes:
    # The lower half: the kernel takes these arguments as 32-bit numbers.
    return _statement(_LOAD, _ARGUMENTS + 8 * index)


def _statement(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _if(test: int, value: int, then: bytes) -> bytes:
    return struct.pack("=HBBI", test, 0, _length(then), value) + then


def _unless(test: int, value: int, then: bytes) -> bytes:
    return struct.pack("=HBBI", test, _length(then), 0, value) + then


def _length(block: bytes) -> int:
    return len(block) // 8


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


TEMP = "/tmp"  # noqa: S108  # the command's own, of which this is the place inside
_UNSHARED = ("user", "ipc", "pid", "uts")
_RUN = Path("/run")
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")


def bubblewrap(program: str, limits: Limits, status: int, seccomp: int | None = None) -> list[str]:
    """Return what to put before a command, which ends with all its processes when it or Aeon does.

    Inside, all is read-only but the project root, its repository and a private `/tmp`; other processes, the user's
    session sockets in `/run` and places with keys are not there; `status` gets JSON lines, one with the command's
    `exit-code`. `seccomp` is a descriptor with a filter program.
    """
    line = [program, "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-cgroup-try"]
    line += [f"--unshare-{kind}" for kind in _UNSHARED]
    line += [] if limits.network else ["--unshare-net"]
    line += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root may write to the kernel's settings without any capability: `core_pattern` names a program that it starts.
    line += [word for place in _KERNEL for word in _bind("--ro-bind-try", place, place)]
    line += _runtime(limits.network)
    line += _bind("--bind", limits.scratch, TEMP) + _bind("--bind", limits.scratch, "/var/tmp")  # noqa: S108
    for place, mount in sorted(_mounts(limits), key=lambda entry: len(entry[0].parts)):
        _unlink_on_the_way(place, limits.scratch)
        line += mount
    # Only now: mounts below them need their mount points.
    for place in (*limits.hidden, *limits.placeholders):
        line += ["--remount-ro", str(place)] if place.is_dir() else []
    line += [] if seccomp is None else ["--seccomp", str(seccomp)]
    return [*line, "--chdir", str(limits.root), "--json-status-fd", str(status), "--"]


def _runtime(network: bool) -> list[str]:
    """Hide the daemons' sockets, which a read-only mount would leave open, and keep what lookups of names need."""
    line = ["--tmpfs", str(_RUN)]
    if not Path("/var/run").is_symlink() and Path("/var/run").is_dir():
        line += ["--tmpfs", "/var/run"]
    kept = [_RUN / "current-system"]
    if network:
        kept.append(Path("/etc/resolv.conf").resolve())
    for place in kept:
        if place.is_relative_to(_RUN) and place.exists():
            line += _bind("--ro-bind", place, place)
    return line


def _mounts(limits: Limits) -> list[tuple[Path, list[str]]]:
    """Return place and mount, to be sorted by depth: a deeper mount overrides those above it."""
    writable = (limits.root, *limits.git_folders)
    mounts = [(place, _hide(place)) for place in limits.hidden]
    mounts += [(place, _bind("--bind", place, place)) for place in writable]
    mounts += [(place, _bind("--ro-bind-try", place, place)) for place in limits.shown]
    # A mount cannot be renamed: without these, what is protected could be swapped with a folder around it.
    around = {folder for place in (*limits.protected, *limits.placeholders) for folder in _between(place, writable)}
    mounts += [(place, _bind("--bind", place, place)) for place in sorted(around.difference(limits.protected))]
    protected = [place for place in limits.protected if place not in limits.hidden]
    mounts += [(place, _bind("--ro-bind", place, place)) for place in protected]
    mounts += [
        (place, _hide(place) if place.is_dir() else _bind("--ro-bind", place, place)) for place in limits.placeholders
    ]
    return mounts


def _between(place: Path, tops: tuple[Path, ...]) -> list[Path]:
    """Return the folders around the place, up to one of `tops`."""
    return [folder for folder in place.parents if any(folder != top and folder.is_relative_to(top) for top in tops)]


def _unlink_on_the_way(place: Path, scratch: Path) -> None:
    """Remove the links that an earlier command left where a mount's place is made: bwrap would follow them outside."""
    for temp in (Path(TEMP), Path("/var/tmp")):  # noqa: S108
        if not place.is_relative_to(temp):
            continue
        inside = scratch
        for part in place.relative_to(temp).parts:
            inside /= part
            if inside.is_symlink():
                inside.unlink()


def _hide(place: Path) -> list[str]:
    if place.is_dir():
        return ["--tmpfs", str(place)]
    return _bind("--ro-bind", os.devnull, place)


def _bind(option: str, source: str | Path, target: str | Path) -> list[str]:
    return [option, str(source), str(target)]
