"""The command line of bubblewrap that shuts a command in: the first and best rung of isolation."""

from __future__ import annotations

import os
from pathlib import Path

from aeon_core.tools.shell.limits import Limits

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
    # Only now: mounts on what lies beneath need their places made.
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
    """Return place and mount, to be sorted by depth: what lies deeper decides for what is beneath it."""
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
