"""Isolation of commands: the limits that this machine can enforce, and how (REQ-115)."""

from __future__ import annotations

import errno
import functools
import json
import os
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from aeon_core.errors import ToolError
from aeon_core.paths import program_outside, real_path
from aeon_core.tools.shell.launcher import holds_signals
from aeon_core.tools.shell.process import CommandJob, CommandOutput, run
from aeon_core.tools.shell.settings import ShellSettings

Rung = Literal["bubblewrap", "landlock", "none"]

_LAUNCHER = Path(__file__).with_name("launcher.py")
_RESOLVER = "/etc/resolv.conf"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_TEMPORARY = ("/run", "/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # what others have there is hidden
_NEEDED_OF_RUN = ("/run/current-system", "/run/opengl-driver")
_OPEN = ".git/hooks, .git/config, .venv, .aeon and other project files that run later"
_SIGNALS = "signals to your other processes, which can end them"
_PROBE_SECONDS = 20.0
_PROBE = """
[ "$(cat "$1/key" 2>/dev/null)" = key ] && echo "it reads what is hidden"
[ "$(cat "$1/shown" 2>/dev/null)" = shown ] || echo "it cannot read what is shown among what is hidden"
echo no 2>/dev/null > "$2" || true
echo yes > "$3/probe" || echo "it cannot write to its folder"
[ -n "$4" ] && (exec 3<>"/dev/tcp/127.0.0.1/$4") 2>/dev/null && echo "it reaches the network"
[ -n "$5" ] && while read -r name value; do
    [ "$name" = Seccomp: ] && [ "$value" != 2 ] && echo "it lets all system calls through"
done < /proc/self/status
exit 0
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """All paths are absolute, resolved, and exist."""

    root: Path
    """The project root: read and write."""
    scratch: Path
    """A folder for temporary files: read and write."""
    network: bool
    hidden: tuple[Path, ...] = ()
    """Places with keys: neither read nor write, except for what is `shown` in them. They may contain the root."""
    shown: tuple[Path, ...] = ()
    """Readable places within hidden ones or among the temporary files. They may be symbolic links."""
    protected: tuple[Path, ...] = ()
    """Read-only places within writable ones. Only bubblewrap enforces them."""
    placeholders: tuple[Path, ...] = ()
    """Placeholders for paths that must not be created: commands see them as empty and cannot change them."""
    git_folders: tuple[Path, ...] = ()
    """Repositories outside the root that its `.git` belongs to: read and write."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """A way to confine commands, `none` if nothing works; `why` says why better ones do not work.

    Only bubblewrap keeps commands from changing what is `protected`, and the mode, owner and times of files elsewhere.
    Landlock neither hides other processes nor limits their number for root; before Linux 6.12, it does not prevent
    signals to them either.
    """

    name: Rung
    network: bool
    why: str = ""

    def describe(self) -> str:
        """Return in one line what commands can and cannot do."""
        network = "network open" if self.network else "no network"
        home = "your home {} except toolchains"
        if self.name == "bubblewrap":
            return (
                "bubblewrap: writes only inside the project, except to files that run later (.git/hooks, .venv, …), "
                f"{network}, {home.format('hidden')}, other processes hidden, {self._calls()}"
            )
        if self.name == "landlock":
            return (
                f"Landlock: writes only inside the project, {network}, {home.format('unreadable')}, {self._calls()}; "
                f"NOT blocked: changes to {_OPEN}, permissions and times of files elsewhere"
                f"{'' if holds_signals() else f', {_SIGNALS} (Linux before 6.12)'}; install bubblewrap to block these"
            )
        return f"no isolation ({self.why}): commands can do everything you can, so each one needs approval"

    def _calls(self) -> str:
        if self.seccomp is None:
            return f"Unix sockets, ptrace and mounts open (no filter for {os.uname().machine})"
        devices = "; as root, they can change the mode of devices such as /dev/null" if os.getuid() == 0 else ""
        return f"Unix sockets, ptrace and mounts blocked{devices}"

    @property
    def warning(self) -> str:
        """One line for the start of a run about limits that are not enforced; empty under bubblewrap."""
        if self.name == "none":
            return f"Commands cannot be isolated here ({self.why}), so each one needs approval."
        if self.protects:
            return ""
        signals = "" if holds_signals() else ", and end your other processes"
        return f"Commands can change {_OPEN}{signals}: {self.why}. Install bubblewrap to block that."

    @property
    def protects(self) -> bool:
        """Whether commands cannot change files that other programs run later, such as `.git/hooks`."""
        return self.name == "bubblewrap"

    @property
    def seccomp(self) -> bytes | None:
        """The system-call filter for commands; None if there is none."""
        # Under bubblewrap, commands without network have their own, which reaches nothing else.
        return filter_program(internet=self.network or self.name == "bubblewrap") if self.name != "none" else None

    @property
    def supervised(self) -> bool:
        """Whether a program between Aeon and the command reports its exit code and ends its processes."""
        has_launcher = sys.platform == "linux" and bool(sys.executable) and Path("/proc/self/stat").exists()
        return self.name != "none" or has_launcher

    def temp(self, limits: Limits) -> str:
        """Return the path of the folder for temporary files as the command sees it."""
        return TEMP if self.name == "bubblewrap" else str(limits.scratch)

    def command(self, words: Sequence[str], limits: Limits, status: int, seccomp: int | None = None) -> list[str]:
        """Return the words that run `words` within the limits and report the exit code to the descriptor `status`.

        `seccomp` is a descriptor from which the filter can be read.
        """
        if self.name == "bubblewrap":
            return [*bubblewrap(program_outside(limits.root, "bwrap") or "", limits, status, seccomp), *words]
        return [*self._launcher(limits, status, seccomp), *words] if self.supervised else list(words)

    def job(self, words: Sequence[str], limits: Limits, env: Mapping[str, str], seconds: float) -> CommandJob:
        """Return the job that runs `words` within the limits, in the project root."""
        return CommandJob(
            partial(self.command, words, limits), self.supervised, limits.root, env, seconds, self.seccomp
        )

    def _launcher(self, limits: Limits, status: int, seccomp: int | None) -> list[str]:
        options = {
            "landlock": self.name != "none",
            "seccomp": seccomp,
            "write": [*map(str, (limits.root, limits.scratch, *limits.git_folders)), *_DEVICES],
            "hide": [*(str(real_path(place)) for place in limits.hidden), *_TEMPORARY, "/dev"],
            "show": [*(str(real_path(place)) for place in limits.shown), *_NEEDED_OF_RUN, os.path.realpath(_RESOLVER)],
            "status": status,
        }
        return [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(options)]


def npm_settings(isolation: Isolation, temp: str) -> dict[str, str]:
    """Return the variables that npm needs: a cache it can write when it downloads, since it ignores XDG_CACHE_HOME.

    Without network it reads the user's own cache, and a download fails at once, not after a minute of retries.
    """
    return {"npm_config_cache": f"{temp}/cache/npm"} if isolation.network else {"npm_config_fetch_retries": "0"}


def probe(root: Path, settings: ShellSettings) -> Isolation:
    """Return the best isolation that works here, found by running something in each; cached in this process."""
    return _probed(real_path(root), settings.network)


@functools.cache
def _probed(root: Path, network: bool) -> Isolation:
    if root == Path("/"):
        return Isolation("none", True, "the project root is the whole file system")
    if sys.platform != "linux":
        return Isolation("none", True, f"it needs Linux, but this is {sys.platform}")
    reasons: list[str] = []
    rungs: tuple[Rung, ...] = ("bubblewrap", "landlock")
    for name in rungs:
        isolation = Isolation(name, network, "; ".join(reasons))
        fault = fault_of(isolation, root)
        if fault is None:
            return isolation
        reasons.append(f"{name}: {fault}")
    return Isolation("none", True, "; ".join(reasons))


def fault_of(isolation: Isolation, root: Path) -> str | None:
    """Return the limit that the isolation does not enforce, or why it does not run; None if it works."""
    if isolation.name == "bubblewrap" and program_outside(root, "bwrap") is None:
        return "bwrap is not installed"
    shell = shutil.which("bash")
    if shell is None:
        return "bash is not installed"
    try:
        with ExitStack() as stack:
            scratch, outside = (real_path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
            return _tried(isolation, shell, root, scratch, outside)
    except ToolError as error:
        return error.message.splitlines()[-1][:200]
    except OSError as error:
        return str(error)[:200]


def _tried(isolation: Isolation, shell: str, root: Path, scratch: Path, outside: Path) -> str | None:
    target = outside / "written"
    for name in ("key", "shown"):
        (outside / name).write_text(name)
    limits = Limits(root, scratch, isolation.network, hidden=(outside,), shown=(outside / "shown",))
    with socket.socket() as listener:
        port = "" if isolation.network else _listen(listener)
        places = [str(outside), str(target), isolation.temp(limits), port, "filtered" if isolation.seccomp else ""]
        words = [shell, "--noprofile", "--norc", "-c", _PROBE, "probe", *places]
        output, env = CommandOutput(lambda: scratch), {"PATH": os.environ.get("PATH", os.defpath)}
        ended = run(isolation.job(words, limits, env, _PROBE_SECONDS), output)
    if faults := output.text("stdout").strip():
        return faults.splitlines()[0]
    if ended.by != "itself" or ended.exit_code:
        return f"a first command in it failed: {output.text('stderr').strip()[-200:]}"
    return "it writes outside" if target.exists() or not (scratch / "probe").exists() else None


def _listen(listener: socket.socket) -> str:
    with suppress(OSError):
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return str(listener.getsockname()[1])
    return ""


# The command line of bubblewrap.

TEMP = "/tmp"  # noqa: S108  # the command's own, of which this is the place inside
_UNSHARED = ("user", "ipc", "pid", "uts")
_RUN = Path("/run")
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")


def bubblewrap(program: str, limits: Limits, status: int, seccomp: int | None = None) -> list[str]:
    """Return the words to put before a command, which ends with all its processes when it or Aeon ends.

    Inside, everything is read-only except the project root, its repository and a private `/tmp`; other processes, the
    user's session sockets in `/run` and places with keys are missing; `status` gets JSON lines, one with the command's
    `exit-code`. `seccomp` is a descriptor with a filter program.
    """
    line = [program, "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-cgroup-try"]
    line += [f"--unshare-{kind}" for kind in _UNSHARED]
    line += [] if limits.network else ["--unshare-net"]
    line += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root can write the kernel's settings without any capability: `core_pattern` names a program that the kernel
    # starts.
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
    """Hide the daemons' sockets, which a read-only mount would leave usable, and keep what name lookups need."""
    line = ["--tmpfs", str(_RUN)]
    if not Path("/var/run").is_symlink() and Path("/var/run").is_dir():
        line += ["--tmpfs", "/var/run"]
    kept = [_RUN / "current-system"]
    if network:
        kept.append(real_path("/etc/resolv.conf"))
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
    # A mount cannot be renamed: without these, a folder around a protected place could be replaced.
    folders = {folder for place in (*limits.protected, *limits.placeholders) for folder in place.parents}
    around = {folder for folder in folders if set(writable).intersection(folder.parents)}
    mounts += [(place, _bind("--bind", place, place)) for place in sorted(around.difference(limits.protected))]
    protected = [place for place in limits.protected if place not in limits.hidden]
    mounts += [(place, _bind("--ro-bind", place, place)) for place in protected]
    mounts += [
        (place, _hide(place) if place.is_dir() else _bind("--ro-bind", place, place)) for place in limits.placeholders
    ]
    return mounts


def _unlink_on_the_way(place: Path, scratch: Path) -> None:
    """Remove links that an earlier command left on the way to a mount point: bwrap would follow them outside."""
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


# The system-call filter, in the kernel's own instructions.

_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
"""The bit that marks a call in the x32 ABI, which has its own numbers."""
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which enter text into a terminal as if it were typed."""
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_NETLINK = 16
"""AF_NETLINK lists network interfaces. Without AF_UNIX, no local service can be reached."""
_TYPE_BITS, _DATAGRAM = 0xF, 2
_SETUID = 0o4000
_CREATES = 0o20000100
"""O_CREAT and O_TMPFILE, without which `open` has no mode."""


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    """The kernel's AUDIT_ARCH of native calls."""
    socket: int
    socketpair: int
    prlimit: int
    clone: int
    ioctl: int
    modes: tuple[tuple[int, int], ...]
    """chmod, fchmod, fchmodat, creat, mknod, mknodat, as far as they exist; each with the place of the mode."""
    opens: tuple[tuple[int, int], ...]
    """open and openat; each with the place of the flags, after which comes the mode."""
    refused: tuple[int, ...]
    """ptrace and process_vm_*, keys, userfaultfd, mounts and namespaces, bpf and perf, file handles, modules, kexec,
    swap, quotas, accounting, the clock, the host's name, the kernel's log, fanotify, kcmp, vhangup, dcookies."""


_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 467)
"""io_uring, the newer calls for mounts, pidfd_getfd, process_madvise, quotactl_fd: the same numbers on all machines."""
_CLONE3, _OPENAT2 = 435, 437
_FCHMODAT2 = (452, 2)
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 41, 53, 302, 56, 16,
        ((90, 1), (91, 1), (268, 2), (85, 1), (133, 1), (259, 2)), ((2, 1), (257, 2)),
        (101, 310, 311, 248, 249, 250, 323, 165, 166, 155, 161, 272, 308, 321, 298, 303, 304, 175, 313, 176, 246, 320,
         167, 168, 179, 163, 164, 227, 170, 171, 103, 300, 312, 153, 212, 154, 169, 172, 173),
    ),
    "aarch64": _Machine(
        0xC00000B7, 198, 199, 261, 220, 29,
        ((52, 1), (53, 2), (33, 2)), ((56, 2),),
        (117, 270, 271, 217, 218, 219, 282, 40, 39, 41, 51, 97, 268, 280, 241, 264, 265, 105, 273, 106, 104, 294,
         224, 225, 60, 89, 170, 112, 161, 162, 116, 262, 272, 58, 18, 142),
    ),
}  # fmt: skip


@functools.cache
def filter_program(machine: str | None = None, *, internet: bool = True) -> bytes | None:
    """Return the filter in the kernel's form, for this machine or another (`os.uname().machine`); None if unknown.

    Calls fail with EPERM: sockets other than netlink and, with `internet`, IPv4 and IPv6 (a `socketpair` works, unless
    of datagrams, which could be sent elsewhere), limits of a process given by its number, new namespaces, typing into a
    terminal, modes with the setuid bit (it would lend this user's rights to others), and `_Machine.refused`. Every call
    of a foreign ABI (i386, x32, 32-bit ARM) fails too; `clone3` and `openat2`, whose flags cannot be inspected, are
    reported as missing.
    """
    known = _MACHINES.get(machine if machine is not None else os.uname().machine)
    if known is None or sys.byteorder != "little":
        return None
    refuse = _statement(_RETURN, _FAIL | errno.EPERM)
    allow = _statement(_RETURN, _ALLOW)
    lines = [_statement(_LOAD, _ARCHITECTURE), _unless(_EQUALS, known.architecture, refuse)]
    lines += [_statement(_LOAD, _NUMBER), _if(_AT_LEAST, _X32, refuse)]
    lines += [_if(_EQUALS, number, refuse) for number in (*known.refused, *_EVERYWHERE)]
    lines += [_if(_EQUALS, number, _statement(_RETURN, _FAIL | errno.ENOSYS)) for number in (_CLONE3, _OPENAT2)]
    for number, place in (*known.modes, _FCHMODAT2):
        lines.append(_if(_EQUALS, number, _argument(place) + _if(_HAS_BITS, _SETUID, refuse) + allow))
    for number, place in known.opens:
        mode = _argument(place + 1) + _if(_HAS_BITS, _SETUID, refuse)
        lines.append(_if(_EQUALS, number, _argument(place) + _if(_HAS_BITS, _CREATES, mode) + allow))
    domains = [_if(_EQUALS, domain, allow) for domain in (_NETLINK, *(_INTERNET if internet else ()))]
    lines.append(_if(_EQUALS, known.socket, _argument(0) + b"".join(domains) + refuse))
    kind = _argument(1) + _statement(_AND, _TYPE_BITS) + _if(_EQUALS, _DATAGRAM, refuse) + allow
    lines.append(_if(_EQUALS, known.socketpair, kind))
    # A limit of no processor time ends a process without a signal from here.
    reads = _argument(2) + _unless(_EQUALS, 0, refuse) + _argument(2, 4) + _unless(_EQUALS, 0, refuse) + allow
    lines.append(_if(_EQUALS, known.prlimit, _argument(0) + _if(_EQUALS, 0, allow) + reads))
    lines.append(_if(_EQUALS, known.clone, _argument(0) + _if(_HAS_BITS, _NEW_NAMESPACES, refuse) + allow))
    requests = [_if(_EQUALS, request, refuse) for request in _TERMINAL_INPUT]
    lines.append(_if(_EQUALS, known.ioctl, _argument(1) + b"".join(requests) + allow))
    return b"".join(lines) + allow


def _argument(index: int, half: int = 0) -> bytes:
    # The lower half: the kernel takes most of these arguments as 32-bit numbers.
    return _statement(_LOAD, _ARGUMENTS + 8 * index + half)


def _statement(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _if(test: int, value: int, then: bytes) -> bytes:
    return struct.pack("=HBBI", test, 0, _length(then), value) + then


def _unless(test: int, value: int, then: bytes) -> bytes:
    return struct.pack("=HBBI", test, _length(then), 0, value) + then


def _length(block: bytes) -> int:
    return len(block) // 8
