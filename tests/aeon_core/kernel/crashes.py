"""Runs that are killed at a write of their journal: a process that forks one child for each.

`python -m tests.aeon_core.kernel.crashes FOLDER SCENARIO` kills a run at every write, in each of the scenario's ways,
and prints one Crash a line. The child kills itself, so no signal comes late, and the interpreter is started once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult, ToolRegistry
from aeon_core.resuming import resume
from aeon_core.tools.base import Effect
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan
from tests.fakes import ScriptedModel, add, steps

JOURNAL, OUTSIDE = "r.jsonl", "outside"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Crash:
    """What a killed run has left behind."""

    folder: str
    write: int
    """The write of the journal at which it was killed, from 1 on."""
    way: str
    """When the process died: with `half` of the line written, or `after` the write."""
    signal: int
    """That it died of; 0 where it came to its end before that write."""
    alone: bool
    """Whether no process that it had started was alive after it."""

    @property
    def journal(self) -> Path:
        return Path(self.folder) / JOURNAL

    @property
    def outside(self) -> list[list[Any]]:
        """What the tools did in the world: tool and number of each call, in its order."""
        file = Path(self.folder) / OUTSIDE
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@dataclass(frozen=True)
class Scenario:
    """A run that does the same whichever process goes on with it: what a model replies hangs on the call alone."""

    model: Callable[[], ScriptedModel]
    task: str
    single_pass: bool
    ways: tuple[str, ...]

    def run(self, folder: Path) -> RunResult:
        config = RunConfig(single_pass=self.single_pass, durability="off")
        orchestrator = Orchestrator(
            self.model(), tools=_tools(folder), approver=_approve, journal=folder / JOURNAL, config=config
        )
        return orchestrator.run(self.task)

    def go_on(self, folder: Path, **options: Any) -> RunResult:
        """Go on with the run that was killed, in this process."""
        return resume(folder / JOURNAL, self.model(), _tools(folder), approver=_approve, options=options)


class _Acts:
    """Does something in the world, durably, before it returns."""

    description = "Acts."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"number": {"type": "integer"}}}
    output_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, name: str, effect: Effect, folder: Path) -> None:
        self.name, self.effect = name, effect
        self.needs_approval = effect == "unsafe"
        self._file = folder / OUTSIDE

    def invoke(self, number: int) -> dict[str, int]:
        with self._file.open("a") as file:
            file.write(json.dumps([self.name, number]) + "\n")
        return {"number": number}


def _tools(folder: Path) -> ToolRegistry:
    registry: ToolRegistry = default_registry()
    registry.register(_Acts("launch", "unsafe", folder))
    registry.register(_Acts("put", "idempotent", folder))
    return registry


def _approve(_: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(decision="approve")


ACTS = steps(
    {"tool": "launch", "arguments": {"number": 1}},
    {"tool": "put", "arguments": {"number": 2}},
    add(1, 1),
    {"agent": "llm"},
    {"tool": "launch", "arguments": {"number": 3}},
    {"tool": "scale"},
)
SCENARIOS = {
    "outside": Scenario(
        lambda: ScriptedModel(plan=ACTS, reason="thought " * 80, repair="no", fallback="by hand", answer="done"),
        "act",
        single_pass=True,
        ways=("half", "after"),
    ),
    "passes": Scenario(lambda: model(plan=plan(by=0), refine=MENDED), TASK, single_pass=False, ways=("half",)),
}


def crashes(folder: Path, scenario: str) -> list[Crash]:
    """Return what each crash of a scenario left behind, one for each write and way."""
    path = os.pathsep.join(str(ROOT / part) for part in (".", "core"))
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(folder), scenario],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    return [Crash(**json.loads(line)) for line in done.stdout.splitlines()]


def _every_crash(folder: Path, scenario: str) -> Iterator[Crash]:
    for way in SCENARIOS[scenario].ways:
        for write in count(1):
            crash = _crash(folder / f"{way}-{write}", scenario, write, way)
            if not crash.signal:
                break
            yield crash


def _crash(folder: Path, scenario: str, write: int, way: str) -> Crash:
    folder.mkdir()
    child = os.fork()
    if child == 0:
        _die_in(folder, scenario, write, way)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the run that was to be killed {way} write {write} failed by itself")
    died_of = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Crash(str(folder), write, way, died_of, _is_gone(child))


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def _die_in(folder: Path, scenario: str, write: int, way: str) -> None:
    try:
        os.setsid()
        os.write = _deadly(os.write, write, way)
        SCENARIOS[scenario].run(folder)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _deadly(real: Callable[[int, Any], int], number: int, way: str) -> Callable[[int, Any], int]:
    lines = count(1)

    def write(fd: int, data: Any) -> int:
        if not data.startswith(b'{"v":1,"seq":') or next(lines) != number:
            return real(fd, data)
        real(fd, data if way == "after" else data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")

    return write


if __name__ == "__main__":
    for crash in _every_crash(Path(sys.argv[1]), sys.argv[2]):
        print(json.dumps(asdict(crash)), flush=True)
