"""The overhead of a journaled tool step: the plan comes from a model without latency, durability is off.

The floor is a bare loop that validates the arguments, serialises four records and writes them. Beside it, where
they are installed, LangGraph with its SQLite checkpointer and Burr with its tracker do as many steps. On a busy machine
only the ratios of processor time mean anything: a short loop finds a moment of wall time for itself, a long run never.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core import Orchestrator, RunConfig, ToolRegistry
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.tools.registry import default_registry
from tests.benchmarks.measure import best_of, peak_memory
from tests.benchmarks.peers import PEERS, peers
from tests.fakes import judged

SIZES = (10, 200, 1000)
ARGUMENTS = {"operation": "add", "a": 5, "b": 10}

PROFILE = json.dumps(
    {
        "reasoning_depth": "medium",
        "information_sufficiency": "high",
        "expected_tool_usage": "extensive",
        "output_breadth": "narrow",
        "confidence_requirement": "medium",
        "raw_inference": "simple sums",
        "requirements": ["Each sum is 15"],
        "follow_up_questions": [],
    }
)


class Instant(LLMAdapter):
    """A model without latency: it plans so many calculator steps, and finds the answer good."""

    model = "scripted:instant"

    def __init__(self, count: int = 0) -> None:
        self._plan = json.dumps(plan_of(count))

    def complete(self, request: LLMRequest) -> LLMResponse:
        if request.purpose == "plan":
            return LLMResponse(text=self._plan)
        if request.purpose == "profile":
            return LLMResponse(text=PROFILE)
        return LLMResponse(text=json.dumps(judged(request)) if request.purpose == "judge" else "Each sum is 15.")


def plan_of(count: int) -> dict[str, Any]:
    """Return a plan of so many calculator steps with arguments."""
    described = [
        {"step_id": f"s{n}", "description": "add 5 and 10", "tool": "calculator", "arguments": ARGUMENTS}
        for n in range(1, count + 1)
    ]
    return {"goal": "add many times", "steps": described}


def aeon(registry: ToolRegistry, count: int, folder: Path, *, single_pass: bool) -> Callable[[], Path]:
    """Return a whole run of so many steps, from its first record to its last."""
    counter = iter(range(10**9))
    config = RunConfig(durability="off", single_pass=single_pass, ttl=4 * count + 50)

    def work() -> Path:
        path = folder / f"run-{count}-{next(counter)}.jsonl"
        orchestrator = Orchestrator(Instant(count), registry, config=config, journal=path)
        result = orchestrator.run("add")
        assert result.status == ("completed" if single_pass else "converged"), result.error
        return path

    return work


def validated_add(registry: ToolRegistry) -> Callable[[dict[str, Any]], float]:
    """Return a call of the calculator's addition with validated arguments, without anything of a run."""
    schema = registry.input_schema("calculator")

    def call(arguments: dict[str, Any]) -> float:
        assert not schema.errors(arguments)
        return float(arguments["a"] + arguments["b"])

    return call


def floor(registry: ToolRegistry, count: int, folder: Path) -> Callable[[], None]:
    """Return the bare loop over so many steps."""
    call, reply = validated_add(registry), json.dumps(plan_of(count))

    def work() -> None:
        steps = json.loads(reply)["steps"]
        fd = os.open(folder / "floor.jsonl", os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600)
        for n, step in enumerate(steps):
            result = {"result": call(step["arguments"])}
            for record in (
                {"type": "step", "seq": 4 * n, "step_id": f"s{n}", "status": "running"},
                {"type": "tool", "seq": 4 * n + 1, "step_id": f"s{n}", "arguments": step["arguments"]},
                {"type": "tool", "seq": 4 * n + 2, "step_id": f"s{n}", "result": result},
                {"type": "step", "seq": 4 * n + 3, "step_id": f"s{n}", "status": "complete", "output": result},
            ):
                os.write(fd, json.dumps(record).encode() + b"\n")
        os.close(fd)

    return work


def report() -> None:
    """Print the table."""
    registry = default_registry()
    print("A journaled tool step, planned by a model (µs a step, best of several; × is the ratio to the floor,")
    print("after the slash that of processor time)")
    kinds = f"{'floor':>7} {'single':>7} {'×':>11} {'multi':>7} {'×':>11}"
    print(f"{'steps':>6} {kinds} {'bytes/step':>11} {'KiB/step':>9}  peers")
    flat: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("single", "multi"):
            (folder / kind).mkdir()
        for count in SIZES:
            single = aeon(registry, count, folder / "single", single_pass=True)
            works: dict[str, Callable[[], object]] = {
                "floor": floor(registry, count, folder),
                "single": single,
                "multi": aeon(registry, count, folder / "multi", single_pass=False),
                **peers(json.dumps(plan_of(count)), validated_add(registry), folder),
            }
            rounds = 60 if count == SIZES[0] else 7
            times, cpu = (best_of(rounds, works, clock) for clock in (time.perf_counter, time.process_time))
            each = {who: seconds / count * 1e6 for who, seconds in times.items()}
            flat[count] = each["single"]
            size = single().stat().st_size / count
            memory = peak_memory(single) / count / 1024
            others = "  ".join(f"{who} {value:.0f}" for who, value in each.items() if who in PEERS)
            ratios = (
                f"{each[who]:>7.1f} {each[who] / each['floor']:>4.1f} / {cpu[who] / cpu['floor']:>4.1f}"
                for who in ("single", "multi")
            )
            print(
                f"{count:>6} {each['floor']:>7.1f} {' '.join(ratios)} {size:>11.0f} {memory:>9.1f}  "
                f"{others or '(none installed: ./dev bench does it)'}"
            )
    print(f"a step at {SIZES[-1]} steps costs {flat[SIZES[-1]] / flat[SIZES[0]]:.2f} times one at {SIZES[0]}\n")
