"""The default tools: echo and calculator, and no others (core FR-023)."""

from __future__ import annotations

import math
import sys
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.tools.base import Effect, Tool, object_schema
from aeon_core.tools.schema import describe

OPERATIONS = ("add", "subtract", "multiply", "divide")


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
            if not _is_number(number):
                raise ToolError(f"calculator: {name} must be a number, got {describe(number)}", tool_name=self.name)
        try:
            result = _calculate(operation, a, b)
            fits = abs(result) <= sys.float_info.max
        except OverflowError:
            fits = False
        if not fits:
            raise ToolError(
                f"calculator: {operation} of {describe(a)} and {describe(b)} is too large for a number; "
                "use smaller numbers",
                tool_name=self.name,
            )
        return {"result": result}


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _calculate(operation: str, a: float, b: float) -> float:
    if operation == "add":
        return a + b
    if operation == "subtract":
        return a - b
    if operation == "multiply":
        return a * b
    if operation != "divide":
        raise ToolError(
            f"calculator: unknown operation {describe(operation)}, expected one of {', '.join(OPERATIONS)}",
            tool_name=CalculatorTool.name,
        )
    if b == 0:
        raise ToolError(
            f"calculator: division by zero, {describe(a)} / {describe(b)}; use a divisor other than 0",
            tool_name=CalculatorTool.name,
        )
    if isinstance(a, int) and isinstance(b, int) and a % b == 0:
        return a // b
    return a / b
