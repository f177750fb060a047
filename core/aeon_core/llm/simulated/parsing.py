"""Reading arithmetic out of a clause: "the sum of 5 and 10", "multiply it by 3", "12 * (7 - 2)"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aeon_core.llm.simulated.arithmetic import Operand, Operation, Ref
from aeon_core.llm.simulated.numbers import MAX_TOKENS, Token, tokens
from aeon_core.llm.simulated.vocabulary import listed

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
