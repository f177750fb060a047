"""What a text that is no JSON certainly says, and why a value does not say the same (core FR-032)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from aeon_core.json_safe import parse_json
from aeon_core.loose_json import decoded
from aeon_core.tools.schema import describe

_KEY = r"[\"'“”`]?(?P<key>[\w$-]+)[\"'“”`]?\s*(?::|=>|=)\s*"
_PAIR = re.compile(
    _KEY + r"(?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|(?P<bare>-?[0-9][0-9.eE+-]*|true|false)"
    r"|\[(?P<list>(?:[^\[\]{}\"]|\"(?:[^\"\\]|\\.)*\")*)\])"
    r"(?=\s*[,}\]])",
    re.DOTALL,
)
_CUT_TEXT = re.compile(_KEY + r"\"(?P<text>(?:[^\"\\]|\\.)*)\\?\Z", re.DOTALL)
_CUT_BARE = re.compile(r"[\"'](?P<key>[\w$-]+)[\"']\s*:\s*(?P<text>-?[0-9.]+)\Z")
_NUMBER = re.compile(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PARTED = re.compile(r"(?:[\s\"'“”„‘’`]|\\.)+")
_IGNORED = frozenset({"status", "errors", "parent_step_id", "depthlevel", "createdby", "subplangoal", "parentstepid"})


def text_refusal(
    text: str, repaired: Any, *, cut: bool, name: Callable[[str], str], ignored: frozenset[str] = _IGNORED
) -> str | None:
    """Return why a value is refused in place of a text that is no JSON.

    Every value that can be read in the text stays, in order; every value of the repair is written there. Where the
    text was cut, the repair may go on from there. `name` gives keys one spelling.
    """
    said, made = (_by_name(found, name, ignored) for found in (_pairs(text), _leaves(repaired)))
    for key, values in said.items():
        kept = iter(made.get(key, [])[: len(values) if cut else None])
        if not all(any(_as_text(value) == _as_text(item) for item in kept) for value in values):
            return f"what the original says under {key!r} was changed; a repair keeps it"
    if cut:
        key, begun = _broken_off(text) or ("", "")
        rest = made.get(name(key), [])[len(said.get(name(key), [])) :]
        if begun and not (rest and _as_text(rest[0]).startswith(begun)):
            return f"the original breaks off in {key!r} after {describe(begun)}; a repair goes on from there"
        return None
    for key, values in made.items():
        for value in values:
            if not _is_written(text, value):
                return f"{describe(value)} under {key!r} is not in the original; a repair makes nothing up"
    steps, described = len(made.get("description", [])), sum(name(key) == "description" for key in keys(text))
    if described and steps != described:
        return f"the repair has {steps} descriptions, the original {described}; a repair adds and drops none"
    return None


def _by_name(
    found_pairs: Iterator[tuple[str, Any]], name: Callable[[str], str], ignored: frozenset[str]
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in found_pairs:
        if (known := name(key)) not in ignored:
            found.setdefault(known, []).append(value)
    return found


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    """Yield every scalar that is written whole under a key, with that; those of a list one by one."""
    for match in _PAIR.finditer(text):
        if match["list"] is not None:
            with suppress(ValueError):
                yield from ((match["key"], item) for item in parse_json(f"[{match['list']}]"))
        elif match["bare"] is not None or _decoded(match["text"]).strip():
            yield match["key"], match["bare"] if match["bare"] is not None else _decoded(match["text"])


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every scalar in a JSON value as `pairs` would in its text; blank ones are left out."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    elif value is not None and _as_text(value):
        yield key, value


def keys(text: str) -> list[str]:
    """Return all that looks like a key, in order."""
    return [match["key"] for match in re.finditer(_KEY, text)]


def _broken_off(text: str) -> tuple[str, str] | None:
    """Return the key and the beginning of the value in which a text ends, None where it ends elsewhere."""
    match = _CUT_TEXT.search(text) or _CUT_BARE.search(text)
    return (match["key"], _as_text(_decoded(match["text"]))) if match is not None else None


def _is_written(text: str, value: Any) -> bool:
    """Return whether a scalar is written in a text as a value, whole; quotes, blanks and escapes do not count."""
    if isinstance(value, bool):
        return re.search(rf"\b{value}\b", text, re.IGNORECASE) is not None
    if isinstance(value, (int, float)):
        return any(float(number) == value for number in _NUMBER.findall(text))
    parts = [part for part in _PARTED.split(value) if part]
    for form in (parts, [json.dumps(part)[1:-1] for part in parts], [part.replace("/", r"\/") for part in parts]):
        between = r"(?:[\s\"'“”„‘’`]|\\.)*".join(map(re.escape, form))
        if re.search(rf"(?:\A|[\"'“”„‘’`:=\[{{,(])\s*{between}[\"'“”„‘’`\\]*\s*(?:\Z|[\"'“”,}}\]\n])", text):
            return True
    return not parts


def _as_text(value: Any) -> str:
    """Return a scalar as text with single blanks between words."""
    return " ".join((value if isinstance(value, str) else json.dumps(value)).split())


def _decoded(text: str) -> str:
    with suppress(ValueError):
        return decoded(text)
    return text
