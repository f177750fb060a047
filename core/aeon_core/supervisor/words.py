"""What a text says, as words and signed numbers: the measure of what a repair may take from it (core FR-032)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise

_TOKEN = re.compile(
    r"(?P<number>(?<![\w.])(?:(?<![)\]])[-−–](?=[0-9.]))?"
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3}(?![0-9]))?|\.[0-9]+))"
    r"|(?P<word>[^\W_]+)"
    r"|(?P<end>[,.!?;:\n\"{}\[\]](?=\s|$|[\"{}\[\]])|[;\n\"{}\[\]])"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:%|percent)")
_AFTER_NUMBER = re.compile(r"[0-9]\s*[-−–]([0-9]+(?:\.[0-9]+)?)")
_OPERATOR = re.compile(r"(?<=[0-9)])\s*([-+*/×·÷^−]|\*\*|x(?=\s*[-0-9(]))\s*(?=[-0-9(])")
_ENDINGS = ("ying", "ies", "ied", "ing", "ion", "ed", "es", "s", "e", "y")
_SHORTEST_STEM = 3

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: number for number, word in enumerate([*_ONES.split(), "eighteen", "nineteen"])}
_SMALL |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_LARGE = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_FACTORS: dict[str, tuple[str, ...]] = dict.fromkeys(("half", "halve", "halved"), ("0.5", "2"))
_FACTORS |= {"quarter": ("0.25", "4"), "dozen": ("12",), "percent": ("100",)}
_FACTORS |= dict.fromkeys(("twice", "double", "doubled", "square", "squared"), ("2",))
_FACTORS |= dict.fromkeys(("thrice", "triple", "tripled", "cube", "cubed"), ("3",))

_FUNCTION = (
    "a an the of to and or in on at by for from with as is are be was were it its this that these those into do does"
)
FUNCTION_WORDS = frozenset(_FUNCTION.split())
"""Words that say nothing by themselves."""

_NEGATING = "not never no nor neither without avoid except skip cannot cant dont wont unless refuse instead rather"
_NEGATIONS = frozenset(_NEGATING.split())
_TURNS = frozenset({"but", "just", "then"})
_CONDITIONS = _NEGATIONS | {"if", "only", "until", "but"}


def tokens(text: str) -> list[str]:
    """Return the words of a text without case, and its numbers: signed, in one form for each value."""
    return [token for token, _ in _tokens(text)]


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each token and whether it is a number; the end of a clause is the token of an empty text."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "number":
            yield _number(match[0]), True
        elif match.lastgroup == "word":
            yield match[0].casefold(), False


def _number(text: str) -> str:
    negative = text[0] in "-−–"
    digits = text[negative:].replace(",", "").casefold()
    if "e" in digits:
        digits = format(Decimal(digits), "f")
    whole, _, fraction = digits.partition(".")
    number = whole.lstrip("0") or "0"
    if fraction := fraction.rstrip("0"):
        number = f"{number}.{fraction}"
    return f"-{number}" if negative and number != "0" else number


def unescaped(text: str) -> str:
    """Return the text with JSON's escapes read: a line break inside a string is no letter n."""
    return _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else " " if match[2] in "nrtbf" else match[2], text
    )


def stem(word: str) -> str:
    """Return a word without its usual endings, so that `adding` and `adds` are `add`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def name_words(name: str) -> list[str]:
    """Return the words of a key or a tool's name: `dryRun`, `dry_run` and `dry-run` are the same two."""
    return tokens(_CAMEL.sub(" ", name))


def numbers(text: str) -> set[str]:
    """Return every number that a text names: in digits with its sign, in words, as a percentage or a factor."""
    listed = list(_tokens(text))
    found = {token for token, is_number in listed if is_number}
    words = [token for token, _ in listed]
    found.update(_spelled(words))
    for word in words:
        found.update(_FACTORS.get(word, ()))
    for word, number in pairwise(words):
        if word in ("minus", "negative"):
            found.update(f"-{value}" for value in (number, str(_SMALL.get(number, ""))) if value[:1].isdecimal())
    for match in _GROUPED.finditer(text):
        parts = match[0].split(",")
        found.update(parts if not any(part.startswith("0") for part in parts) else ())
    found.update(_number(match[1]) for match in _AFTER_NUMBER.finditer(text))
    found.update(_number(format(Decimal(match[1]) / 100, "f")) for match in _PERCENT.finditer(text.casefold()))
    return found


def _spelled(words: list[str]) -> Iterator[str]:
    total = current = 0
    begun = False
    for index, word in enumerate([*words, ""]):
        if word in _SMALL and (not begun or _continues(current, _SMALL[word])):
            current, begun = current + _SMALL[word], True
        elif word in _LARGE and begun:
            if word == "hundred":
                current *= 100
            else:
                total, current = total + current * _LARGE[word], 0
        elif not (word == "and" and begun and words[index - 1] in _LARGE):
            if begun:
                yield str(total + current)
            total, begun = 0, word in _SMALL
            current = _SMALL.get(word, 0)


def _continues(current: int, value: int) -> bool:
    return value < 100 if current % 100 == 0 else current % 10 == 0 and current % 100 >= 20 and 0 < value < 10


def operators(text: str) -> set[str]:
    """Return the signs that stand between two numbers."""
    return set(_OPERATOR.findall(text))


def said_and_denied(text: str) -> tuple[set[str], set[str]]:
    """Return the stems of the words that a text says, and of those it says under a negation (`do not delete …`)."""
    said: set[str] = set()
    denied: set[str] = set()
    negative = False
    previous = ""
    for match in _TOKEN.finditer(text):
        word = match[0].casefold()
        if match.lastgroup == "end":
            negative = False
        elif word in _NEGATIONS or (word == "t" and previous.endswith("n")):
            negative = True
        elif match.lastgroup == "word":
            negative = negative and word not in _TURNS
            (denied if negative else said).add(stem(word))
        previous = word
    return said, denied


def negates(text: str) -> bool:
    """Return whether a text holds a negation."""
    words = tokens(text)
    return any(word in _NEGATIONS or (word == "t" and before.endswith("n")) for before, word in pairwise(["", *words]))


def place_of(part: list[str], whole: list[str], start: int = 0) -> int | None:
    """Return where the tokens of `part` stand together in `whole`, at `start` or later, or None."""
    if not part:
        return None
    for place in range(start, len(whole) - len(part) + 1):
        if whole[place] == part[0] and whole[place : place + len(part)] == part:
            return place
    return None


class Words:
    """The words and numbers that some texts say."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(text for text in texts if text)
        self._readings = dict.fromkeys((self.text, unescaped(self.text)))
        self.said: set[str] = set()
        self.denied: set[str] = set()
        self.numbers: set[str] = set()
        for reading in self._readings:
            said, denied = said_and_denied(reading)
            self.said |= said
            self.denied |= denied
            self.numbers |= numbers(reading)
        self._literal = [" ".join(reading.casefold().split()) for reading in self._readings]

    def literally(self, text: str) -> bool:
        """Return whether the text stands there as it is, not as a part of a longer word or file name."""
        wanted = re.escape(" ".join(text.casefold().split()))
        before = r"(?<!\w)(?<!\w[-.])" if text[:1].isalnum() else r"(?<![\w/])"
        pattern = re.compile(rf"{before}{wanted}(?![\w@]|[-./@]\w)")
        return any(pattern.search(literal) for literal in self._literal)

    def tell(self, text: str, *, prose: bool = False) -> bool:
        """Return whether a text is made of these words and numbers, function words aside.

        `prose` takes no word that was said only under a negation, unless the text holds one too.
        """
        known = self.said if prose and not negates(text) else self.said | self.denied | _NEGATIONS
        content = [(token, number) for token, number in _tokens(text) if number or token not in FUNCTION_WORDS]
        if not content:
            return bool(text.strip()) and text.strip().casefold() in self.text.casefold()
        return all(token in self.numbers if number else stem(token) in known for token, number in content)


class Clauses:
    """A text to take sentences out of, in order."""

    def __init__(self, text: str) -> None:
        self._readings = [list(_TOKEN.finditer(reading)) for reading in dict.fromkeys((text, unescaped(text)))]
        self._from = [0] * len(self._readings)

    def take(self, text: str) -> bool:
        """Return whether the text stands there in one piece, behind what was taken before, and unconditionally."""
        wanted = tokens(text)
        taken = [self._take(index, wanted) for index in range(len(self._readings))]
        return any(taken)

    def _take(self, index: int, wanted: list[str]) -> bool:
        matches = self._readings[index]
        kept = [match for match in matches if match.lastgroup != "end"]
        listed = [_number(match[0]) if match.lastgroup == "number" else match[0].casefold() for match in kept]
        place = place_of(wanted, listed, self._from[index])
        while place is not None:
            first, last = kept[place], kept[place + len(wanted) - 1]
            if not _conditional(matches[: matches.index(first)][::-1], _NEGATIONS, _TURNS) and not _conditional(
                matches[matches.index(last) + 1 :], _CONDITIONS, frozenset({"then"})
            ):
                self._from[index] = place
                return True
            place = place_of(wanted, listed, place + 1)
        return False


def _conditional(around: list[re.Match[str]], words: frozenset[str], ends: frozenset[str]) -> bool:
    """Return whether the rest of the clause holds one of the words that change what the clause says."""
    for match in around:
        word = match[0].casefold()
        if match.lastgroup == "end" or word in ends:
            return False
        if word in words or word == "t":
            return True
    return False
