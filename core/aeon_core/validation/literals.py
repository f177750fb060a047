"""Literals that a step's description and its arguments both name: paths, URLs, dates, figures, quoted text.

A literal is the same in every language, but the sentence around it is not interpreted, and "the day after 2026-03-31"
is another date. So two literals are compared only if each side names exactly one of the kind, and count only if few
words surround them or if one can hardly be derived from the other (Decision 7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from difflib import SequenceMatcher
from itertools import permutations
from posixpath import basename, dirname, isabs, normpath, splitext
from typing import Any

_FIGURE = r"(?<![\w.,:/–-])(?<!\d[ \u00a0\u202f'’])(\d+(?:\.\d+)?)"
_NUMBER = re.compile(_FIGURE + r"(?![\w:/-]|[.,]\d)")
_MEASURE = re.compile(
    _FIGURE + r"[ \u00a0]?(%|°[CF]|[€$£¥]|[kKMGT]?i?B|[mck]?m|[mµk]?g|[mcd]?[lL]|[mµn]?s|min|h|px|[kM]?Wh?|k?V|"
    r"[kMG]?Hz)(?!\w)"
)
_PRICE = re.compile(r"([€$£¥])(\d+(?:\.\d+)?)(?!\w|[.,]\d)")
_KINDS = {
    "URL": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>`)\]}]*[^\s\"'<>`)\]}.,;:!?]", re.IGNORECASE),
    "email address": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "date": re.compile(r"(?<![\d-])\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.Z+-]*)?(?![\d-])"),
    # Three parts or a number at the end: db.example.org, 10.0.0.1, host-7, Q3.
    "name": re.compile(
        r"(?<![\w@:/.+-])(?:(?:\d{1,3}\.){3}\d{1,3}|(?=[\w.-]*[^\W\d_]{2})[\w-]+(?:\.[\w-]+){2,}|"
        r"(?=[\w-]*[^\W\d_])[\w-]*\d)(?![\w@/-]|[.,:]\w)"
    ),
    "path": re.compile(
        r"(?<![\w@:/.+-])(?:(?:~|\.{1,2})?/)?(?:(?:[\w@.+-]+/)+[\w@+-][\w@.+-]*|"
        r"[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,5})(?<![.,])(?![\w@/])"
    ),
}
_QUOTED = re.compile(
    r"(`)([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|«([^»\n]{2,80})»|„([^“”\n]{2,80})[“”]|「([^」\n]{2,80})」"
)
_WORD = re.compile(
    "[\u3040-\u30ff\u3400-\u9fff]|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{1,4}|"
    "[^\\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff][^\\s\u3040-\u30ff\u3400-\u9fff]*"
)
"""A word; in a script without spaces, about as much."""
_MANY, _LONGEST = 50, 5_000
"""The most text arguments of a step that are checked; characters of each, and of a description."""
_FEW, _FEWER = 4, 2
"""So few words around a literal that it can hardly be just related to the other; and so few that it almost cannot."""
_SCALES = (1e-3, 1e-2, 0.1, 10, 100, 1e3, 60, 1 / 60, 3600, 1 / 3600, 24, 7, 86400)
Mismatch = tuple[str, str, str, bool]
"""Kind, described and passed literal, and whether almost no words surround it."""


def mismatch(description: str, arguments: dict[str, Any], *, reads: bool) -> Mismatch | None:
    """Return the literal that the arguments provably contradict; `reads` says that the tool changes nothing."""
    if len(description) > _LONGEST:
        return None
    texts, bare = list(_texts(arguments)), description
    for kind, pattern in _KINDS.items():
        passed = {text for text in texts if pattern.fullmatch(text)}
        described = set(pattern.findall(bare)) if len(passed) == 1 else set()
        bare = pattern.sub(" ", bare)
        # A path among other texts may be where they are written to rather than what they are about.
        if len(described) == len(passed) == 1 and (kind != "path" or reads or len(texts) == 1):
            one, other = described.pop(), passed.pop()
            is_explained = any(one in text for text in texts if text != other) or other in description.replace(one, " ")
            words = _words(*description.split(one, 1))
            if not is_explained and (_days if kind == "date" else _apart)(one, other, words, kind):
                return kind, one, other, words <= _FEWER
    return _measure(description, bare, texts) or _number(bare, arguments) or _quote(description, texts)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts among the arguments, at most _MANY."""
    stack, left = [value], _MANY
    while stack and left:
        item = stack.pop()
        if isinstance(item, str):
            left -= 1
            yield item[:_LONGEST].strip()
        elif isinstance(item, dict | list):
            stack.extend(item.values() if isinstance(item, dict) else item)


def _words(*sides: str) -> int:
    """Return how many words surround a literal; more than any limit if _FEW are on one side."""
    counts = [len(_WORD.findall(side)) for side in sides]
    return sum(counts) if max(counts) < _FEW else sum(counts) + _FEW


def _apart(one: str, other: str, words: int, kind: str) -> bool:
    """Return whether two literals differ: the numbers are far apart, or few words could relate them."""
    one, other = (normpath(re.sub("[?#]", "/", text.casefold())) for text in (one, other))
    parts, others = re.split(r"(\d{1,18})", one), re.split(r"(\d{1,18})", other)
    gaps = [abs(int(a) - int(b)) for a, b in zip(parts[1::2], others[1::2], strict=False) if a != b]
    if parts[::2] == others[::2] and len(gaps) < 2:
        return sum(gaps) > 1 or (sum(gaps) == 1 and words <= _FEWER)
    one = re.sub("^http:", "https:", one)
    if any(f"/{a.strip('/')}/" in f"/{b.strip('/')}/" for a, b in ((one, other), (other, one))):
        return False
    if kind in ("URL", "email address"):
        sites = [re.split("[/@]", text)[1].split(".")[-2:] for text in (one, other)]
        return words <= _FEW or sites[0] != sites[1]
    if kind == "name":
        labels = [text.split(".") for text in (one, other)]
        alike = len(labels[0]) == len(labels[1]) > 2 and sum(map(str.__ne__, *labels)) == 1
        return words <= _FEW and (alike or not re.search(r"[^\d.]", one + other))
    (stem, ending), (other_stem, other_ending) = splitext(basename(one)), splitext(basename(other))
    near = stem == other_stem or dirname(one) == dirname(other)
    far = stem not in other_stem and (ending != "" or (isabs(one) and isabs(other)))
    return words <= _FEW and ending == other_ending and (near or far)


def _days(one: str, other: str, words: int, _kind: str) -> bool:
    """Return whether two dates differ, not just by a day, week or month, or with few words around; times may differ in
    zone.
    """
    try:
        first, second = date.fromisoformat(one[:10]), date.fromisoformat(other[:10])
    except ValueError:
        return False
    days = abs((first - second).days)
    step = days < 7 or days % 7 == 0 or first.day == second.day or {first.day, second.day} <= {1, 28, 29, 30, 31}
    return days > (len(one) != len(other)) and (words <= _FEWER or not step)


def _measure(description: str, bare: str, texts: list[str]) -> Mismatch | None:
    """Return a figure that differs from the description's only one with the same unit."""
    bare, *texts = (_PRICE.sub(r"\2 \1", text) for text in (bare, *texts))
    found = _MEASURE.findall(bare)
    passed = [m for text in texts if (m := _MEASURE.fullmatch(text)) and found and m[2] == found[0][1]]
    if not len(found) == len(passed) == len(re.findall(r"\d+(?:\.\d+)?", bare)) == 1:
        return None
    [(number, unit)], value = found, passed[0][1]
    # A part of it, or the rest to a hundred, may be what the description asks for.
    parts = [float(number) / part for part in (1, 2, 3, 4)] + [100 - float(number)] * (unit == "%")
    alone = _words(*description.split(number, 1)) <= _FEWER
    return None if float(value) in parts else ("figure", f"{number} {unit}", passed[0][0], alone)


def _number(description: str, arguments: dict[str, Any]) -> Mismatch | None:
    """Return the only one of a few numbers that no other leads to; a single one if its argument's name follows it."""
    described = {float(number) for number in _NUMBER.findall(description)}
    passed = {name: x for name, x in arguments.items() if isinstance(x, int | float) and not isinstance(x, bool)}
    given = {float(value) for value in passed.values() if abs(value) < 1e300}
    one, other, words = described - given, given - described, _words(_NUMBER.sub(" ", description))
    if not len(one) == len(other) == 1 or not len(described) == len(given) == len(passed) <= 9 or words > _FEW:
        return None
    number, value = one.pop(), other.pop()
    if len(described) == 1 and not any(f"{number:g} {name}" in description for name in passed if words <= _FEWER):
        return None
    led_to = {0.0, *(number * scale for scale in _SCALES if len(described) > 1)}
    led_to |= {number + 1, number - 1} if words > _FEWER else set()
    for a, b in permutations(described, 2):
        led_to |= {a + b, a - b, a - b + 1, a - b - 1, a * b, (a - 1) * b, a / (b or 1)}
    return None if value in led_to else ("number", f"{number:g}", f"{value:g}", words <= _FEWER)


def _quote(description: str, texts: list[str]) -> Mismatch | None:
    """Return a quoted text for which another version is passed, or code in backticks for which other code is."""
    code, text = next(((groups[0], "".join(groups[1:])) for groups in _QUOTED.findall(description)), ("", ""))
    texts = [passed for passed in texts if not code or not passed.isalpha()]
    words = _words(*description.split(text, 1)) if text and len(_QUOTED.findall(description)) == 1 else _LONGEST
    if len(texts) != 1 or words > _FEW:
        return None
    one, other = ("".join(filter(str.isalnum, each.casefold())) for each in (text, texts[0]))
    alike = len(other) <= 2 * len(one) and SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.6
    differs = (alike or (code and words <= _FEWER and not text.isalpha())) and one not in other and other not in one
    return ("text", text, texts[0], words <= _FEWER) if differs else None
