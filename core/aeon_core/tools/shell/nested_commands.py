"""What one command runs that is told to run another, and how its arguments are read to find it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Argv:
    """A command given as words: those of the outer command from `start` to `end`, then `more`."""

    start: int
    end: int | None = None
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """Text that a shell would read; `arguments` are its `$0`, `$1`…"""

    text: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a language that is not read here."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that cannot be read at all, and may be anything: no rule about commands allows it."""


Inner = Argv | Script | Code | Opaque


def operand_start(words: tuple[str, ...], valued: frozenset[str]) -> int:
    """Return the index of the first word after the program that is neither an option, nor an option's value."""
    index = 1
    while index < len(words) and words[index].startswith(("-", "+")) and len(words[index]) > 1:
        if words[index] == "--":
            return index + 1
        index += 2 if _takes_next(words[index], valued) else 1
    return min(index, len(words))


def _takes_next(option: str, valued: frozenset[str]) -> bool:
    """Return whether the option's value is the next word, as in `-u x` and `-nu x`, not in `-ux`."""
    if option in valued or option.startswith("--"):
        return option in valued
    ends = [place for place, letter in enumerate(option) if f"-{letter}" in valued]
    return bool(ends) and ends[0] == len(option) - 1


def option_values(words: tuple[str, ...], options: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the values of the given options: `-c x`, `-lc x`, `--command x` or `--command=x`."""
    short = "".join(option[1] for option in options if len(option) == 2)
    for index, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if name in options and equals:
            yield name, value
        elif (word in options or (short and re.fullmatch(rf"-[a-zA-Z]*[{short}]", word))) and index + 1 < len(words):
            yield word, words[index + 1]
