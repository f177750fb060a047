"""Exact checks of a plan and of its results, and the figures of its answer: steps in the wording of many domains."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from aeon_core.convergence import suspicions_about
from aeon_core.plan.models import Plan
from aeon_core.validation.plan_checks import check_plan
from aeon_core.validation.result_checks import Artifacts, check_result
from tests.aeon_core.convergence.test_cost import run as towers
from tests.aeon_core.validation.labelled.large import large_plan
from tests.aeon_core.validation.labelled.tools import registry

SIZES = (200, 1000)
LIMIT = 5.0
"""Milliseconds that the exact checks of a plan of SIZES[0] steps and of its results may take."""
PARTS = ("plan", "results", "figures")
CHECKS = 2
"""Those of PARTS that are exact checks; figures become suspicions for the judge."""
ROUNDS = 15
FRESH_PROCESSES = 5


def domains(count: int) -> dict[str, Any]:
    """Return a run whose steps are in the wording of many domains, each with one sentence for its result."""
    plan = executed(large_plan(count))
    return {
        "goal": plan.goal,
        "plan": plan,
        "results": {step.step_id: {"text": step.description} for step in plan.steps},
        "answer": " ".join(step.description for step in plan.steps[:5]),
        "memory": {},
    }


def long_results(count: int) -> dict[str, Any]:
    """Return the same run with four sentences for each result, all of them with numbers."""
    run = domains(count)
    said = [step.description for step in run["plan"].steps]
    run["results"] = {
        step.step_id: {"text": ". ".join(f"{said[(at + n) % count]} gave {at * n + 13} kg" for n in range(4))}
        for at, step in enumerate(run["plan"].steps)
    }
    return run


CASES: dict[str, Callable[[int], dict[str, Any]]] = {
    "many domains": domains,
    "a number each": towers,
    "long results": long_results,
}


def executed(plan: Plan) -> Plan:
    """Return the plan with every step complete."""
    for step in plan.steps:
        step.status = "running"
        step.status = "complete"
    return plan


def pending(plan: Plan) -> Plan:
    """Return the plan as it was before any step ran."""
    steps = [step.model_dump(mode="json") | {"status": "pending"} for step in plan.steps]
    return Plan.model_validate({"goal": plan.goal, "steps": steps})


def works(run: dict[str, Any]) -> Sequence[Callable[[], object]]:
    """Return what is timed for a run, in the order of PARTS."""
    tools = registry()
    plan, names = pending(run["plan"]), [tool.name for tool in tools]
    return (
        lambda: check_plan(plan, tools),
        lambda: check_result(Artifacts(**run, tools=names)),
        lambda: suspicions_about(Artifacts(**run, tools=names)),
    )


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of this thread for a piece of work: other programs on the machine count for less."""
    gc.collect()
    gc.disable()
    began = time.thread_time()
    work()
    taken = time.thread_time() - began
    gc.enable()
    return taken * 1e3


def best(run: dict[str, Any]) -> list[float]:
    """Return the least time of each part over the rounds."""
    parts = works(run)
    rounds = [[milliseconds(part) for part in parts] for _ in range(ROUNDS)]
    return [min(taken) for taken in zip(*rounds, strict=True)]


def first(case: str) -> list[float]:
    """Return the time of each part where nothing has been looked at before, in this process; for a fresh one."""
    return [milliseconds(part) for part in works(CASES[case](SIZES[0]))]


def first_in_a_new_process(case: str) -> list[float]:
    """Return the least time of each part in one of several new processes: that of the fastest."""
    command = [sys.executable, "-m", "tests.benchmarks.semantic", case]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(FRESH_PROCESSES)
    ]
    return min(([float(taken) for taken in output.split()] for output in outputs), key=sum)


def report() -> None:
    """Print the tables."""
    load = os.getloadavg()[0]
    print(f"Exact checks of a plan and its results (ms of processor time, best of {ROUNDS}; load {load:.1f})")
    print(f"{'':<14} {'steps':>6}", *(f"{part:>11}" for part in PARTS), f"{'checks':>9}  limit")
    each = {(case, count): best(make(count)) for count in SIZES for case, make in CASES.items()}
    for (case, count), taken in each.items():
        checks = sum(taken[:CHECKS])
        limit = f"{LIMIT:g}, {'kept' if checks < LIMIT else 'MISSED'}" if count == SIZES[0] else ""
        print(f"{case:<14} {count:>6}", *(f"{part:>11.1f}" for part in taken), f"{checks:>9.1f}  {limit}".rstrip())
    for case in CASES:
        small, large = (sum(each[case, count]) / count for count in SIZES)
        print(f"{case}: a step at {SIZES[1]} steps costs {large / small:.2f} times one at {SIZES[0]}")
    print(f"The first time, {SIZES[0]} steps in a new process:")
    for case in CASES:
        taken = first_in_a_new_process(case)
        print(f"{case:<14} {SIZES[0]:>6}", *(f"{part:>11.1f}" for part in taken), f"{sum(taken[:CHECKS]):>9.1f}")
    print()


if __name__ == "__main__":
    print(*first(sys.argv[1]))
