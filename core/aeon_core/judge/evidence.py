"""Whether the words that a judge quotes are there (judged verdicts carry evidence; Decision 7)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aeon_core.validation.result_checks import Artifacts

_ELISION = re.compile(r"…|\.{3,}|\[[^\]\w]*\]")
_ESCAPE = re.compile(r"\\[nrt]")
_PIECE = re.compile(r"(?:(?<!\w)[-−–])?\d+(?:[.,'’٫٬]\d+)*|.", re.DOTALL)
"""A number with its sign and separators, or another character."""
_EDGE = "\0"
"""Stands before and after each number, so that no part of one is found."""
_SHORTEST = 2
"""Letters and digits that a quote has at least, unless it is a whole value."""


class Evidence:
    """The texts of a pass in which quotes are looked up, whatever their case, blanks, punctuation and Markdown.

    Numbers are compared with their sign and separators, and whole.
    """

    def __init__(self, artifacts: Artifacts, requirements: Iterable[str]) -> None:
        texts = [artifacts.answer]
        for step in artifacts.plan.walk():
            texts += [step.step_id, step.description, step.tool or "", step.status]
            texts += _texts(step.arguments)
        values = [artifacts.answer]
        for source in (artifacts.results, artifacts.failures, artifacts.memory):
            texts += _texts(dict(source))
            values += _texts(dict(source), keys=False)
        plain = cache(_plain)
        self._values = set(map(plain, values))
        self._asked = " ".join(map(plain, [artifacts.goal, *requirements]))
        # A quote may span adjacent values of an output.
        self._found = "".join(map(plain, texts))

    def holds(self, quote: str, *, met: bool = False) -> bool:
        """Return whether a quote occurs in the artifacts; of one with elisions, whether each part does.

        For a requirement that is met, words of the goal or the requirements alone are no evidence.
        """
        forms = (quote, _ESCAPE.sub(" ", quote))
        return any(self._holds([*map(_plain, _ELISION.split(form))], met=met) for form in dict.fromkeys(forms))

    def _holds(self, parts: list[str], *, met: bool) -> bool:
        long = [part for part in parts if len(part.replace(_EDGE, "")) >= _SHORTEST]
        if not long:
            return any(part and part in self._values for part in parts)
        return all(part in self._found or (not met and part in self._asked) for part in long)


def _plain(text: str) -> str:
    """Return the letters of a text with their marks, and its numbers between edges."""
    plain, spelled = "", False
    for piece in _PIECE.findall(unicodedata.normalize("NFKC", text).casefold()):
        number = piece[-1].isdecimal()
        spelled = not number and (piece.isalnum() or (spelled and unicodedata.category(piece)[0] == "M"))
        if number:
            plain += f"{_EDGE}{re.sub('[−–]', '-', piece)}{_EDGE}"
        elif spelled and piece not in "\ufe0e\ufe0f":
            plain += piece
    return plain


def _texts(value: Any, *, keys: bool = True) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from [str(key)] if keys else []
            yield from _texts(item, keys=keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, keys=keys)
    else:
        yield "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
