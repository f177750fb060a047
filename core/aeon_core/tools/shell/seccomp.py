"""The system calls that commands may not make under bubblewrap, as a program for the kernel's seccomp filter.

The few instructions are written out here: libseccomp's Python bindings need the C library, and no wheel brings it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from functools import cache

_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
"""The bit that marks a call in the x32 form, which has numbers of its own."""
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which put text into a terminal as if it were typed."""
_DOMAINS = (socket.AF_INET, socket.AF_INET6, 16)
"""IPv4, IPv6 and netlink, which lists network interfaces. Without AF_UNIX no local service can be reached."""
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
def filter_program(machine: str | None = None) -> bytes | None:
    """Return the filter as the kernel takes it, for this machine or another (`os.uname().machine`); None if unknown.

    Calls fail with EPERM: sockets other than IPv4, IPv6 and netlink (a `socketpair` works, unless of datagrams, which
    could be sent elsewhere), new namespaces, typing into a terminal, and `_Machine.refused`. Every call in another form
    than the machine's own (i386, x32, 32-bit ARM) fails too, and `clone3`, whose flags cannot be seen, does not exist.
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
    domains = [_if(_EQUALS, domain, allow) for domain in _DOMAINS]
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
