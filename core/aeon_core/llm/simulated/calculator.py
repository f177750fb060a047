"""A list of words, written as they are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


def listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_ROUND = re.compile(
    r"round(?:ed)?\b(?:\s+(?:it|that|off|the result(?: of [\w.-]*\w)?))*\s+to\s+(?:the\s+)?(?:nearest\s+)?"
    r"(?:(?P<count>\d|one|two|three|four|five|six)\s+(?:decimals?|digits?)(?:\s+(?:places?|points?))?"
    r"|(?P<whole>integer|whole(?:\s+number)?|number))[\s.!?]*$",
    re.IGNORECASE,
)
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six")


def decimals_asked(description: str) -> int | None:
    """Return the decimals that a description wants a number rounded to, 0 for a whole one; None where it wants none."""
    match = _ROUND.match(description[:MAX_CLAUSE].strip())
    if match is None:
        return None
    if match["whole"]:
        return 0
    count = match["count"].lower()
    return _COUNTS.index(count) if count in _COUNTS else int(count)


def rounded(number: float, decimals: int) -> str:
    """Return a number rounded to so many decimals, as it is written."""
    return show_number(round(number, decimals)) if decimals else show_number(round(number))


MAX_TOKENS = 400
_MAX_DIGITS = 300

_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)"
    r"|(?P<word>[^\W\d_][\w'’-]*)"
    r"|(?P<power>\*\*)"
    r"|(?P<symbol>\S)"
)
_TIMES = re.compile(r"(?<=\d)\s*x\s*(?=-?\d)")
_SYMBOLS = {"−": "-", "–": "-", "×": "*", "·": "*", "∙": "*", "÷": "/", "∕": "/", "’": "'"}
_SPACED = str.maketrans(_SYMBOLS)

_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ONES += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {word: value for value, word in enumerate(_ONES)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_LARGE = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a word in lower case, or a symbol, with its place in the text."""

    text: str
    number: int | float | None
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return the first MAX_TOKENS tokens of a text; number words are numbers."""
    lowered = _TIMES.sub(_keep_length, text.translate(_SPACED)).lower()
    if len(lowered) != len(text):
        # A few characters grow when lowered; places in the text matter more than their case.
        lowered = _TIMES.sub(_keep_length, text.translate(_SPACED))
    found: list[Token] = []
    for match in _TOKEN.finditer(lowered):
        value = _value(match.group()) if match.lastgroup == "number" else None
        found.append(Token(match.group(), value, match.start(), match.end()))
        if len(found) == MAX_TOKENS:
            break
    return _with_number_words(found)


def _keep_length(match: re.Match[str]) -> str:
    return match.group().replace("x", "*")


def _value(digits: str) -> int | float | None:
    digits = digits.replace(",", "")
    if len(digits) > _MAX_DIGITS:
        return None
    if digits.isdecimal():
        return int(digits)
    number = float(digits)
    return number if math.isfinite(number) else None


def _with_number_words(found: list[Token]) -> list[Token]:
    merged: list[Token] = []
    index = 0
    while index < len(found):
        end, value = _number_words(found, index)
        if value is None:
            merged.append(found[index])
        else:
            first, last = found[index], found[end - 1]
            merged.append(Token(first.text, value, first.start, last.end))
        index = end
    return merged


def _number_words(found: list[Token], index: int) -> tuple[int, int | None]:
    """Return the number that the words from `index` on spell and where they end, or None."""
    total, current, spelled = 0, 0, False
    start = index
    while index < len(found):
        parts = found[index].text.split("-")
        if found[index].number is None and all(part in _SMALL for part in parts):
            value = sum(_SMALL[part] for part in parts)
            if spelled and not _continues(current, value):
                break
            current += value
        elif spelled and parts == ["hundred"]:
            current *= 100
        elif spelled and parts[0] in _LARGE and len(parts) == 1:
            total, current = total + current * _LARGE[parts[0]], 0
        else:
            break
        spelled = True
        index += 1
    return (index, total + current) if spelled else (start + 1, None)


def _continues(current: int, value: int) -> bool:
    """Whether "twenty" goes on with "one", "two hundred" with "five"; "five ten" are two numbers."""
    if current % 100 == 0:
        return value < 100
    return current % 10 == 0 and current % 100 >= 20 and 0 < value < 10


def show_number(value: float) -> str:
    """Return a number as a person writes it: no trailing zeros, no rounding noise."""
    if isinstance(value, int):
        text = str(value)
        return text if len(text) <= _MAX_DIGITS else f"{text[:20]}… ({len(text)} digits)"
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return format(value, ".12g")


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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
_RESULT_NOUNS = {
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
    return f"{_RESULT_NOUNS[operation.name]} {preposition} {', '.join(shown[:-1])} and {shown[-1]}"


def _plain(operand: Operand) -> float:
    assert isinstance(operand, (int, float))
    return operand


def _operand(operand: Simple) -> str:
    if isinstance(operand, Ref):
        return "the result" if operand.step_id is None else f"the result of {operand.step_id}"
    # repr, not the rounded form: the number is read back from here.
    return repr(operand)


MAX_CLAUSE = 2000
"""Characters of a clause that are looked at."""
_MAX_NESTING = 30
_MAX_LEFTOVER = 6

_INFIX = {"plus": "add", "+": "add", "minus": "subtract", "-": "subtract", "times": "multiply", "*": "multiply"}
_INFIX |= {"/": "divide", "over": "divide", "mod": "modulo", "modulo": "modulo", "^": "power", "**": "power"}
_NOUNS = {"sum": "add", "total": "add", "difference": "subtract", "product": "multiply", "quotient": "divide"}
_NOUNS |= {"ratio": "divide", "average": "average", "mean": "average", "remainder": "modulo"}
_VERBS = {"add": "add", "sum": "add", "subtract": "subtract", "deduct": "subtract", "multiply": "multiply"}
_VERBS |= {"divide": "divide", "average": "average"}
_SCALE = {"double": ("multiply", 2), "triple": ("multiply", 3), "halve": ("divide", 2), "half": ("divide", 2)}
_BETWEEN = {"multiply": ("by", "with"), "divide": ("by", "into"), "add": ("to",), "subtract": ("from",)}
_REFERENCES = frozenset({"it", "that", "this", "result", "answer", "them"})
_CONNECTORS = frozenset({"and", ",", "&", "by", "from", "to", "with"})
_CUES = frozenset({"calculate", "compute", "evaluate", "what", "what's", "whats", "much", "solve", "work", "="})
_FILLERS = _CUES | listed(
    "please the a an result of is are how out find tell me can could you give for answer value equal equals"
    " equation expression and then now next finally also first ? . ! : , ; \" ' ` me us i want to know would"
    " like"
)
_NOISE = frozenset(
    {"the", "a", "an", "number", "numbers", "values", "value", "both", "up", "together", "following", ":"}
)
VERBS = frozenset({*_VERBS, *_SCALE, "square", "raise", "calculate", "compute", "evaluate"})
"""Words that begin a clause of arithmetic."""
_DISCURSIVE = listed(
    "explain describe compare discuss why design write draft build create research story essay poem invent"
    " summarise summarize translate plan read open"
)


_Rule = Callable[[], Operand | None]


def parse_arithmetic(text: str, step_ids: Sequence[str] | None = None) -> Operation | None:
    """Return the first operation that a text asks for, or None.

    With `step_ids` the text is a step's description, which may refer to their results and may say more around the
    operation; without, it is a clause of a task, where much around it means that something else is asked.
    """
    text, names = _named_references(text[:MAX_CLAUSE], step_ids or ())
    words = tokens(text)
    if len(words) == MAX_TOKENS:
        # The rest is not read: half a sum would be wrong.
        return None
    for start in range(len(words)):
        if words[start].text in _DISCURSIVE:
            return None
        parser = _Parser(words, start, names)
        operation = parser.clause()
        if operation is None:
            continue
        outside = [word for word in (*words[:start], *words[parser.at :]) if word.text not in _FILLERS]
        if parser.spoken or (not outside and _is_asked(words, start)):
            return operation if step_ids is not None or len(outside) <= _MAX_LEFTOVER else None
    return None


def _is_asked(words: list[Token], start: int) -> bool:
    """Whether bare symbols are meant as arithmetic: nothing stands before them, or a word that asks for a value."""
    return start == 0 or any(word.text in _CUES for word in words[:start]) or words[start - 1].text in _FILLERS


def _named_references(text: str, step_ids: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Replace "the result of <id>" by a word the tokens keep whole."""
    names: dict[str, str] = {}
    if "result of" not in text.lower():
        return text, names
    for number, step_id in enumerate(sorted(step_ids, key=len, reverse=True)):
        pattern = re.compile(rf"\b(?:the )?result of {re.escape(step_id)}(?!\w)", re.IGNORECASE)
        word = f"reference{number}"
        text, count = pattern.subn(word, text)
        if count:
            names[word] = step_id
    return text, names


class _Parser:
    """Recursive descent from one token on; a rule that does not fit returns None and leaves `at` as it was."""

    def __init__(self, words: list[Token], at: int, names: dict[str, str]) -> None:
        self.words = words
        self.at = at
        self.names = names
        self.spoken = False
        """Whether a word, not only a symbol, said what to do."""
        self._depth = 0

    def clause(self) -> Operation | None:
        word = self._peek()
        if word in _VERBS or word in _SCALE or word == "square":
            begun = self.at
            found = self._verb()
            if found is not None:
                self.spoken = True
                return found
            self.at = begun
        value = self._expression()
        return value if isinstance(value, Operation) else None

    def _peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.words[index].text if index < len(self.words) else ""

    def _take(self, *texts: str) -> bool:
        if self._peek() in texts:
            self.at += 1
            return True
        return False

    def _skip_noise(self) -> None:
        while self._peek() in _NOISE:
            self.at += 1

    def _verb(self) -> Operation | None:
        word = self._peek()
        self.at += 1
        if word in _SCALE or word == "square":
            self._take("of")
            value = self._factor()
            return None if value is None else _scaled(word, value)
        name = _VERBS[word]
        self._skip_noise()
        self._take("of")
        begun = self.at
        if self._take(*_BETWEEN.get(name, ())):
            other = self._expression()
            if other is not None:
                return Operation(name, (Ref(), other))
            self.at = begun
        items = self._list()
        if not items:
            return None
        other = self._after(*_BETWEEN.get(name, ()))
        if other is not None:
            # "subtract 3 from 10" is the only one that turns its operands round.
            return Operation(name, (other, *items) if name == "subtract" else (*items, other))
        if len(items) > 1:
            return Operation(name, tuple(items))
        return None if name == "average" or isinstance(items[0], Ref) else Operation(name, (Ref(), items[0]))

    def _after(self, *connectors: str) -> Operand | None:
        begun = self.at
        if connectors and self._take(*connectors):
            value = self._expression()
            if value is not None:
                return value
        self.at = begun
        return None

    def _list(self) -> list[Operand]:
        first = self._expression()
        items = [] if first is None else [first]
        while items:
            begun = self.at
            self._take(",", "&")
            self._take("and")
            if self.at == begun or self._peek() in VERBS - {"sum", "average", "double", "half", "square"}:
                self.at = begun
                break
            item = self._expression()
            if item is None:
                self.at = begun
                break
            items.append(item)
        return items

    def _expression(self) -> Operand | None:
        return self._chain(self._term, ("add", "subtract"))

    def _term(self) -> Operand | None:
        return self._chain(self._factor, ("multiply", "divide", "modulo", "power"))

    def _chain(self, operand: _Rule, names: tuple[str, ...]) -> Operand | None:
        left = operand()
        joined: str | None = None
        while left is not None:
            begun = self.at
            name = self._infix(names)
            right = operand() if name is not None else None
            if name is None or right is None:
                self.at = begun
                break
            if name == joined and isinstance(left, Operation):
                left = Operation(name, (*left.operands, right))
            else:
                left = Operation(name, (left, right))
            joined = name if name in ("add", "multiply") else None
        return left

    def _infix(self, names: tuple[str, ...]) -> str | None:
        word, name = self._peek(), None
        if word in ("multiplied", "divided") and self._peek(1) == "by":
            name, length = ("multiply" if word == "multiplied" else "divide"), 2
        elif word == "to" and [self._peek(i) for i in range(1, 4)] == ["the", "power", "of"]:
            name, length = "power", 4
        else:
            name, length = _INFIX.get(word), 1
        if name not in names:
            return None
        self.at += length
        self.spoken = self.spoken or word.isalpha()
        return name

    def _factor(self) -> Operand | None:
        if self._depth >= _MAX_NESTING:
            return None
        self._depth += 1
        begun = self.at
        value = self._plain_factor()
        self._depth -= 1
        if value is None:
            self.at = begun
        return value

    def _plain_factor(self) -> Operand | None:
        self._skip_noise()
        while self._peek() in ("$", "€", "£"):
            self.at += 1
        word = self._peek()
        if self.at < len(self.words) and (number := self.words[self.at].number) is not None:
            self.at += 1
            return self._after_number(number)
        if word in ("-", "minus", "negative"):
            self.at += 1
            value = self._factor()
            return _negated(value)
        if word == "(":
            self.at += 1
            value = self._expression()
            return value if self._take(")") else None
        if word in self.names:
            self.at += 1
            self.spoken = True
            return Ref(self.names[word])
        return self._noun(word)

    def _noun(self, word: str) -> Operand | None:
        if word in _NOUNS or word in _SCALE or word == "square":
            self.at += 1
            if not self._take("of", "between"):
                return None
            self._skip_noise()
            items = self._list()
            if word == "remainder" and len(items) == 1 and isinstance(items[0], Operation):
                return Operation("modulo", items[0].operands)
            if word in _NOUNS and len(items) < 2:
                return None
            if not items:
                return None
            self.spoken = True
            return Operation(_NOUNS[word], tuple(items)) if word in _NOUNS else _scaled(word, items[0])
        if word in ("previous", "last"):
            self.at += 1
            word = self._peek()
        if word in _REFERENCES:
            self.at += 1
            begun = self.at
            if word == "result" and self._take("of"):
                if (inner := self._expression()) is not None:
                    return inner
                self.at = begun
            return Ref()
        return None

    def _after_number(self, number: float) -> Operand:
        if self._peek() == "squared":
            self.at += 1
            self.spoken = True
            return Operation("multiply", (number, number))
        begun = self.at
        if self._take("%", "percent") and self._take("of"):
            whole = self._factor()
            if whole is not None:
                self.spoken = True
                return Operation("divide", (Operation("multiply", (number, whole)), 100))
        self.at = begun
        if _is_unit(self._peek()) and (self._peek(1) in _CONNECTORS or self._peek(1) in _INFIX):
            self.at += 1
        return number


def _is_unit(word: str) -> bool:
    """Whether a word after a number may be what is counted: "3 apples and 4 apples"."""
    known = word in _INFIX or word in _NOUNS or word in _CONNECTORS or word in VERBS or word in _FILLERS
    return word.isalpha() and not known and word not in ("multiplied", "divided", "squared", "percent")


def _scaled(word: str, value: Operand) -> Operation:
    if word == "square":
        return Operation("multiply", (value, value))
    name, factor = _SCALE[word]
    return Operation(name, (value, factor))


def _negated(value: Operand | None) -> Operand | None:
    if value is None:
        return None
    return -value if isinstance(value, (int, float)) else Operation("subtract", (0, value))
