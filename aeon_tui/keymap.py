"""The keymap: which keys the user can bind to which action, and the problems of their bindings."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, key_to_character
from textual.screen import Screen

from aeon_core.suggest import close

PACKAGES = ("aeon_tui.screens", "aeon_widgets")
_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMED = tuple(sorted({str(key.value) for key in Keys if not str(key.value).startswith("<")}))
_SIGNS = {
    "minus": "-", "plus": "+", "comma": ",", "space": " ", "slash": "/", "question_mark": "?", "full_stop": ".",
    "equals_sign": "=", "left_square_bracket": "[", "right_square_bracket": "]", "semicolon": ";", "colon": ":",
}  # fmt: skip
_TITLES = {"LinesView": "Lists and texts", "RowsView": "Lists and texts"}
ALL_ACTIONS = "`Change keys` in the palette lists them"
_ESCAPES = frozenset({"escape", "ctrl+q", "ctrl+c"})
"""Keys that always lead out; they cannot be bound to anything else."""


@dataclass(frozen=True)
class KnownKey:
    """An action with keys: its id, its part of the app, its description, its default keys."""

    id: str
    title: str
    description: str
    action: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class CheckedKeys:
    """Usable keys by action, and the problems of the others."""

    keymap: Mapping[str, str]
    problems: tuple[str, ...] = ()


@cache
def contexts() -> tuple[tuple[str, tuple[Binding, ...]], ...]:
    """Return our bindings, including inherited ones, by the title of the part of the app in which they work.

    Loads every screen, so do not call it before the first paint.
    """
    found: dict[str, list[Binding]] = {}
    for kind in kinds():
        bindings = [each for _, each in kind._merged_bindings or () if each.id is not None]
        if bindings and (title := title_of(kind)) is not None:
            known = found.setdefault(title, [])
            known += [each for each in bindings if each not in known]
    return tuple((title, tuple(bindings)) for title, bindings in found.items())


def kinds() -> Iterator[type[DOMNode]]:
    """Return our classes that may have keys: the app, then screens, then widgets."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.startswith(("aeon_widgets.demo", "aeon_widgets.__")):
                importlib.import_module(module.name)
    kinds = [kind for kind in _below(DOMNode) if kind.__module__.startswith(("aeon_tui.", "aeon_widgets."))]
    return iter(sorted(dict.fromkeys(kinds), key=_place))


def _place(kind: type[DOMNode]) -> tuple[int, int, str, int]:
    """Return what classes are sorted by, whichever was loaded first: base classes come before their subclasses.

    A base class without keys of its own changes nothing.
    """
    level = next(level for level, base in enumerate((App, Screen, DOMNode)) if issubclass(kind, base))
    defined = list(vars(sys.modules[kind.__module__]))
    bases = [base for base in kind.__mro__[1:] if not base.__module__.startswith("aeon_") or "BINDINGS" in vars(base)]
    return level, len(bases), kind.__module__, defined.index(kind.__name__)


def _below(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def title_of(kind: type[DOMNode]) -> str | None:
    """Return the name of a part of the app in the help; None for a base class, which users do not see as such."""
    return getattr(kind, "HELP_TITLE", None) or _TITLES.get(kind.__name__)


def known_keys() -> dict[str, KnownKey]:
    """Return every action with keys, by id."""
    found: dict[str, KnownKey] = {}
    for title, bindings in contexts():
        for binding in bindings:
            known = found.get(binding.id or "")
            if known is None:
                known = KnownKey(binding.id or "", title, binding.description, binding.action, ())
            keys = known.keys if binding.key in known.keys else (*known.keys, binding.key)
            found[known.id] = KnownKey(known.id, known.title, known.description, known.action, keys)
    return found


def checked_keys(keys: Mapping[str, str]) -> CheckedKeys:
    """Return the usable ones of the wanted keys; a problem is one line that says what to do."""
    known, problems = known_keys(), list[str]()
    wanted = dict[str, str]()
    for action, text in keys.items():
        if action not in known:
            problems.append(f"keys: the action {action!r} is unknown{_or_near(action, tuple(known), ALL_ACTIONS)}")
        elif wrong := next((why for key in text.split(",") if (why := why_no_key(key, action))), None):
            problems.append(f"keys: {wrong}")
        else:
            wanted[action] = ",".join(map(long_name, text.split(",")))
    while clashing := _first_clash(wanted):
        action, key, other = clashing
        problems.append(f"keys: {action!r} uses {key!r}, which belongs to {other!r}; give that action another key")
        # Its default keys may have been bound to other actions, so check all of them again.
        del wanted[action]
    return CheckedKeys(wanted, tuple(problems))


def _first_clash(wanted: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return the first action that wants a key of another one, with the key and the other action."""
    current = {**own_keys(), **wanted}
    found = ((action, clash(action, text, current)) for action, text in wanted.items())
    return next(((action, *bound) for action, bound in found if bound is not None), None)


def own_keys() -> dict[str, str]:
    """Return the default keys of each action, separated by commas."""
    return {each.id: ",".join(each.keys) for each in known_keys().values()}


def clash(action: str, wanted: str, current: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first wanted key that another action has in the same place, and that action's id.

    `current` are the keys of all actions. What shares a key by default may share it.
    """
    keys, own = {long_name(key) for key in wanted.split(",")}, own_keys()
    everywhere = _ids(contexts()[0][1])
    for _, bindings in contexts():
        here = _ids(bindings)
        if action not in here and action not in everywhere:
            continue
        for other in sorted((here | everywhere) - {action}):
            for key in current[other].split(","):
                name = long_name(key)
                if name in keys and not all(name in own[each].split(",") for each in (action, other)):
                    return key, other
    return None


def _ids(bindings: Iterable[Binding]) -> set[str]:
    return {binding.id for binding in bindings if binding.id is not None}


def long_name(key: str) -> str:
    """Return the name of a key as Textual writes it: `?` is `question_mark`."""
    *modifiers, last = key.strip().split("+") if key.strip() != "+" else ["+"]
    by_sign = {sign: name for name, sign in _SIGNS.items()}
    return "+".join([*modifiers, by_sign.get(last, last)])


def why_no_key(key: str, action: str = "") -> str | None:
    """Return why a text names no bindable key, None if it does."""
    *modifiers, last = long_name(key).split("+")
    if long_name(key) in _ESCAPES and action.partition(".")[2] not in ("back", "cancel", "close"):
        return f"{key!r} is reserved for quitting; choose another key"
    wrong = [each for each in modifiers if each not in _MODIFIERS]
    if wrong or not _is_key(last):
        return f"{key!r} for {action!r} is not a key{_or_near(last, _NAMED, 'write it as Z, f5 or ctrl+d')}"
    return None


def _is_key(name: str) -> bool:
    return len(name) == 1 or name in _NAMED or name in _SIGNS or key_to_character(name) is not None


def _or_near(name: str, known: tuple[str, ...], otherwise: str) -> str:
    """Return the end of a message: the nearest known name, or else what to do."""
    near = close(name, known, 0.5)
    return f"; did you mean {near!r}?" if near else f"; {otherwise}"
