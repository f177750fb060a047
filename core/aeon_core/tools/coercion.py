"""Bringing a value into the form of a JSON Schema where that loses nothing: other spellings, types and wrappers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from aeon_core.json_safe import parse_json

_SHORT = 3
"""Letters of a name that too many other words begin with."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_MAX_NODES = 100
_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("boolean", (bool,)),
    ("integer", (int,)),
    ("number", (int, float)),
    ("string", (str,)),
    ("array", (list,)),
    ("object", (dict,)),
    ("null", (type(None),)),
)


def letters(name: str) -> str:
    """Return the letters and digits of a name, without case: what is left where its spelling does not count."""
    return "".join(filter(str.isalnum, name.casefold()))[:200]


def named(name: str, names: Collection[str]) -> str | None:
    """Return the one of the names that has the same letters, or None."""
    alike = [known for known in names if letters(known) == letters(name)]
    return name if name in names else alike[0] if len(alike) == 1 else None


def is_blank(value: Any) -> bool:
    """Return whether a value says nothing: null, an empty text, list or object."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (list, dict)) and not value)


def in_form(value: Any, schema: dict[str, Any], *, drop: bool = True) -> Any:
    """Return a value as `coerced` does, unwrapped before."""
    return coerced(unwrapped(value, schema), schema, drop=drop)


def unwrapped(value: Any, schema: dict[str, Any]) -> Any:
    """Return a value out of a list of one or an object around it, or in the one list it lacks."""
    known = schema.get("properties", {})
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and known.keys() & value[0].keys():
        value = value[0]
    required = schema.get("required", list(known))
    lists = [name for name in known if "array" in _kinds(known[name]) and name in required]
    if isinstance(value, list) and len(lists) == 1:
        value = {lists[0]: value}
    if isinstance(value, dict) and not known.keys() & value.keys():
        inner = [item for item in value.values() if isinstance(item, dict) and known.keys() & item.keys()]
        value = inner[0] if len(inner) == 1 else value
    return value


def coerced(value: Any, schema: dict[str, Any], *, drop: bool = True) -> Any:
    """Return the value as the schema has it, as far as that loses nothing.

    Keys and choices get the schema's spelling, numbers in text become numbers, one item a list of one, and each the
    other way round. With `drop`, keys that a closed object does not know are left out, unless that leaves nothing of
    it. The result may still not fit.
    """
    return _coerced(value, schema, schema, drop)


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the properties that an object may have, over all of its alternatives, with their schemas."""
    return _merged(alternatives(schema, schema))


def alternatives(schema: Any, root: dict[str, Any], *, first: bool = False) -> list[dict[str, Any]]:
    """Return a schema with all that it refers to and branches into, or only the `first` branch of each kind."""
    found: list[dict[str, Any]] = []
    waiting = [schema]
    while waiting and len(found) < _MAX_NODES:
        node = waiting.pop(0)
        if not isinstance(node, dict) or any(node is known for known in found):
            continue
        found.append(node)
        for key in ("anyOf", "oneOf", "allOf"):
            branches = node[key] if isinstance(node.get(key), list) else []
            waiting += branches[:1] if first and key != "allOf" else branches
        if isinstance(node.get("$ref"), str):
            target: Any = root
            for part in node["$ref"].removeprefix("#").split("/")[1:]:
                target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            waiting.append(target)
    return found


def _merged(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    listed = [node["properties"] for node in nodes if isinstance(node.get("properties"), dict)]
    return {name: schema for found in listed for name, schema in found.items()}


def _coerced(value: Any, schema: Any, root: dict[str, Any], drop: bool) -> Any:
    nodes = alternatives(schema, root)
    choices = [choice for node in nodes for choice in [*_listed(node.get("enum")), *_const(node)]]
    kinds = {kind for node in nodes for kind in _kinds(node)} or {kind for kind, _ in _TYPES if choices}
    if choices and value not in choices:
        same = [choice for choice in choices if letters(_text(choice)) == letters(_text(_single(value)))]
        return same[0] if len(same) == 1 and letters(_text(same[0])) else value
    if kinds and not _has_kind(value, kinds):
        value = next((form for form in _forms(value, kinds) if _has_kind(form, kinds)), value)
    if isinstance(value, list):
        items = next((node["items"] for node in nodes if isinstance(node.get("items"), dict)), None)
        return value if items is None else [_coerced(item, items, root, drop) for item in value]
    if isinstance(value, dict) and (not kinds or "object" in kinds):
        return _object(value, nodes, root, drop)
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _const(node: dict[str, Any]) -> list[Any]:
    return [node["const"]] if "const" in node else []


def _kinds(node: dict[str, Any]) -> list[str]:
    given = node.get("type", "object" if "properties" in node else "array" if "items" in node else None)
    return given if isinstance(given, list) else [given] if given is not None else []


def _has_kind(value: Any, kinds: set[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return True
    return any(kind in kinds and isinstance(value, types) for kind, types in _TYPES)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _single(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        value = list(value.values())
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _forms(value: Any, kinds: set[str]) -> Iterator[Any]:
    """Yield the value in other forms that say the same."""
    if isinstance(value, str):
        bare = value.strip()
        if bare.casefold() in ("true", "false"):
            yield bare.casefold() == "true"
        if _NUMBER.fullmatch(bare):
            with suppress(ValueError):
                number = parse_json(re.sub(r"^(-?)\.", r"\g<1>0.", bare.removeprefix("+")))
                yield int(number) if isinstance(number, float) and number.is_integer() else number
        if bare[:1] in ("{", "["):
            with suppress(ValueError):
                inner = parse_json(bare, unique_keys=True)
                yield from (inner, *(_forms(inner, kinds) if isinstance(inner, list) else ()))
        if not bare and "null" in kinds:
            yield None
        if any(sign in bare for sign in ",;\n"):
            return
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield json.dumps(value)
    elif isinstance(value, list) and len(value) == 1:
        yield from (value[0], *_forms(value[0], kinds - {"array"}))
    elif isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        yield from (inner, *_forms(inner, kinds - {"object"}))
    if value is not None and not isinstance(value, list):
        yield [value]


def _object(value: dict[str, Any], nodes: list[dict[str, Any]], root: dict[str, Any], drop: bool) -> dict[str, Any]:
    known = _merged(nodes)
    # Where it has no key that is known, it is of another form: all that it says would be left out.
    drop = drop and (not known or any(_names(key, known) for key in value))
    closed = any(node.get("additionalProperties") is False for node in nodes)
    required = {name for node in nodes for name in _listed(node.get("required"))}
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key
        if key not in known:
            alike = _names(key, [name for name in known if name not in value and name not in made])
            name = alike[0] if len(alike) == 1 else key
        if name in known:
            item = _coerced(item, known[name], root, drop)
            if item is None and name not in required and not _accepts_null(known[name], root):
                continue
        elif closed and drop:
            continue
        made[name] = item
    return made


def _names(key: str, names: Collection[str]) -> list[str]:
    """Return those of the names that a key may stand for: with the same letters, else that it is short for."""
    alike = [name for name in names if letters(name) == letters(key)]
    return alike or [name for name in names if _abbreviates(letters(key), letters(name))]


def _abbreviates(key: str, name: str) -> bool:
    """Return whether a key is short for a name, or begins with all of it; short names begin too many words for that."""
    return (len(key) > 1 and name.startswith(key)) or (len(name) > _SHORT and key.startswith(name))


def _accepts_null(schema: Any, root: dict[str, Any]) -> bool:
    kinds = [kind for node in alternatives(schema, root) for kind in _kinds(node)]
    return not kinds or "null" in kinds
