"""The command line of bubblewrap that shuts a command in: the first and best rung of isolation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aeon_core.tools.shell.limits import Limits

TEMP = "/tmp"  # noqa: S108  # the command's own, of which this is the place inside
_UNSHARED = ("user", "ipc", "pid", "uts")
_RUN = Path("/run")
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger")


def bubblewrap(program: str, limits: Limits, status: int) -> list[str]:
    """Return what to put before a command, which ends with all its processes when it or Aeon does.

    Inside, all is read-only but the project root and a private `/tmp`; other processes, the user's session sockets in
    `/run` and places with keys are not there; `status` gets JSON lines, one with the command's `exit-code`.
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
    # Only now: mounts on what lies beneath need their places made.
    for place in limits.hidden:
        line += ["--remount-ro", str(place)] if place.is_dir() else []
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
    """Return place and mount, to be sorted by depth: what lies deeper decides for what is beneath it."""
    root = limits.root
    mounts = [(place, _hide(place)) for place in limits.hidden]
    mounts.append((root, _bind("--bind", root, root)))
    mounts += [(place, _bind("--ro-bind", place, place)) for place in limits.shown if place.is_dir()]
    # A mount cannot be renamed: without the first, hooks could be swapped with the whole of `.git`.
    mounts += [(root / ".git", _bind("--bind", root / ".git", root / ".git"))] if _is_folder(root / ".git") else []
    # Aeon runs on this Python outside: what is put there would be, too.
    interpreter = Path(sys.prefix).resolve()
    inside = [interpreter] if interpreter != root and interpreter.is_relative_to(root) else []
    for place in (root / ".git" / "hooks", root / ".aeon", *inside):
        if _is_folder(place):
            mounts.append((place, _bind("--ro-bind", place, place)))
    return mounts


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


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()
