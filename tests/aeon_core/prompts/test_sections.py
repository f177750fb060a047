"""How much of outputs and memory a prompt shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core.plan.models import Plan
from aeon_core.prompts import CLIPPED_AT, STRATEGIES, memory_section, results_section

PLAN = Plan.model_validate({"goal": "g", "steps": [{"step_id": "s1", "description": "do it", "agent": "llm"}]})


def output(length: int) -> dict[str, Any]:
    """Return an output of that many characters as JSON."""
    return {"text": "x" * (length - len('{"text": ""}'))}


def shown(length: int, **how: int) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(results_section(PLAN, {"s1": output(length)}, {}, **how))
    return line


@pytest.mark.parametrize("characters", [10, 2000, 12_000])
def test_an_output_is_clipped_beyond_its_limit(characters: int) -> None:
    length = max(characters, 20)

    assert ("output" in shown(length, characters=length), "output" in shown(length + 1, characters=length)) == (
        True,
        False,
    )
    clipped = shown(50_000, characters=characters)["output_clipped"]
    marker = f" …[{50_000 - characters} characters left out]… "
    head, tail = clipped.split(marker)
    assert (len(head), len(tail)) == (3 * characters // 4, characters - 3 * characters // 4)


@pytest.mark.parametrize("characters", [2000, 12_000])
def test_a_memory_is_clipped_like_an_output(characters: int) -> None:
    def section(length: int) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(memory_section({"k": "x" * (length - 2)}, characters=characters))
        return line

    assert section(characters)["value"] == "x" * (characters - 2)
    assert f"…[{1} characters left out]…" in section(characters + 1)["value_clipped"]


def test_the_default_equals_balanced_mode() -> None:
    assert STRATEGIES["balanced"].output_characters == CLIPPED_AT == 4000
    assert results_section(PLAN, {"s1": output(9000)}, {}) == results_section(
        PLAN, {"s1": output(9000)}, {}, characters=4000
    )
    assert "output" in shown(4000)
    assert "output_clipped" in shown(4001)
