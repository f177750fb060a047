"""Bringing a value into the form that a JSON Schema asks for, with what it says already."""

from __future__ import annotations

import difflib
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import parse_json
from aeon_core.llm.simulated.arithmetic import SYNONYMS
from aeon_core.llm.simulated.numbers import is_number, show_number, tokens
from aeon_core.llm.simulated.tools import kind_of
from aeon_core.tools.schema import Schema

_MAX_DEPTH = 20
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def coerced(value: Any, schema: dict[str, Any]) -> Any:
    """Return the value in the form of the schema where that loses nothing, parts that do not fit unchanged."""
    return _coerced(value, schema, schema, 0)


def _coerced(value: Any, schema: Any, root: dict[str, Any], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return value
    schema = _resolved(schema, root)
    if _fits(value, schema):
        return value
    for branch in (*_branches(schema, "anyOf"), *_branches(schema, "oneOf")):
        tried = _coerced(value, branch, root, depth + 1)
        if _fits(tried, _resolved(branch, root)):
            return tried
    kind = kind_of(schema)
    if isinstance(value, list) and len(value) == 1 and kind != "array":
        return _coerced(value[0], schema, root, depth + 1)
    if isinstance(schema.get("enum"), list):
        return _choice(value, schema["enum"])
    if kind == "object" or "properties" in schema:
        return _object(value, schema, root, depth)
    if kind == "array":
        items = value if isinstance(value, list) else [value]
        return [_coerced(item, schema.get("items"), root, depth + 1) for item in items]
    return _scalar(value, kind)


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    try:
        return not Schema(schema).errors(value)
    except ValidationError:
        return False


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(part) if isinstance(target, dict) else None
    return {**target, "$defs": root.get("$defs", {})} if isinstance(target, dict) else schema


def _branches(schema: dict[str, Any], key: str) -> list[dict[str, Any]]:
    listed = schema.get(key)
    return [branch for branch in listed if isinstance(branch, dict)] if isinstance(listed, list) else []


def _choice(value: Any, choices: list[Any]) -> Any:
    if not isinstance(value, str):
        return value
    said = value.strip().lower()
    names = {choice.lower(): choice for choice in choices if isinstance(choice, str)}
    for synonyms in SYNONYMS.values():
        if said in synonyms:
            names = {**{one: names[name] for name in synonyms if name in names for one in synonyms}, **names}
    near = difflib.get_close_matches(said, names, n=1)
    return names[near[0]] if near else value


def _scalar(value: Any, kind: str) -> Any:
    if kind in ("number", "integer"):
        number = _number(value)
        if number is None:
            return value
        return int(number) if kind == "integer" and float(number).is_integer() else number
    if kind == "boolean" and isinstance(value, (str, int)):
        return _TRUTHS.get(str(value).strip().lower(), value)
    if kind == "string" and is_number(value):
        return show_number(value)
    return value


def _number(value: Any) -> float | None:
    if is_number(value):
        return int(value) if isinstance(value, int) else float(value)
    if not isinstance(value, str) or len(value) > 100:
        return None
    found = tokens(value)
    negative = len(found) == 2 and found[0].text == "-"
    if len(found) != 1 + negative or (number := found[-1].number) is None:
        return None
    return -number if negative else number


def _object(value: Any, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return value
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    renamed = _renamed(value, known)
    if schema.get("additionalProperties") is False:
        renamed = {key: item for key, item in renamed.items() if key in known}
    return {key: _coerced(item, known.get(key), root, depth + 1) for key, item in renamed.items()}


def _renamed(value: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Give keys that are not known the nearest known name that is still free."""
    free = [key for key in known if key not in value]
    renamed: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key in known else nearest(key, free)
        if name in free:
            free.remove(name)
        renamed[name] = item
    return renamed


def nearest(key: str, names: list[str]) -> str:
    """Return the name that a key is a misspelling or a variant of, else the key."""
    plain = {_letters(name): name for name in names}
    letters = _letters(key)
    if letters in plain:
        return plain[letters]
    for name, original in plain.items():
        if min(len(name), len(letters)) >= 2 and (name.startswith(letters) or letters.startswith(name)):
            return original
        if name and letters in (f"{name}value", f"number{name}", f"num{name}", f"{name}1"):
            return original
    near = difflib.get_close_matches(letters, plain, n=1, cutoff=0.7)
    return plain[near[0]] if near else key


def _letters(key: str) -> str:
    return "".join(filter(str.isalnum, key.lower()))[:60]
