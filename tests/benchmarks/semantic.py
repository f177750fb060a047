"""Validating a plan and what came of it, and assessing that, by rules alone: steps in the wording of many domains."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.plan.models import Plan
from aeon_core.validation.validator import SemanticValidator
from tests.aeon_core.validation.labelled.large import large_plan
from tests.aeon_core.validation.labelled.tools import registry
from tests.benchmarks.measure import best_of

SIZES = (200, 1000)
FRESH_PROCESSES = 5


def works(count: int) -> dict[str, Callable[[], object]]:
    """Return what is timed for a plan of so many steps."""
    tools = registry()
    validator, engine = SemanticValidator(tools), ConvergenceEngine()
    plan = executed(large_plan(count))
    pending = large_plan(count)
    given: dict[str, Any] = {
        "goal": plan.goal,
        "plan": plan,
        "results": {step.step_id: {"text": step.description} for step in plan.steps},
        "answer": " ".join(step.description for step in plan.steps[:5]),
        "memory": {},
    }
    names = [tool.name for tool in tools]
    report = validator.validate_execution(**given)
    return {
        "plan": lambda: validator.validate_plan(pending),
        "execution": lambda: validator.validate_execution(**given),
        "assessment": lambda: engine.assess(report=report, tools=names, **given),
    }


def executed(plan: Plan) -> Plan:
    """Return the plan with every step complete."""
    for step in plan.steps:
        step.status = "running"
        step.status = "complete"
    return plan


def first_seconds() -> float:
    """Return how long the first validation of a plan of 200 steps takes in this process."""
    validator, plan = SemanticValidator(registry()), large_plan(SIZES[0])
    began = time.perf_counter()
    validator.validate_plan(plan)
    return time.perf_counter() - began


def report() -> None:
    """Print the table."""
    print("Rules on a plan (ms, best of several)")
    print(f"{'steps':>6} {'plan':>8} {'execution':>10} {'assessment':>11}")
    each: dict[int, dict[str, float]] = {}
    for count in SIZES:
        each[count] = {name: seconds * 1e3 for name, seconds in best_of(15, works(count)).items()}
        plan, execution, assessment = each[count].values()
        print(f"{count:>6} {plan:>8.1f} {execution:>10.1f} {assessment:>11.1f}")
    command = [sys.executable, "-m", "tests.benchmarks.semantic"]
    fresh = min(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(FRESH_PROCESSES)
    )
    small, large = (each[count]["plan"] / count for count in SIZES)
    print(f"a step at {SIZES[1]} steps costs {large / small:.2f} times one at {SIZES[0]}")
    print(f"the first validation of {SIZES[0]} steps in a new process takes {fresh * 1e3:.1f} ms\n")


if __name__ == "__main__":
    print(first_seconds())
