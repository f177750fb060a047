"""A list of words, written as they are read."""

from __future__ import annotations


def listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())
