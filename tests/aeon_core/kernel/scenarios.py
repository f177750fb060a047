"""Runs that do the same whichever process continues them, and record what they did in files next to the journal."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from aeon_core import ApprovalDecision, ApprovalRequest, LLMResponse, Orchestrator, RunConfig, RunResult, ToolRegistry
from aeon_core.config.schema import Durability
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.runs.fork import Fork, forked_config
from aeon_core.runs.resume import Resumption, finished_result
from aeon_core.tools.base import Effect
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import MENDED, TASK, divide, model, plan
from tests.fakes import ScriptedModel, add, steps

JOURNAL, PARENT, ACTED, ASKED, PAID = "r.jsonl", "parent.jsonl", "acted", "asked", "paid"
SECRET = 'kanar\\ien"vogel-0123'
"""Known to each process from its environment; in arguments, results and replies, and in no record."""
LONG = f"Gedanke — 思考 🚀 {SECRET} " * 30
USED = {"input_tokens": 100, "output_tokens": 10}
MORE_CYCLES = 50
PRICES = {"scripted:test": {"input": 3.0, "output": 15.0}}


@dataclass(frozen=True)
class Scenario:
    """A run. What a model, a tool and a person do hangs on what they are asked alone; each has a price."""

    model: Callable[[], ScriptedModel]
    task: str
    single_pass: bool
    ttl: int = MORE_CYCLES
    """Cycles that it has at first; with more of them it is gone on with."""

    def run(self, folder: Path, durability: Durability = "normal", budget: float = 10.0) -> RunResult:
        money: dict[str, Any] = {"prices": PRICES, "budget": budget}
        config = RunConfig(single_pass=self.single_pass, durability=durability, ttl=self.ttl, **money)
        with _environment():
            orchestrator = Orchestrator(
                _Paid(self.model(), folder),
                tools=_tools(folder, reconciles=False),
                approver=_Person(folder),
                journal=folder / JOURNAL,
                config=config,
            )
            return orchestrator.run(self.task)

    def go_on(self, folder: Path, *, reconciles: bool = False, **options: Any) -> RunResult:
        """Go on with the run; where the tools can tell what they did, a call that was lost is made again if need be."""
        with _environment():
            if (result := finished_result(folder / JOURNAL)) is not None:
                return result
            if reconciles:
                options["on_unknown"] = "retry"
            if self.ttl < MORE_CYCLES:
                options["ttl"] = MORE_CYCLES
            tools, paid = _tools(folder, reconciles=reconciles), _Paid(self.model(), folder)
            return Resumption(folder / JOURNAL, paid, tools, options=options, approver=_Person(folder)).run()


@dataclass(frozen=True)
class ForkScenario(Scenario):
    """A fork from the second pass of a run, in the same folder."""

    def parent(self, folder: Path) -> None:
        """Put the run that is forked into a folder."""
        SCENARIOS["launches"].run(folder)
        (folder / JOURNAL).rename(folder / PARENT)
        for name in (ACTED, ASKED, PAID):
            (folder / name).unlink()

    def run(self, folder: Path, durability: Durability = "normal", budget: float = 10.0) -> RunResult:
        self.parent(folder)
        return self._fork(folder, durability, budget)

    def go_on(self, folder: Path, *, reconciles: bool = False, **options: Any) -> RunResult:
        """Fork, or continue the fork; one that has not started is made again."""
        path = folder / JOURNAL
        if path.exists() and b"\n" in path.read_bytes():
            return super().go_on(folder, reconciles=reconciles, **options)
        path.unlink(missing_ok=True)
        return self._fork(folder, "normal", 10.0)

    def _fork(self, folder: Path, durability: Durability, budget: float) -> RunResult:
        own = {"durability": durability, "budget": budget}
        config = forked_config(folder / PARENT).model_copy(update=own)
        llm, tools = _Paid(self.model(), folder), _tools(folder, reconciles=False)
        given: dict[str, Any] = {"config": config, "approver": _Person(folder), "journal": folder / JOURNAL}
        with _environment():
            return Fork(folder / PARENT, 2, llm, tools, **given).run()


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Give a process the secret, and one key to all of them."""
    if (state := os.environ.get("SCENARIO_STATE_HOME")) is None:
        # Processes that a test starts inherit it.
        state = os.environ["SCENARIO_STATE_HOME"] = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, state, ignore_errors=True)
    with mock.patch.dict(os.environ, {"SCENARIO_PASSWORD": SECRET, "XDG_STATE_HOME": state}):
        yield


def noted(folder: Path | str, name: str) -> list[Any]:
    """Return what was done in the world, in its order: ACTED by tools, ASKED of the person, PAID for replies."""
    file = Path(folder) / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _note(folder: Path, name: str, what: Any) -> None:
    with (folder / name).open("a") as file:
        file.write(json.dumps(what) + "\n")


@dataclass
class _Paid(LLMAdapter):
    inner: ScriptedModel
    folder: Path
    model = "scripted:test"

    def complete(self, request: LLMRequest) -> LLMResponse:
        assert "[redacted" not in request.prompt
        _note(self.folder, PAID, [request.purpose, hashlib.sha256(request.prompt.encode()).hexdigest()])
        return self.inner.complete(request).model_copy(update={"usage": USED})


@dataclass
class _Person:
    """Approves the first launch, changes the second, and rejects the third."""

    folder: Path

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        _note(self.folder, ASKED, [request.point, request.subject["arguments"]["number"]])
        return {
            1: ApprovalDecision(decision="approve"),
            3: ApprovalDecision(decision="edit", edited={"number": 30}, feedback="that one"),
            5: ApprovalDecision(decision="reject", feedback="not today"),
        }[request.subject["arguments"]["number"]]


class _Acts:
    """Does something in the world, which lasts whatever becomes of the process."""

    description = "Acts."
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"number": {"type": "integer"}, "key": {"type": "string", "maxLength": len(SECRET)}},
    }
    output_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, name: str, effect: Effect, folder: Path) -> None:
        self.name, self.effect = name, effect
        self.needs_approval = effect == "unsafe"
        self._folder = folder

    def invoke(self, number: int, key: str = SECRET) -> dict[str, Any]:
        assert key == SECRET
        _note(self._folder, ACTED, [self.name, number])
        return {"number": number, "key": f"it was {key}"}


class _Reconciles(_Acts):
    def reconcile(self, _call_id: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        number, key = arguments["number"], arguments.get("key", SECRET)
        done = [self.name, number] in noted(self._folder, ACTED)
        return {"number": number, "key": f"it was {key}"} if done else None


def _tools(folder: Path, *, reconciles: bool) -> ToolRegistry:
    registry: ToolRegistry = default_registry()
    kind = _Reconciles if reconciles else _Acts
    registry.register(kind("launch", "unsafe", folder))
    registry.register(kind("put", "idempotent", folder))
    return registry


def _launch(number: int) -> dict[str, Any]:
    return {"tool": "launch", "arguments": {"number": number, "key": SECRET}}


ACTS = steps(
    _launch(1),
    {"tool": "put", "arguments": {"number": 2}},
    add(1, 1),
    {"agent": "llm"},
    _launch(3),
    {"tool": "scale"},
    _launch(5),
)
TWO_LAUNCHES: dict[str, Any] = {
    "goal": "launch 1, then launch 3",
    "steps": [
        {"step_id": "s1", "description": "Launch 1", **_launch(1)},
        {"step_id": "s2", "description": "Divide 1 by 0", **divide(1, 0)},
    ],
}
INTO_A_LAUNCH = {
    "actions": [
        {
            "type": "step_modify",
            "target": "s2",
            "changes": {"description": "Launch 3", **_launch(3)},
            "reason": "one cannot divide by zero",
        }
    ],
    "follow_up_questions": [],
}
OTHER = f"1 and 30 were launched with {SECRET}."


def _launches(answer: str = "Launched: 1, 30.") -> ScriptedModel:
    return model(plan=TWO_LAUNCHES, review={"issues": []}, refine=INTO_A_LAUNCH, answer=answer)


LAUNCHED = {1, 30}
"""The numbers that a person let go."""
SCENARIOS: dict[str, Scenario] = {
    "outside": Scenario(
        lambda: ScriptedModel(plan=ACTS, reason=LONG, repair="no", fallback="by hand", answer="done"),
        f"act with {SECRET}",
        single_pass=True,
    ),
    "short": Scenario(
        lambda: ScriptedModel(plan=steps(_launch(1), {"agent": "llm"}), reason=LONG, answer="done"),
        f"act with {SECRET}",
        single_pass=True,
    ),
    "passes": Scenario(lambda: model(plan=plan(by=0), refine=MENDED), TASK, single_pass=False),
    "launches": Scenario(_launches, TWO_LAUNCHES["goal"], single_pass=False),
    "expired": Scenario(lambda: model(plan=plan(by=0), refine=MENDED), TASK, single_pass=False, ttl=5),
    "fork": ForkScenario(lambda: _launches(OTHER), TWO_LAUNCHES["goal"], single_pass=False),
}
