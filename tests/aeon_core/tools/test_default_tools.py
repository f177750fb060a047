from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.default_tools import OPERATIONS, CalculatorTool, EchoTool
from aeon_core.tools.registry import default_registry

NUMBERS = st.integers(-(10**320), 10**320) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.text())
def test_echo_returns_its_text(text: str) -> None:
    assert EchoTool().invoke(text=text) == {"text": text}


@pytest.mark.parametrize(
    ("operation", "a", "b", "result"),
    [
        ("add", 5, 10, 15),
        ("subtract", 5, 10, -5),
        ("multiply", 6, 7, 42),
        ("divide", 10, 5, 2),
        ("divide", 10, 4, 2.5),
        ("divide", -7, 7, -1),
        ("divide", 10**30, 10**29, 10),
        ("add", 0.5, 1, 1.5),
        ("add", 1.0, 1, 2.0),
        ("divide", 9.0, 3, 3.0),
    ],
)
def test_the_calculator_is_exact_where_ints_are(operation: str, a: float, b: float, result: float) -> None:
    found = CalculatorTool().invoke(operation=operation, a=a, b=b)["result"]
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_division_by_zero_is_an_error(zero: float) -> None:
    with pytest.raises(ToolError, match=r"calculator: division by zero, 1 / -?0"):
        CalculatorTool().invoke(operation="divide", a=1, b=zero)


@pytest.mark.parametrize(
    ("operation", "a", "b"),
    [
        ("multiply", 1e308, 10),
        ("add", 1.7e308, 1.7e308),
        ("multiply", 10**200, 10**200),
        ("add", 10**400, 0.5),
        ("divide", 10**400, 3),
        ("divide", 1e308, 1e-308),
        ("multiply", 10**4000, 10**4000),
    ],
    ids=range(7),
)
def test_a_result_too_large_for_a_number_is_an_error(operation: str, a: float, b: float) -> None:
    with pytest.raises(ToolError, match="is too large for a number"):
        CalculatorTool().invoke(operation=operation, a=a, b=b)


@pytest.mark.parametrize("value", [True, "5", None, math.nan, math.inf, [1]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ToolError, match="calculator: b must be a number, got"):
        CalculatorTool().invoke(operation="add", a=1, b=value)


@pytest.mark.parametrize(("operation", "shown"), [("power", '"power"'), (["add"], "an array of 1")])
def test_an_unknown_operation_is_refused_with_the_known_ones(operation: Any, shown: str) -> None:
    with pytest.raises(ToolError, match=f"unknown operation {shown}, expected one of add, subtract, multiply, divide"):
        CalculatorTool().invoke(operation=operation, a=1, b=2)


@given(st.sampled_from(list(OPERATIONS)), NUMBERS, NUMBERS)
def test_a_result_is_a_finite_number_that_fits_the_output_schema(operation: str, a: float, b: float) -> None:
    try:
        result = CalculatorTool().invoke(operation=operation, a=a, b=b)
    except ToolError:
        return
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert default_registry().output_schema("calculator").errors(result) == []


@pytest.mark.parametrize("arguments", [{"operation": "add", "a": True, "b": 1}, {"operation": "add", "a": 1}, {}])
def test_the_calculators_schema_refuses_wrong_arguments(arguments: dict[str, Any]) -> None:
    assert default_registry().input_schema("calculator").errors(arguments)


def test_both_are_pure_and_their_examples_work() -> None:
    for tool in default_registry():
        assert tool.effect == "pure"
        assert tool.examples
        for example in tool.examples:
            assert default_registry().output_schema(tool.name).errors(tool.invoke(**example)) == []
