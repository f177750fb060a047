"""What a repair may change in a call or a plan, and what it is refused for (core FR-030 to FR-032)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.repair_rules import call_refusal, plan_refusal, same
from aeon_core.tools.schema import Schema
from tests.aeon_core.supervisor.test_supervisor import REGISTRY


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (1, "1", False),
        (None, None, True),
        (None, "", False),
        (" a\n b", "a b", True),
        ([1, 2], [1, 2], True),
        ([1, 2], [1], False),
        ({"a": [None]}, {"a": [None]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([], {}, False),
    ],
)
def test_values_are_compared_without_whitespace_and_by_kind(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is same(other, one) is equal


NAMED = Schema({"properties": {"a": {}, "b": {}}, "required": ["a"]})
BOTH = Schema({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})


@pytest.mark.parametrize(
    ("schema", "original", "repaired", "refusal"),
    [
        pytest.param(NAMED, {"n": 5}, {"a": 5}, None, id="a value gets the name of a missing argument"),
        pytest.param(BOTH, {"n": 5}, {"a": 5, "b": 7}, None, id="a value that was named is not expected again"),
        pytest.param(BOTH, {"x": 5}, {"x": 5, "a": 7, "b": 8}, None, id="a value that keeps its name moves nowhere"),
        pytest.param(BOTH, {"m": 5, "n": 7}, {"a": 7, "b": 5}, "'b' took the value of another", id="order is kept"),
        pytest.param(NAMED, {"n": 5}, {"a": 7}, "'a' was added, though the original has another", id="another value"),
        pytest.param(NAMED, {"a": 5}, {"a": 5, "b": 7}, "'b' was added", id="nothing asks for an optional argument"),
        pytest.param(NAMED, {"a": 5}, {"b": 5}, "'a' was dropped", id="an argument is kept"),
        pytest.param(NAMED, {"a": 5}, {"a": 7}, "a was changed from 5 to 7", id="a value is kept"),
    ],
)
def test_a_repaired_call_keeps_the_values_under_their_names(
    schema: Schema, original: dict[str, Any], repaired: dict[str, Any], refusal: str | None
) -> None:
    found = call_refusal(original, repaired, schema)
    assert found is None if refusal is None else refusal in str(found)


def plan(tool: str, arguments: Any) -> dict[str, Any]:
    return {"goal": "g", "steps": [{"step_id": "s1", "description": "d", "tool": tool, "arguments": arguments}]}


@pytest.mark.parametrize(
    ("tool", "was", "now", "refusal"),
    [
        pytest.param("echo", {"txt": "x"}, {"text": "x"}, None, id="the right name for an argument"),
        pytest.param("echo", '{"text": "x"', {"text": "x"}, None, id="an object instead of its text"),
        pytest.param("echo", {"text": "x"}, {"text": "y"}, 'text was changed from "x" to "y"', id="another value"),
        pytest.param(
            "unknown", {"txt": "x"}, {"text": "x"}, "arguments.txt was changed", id="a tool that is not known"
        ),
    ],
)
def test_the_arguments_in_a_repaired_plan_are_those_of_their_tool(
    tool: str, was: Any, now: Any, refusal: str | None
) -> None:
    found = plan_refusal(plan(tool, was), plan(tool, now), REGISTRY)
    assert found is None if refusal is None else refusal in str(found)
