"""Runs that are killed where they touch the disk: a process that forks one child for each place.

`python -m tests.aeon_core.kernel.crashes FOLDER SCENARIO` kills a run before, within and after each write and sync, and
prints one Crash a line; with `LEFT`, a folder that a killed run has left, it kills what continues it, from some
place on at every third. The child kills itself, so no signal comes late, and the interpreter is started once.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from aeon_core.effects.record_stream import RecordStream
from tests.aeon_core.kernel.scenarios import ACTED, JOURNAL, PAID, SCENARIOS, noted
from tests.sampling import scope

ROOT = Path(__file__).parents[3]
CALLS = ("write", "fdatasync", "fsync", "ftruncate")
"""What changes the disk, or waits for it. `before` a call, `after` it, a write also with `half` of it done."""
FIRST, LAST = 10, 4
"""How many places of a continuation are all tried, from its beginning and to its end."""
_STANDARD = 2
"""The last descriptor of the standard streams."""


@dataclass(frozen=True)
class Crash:
    """What a killed run has left behind."""

    folder: str
    number: int
    """Of the call at which it was killed, from 1 on."""
    call: str
    """That call, one of CALLS."""
    way: str
    """When the process died."""
    signal: int
    """That it died of; 0 where it came to its end before that."""
    alone: bool
    """Whether no process that it had started was alive after it."""

    @property
    def journal(self) -> Path:
        return Path(self.folder) / JOURNAL

    @property
    def acted(self) -> list[list[Any]]:
        """What the tools did in the world: tool and number of each call, in its order."""
        return noted(self.folder, ACTED)

    def left(self) -> tuple[int, bool, int, int]:
        """Return what it left, as far as another crash may have left the same: lines, a torn one, deeds, replies."""
        whole, _, rest = self.journal.read_bytes().rpartition(b"\n") if self.journal.exists() else (b"", b"", b"")
        return len(whole.splitlines()), bool(rest), len(self.acted), len(noted(self.folder, PAID))


def crashes(folder: Path, scenario: str, left: str | None = None) -> list[Crash]:
    """Return what each crash of a scenario, or of a continuation, left behind."""
    path = os.pathsep.join(str(ROOT / part) for part in (".", "core"))
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(folder), scenario, *([left] if left is not None else [])],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=240,
    )
    return [Crash(**json.loads(line)) for line in done.stdout.splitlines()]


def different(found: list[Crash]) -> list[Crash]:
    """Return one crash of those that left the same, with at least a whole line."""
    kept = {crash.left(): crash for crash in reversed(found)}
    return [crash for (lines, *_), crash in reversed(kept.items()) if lines]


def sampled(found: list[Crash]) -> list[Crash]:
    """Return different crashes to continue from: all of them with `./dev test --all`, else one of six."""
    return different(found)[:: 1 if scope["all"] else 6]


def never_waits(_line: RecordStream, _seconds: float) -> None:
    """Stand in for the wait before a model call is repeated."""


class _Places:
    """Counts the calls of a process, and dies at one of them."""

    def __init__(self, number: int, way: str) -> None:
        self.number, self.way = number, way
        self.passed: list[str] = []

    def watch(self) -> None:
        for name in CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fd: int, *given: Any) -> Any:
            if fd <= _STANDARD:
                return real(fd, *given)
            self.passed.append(name)
            if len(self.passed) != self.number:
                return real(fd, *given)
            if self.way == "half":
                real(fd, given[0][: len(given[0]) // 2])
            if self.way == "after":
                real(fd, *given)
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("a killed process is still running")

        return call


def _every_crash(folder: Path, scenario: str, left: str | None) -> Iterator[Crash]:
    (folder / "first").mkdir()
    # What a run imports late is there for every child then, and need not be looked through by its garbage collector.
    SCENARIOS[scenario].run(folder / "first")
    gc.freeze()
    _crash(folder / "whole", scenario, left, (0, "", ""))
    calls = (folder / "whole" / "calls").read_text().split()
    for number, call in enumerate(calls, start=1):
        if left is not None and FIRST < number < len(calls) - LAST and number % 3:
            continue
        for way in ("before", "half", "after") if call == "write" else ("before", "after"):
            yield _crash(folder / f"{number}-{way}", scenario, left, (number, call, way))


def _crash(folder: Path, scenario: str, left: str | None, place: tuple[int, str, str]) -> Crash:
    folder.mkdir() if left is None else shutil.copytree(left, folder)
    child = os.fork()
    if child == 0:
        _die(folder, scenario, left is not None, _Places(place[0], place[2]))
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the run that was to be killed at {place} failed by itself")
    died_of = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Crash(str(folder), *place, died_of, _is_gone(child))


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def _die(folder: Path, scenario: str, in_progress: bool, places: _Places) -> NoReturn:
    try:
        os.setsid()
        places.watch()
        act = SCENARIOS[scenario].go_on if in_progress else SCENARIOS[scenario].run
        act(folder)
        (folder / "calls").write_text(" ".join(places.passed))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    RecordStream.wait = never_waits  # type: ignore[method-assign,assignment]
    for crash in _every_crash(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if sys.argv[3:] else None):
        print(json.dumps(asdict(crash)), flush=True)
