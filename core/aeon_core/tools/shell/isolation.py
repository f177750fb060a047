"""Isolation of commands: what this machine can really hold a command to, and how it is applied (REQ-115)."""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aeon_core.errors import ToolError
from aeon_core.tools.shell.bubblewrap import TEMP, bubblewrap, filter_program
from aeon_core.tools.shell.process import Job, Output, run
from aeon_core.tools.shell.settings import Limits, ShellSettings

Rung = Literal["bubblewrap", "landlock", "none"]

_LAUNCHER = Path(__file__).with_name("launcher.py")
_RESOLVER = "/etc/resolv.conf"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_TEMPORARY = ("/run", "/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # what others have there is hidden
_NEEDED_OF_RUN = ("/run/current-system", "/run/opengl-driver")
_OPEN = ".git/hooks, .git/config, .venv, .aeon and other project files that run later"
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
class Isolation:
    """A way of confining commands, `none` where nothing works; `why` says what hindered better ones.

    Only bubblewrap keeps commands from what is protected in the project, and from changing the mode, owner or times of
    files elsewhere. Landlock does not hide other processes, nor bound their number for root.
    """

    name: Rung
    network: bool
    why: str = ""

    def describe(self) -> str:
        """Return one line for people: what commands can and cannot do."""
        network = "network open" if self.network else "no network"
        home = "your home {} except toolchains"
        if self.name == "bubblewrap":
            return (
                "bubblewrap: writes only inside the project, but not to what runs later (.git/hooks, .venv, …), "
                f"{network}, {home.format('hidden')}, other processes hidden, {self._calls()}"
            )
        if self.name == "landlock":
            return (
                f"Landlock: writes only inside the project, {network}, {home.format('unreadable')}, {self._calls()}; "
                f"NOT blocked: changes to {_OPEN}, permissions and times of files elsewhere; install bubblewrap to "
                "block these"
            )
        return f"no isolation ({self.why}): commands can do everything you can, so each one needs approval"

    def _calls(self) -> str:
        if self.seccomp is None:
            return f"Unix sockets, ptrace and mounts open (no filter for {os.uname().machine})"
        devices = "; as root, they can change the mode of devices such as /dev/null" if os.getuid() == 0 else ""
        return f"Unix sockets, ptrace and mounts blocked{devices}"

    @property
    def warning(self) -> str:
        """One line for the start of a run about what is not held; empty under bubblewrap."""
        if self.name == "none":
            return f"Commands cannot be isolated here ({self.why}), so each one needs approval."
        if self.protects:
            return ""
        return f"Commands can change {_OPEN}: {self.why}. Install bubblewrap to block that."

    @property
    def protects(self) -> bool:
        """Whether commands cannot change what other programs act upon later, such as `.git/hooks`."""
        return self.name == "bubblewrap"

    @property
    def seccomp(self) -> bytes | None:
        """The filter of system calls that commands run under; None where there is none."""
        # Under bubblewrap, commands without network have one of their own, with themselves alone.
        return filter_program(internet=self.network or self.name == "bubblewrap") if self.name != "none" else None

    @property
    def supervised(self) -> bool:
        """Whether a program between Aeon and the command reports its exit code and ends all it started."""
        return self.name != "none" or _has_launcher()

    def temp(self, limits: Limits) -> str:
        """Return where the command finds its folder for temporary files."""
        return TEMP if self.name == "bubblewrap" else str(limits.scratch)

    def command(self, words: Sequence[str], limits: Limits, status: int, seccomp: int | None = None) -> list[str]:
        """Return the words that run `words` within the limits and report the exit code to the descriptor `status`.

        `seccomp` is a descriptor from which the filter can be read.
        """
        if self.name == "bubblewrap":
            return [*bubblewrap(_bubblewrap_program(limits.root), limits, status, seccomp), *words]
        return [*self._launcher(limits, status, seccomp), *words] if self.supervised else list(words)

    def _launcher(self, limits: Limits, status: int, seccomp: int | None) -> list[str]:
        told = {
            "landlock": self.name != "none",
            "seccomp": seccomp,
            "write": [*map(str, (limits.root, limits.scratch, *limits.git_folders)), *_DEVICES],
            "hide": [*(str(place.resolve()) for place in limits.hidden), *_TEMPORARY],
            "show": [*(str(place.resolve()) for place in limits.shown), *_NEEDED_OF_RUN, os.path.realpath(_RESOLVER)],
            "status": status,
        }
        return [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(told)]


def probe(root: Path, settings: ShellSettings) -> Isolation:
    """Return the best isolation that holds here, found by running something in each; remembered by this process."""
    return _probed(root.resolve(), settings.network)


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
    """Return what the isolation does not hold, or why it does not run; None where it does all that it is to do."""
    if isolation.name == "bubblewrap" and not _bubblewrap_program(root):
        return "bwrap is not installed"
    shell = shutil.which("bash")
    if shell is None:
        return "bash is not installed"
    try:
        with ExitStack() as stack:
            scratch, outside = (Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve() for _ in range(2))
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
        output = Output(lambda: scratch)
        ended = run(
            Job(
                lambda status, seccomp: isolation.command(words, limits, status, seccomp),
                isolation.supervised,
                root,
                {"PATH": os.environ.get("PATH", os.defpath)},
                _PROBE_SECONDS,
                isolation.seccomp,
            ),
            output,
        )
    if said := output.text("stdout").strip():
        return said.splitlines()[0]
    if ended.by != "itself" or ended.exit_code:
        return f"a first command in it failed: {output.text('stderr').strip()[-200:]}"
    return "it writes outside" if target.exists() or not (scratch / "probe").exists() else None


def _listen(listener: socket.socket) -> str:
    with suppress(OSError):
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return str(listener.getsockname()[1])
    return ""


def _bubblewrap_program(root: Path) -> str:
    """Return the path of `bwrap`; one in the project is not run, for a command could have put it there."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    outside = (folder for folder in folders if not Path(folder).resolve().is_relative_to(root))
    return shutil.which("bwrap", path=os.pathsep.join(outside)) or ""


def _has_launcher() -> bool:
    return sys.platform == "linux" and bool(sys.executable) and Path("/proc/self/stat").exists()
