"""Long texts are written once: where one first occurs as a `text` record, elsewhere as `{"$text": "<sha256>"}`."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic_core import from_json, to_json

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
        if b'"$text"' not in body and (len(body) < LONG or not _may_hold_long(body)):
            return [], body
        new: list[tuple[str, str]] = []
        shortened = self._walk(from_json(body), new)
        return new, to_json(shortened)

    def _walk(self, value: Any, new: list[tuple[str, str]]) -> Any:
        if isinstance(value, str):
            if len(value) < LONG:
                return value
            sha256 = hashlib.sha256(value.encode()).hexdigest()
            if sha256 not in self._known:
                self._known.add(sha256)
                new.append((sha256, value))
            return {"$text": sha256}
        if isinstance(value, dict):
            walked = {key: self._walk(item, new) for key, item in value.items()}
            return {"$text": None, "literal": walked} if is_marked(value) else walked
        if isinstance(value, list):
            return [self._walk(item, new) for item in value]
        return value


def is_marked(value: dict[str, Any]) -> bool:
    """Return whether an object could be taken for a reference, or for an object set apart from references.

    One that a tool or a model gave is written as `{"$text": null, "literal": <the object>}`.
    """
    return "$text" in value and len(value) <= 2


def _may_hold_long(body: bytes) -> bool:
    """Return False where no string of the JSON can be LONG: a look at the gaps between quotes, without parsing."""
    plain, start = body.replace(b'\\"', b"__"), 0
    while len(plain) - start >= LONG:
        # The last quote that is near enough; those between it and the start are nearer.
        quote = plain.rfind(b'"', start, start + LONG)
        if quote < 0:
            return True
        start = quote + 1
    return False
