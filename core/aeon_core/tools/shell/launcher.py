"""A program between Aeon and a command: drops rights, waits for the command, and ends all its processes.

It runs as a script in a fresh interpreter with only the standard library, since a process with threads cannot enter
Landlock safely: `python -I -S launcher.py LIMITS COMMAND…`. LIMITS is JSON: `landlock` says whether to confine the
command at all; `write` lists the writable paths, `hide` the unreadable ones, `show` the readable ones among these;
`seccomp` is a descriptor with a system-call filter, or null; `status` is a descriptor that gets `{"exit-code": N}` once
the command has ended. Without that line, the command never ran, and the reason is on standard error.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_PR_CAPBSET_DROP, _CAPABILITIES = 24, 64
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 1, 36, 38, 22, 2
_INSTRUCTION = 8
"""The size of a filter's instruction in bytes."""

_WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 14))
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

_TRUNCATE_ABI, _SCOPE_ABI = 3, 6

_LONGEST_KILL = 5.0
"""The most seconds to spend on killing, since processes of another user cannot be killed."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(limits: dict[str, Any], command: Sequence[str]) -> int:
    """Run the command within the limits and return its exit code, 128 + n if signal n ended it."""
    os.set_inheritable(limits["status"], False)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _end)
    problems, failure = os.pipe()
    child = os.fork()
    if child == 0:
        _become(limits, command, failure)
    os.close(failure)
    try:
        with os.fdopen(problems, "rb") as pipe:
            problem = pipe.read()
        code = _reap(child)
    finally:
        _kill_descendants()
    if problem:
        sys.stderr.buffer.write(problem)
        return 125
    os.write(limits["status"], json.dumps({"exit-code": code}).encode())
    return code


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _become(limits: dict[str, Any], command: Sequence[str], failure: int) -> NoReturn:
    """Confine this process and run the command in it; why it could not be run goes to the descriptor `failure`."""
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if limits["landlock"]:
            # Root's capabilities would let it read the environment of any process.
            for capability in range(_CAPABILITIES):
                with suppress(OSError):
                    _prctl(_PR_CAPBSET_DROP, capability)
            restrict(limits["write"], limits["hide"], limits["show"])
        if limits["seccomp"] is not None:
            _filter_calls(limits["seccomp"])
        os.execv(command[0], list(command))  # noqa: S606  # what this program is for
    except BaseException as error:
        os.write(failure, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:1000])
    finally:
        os._exit(125)


def _reap(child: int) -> int:
    """Wait for the child, and for orphans that this process inherits meanwhile; return the child's exit code."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _kill_descendants() -> None:
    """Kill all descendants of this process until none is left: it inherits the children of those that die.

    They are stopped first, since a process that forks fast enough would outrun the killing.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    latest = time.monotonic() + _LONGEST_KILL
    stopped: set[int] = set()
    while (found := set(_descendants()) - stopped) and time.monotonic() < latest:
        _send(found, signal.SIGSTOP)
        stopped |= found
    while time.monotonic() < latest:
        _send(_descendants(), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, _names("/proc")):
        with suppress(OSError):
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123  # pathlib takes a while to load
                # The second field is the program's name, which may contain anything.
                parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def restrict(write: Sequence[str], hide: Sequence[str], show: Sequence[str]) -> None:
    """Irrevocably limit this process: it writes only beneath `write`, and reads nothing in `hide` except for `show` and
    `write`. A folder that contains something hidden cannot be listed.

    Raises OSError if the kernel cannot enforce all of that.
    """
    abi = _checked("landlock", _landlock_abi())
    if abi < _TRUNCATE_ABI:
        raise OSError(errno.ENOSYS, f"this kernel's Landlock (version {abi}) is too old")
    changes = _WRITE_FILE | _CHANGE_FOLDER | _TRUNCATE
    handled = struct.pack("=QQQ", changes | _READ_FILE | _READ_FOLDER, 0, _ABSTRACT_SOCKETS_AND_SIGNALS)
    # Older kernels know only the first field.
    size = 24 if abi >= _SCOPE_ABI else 8
    ruleset = _checked("landlock", _libc.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(size), 0))
    for path in write:
        _allow(ruleset, path, changes)
    # Writable paths are also readable, even inside hidden ones.
    for top in ("/", *write, *show):
        for path in _all_but(set(hide), top):
            _allow(ruleset, path, _READ_FILE | _READ_FOLDER)
    _allow(ruleset, "/etc", _READ_FOLDER)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _checked("landlock", _libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def holds_signals() -> bool:
    """Return whether the kernel keeps a process confined by `restrict` from signalling others: from Linux 6.12 on."""
    return _landlock_abi() >= _SCOPE_ABI


def _landlock_abi() -> int:
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))


def _allow(ruleset: int, path: str, access: int) -> None:
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a path that is missing or inaccessible needs no rule
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        access &= ~(_CHANGE_FOLDER | _READ_FOLDER)
    rule = struct.pack("=Qi", access, place)
    _checked("landlock", _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    os.close(place)


def _all_but(hide: set[str], folder: str = "/") -> Iterator[str]:
    """Yield paths that together contain every file except those in `hide`: rules can allow a tree, not forbid a part of
    it.
    """
    beneath = folder.rstrip("/") + "/"
    if not any(path.startswith(beneath) for path in hide):
        yield folder
        return
    for name in _names(folder):
        path = beneath + name
        if path not in hide:
            yield from _all_but(hide, path)


def _names(folder: str) -> list[str]:
    """Return the entries of a folder except links, whose targets are elsewhere; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.is_symlink()]
    except OSError:
        return []


def _filter_calls(descriptor: int) -> None:
    """Make the kernel refuse, irrevocably, the system calls that the filter program in a descriptor refuses."""
    program = os.read(descriptor, 65536)
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // _INSTRUCTION, ctypes.addressof(buffer))
    _checked("seccomp", _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), described, 0, 0))
    os.close(descriptor)


def _prctl(option: int, value: int) -> None:
    _checked("prctl", _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0))


def _checked(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
