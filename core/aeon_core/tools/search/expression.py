"""Regular expressions that end in time, whatever the pattern and the text: those of `regex`, with its timeout."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import regex

from aeon_core.errors import ToolError

SECONDS = 2.0
"""How long one match may compute: a pattern that backtracks without end is an error then."""
_QUICK_STEPS = 10_000_000
"""As many steps are taken without looking at the clock: to set a timeout takes longer than to search a line."""
_MAX_SIZE = 200_000
"""What the repeats of a pattern may add up to: they are written out when it is compiled."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_GROUP = re.compile(r"\(\?(?::|P<\w+>)")
_OF_LINES = re.compile(r"\(\?|\(\*|[*+?}]\+|\\(?![dDwWsSbtnr.]|\W)")
"""What a pattern may see of the whole text, or keep from matching in it: look-around, possessive repeats, `\\Z`…"""
_FIRST_LOOK = 0.1
_NESTING = re.compile(r"\(\?|\)[*+?{]|\(\*")


class PatternError(ValueError):
    """A pattern that cannot be used; the message says why, in a few words."""


class Expression:
    """A compiled pattern, in Python's syntax with the additions of `regex` (version 0).

    `label` names it in an error, `stars` is how often it repeats something where that is known. Raises PatternError for
    a pattern that is not well formed, or too large.
    """

    def __init__(self, label: str, pattern: str, flags: int = 0, *, stars: int | None = None) -> None:
        self._label = label
        self._quick_length = _quick_length(pattern) if stars is None else int(_QUICK_STEPS ** (1 / (stars + 1)))
        counts = [int(count) for count in re.findall(r"\{\s*(\d+)", pattern)]
        of_groups = math.prod(int(count) for count in re.findall(r"\)\{\s*(\d+)", pattern))
        if of_groups * (len(pattern) + sum(counts)) > _MAX_SIZE:
            raise PatternError("its repeats multiply to too much, give smaller numbers")
        try:
            self._regex = regex.compile(pattern, flags | regex.V0)
            across = _OF_LINES.search(_GROUP.sub("(", pattern))
            self._lines = None if across else regex.compile(pattern, flags | regex.V0 | regex.MULTILINE)
        except MemoryError:
            raise PatternError("it needs too much memory") from None
        except (regex.error, RecursionError, OverflowError, ValueError) as error:
            raise PatternError(str(error)) from None

    def may_match_a_line(self, text: str) -> bool:
        """Return False only where no line of the text has a match."""
        try:
            return self._lines is None or self._lines.search(text, timeout=_FIRST_LOOK) is not None
        except (TimeoutError, MemoryError):
            return True

    def search(self, text: str, deadline: float) -> regex.Match[str] | None:
        """Return the first match. Raises ToolError after SECONDS, TimeoutError at the deadline (monotonic seconds)."""
        if len(text) <= self._quick_length:
            return self._regex.search(text)
        with self._limited(deadline) as seconds:
            return self._regex.search(text, timeout=seconds)

    def matches(self, text: str, deadline: float) -> Iterator[regex.Match[str]]:
        """Yield the matches from left to right, none within another. Raises as `search`, SECONDS for all of them."""
        with self._limited(deadline) as seconds:
            yield from self._regex.finditer(text, timeout=seconds)

    @contextmanager
    def _limited(self, deadline: float) -> Iterator[float]:
        seconds = min(SECONDS, deadline - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        try:
            yield seconds
        except TimeoutError:
            if seconds < SECONDS:
                raise
            raise ToolError(
                f"{self._label} takes more than {SECONDS:g} s on one text; "
                "write it without a repeat inside a repeat, such as a+ for (a|aa)+"
            ) from None
        except MemoryError:
            raise ToolError(f"{self._label} needs too much memory; make it match less at once") from None


def _quick_length(pattern: str) -> int:
    """Return how long a text may be that the pattern goes through in few steps: 0 where repeats may be nested."""
    plain = _GROUP.sub("(", _ESCAPED.sub("", pattern))
    if _NESTING.search(plain):
        return 0
    branches, repeats = sum(map(plain.count, "|?")), sum(map(plain.count, "*+{"))
    return int((_QUICK_STEPS / 2 ** min(branches, 100)) ** (1 / (repeats + 1)))
