"""An assessment costs time in proportion to what it looks at, whatever a model wrote."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from aeon_core.convergence import ConvergenceEngine
from aeon_core.plan.models import Plan
from tests.cpu_limit import cpu_limit

GOAL = "Measure the height of every tower and report them."


def run(count: int) -> dict[str, Any]:
    steps = [
        {"step_id": f"s{n}", "description": f"Measure the height of tower {n}", "status": "complete"}
        for n in range(count)
    ]
    results = {f"s{n}": {"text": f"The height of tower {n} is {100 + n} m. It does not lean."} for n in range(count)}
    answer = "\n".join(f"Tower {n} has a height of {100 + n} m." for n in range(count))
    return {"goal": GOAL, "plan": Plan(goal=GOAL, steps=steps), "results": results, "answer": answer, "memory": results}


def assess(arguments: dict[str, Any]) -> None:
    ConvergenceEngine().assess(**arguments, tools=["scope"])


def calls(arguments: dict[str, Any]) -> int:
    """Return how many functions an assessment calls, those of C among them."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        assess(arguments)
    finally:
        sys.setprofile(None)
    return counted


def test_four_times_the_steps_take_about_four_times_the_calls() -> None:
    assess(run(10))
    assert calls(run(400)) < 5 * calls(run(100))


@pytest.mark.parametrize(
    "text",
    [
        "5 km " * 4000,
        " " * 20_000 + "x",
        "red fox, " * 5000 + "and owl",
        "A-1" * 6000,
        "a_" * 9000 + " tool",
        '"a ' * 8000,
    ],
    ids=["units", "blanks", "list", "codes", "tool", "quotes"],
)
@pytest.mark.parametrize("place", ["goal", "output", "answer"])
def test_no_text_takes_long(text: str, place: str) -> None:
    plan = Plan(goal="Explain", steps=[{"step_id": "s1", "description": "Explain the fox", "status": "complete"}])
    arguments = {
        "goal": text if place == "goal" else "Explain the fox, the owl and the frog to each child.",
        "plan": plan,
        "results": {"s1": {"text": text if place == "output" else "The fox weighs 5 kg, its code is A-1."}},
        "answer": text if place == "answer" else "The fox weighs 5 kg, its code is A-2, by the x_y tool.",
    }
    with cpu_limit(20):
        assess(arguments)
