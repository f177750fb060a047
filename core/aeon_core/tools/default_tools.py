"""The default tools: echo and calculator, and no others (core FR-023)."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.tools.base import Effect, Tool, object_schema
from aeon_core.tools.schema import describe


def divide(a: float, b: float) -> float:
    """Return the quotient, an int if that of two ints is exact. Raises ZeroDivisionError, OverflowError."""
    return a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else a / b


OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": divide,
}


class EchoTool(Tool):
    """Returns the text that it gets."""

    name = "echo"
    description = "Returns the given text unchanged."
    input_schema: dict[str, Any] = object_schema({"text": {"type": "string", "description": "The text to return."}})
    output_schema: dict[str, Any] = object_schema({"text": {"type": "string"}})
    effect: Effect = "pure"
    examples: tuple[dict[str, Any], ...] = ({"text": "Hello"},)

    def invoke(self, text: str) -> dict[str, Any]:
        """Return `{"text": text}`."""
        return {"text": text}


class CalculatorTool(Tool):
    """Applies one arithmetic operation to two numbers."""

    name = "calculator"
    description = "Adds, subtracts, multiplies or divides two numbers and returns the result."
    input_schema: dict[str, Any] = object_schema(
        {
            "operation": {"type": "string", "enum": list(OPERATIONS), "description": "What to do with a and b."},
            "a": {"type": "number", "description": "The first number."},
            "b": {"type": "number", "description": "The second number; the divisor in a division."},
        }
    )
    output_schema: dict[str, Any] = object_schema({"result": {"type": "number"}})
    effect: Effect = "pure"
    examples: tuple[dict[str, Any], ...] = (
        {"operation": "add", "a": 5, "b": 10},
        {"operation": "divide", "a": 10, "b": 4},
    )

    def invoke(self, operation: str, a: float, b: float) -> dict[str, Any]:
        """Return `{"result": number}`, an int if the operation on ints is exact.

        Raises ToolError for an unknown operation, a value that is not a number, a division by zero, or a result
        that is too large.
        """
        for name, number in (("a", a), ("b", b)):
            if not is_number(number) or (isinstance(number, float) and not math.isfinite(number)):
                raise ToolError(f"calculator: {name} must be a number, got {describe(number)}")
        if operation not in [*OPERATIONS]:  # it may be of any type
            raise ToolError(
                f"calculator: unknown operation {describe(operation)}, expected one of {', '.join(OPERATIONS)}"
            )
        try:
            result = OPERATIONS[operation](a, b)
        except ZeroDivisionError:
            raise ToolError(
                f"calculator: division by zero, {describe(a)} / {describe(b)}; use a divisor other than 0"
            ) from None
        except OverflowError:
            result = math.inf
        if abs(result) > sys.float_info.max:
            what = f"{operation} of {describe(a)} and {describe(b)}"
            raise ToolError(f"calculator: {what} is too large for a number; use smaller numbers")
        return {"result": result}


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number, which true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
