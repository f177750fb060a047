"""The overhead of a journaled tool step with given arguments and a model without latency, durability off.

The floor is a bare loop that validates the arguments, serialises four records and writes them. Beside it, where
they are installed, LangGraph with its SQLite checkpointer and Burr with its tracker do as many steps.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core import Orchestrator, Plan, RunConfig, ToolRegistry
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.tools.registry import default_registry
from tests.benchmarks.measure import best_of, peak_memory
from tests.benchmarks.peers import peers

SIZES = (10, 200, 1000)
ARGUMENTS = {"operation": "add", "a": 5, "b": 10}


class Instant(LLMAdapter):
    """A model without latency."""

    model = "scripted:instant"

    def complete(self, request: LLMRequest) -> LLMResponse:
        return LLMResponse(text="done")


def plan_of(count: int) -> dict[str, Any]:
    """Return a plan of so many calculator steps with arguments."""
    described = [
        {"step_id": f"s{n}", "description": "add 5 and 10", "tool": "calculator", "arguments": ARGUMENTS}
        for n in range(1, count + 1)
    ]
    return {"goal": "add many times", "steps": described}


def aeon(registry: ToolRegistry, count: int, folder: Path) -> Callable[[], Path]:
    """Return a whole run of so many steps, from its first record to its last."""
    counter = iter(range(10**9))
    config = RunConfig(durability="off", single_pass=True)
    data = plan_of(count)

    def work() -> Path:
        path = folder / f"run-{count}-{next(counter)}.jsonl"
        result = Orchestrator(Instant(), registry, config=config, journal=path).run("add", Plan.model_validate(data))
        assert result.status == "completed", result.error
        return path

    return work


def floor(registry: ToolRegistry, count: int, folder: Path) -> Callable[[], None]:
    """Return the bare loop over so many steps."""
    schema = registry.input_schema("calculator")

    def work() -> None:
        fd = os.open(folder / "floor.jsonl", os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600)
        for n in range(count):
            assert not schema.errors(ARGUMENTS)
            result = {"result": ARGUMENTS["a"] + ARGUMENTS["b"]}  # type: ignore[operator]
            for record in (
                {"type": "step", "seq": 4 * n, "step_id": f"s{n}", "status": "running"},
                {"type": "tool", "seq": 4 * n + 1, "step_id": f"s{n}", "arguments": ARGUMENTS},
                {"type": "tool", "seq": 4 * n + 2, "step_id": f"s{n}", "result": result},
                {"type": "step", "seq": 4 * n + 3, "step_id": f"s{n}", "status": "complete", "output": result},
            ):
                os.write(fd, json.dumps(record).encode() + b"\n")
        os.close(fd)

    return work


def report() -> None:
    """Print the table."""
    registry = default_registry()
    print("A journaled tool step (µs a step, best of several; × is the ratio to the floor in the same run)")
    print(f"{'steps':>6} {'floor':>8} {'aeon':>8} {'×':>6} {'bytes/step':>11} {'KiB/step':>9}  peers")
    flat: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in SIZES:
            works: dict[str, Callable[[], object]] = {
                "floor": floor(registry, count, folder),
                "aeon": aeon(registry, count, folder),
                **peers(count, folder),
            }
            times = best_of(60 if count == SIZES[0] else 7, works)
            each = {who: seconds / count * 1e6 for who, seconds in times.items()}
            flat[count] = each["aeon"]
            size = aeon(registry, count, folder / "size")().stat().st_size / count
            memory = peak_memory(aeon(registry, count, folder / "memory")) / count / 1024
            others = "  ".join(f"{who} {value:.0f}" for who, value in each.items() if who not in ("aeon", "floor"))
            ratio = each["aeon"] / each["floor"]
            print(
                f"{count:>6} {each['floor']:>8.1f} {each['aeon']:>8.1f} {ratio:>6.1f} {size:>11.0f} {memory:>9.1f}  "
                f"{others or '(none installed: pip install aeon-tui[bench])'}"
            )
    print(f"a step at {SIZES[-1]} steps costs {flat[SIZES[-1]] / flat[SIZES[0]]:.2f} times one at {SIZES[0]}\n")
