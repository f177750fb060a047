"""Finds a judge's quotes in a text, ignoring case, white space, punctuation and Markdown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

ELISION = re.compile(r"…|\.{3,}|\[[^\]\w]*\]")
_ESCAPE = re.compile(r"\\[nrt]")


def find_quote(text: str, quote: str) -> list[tuple[int, int]]:
    """Return the first position of a quote as (start, end) in characters of the text; with elisions, that of each part.

    Empty if a part is missing. The text may be JSON, in which a line break is escaped.
    """
    parts = [letters for letters, _ in map(_indexed, ELISION.split(quote)) if letters]
    for form in (text, _ESCAPE.sub("  ", text)):
        letters, places = _indexed(form)
        found = [letters.find(part) for part in parts]
        if found and min(found) >= 0:
            return [(places[at], _end(text, places[at + len(part) - 1])) for at, part in zip(found, parts, strict=True)]
    return []


def _indexed(text: str) -> tuple[str, list[int]]:
    """Return the normalized letters and digits of a text, with the position of each."""
    letters: list[str] = []
    places: list[int] = []
    for at, cluster in _clusters(text):
        for letter in unicodedata.normalize("NFKC", cluster).casefold() if not cluster.isascii() else cluster.lower():
            if letter.isalnum():
                letters.append(letter)
                places.append(at)
    return "".join(letters), places


def _clusters(text: str) -> Iterator[tuple[int, str]]:
    """Yield each character with its combining marks, and its position."""
    if text.isascii():
        yield from enumerate(text)
        return
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or not unicodedata.combining(text[at]):
            yield start, text[start:at]
            start = at


def _end(text: str, at: int) -> int:
    """Return the end of the character at a position, with its marks."""
    end = at + 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return end
