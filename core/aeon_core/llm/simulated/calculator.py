"""Arithmetic that is parsed from the words of a task and evaluated without a model."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aeon_core.tools.registry import OPERATIONS

MAX_CLAUSE = 2000
"""The most characters of a clause that are examined."""
_MAX_ARITHMETIC = 300
_MAX_VALUE = 1e300


@dataclass(frozen=True)
class Ref:
    """The result of an earlier step."""

    step_id: str


@dataclass(frozen=True)
class Operation:
    """The name of one of SIGNS, and its two operands."""

    name: str
    operands: tuple[Operand, Operand]


Operand = int | float | Ref | Operation
Resolve = Callable[[Ref], float]


class Sign(NamedTuple):
    """An operation's node in a syntax tree, and its wording as a noun and as a step."""

    node: type[ast.operator]
    noun: str
    description: str


SIGNS = {
    "add": Sign(ast.Add, "sum of {} and {}", "Add {} and {}"),
    "subtract": Sign(ast.Sub, "difference between {} and {}", "Subtract {1} from {0}"),
    "multiply": Sign(ast.Mult, "product of {} and {}", "Multiply {} by {}"),
    "divide": Sign(ast.Div, "quotient of {} and {}", "Divide {} by {}"),
}
_VALUE = r"(?:(?<![\w.])-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?![\w.])|\b_\d*\b|\([^()]*\))"
_AND = r"\s*(?:,\s*and\b|,|\band\b)\s*"
_LISTS = [
    (re.compile(rf"{words}\s+({_VALUE}(?:{_AND}{_VALUE})+)"), sign)
    for words, sign in (
        (r"\b(?:the\s+)?(?:sum|total)\s+of", "+"),
        (r"\b(?:the\s+)?difference\s+(?:between|of)", "-"),
        (r"\b(?:the\s+)?product\s+of", "*"),
        (r"\b(?:the\s+)?quotient\s+of", "/"),
        (r"\badd", "+"),
    )
]
_PHRASES = [
    (re.compile(pattern.replace("#", f"({_VALUE})")), expression)
    for pattern, expression in (
        (r"#\s*(?:%|percent)\s+of\s+#", r"(\1 * \2 / 100)"),
        (r"\badd\s+#\s+to\s+#", r"(\1 + \2)"),
        (r"\bsubtract\s+#\s+from\s+#", r"(\2 - \1)"),
        (r"\bmultiply\s+#\s+(?:by|with|and)\s+#", r"(\1 * \2)"),
        (r"\bdivide\s+#\s+by\s+#", r"(\1 / \2)"),
        (r"\badd\s+#", r"(_ + \1)"),
        (r"\bsubtract\s+#", r"(_ - \1)"),
        (r"\bmultiply by\s+#", r"(_ * \1)"),
        (r"\bdivide by\s+#", r"(_ / \1)"),
        (r"\bplus\b", "+"),
        (r"\bminus\b|[−–]", "-"),
        (r"\btimes\b|\bmultiplied by\b|[×·]|(?<=\d)\s*x\s*(?=-?\d)", "*"),
        (r"\bdivided by\b|÷", "/"),
    )
]
_LEAD = re.compile(
    r"(?:(?:please|and|then|now|finally|(?:can|could) you|tell me|calculate|compute|what is|what's|how much is|find"
    r"|the|result of|value of)\b[\s:,]*)*"
)
_EXPRESSION = re.compile(r"[\d\s.+\-*/()e_]*")
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)")
_BEFORE = re.compile(r"\b(?:it|this|that|the (?:previous |last )?(?:result|answer))\b(?! of\b)", re.IGNORECASE)


def parse_arithmetic(clause: str, step_ids: Sequence[str] = ()) -> Operation | None:
    """Return the calculation that a clause consists of, or None if it contains anything else.

    `step_ids` are the steps whose results it may name (`the result of s1`); `it` means the last one's result.
    """
    if len(clause) > _MAX_ARITHMETIC:
        return None
    text, refs = clause.strip(), {"_": Ref(step_ids[-1])} if step_ids else {}
    for step_id in sorted({step_id for step_id in step_ids if step_id in clause}, key=len, reverse=True):
        refs[name := f"_{len(refs)}"] = Ref(step_id)
        text = re.sub(rf"\b(?:the )?result of {re.escape(step_id)}(?![\w-])", name, text, flags=re.IGNORECASE)
    text = _BEFORE.sub("_", text).lower()
    text = _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    for words, sign in _LISTS:
        while (match := words.search(text)) is not None:
            text = f"{text[: match.start()]}({re.sub(_AND, sign, match[1])}){text[match.end() :]}"
    for phrase, expression in _PHRASES:
        text = phrase.sub(expression, text)
    lead = _LEAD.match(text)
    text = text[lead.end() if lead else 0 :].rstrip(" .?!=")
    try:
        if _EXPRESSION.fullmatch(text):
            operand = _operand(ast.parse(text, mode="eval").body, refs)
            return operand if isinstance(operand, Operation) else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    return None


def _operand(node: ast.expr, refs: Mapping[str, Ref]) -> Operand:
    """Return the operand that a node of Python's syntax tree stands for. Raises ValueError if it is not arithmetic."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and abs(node.value) < _MAX_VALUE:
        return node.value
    if isinstance(node, ast.Name) and node.id in refs:
        return refs[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _operand(node.operand, refs)
        return -value if isinstance(value, (int, float)) else Operation("subtract", (0, value))
    if isinstance(node, ast.BinOp):
        for name, sign in SIGNS.items():
            if isinstance(node.op, sign.node):
                return Operation(name, (_operand(node.left, refs), _operand(node.right, refs)))
    raise ValueError("no arithmetic")


def flatten(operand: Operand, next_id: Callable[[Operation], str]) -> Operand:
    """Pass every calculation on numbers and results to `next_id`, in order; it returns the id that later ones refer to.

    Returns the value of the whole: a number, or a reference to the last calculation.
    """
    if not isinstance(operand, Operation):
        return operand
    first, second = (flatten(item, next_id) for item in operand.operands)
    return Ref(next_id(Operation(operand.name, (first, second))))


def described(calculation: Operation) -> str:
    """Return a calculation on numbers and results as a sentence that parses to the same calculation."""
    # repr, not the rounded form, since the number is parsed from here.
    shown = [f"the result of {one.step_id}" if isinstance(one, Ref) else repr(one) for one in calculation.operands]
    return SIGNS[calculation.name].description.format(*shown)


def evaluate(operand: Operand, resolve: Resolve) -> float:
    """Return the value; whole numbers stay exact.

    Raises ArithmeticError, with a sentence, for a division by zero or a result too large, and what `resolve` raises.
    """
    if isinstance(operand, Ref):
        return resolve(operand)
    if not isinstance(operand, Operation):
        return operand
    first, second = (evaluate(item, resolve) for item in operand.operands)
    try:
        result = OPERATIONS[operand.name](first, second)
    except ZeroDivisionError:
        raise ArithmeticError(f"{show_number(first)} cannot be divided by 0.") from None
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ArithmeticError("The result is too large for a number.")
    return result


def name_of(operation: Operation, resolve: Resolve) -> str:
    """Return the name of an operation, such as `sum of 5 and 10`; `result` if an operand is an operation too."""
    if any(isinstance(one, Operation) for one in operation.operands):
        return "result"
    return SIGNS[operation.name].noun.format(*(show_number(evaluate(one, resolve)) for one in operation.operands))


def show_number(value: float) -> str:
    """Return a number as a person writes it: no trailing zeros, no rounding noise."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int) else format(value, ".12g")


_LEADING = re.compile(r"\s*(?:(?:please|and|then|now|finally|(?:can|could) you)\b[\s:,]*)*", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|(?<!\w)'([^']*)'(?!\w)")
_FILE = re.compile(r"[~\w./-]+\.[A-Za-z]\w{0,7}")
_BREAK = re.compile(
    r"[;\n]|[.!?]\s|,?\s*\b(?:and\s+)?then\b,?|(?:,\s*and|,|\band)\s+(?=(?:add|subtract|multiply|divide|calculate|compute"
    r"|count|echo|read|write|use)\b)",
    re.IGNORECASE,
)


def strip_lead(clause: str) -> str:
    """Return a clause without polite or connecting words at its beginning."""
    lead = _LEADING.match(clause)
    return clause[lead.end() if lead else 0 :]


def quotations(text: str) -> list[str]:
    """Return the quoted texts, in order."""
    return [next(filter(None, match.groups()), "") for match in _QUOTED.finditer(text[:MAX_CLAUSE])]


def file_names(text: str) -> list[str]:
    """Return the words that look like file paths, in order."""
    words = (word.strip("\"'`“”,;:!?()").rstrip(".") for word in text[:MAX_CLAUSE].split())
    return [word for word in words if _FILE.fullmatch(word) and "://" not in word]


def clauses(task: str) -> list[str]:
    """Return the parts of a task to do one after the other; a long task is one part."""
    if len(task) > MAX_CLAUSE:
        return [task]
    quoted = [match.span() for match in _QUOTED.finditer(task)]
    parts, begin = [], 0
    for match in _BREAK.finditer(task):
        if not any(start < match.start() < end for start, end in quoted):
            parts.append(task[begin : match.start()])
            begin = match.end()
    return [part.strip(" ,") for part in (*parts, task[begin:]) if strip_lead(part).strip(" ,.?!")]
