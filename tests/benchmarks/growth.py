"""Bytes that a cycle adds to a run's journal, at plans of several sizes: they must not grow with the plan.

Only a repair does, since it changes the plan's structure: the plan and the next cycle are then written in full.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from aeon_core import LLMAdapter, Orchestrator, Plan, RunConfig, connect
from aeon_core.journal.reader import record_type
from tests.benchmarks.steps import Instant, plan_of

SIZES = (10, 100, 200)


def reasoning_plan(count: int, agent: str | None = "llm") -> dict[str, object]:
    """Return a plan of so many steps that a model reasons about; without an agent, each must be repaired first."""
    described = "Name fact {} about the ledger, in one line"
    steps = [{"step_id": f"s{n}", "description": described.format(n), "agent": agent} for n in range(count)]
    return {"goal": "name facts", "steps": steps}


def run(model: LLMAdapter, plan: dict[str, object], folder: Path, *, single_pass: bool) -> list[bytes]:
    """Return the lines of a run's journal."""
    path = folder / "run.jsonl"
    path.unlink(missing_ok=True)
    config = RunConfig(durability="off", single_pass=single_pass, ttl=2_000)
    Orchestrator(model, config=config, journal=path).run("name facts", Plan.model_validate(plan))
    return path.read_bytes().splitlines(keepends=True)


def report() -> None:
    """Print the table."""
    kinds = {
        "a tool step, single pass": lambda count: (Instant(), plan_of(count), True),
        "a reasoned step, single pass": lambda count: (Instant(), reasoning_plan(count), True),
        "a reasoned step, in passes": lambda count: (connect("simulated:default"), reasoning_plan(count), False),
        "a repaired step, single pass": lambda count: (Instant(), reasoning_plan(count, agent=None), True),
    }
    print(f"Bytes of the journal a cycle, at plans of {SIZES} steps")
    with tempfile.TemporaryDirectory() as name:
        for what, of in kinds.items():
            each: list[float] = []
            for count in SIZES:
                model, plan, single_pass = of(count)
                lines = run(model, plan, Path(name), single_pass=single_pass)
                cycles = Counter(map(record_type, lines))["cycle"]
                each.append(sum(map(len, lines)) / max(1, cycles))
            shown = " ".join(f"{value:>8,.0f}" for value in each)
            print(f"{what:>44} {shown}   {each[-1] / each[0]:.2f} × from {SIZES[0]} to {SIZES[-1]}")
    print()
