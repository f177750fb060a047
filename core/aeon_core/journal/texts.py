"""Long texts are written once: where one first occurs as a `text` record, elsewhere as `{"$text": "<sha256>"}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jiter import from_json
from pydantic_core import to_json

from aeon_core.journal.reader import is_marked

LONG = 400
"""Strings of at least this many characters are written once."""


class TextTable:
    """The long texts that a journal already holds, by sha256."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def add(self, sha256: str) -> None:
        """Say that the journal holds this text."""
        self._known.add(sha256)

    def shorten(self, body: bytes) -> tuple[list[tuple[str, str]], bytes]:
        """Return the texts to be written before this body, as (sha256, text), and the body with references."""
        new: list[tuple[str, str]] = []
        if b'"$text"' in body:
            return new, to_json(self._walk(from_json(body), new))
        parts: list[bytes] = []
        at = 0
        for start, end in _long_strings(body):
            if body[end : end + 1] != b":" and len(text := from_json(body[start:end])) >= LONG:
                parts += [body[at:start], to_json(self._reference(text, new))]
                at = end
        return new, b"".join([*parts, body[at:]]) if parts else body

    def _reference(self, text: str, new: list[tuple[str, str]]) -> dict[str, str]:
        import hashlib

        sha256 = hashlib.sha256(text.encode()).hexdigest()
        if sha256 not in self._known:
            self._known.add(sha256)
            new.append((sha256, text))
        return {"$text": sha256}

    def _walk(self, value: Any, new: list[tuple[str, str]]) -> Any:
        if isinstance(value, str):
            return value if len(value) < LONG else self._reference(value, new)
        if isinstance(value, dict):
            walked = {key: self._walk(item, new) for key, item in value.items()}
            return {"$text": None, "literal": walked} if is_marked(value) else walked
        if isinstance(value, list):
            return [self._walk(item, new) for item in value]
        return value


def _long_strings(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield the places of the strings of JSON, keys too, of at least LONG bytes: a look at the gaps between quotes."""
    if len(body) < LONG:
        return
    plain = body.replace(rb"\\", b"__").replace(rb"\"", b"__") if b"\\" in body else body
    start = counted = quotes = 0
    while len(plain) - start >= LONG:
        # The last quote that is near enough; those between it and the start are nearer.
        quote = plain.rfind(b'"', start, start + LONG)
        if quote >= 0:
            start = quote + 1
        elif (quote := plain.find(b'"', start)) < 0:
            return
        else:
            quotes, counted = quotes + plain.count(b'"', counted, start), start
            if quotes % 2:
                yield start - 1, quote + 1
            start = quote + 1
