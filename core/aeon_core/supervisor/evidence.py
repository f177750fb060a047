"""What speaks for a value in a repair: the texts that a model had, and what they name (core FR-032)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from aeon_core.supervisor.words import Words, name_words, operators, stem, tokens, unescaped

_SAME_MEANING = (
    "add plus sum total addition + increase",
    "subtract minus difference subtraction less deduct decrease - −",
    "multiply times product multiplication double twice triple square percent * × · x",
    "divide quotient division half halve quarter over ratio / ÷",
    "power exponent raise ** ^",
    "modulo remainder mod",
    "read get fetch load open show view cat display print",
    "write save store append create put",
    "delete remove erase drop purge wipe destroy clear clean",
    "send mail email post publish submit",
    "search find query lookup",
    "run execute start launch",
    "pay buy order purchase transfer",
)
_GROUPS = {stem(word): number for number, words in enumerate(_SAME_MEANING) for word in words.split()}
_EFFECTS = frozenset(_GROUPS[stem(word)] for word in ("write", "delete", "send", "run", "pay"))
_PATH = re.compile(r"\w[@./\\:]\w|^[/~]|\.\.")
_AROUND = "\"'`“”«»()<>[]{},;:!?"
_OPENING = 3
"""Words of a description within which the verb of a request is looked for."""
_NEAR = 0.6
_NEAR_NAME = 0.75


def letters(text: str) -> str:
    """Return the letters and digits of a text, without case."""
    return "".join(filter(str.isalnum, text.casefold()))[:200]


def named_alike(one: str, other: str) -> bool:
    """Return whether a key is probably another one misspelt, abbreviated or written out."""
    a, b = letters(one), letters(other)
    if not a or not b:
        return False
    if a == b or (min(len(a), len(b)) > 1 and (a.startswith(b) or b.startswith(a))):
        return True
    parts, others = set(name_words(one)), set(name_words(other))
    if parts < others or others < parts:
        return True
    return difflib.SequenceMatcher(None, a, b).ratio() >= _NEAR_NAME


def _actions(words: Iterable[str]) -> list[int]:
    """Return which known actions some words name, in their order; a single letter is none."""
    return [_GROUPS[stem(word)] for word in words if len(word) > 1 and stem(word) in _GROUPS]


def acts_otherwise(tool: str, description: str, named: str) -> bool:
    """Return whether a tool's name says that it changes something, where a step that named another tool does not.

    The step must say what it does instead: as the verb it begins with, or in the name of the tool it asked for.
    """
    does = [action for action in _actions(name_words(tool)) if action in _EFFECTS][:1]
    said, asked = name_words(description), _actions(name_words(named))
    meant = _actions(said[:_OPENING]) or asked
    return bool(does) and bool(meant) and does[0] not in {*_actions(said), *asked}


def near_choices(given: str, choices: Sequence[Any]) -> list[Any]:
    """Return the choices that a value which is none of them probably meant: a synonym, a prefix, a misspelling."""
    listed = {letters(choice): choice for choice in choices if isinstance(choice, str)}
    said = letters(given)
    if said in listed:
        return [listed[said]]
    if named := _named(choices, given):
        return named
    if said and (begun := [choice for name, choice in listed.items() if name.startswith(said) or _opens(name, said)]):
        return begun
    return [listed[name] for name in difflib.get_close_matches(said, [*listed], n=1, cutoff=_NEAR)]


def _opens(name: str, said: str) -> bool:
    return bool(name) and said.startswith(name)


def _named(choices: Sequence[Any], text: str) -> list[Any]:
    stems = {stem(word) for word in tokens(text)} | {stem(word) for word in tokens(unescaped(text))}
    signs = operators(text) | operators(unescaped(text))
    meant = {*_actions(name_words(text)), *(_GROUPS[sign] for sign in signs if sign in _GROUPS)}
    return [
        choice
        for choice in choices
        if isinstance(choice, str)
        and (
            ((parts := name_words(choice)) and {stem(part) for part in parts} <= stems)
            or (len(parts) == 1 and _GROUPS.get(stem(parts[0]), -1) in meant)
            or (not parts and choice.strip() and choice.strip() in text)
        )
    ]


class Evidence:
    """The texts that arguments may be taken from: the step's own first, then its goal, the reply, and what is known."""

    def __init__(self, description: str = "", goal: str = "", reply: str = "", context: Iterable[str] = ()) -> None:
        self._texts = [text for text in (description, goal, reply, *context) if text]

    @cached_property
    def _words(self) -> Words:
        return Words(self._texts)

    def names(self, choices: Sequence[Any]) -> list[Any]:
        """Return the choices that the first of the texts names which names any of them."""
        return next(filter(None, (_named(choices, text) for text in self._texts)), [])

    def supports(self, value: Any, key: str = "") -> bool:
        """Return whether the texts say a scalar; of a flag also by naming its key."""
        if value is None:
            return True
        if isinstance(value, bool):
            return self._flag(value, key)
        if isinstance(value, str):
            return self._text(value)
        return self._words.tell(json.dumps(value))

    def _flag(self, value: bool, key: str) -> bool:
        if str(value).casefold() in self._words.said:
            return True
        parts = {stem(word) for word in name_words(key)}
        return bool(parts) and parts <= (self._words.said if value else self._words.denied)

    def _text(self, value: str) -> bool:
        if not value.strip():
            return False
        if self._words.literally(value):
            return True
        pieces = value.split()
        paths = [bare for piece in pieces if _PATH.search(bare := piece.strip(_AROUND).rstrip("."))]
        rest = [piece for piece in pieces if piece.strip(_AROUND).rstrip(".") not in paths]
        return all(map(self._path, paths)) and (not rest or self._words.tell(" ".join(rest)))

    def _path(self, path: str) -> bool:
        if _is_number(path) and self._words.tell(path):
            return True
        if self._words.literally(path):
            return True
        parts = path.split("/")
        relative = len(parts) > 1 and all(part and part != ".." for part in parts)
        return relative and all(map(self._words.literally, parts))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-−]?[\d.,]+%?", text) is not None


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterable[tuple[tuple[str | int, ...], Any]]:
    """Yield every scalar inside plain JSON with its path, and every empty object and array."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value
