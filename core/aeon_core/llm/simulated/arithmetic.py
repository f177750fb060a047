"""Arithmetic in words and symbols: a clause becomes an operation, an operation single calculations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aeon_core.llm.simulated.numbers import show_number


@dataclass(frozen=True)
class Ref:
    """The result of an earlier step; of the one before where `step_id` is None."""

    step_id: str | None = None


@dataclass(frozen=True)
class Operation:
    """`add`, `subtract`, `multiply`, `divide`, `power`, `modulo` or `average`, and what it is applied to."""

    name: str
    operands: tuple[Operand, ...]


Operand = int | float | Ref | Operation
Simple = int | float | Ref

SYNONYMS: dict[str, tuple[str, ...]] = {
    "add": ("add", "addition", "plus", "sum", "+"),
    "subtract": ("subtract", "subtraction", "minus", "difference", "sub", "-"),
    "multiply": ("multiply", "multiplication", "times", "product", "mul", "*"),
    "divide": ("divide", "division", "quotient", "div", "/"),
    "power": ("power", "pow", "exponent", "**", "^"),
    "modulo": ("modulo", "mod", "remainder", "%"),
}
_PHRASES = {
    "add": "Add {} and {}",
    "subtract": "Subtract {1} from {0}",
    "multiply": "Multiply {} by {}",
    "divide": "Divide {} by {}",
    "power": "Raise {} to the power of {}",
    "modulo": "Find the remainder of {} divided by {}",
}
_NOUNS = {
    "add": "sum",
    "subtract": "difference",
    "multiply": "product",
    "divide": "quotient",
    "average": "average",
    "modulo": "remainder",
}
_MAX_EXPONENT = 1000


@dataclass(frozen=True)
class Calculation:
    """One operation on two operands: what a calculator does in one call."""

    name: str
    a: Simple
    b: Simple

    @property
    def description(self) -> str:
        """The calculation as a sentence that reads back as the same calculation."""
        return _PHRASES[self.name].format(_operand(self.a), _operand(self.b))


def flatten(operand: Operand, next_id: Callable[[Calculation], str]) -> Simple:
    """Hand every calculation of an operation to `next_id`, in order; it returns the id that later ones refer to.

    Returns what stands for the whole: a number, or a reference to the last calculation.
    """
    if not isinstance(operand, Operation):
        return operand
    name = "add" if operand.name == "average" else operand.name
    values = [flatten(item, next_id) for item in operand.operands]
    result = values[0]
    for value in values[1:]:
        result = Ref(next_id(Calculation(name, result, value)))
    if operand.name == "average":
        result = Ref(next_id(Calculation("divide", result, len(values))))
    return result


def count_calculations(operand: Operand) -> int:
    """Return how many calculations an operation takes."""
    if not isinstance(operand, Operation):
        return 0
    own = len(operand.operands) - (operand.name != "average")
    return own + sum(count_calculations(item) for item in operand.operands)


def evaluate(operand: Operand, resolve: Callable[[Ref], float]) -> float:
    """Return the value; whole numbers stay exact.

    Raises ArithmeticError, with a sentence, for a division by zero or a result too large, and what `resolve` raises.
    """
    if isinstance(operand, Ref):
        return resolve(operand)
    if not isinstance(operand, Operation):
        return operand
    values = [evaluate(item, resolve) for item in operand.operands]
    try:
        if operand.name == "average":
            return _apply("divide", _folded("add", values), len(values))
        return _folded(operand.name, values)
    except OverflowError:
        raise ArithmeticError("The result is too large for a number.") from None


def _folded(name: str, values: Sequence[float]) -> float:
    result = values[0]
    for value in values[1:]:
        result = _apply(name, result, value)
    if isinstance(result, float) and not math.isfinite(result):
        raise OverflowError
    return result


def _apply(name: str, a: float, b: float) -> float:
    if name in ("divide", "modulo") and b == 0:
        raise ArithmeticError(f"{show_number(a)} cannot be divided by 0.")
    if name == "add":
        return a + b
    if name == "subtract":
        return a - b
    if name == "multiply":
        return a * b
    if name == "modulo":
        return a % b
    if name == "power":
        return _power(a, b)
    return a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else a / b


def _power(a: float, b: float) -> float:
    if abs(b) > _MAX_EXPONENT or abs(a) > 10**100:
        raise OverflowError
    if a == 0 and b < 0:
        raise ArithmeticError("0 has no negative power.")
    result = a**b
    if isinstance(result, complex):
        raise ArithmeticError(f"{show_number(a)} to the power of {show_number(b)} is no real number.")
    return float(result) if isinstance(result, float) else int(result)


def sentence(operation: Operation, value: float, resolve: Callable[[Ref], float]) -> str:
    """Return the result as a sentence: "The sum of 5 and 10 is 15." """
    return f"The {named(operation, resolve)} is {show_number(value)}."


def named(operation: Operation, resolve: Callable[[Ref], float] | None = None) -> str:
    """Return what an operation is called: "sum of 5 and 10"; "result" where its operands are operations too."""
    shown: list[str] = []
    for operand in operation.operands:
        if isinstance(operand, Operation) or (isinstance(operand, Ref) and resolve is None):
            return "result"
        shown.append(show_number(resolve(operand) if isinstance(operand, Ref) and resolve else _plain(operand)))
    if operation.name == "power":
        return f"result of {shown[0]} to the power of {shown[1]}"
    if operation.name == "modulo":
        return f"remainder of {shown[0]} divided by {shown[1]}"
    preposition = "between" if operation.name == "subtract" else "of"
    return f"{_NOUNS[operation.name]} {preposition} {', '.join(shown[:-1])} and {shown[-1]}"


def _plain(operand: Operand) -> float:
    assert isinstance(operand, (int, float))
    return operand


def _operand(operand: Simple) -> str:
    if isinstance(operand, Ref):
        return "the result" if operand.step_id is None else f"the result of {operand.step_id}"
    # repr, not the rounded form: the number is read back from here.
    return repr(operand)
