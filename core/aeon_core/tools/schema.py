"""JSON Schema for tools: the only module that validates a tool's arguments and results (core FR-019, FR-025)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, cast

import jsonschema_rs

from aeon_core.errors import ValidationError
from aeon_core.json_safe import clean_text, json_safe, parse_json
from aeon_core.redaction import cut_place, redact_text, tokens_in

MAX_ERRORS = 5
MAX_ERROR_LENGTH = 200
_MAX_EXPLAINED_DEPTH = 6
_MAX_SHOWN = 60
_MAX_LISTED = 8
_MASK = "the value"
_MAX_EXAMPLE_DEPTH = 4
_MAX_OPTIONAL_DEPTH = 3
_MAX_EXAMPLE_NODES = 300
_MAX_EXAMPLE_ITEMS = 3
_MAX_EXAMPLE_LENGTH = 1000
_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T09:30:00Z",
    "duration": "PT1H",
    "email": "name@example.org",
    "time": "09:30:00Z",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ABOUT_TEXT = frozenset(
    {
        "minLength", "maxLength", "pattern", "format", "enum", "const", "anyOf", "oneOf", "not", "propertyNames",
        "contains", "falseSchema",
    }
)  # fmt: skip
"""Keywords that a secret may satisfy and its token may not, or vice versa."""


class Schema:
    """A compiled JSON Schema; no reference out of the schema is ever fetched.

    Raises ValidationError if `schema` is not a dict, has no JSON form, is not a valid JSON Schema, or refers to
    something outside itself.
    """

    __slots__ = ("_branches", "_is_valid", "_refers", "_validator", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        if not isinstance(schema, dict):
            raise ValidationError(f"expected a JSON Schema as a dict, got {describe(schema)}")
        try:
            self.schema: dict[str, Any] = json_safe(schema)
        except ValueError as error:
            raise ValidationError(f"not a JSON Schema: {error}") from None
        try:
            self._validator = jsonschema_rs.validator_for(self.schema, offline=True, mask=_MASK)
        except jsonschema_rs.ValidationError as error:
            raise ValidationError(_clip(_schema_fault(error, self.schema))) from None
        except (ValueError, RecursionError) as error:
            raise ValidationError(_clip(f"not a JSON Schema: {error}")) from None
        self._is_valid = self._validator.is_valid
        # With a recursive schema, validation uses the native stack for each level of the instance, so its depth is
        # limited.
        text = json.dumps(self.schema)
        self._refers = any(f'"{keyword}"' in text for keyword in _REFERENCES)
        self._branches = self._refers and ('"anyOf"' in text or '"oneOf"' in text)

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Any]]]:
        return Schema, (self.schema,)

    def errors(self, instance: Any, shown: Callable[[Any], Any] = lambda value: value) -> list[str]:
        """Return the errors of `instance`, at most MAX_ERRORS lines of place, expectation and finding.

        An empty list means that it is valid. Never raises. A keyword that a secret's token does not satisfy is not an
        error here: it is checked where the secret is known. The lines quote `shown(instance)`, without secrets.
        """
        try:
            if self._is_valid(json_safe(instance) if self._refers else instance):
                return []
            return self._explain(instance, shown)
        except ValueError:
            return self._errors_of_unclean(instance, shown)

    def example(self) -> Any:
        """Return a small valid instance, always the same for a schema, or None if none was found."""
        for everything in (not self.schema.get("required"), bool(self.schema.get("required"))):
            try:
                left = iter(range(_MAX_EXAMPLE_NODES))
                candidate = json_safe(_example(self.schema, self.schema, everything, left))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue  # an example is optional: a schema too unusual for this has none
            if self._is_valid(candidate):
                return candidate
        return None

    def _errors_of_unclean(self, instance: Any, shown: Callable[[Any], Any]) -> list[str]:
        try:
            copy = json_safe(instance)
            return [] if self._is_valid(copy) else self._explain(copy, shown)
        except ValueError as error:
            return [_clip(f"{_MASK}: {error}")]

    def _explain(self, instance: Any, shown: Callable[[Any], Any]) -> list[str]:
        # Recursive alternatives can have exponentially many errors.
        if self._branches and _nests_deeper(instance, _MAX_EXPLAINED_DEPTH):
            return [f"{_MASK}: does not fit the schema; it nests too deeply to say where"]
        errors, quoted = iter(self._validator.iter_errors(instance)), shown(instance)
        if any(tokens_in(instance)):
            errors = (error for error in errors if not _is_about_token(error, instance))
        return list(dict.fromkeys(_clip(_line(error, quoted)) for error in islice(errors, MAX_ERRORS)))


def _example(schema: Any, root: dict[str, Any], everything: bool, left: Iterator[int], depth: int = 0) -> Any:
    """Return an instance built from a schema: its required parts, with `everything` the optional ones too.

    The first alternative is used; `left` limits the depth. The instance may still not fit.
    """
    if not isinstance(schema, dict) or depth > _MAX_EXAMPLE_DEPTH or next(left, None) is None:
        return "text"
    nodes = alternatives(schema, root, first=True)
    merged = {key: value for node in reversed(nodes) for key, value in node.items()}
    for given in ([merged.get("const")], [merged.get("default")], merged.get("examples"), merged.get("enum")):
        if isinstance(given, list) and given and given[0] is not None:
            return given[0]
    known = {name: inner for node in nodes for name, inner in node.get("properties", {}).items()}
    names = [name for node in nodes for name in node.get("required", ())]
    kind = merged.get("type", "object" if known or names else "array" if "items" in merged else "string")
    kind = next((each for each in kind if each != "null"), "null") if isinstance(kind, list) else kind
    if kind == "object":
        optional = known if everything and depth < _MAX_OPTIONAL_DEPTH else ()
        every = dict.fromkeys([*optional, *names], merged.get("additionalProperties"))
        return {
            name: _example(known.get(name, other), root, everything, left, depth + 1) for name, other in every.items()
        }
    if kind == "array":
        count = min(int(merged.get("minItems", 1)), _MAX_EXAMPLE_ITEMS)
        return [_example(merged.get("items"), root, everything, left, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return _number(merged, kind)
    return {"null": None, "boolean": True}.get(kind, _string(merged))


def _number(schema: dict[str, Any], kind: str) -> float:
    """Return a number between the bounds, or next to the only one."""
    low = max((schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema), default=None)
    high = min((schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema), default=None)
    if low is not None and high is not None:
        number = (low + high) / 2
    else:
        number = low + 1 if low is not None else high - 1 if high is not None else 1
    step = schema.get("multipleOf")
    number = -(-number // step) * step if step else number
    return int(number) if kind == "integer" or number == int(number) else number


def _string(schema: dict[str, Any]) -> str:
    text = _FORMATS.get(schema.get("format", ""), "text")
    text = text.ljust(min(int(schema.get("minLength", 0)), _MAX_EXAMPLE_LENGTH), "t")
    return text[: int(schema.get("maxLength", _MAX_EXAMPLE_LENGTH))]


def _nests_deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, (dict, list, tuple)) or not value:
        return False
    children = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_nests_deeper(child, depth - 1) for child in children)


def describe(value: Any) -> str:
    """Return a short, bounded, redacted description of any value, for an error message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return f"an object with {_listed(list(islice(value, _MAX_LISTED + 1)))}" if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"an array of {len(value)}" if value else "an empty array"
    return f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"


def _quoted(text: str) -> str:
    # Redacted before it is cut, so that no part of a key remains.
    text = redact_text(clean_text(text[:2000]))
    if len(text) > _MAX_SHOWN:
        text = text[: cut_place(text, _MAX_SHOWN)] + "…"
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _listed(values: list[Any]) -> str:
    shown = ", ".join(describe(value) for value in values[:_MAX_LISTED])
    return f"{shown}, …" if len(values) > _MAX_LISTED else shown


def _clip(text: str) -> str:
    text = redact_text(" ".join(text.split()))
    return text if len(text) <= MAX_ERROR_LENGTH else text[: cut_place(text, MAX_ERROR_LENGTH - 1)] + "…"


def _schema_fault(error: jsonschema_rs.ValidationError, schema: dict[str, Any]) -> str:
    if error.kind.name != "$ref":
        return f"not a valid JSON Schema: {_line(error, schema)}"
    if "Retrieval is disabled" in error.message:
        uri = error.message.rpartition("cannot fetch ")[2]
        return f"the reference {_quoted(uri)} leads out of the schema and is not fetched; put its target under '$defs'"
    return f"not a valid JSON Schema: {error.message}"


def _is_about_token(error: jsonschema_rs.ValidationError, instance: Any) -> bool:
    """Return whether an error concerns the text of a token, or a value that contains one."""
    kind = error.kind.name
    if kind in ("additionalProperties", "unevaluatedProperties"):
        return any(tokens_in(list(getattr(error.kind, "value", None) or ())))
    return kind in _ABOUT_TEXT and any(tokens_in(_at(instance, list(error.instance_path), error)))


def _line(error: jsonschema_rs.ValidationError, instance: Any) -> str:
    place = list(error.instance_path)
    kind, value = error.kind.name, getattr(error.kind, "value", None)
    if kind == "required":
        return f"{_path([*place, cast('str', value)])}: missing, but required"
    if kind in ("additionalProperties", "unevaluatedProperties") and isinstance(value, list):
        return f"{_path(place)}: unexpected {_listed(value)}"
    found = _at(instance, place, error)
    if kind == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"] and isinstance(found, dict):
        return f"{_path(place)}: unexpected {_listed(list(found))}"
    return f"{_path(place)}: expected {_expectation(error)}, got {describe(found)}"


def _expectation(error: jsonschema_rs.ValidationError) -> str:
    kind, value = error.kind.name, getattr(error.kind, "value", None)
    if kind == "type":
        return " or ".join(cast("list[str]", value))
    if kind == "enum":
        return f"one of {_listed(cast('list[Any]', value))}"
    if kind in ("anyOf", "oneOf"):
        branches = [branch[0] for branch in cast("list[list[jsonschema_rs.ValidationError]]", value) if branch]
        if branches:
            return " or ".join(dict.fromkeys(_branch(branch, error) for branch in branches[:_MAX_LISTED]))
        return "exactly one alternative to fit"
    if kind == "not":
        return "a value that the schema under 'not' does not allow"
    if kind == "falseSchema":
        return "nothing here"
    if kind == "propertyNames":
        return f"keys of {_expectation(cast('jsonschema_rs.ValidationError', value))}"
    return kind if value is None else f"{kind} {describe(value)}"


def _branch(branch: jsonschema_rs.ValidationError, error: jsonschema_rs.ValidationError) -> str:
    inside = list(branch.instance_path)[len(error.instance_path) :]
    if branch.kind.name == "required":
        return f"an object with {_path([*inside, cast('str', branch.kind.value)])}"
    expectation = _expectation(branch)
    return f"{_path(inside)} {expectation}" if inside else expectation


def _path(place: list[str | int]) -> str:
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() and len(part) <= _MAX_SHOWN:
            text += f".{redact_text(part)}" if text else redact_text(part)
        else:
            text += f"[{_quoted(part)}]"
    return text or _MASK


def _at(instance: Any, place: list[str | int], error: jsonschema_rs.ValidationError) -> Any:
    # The validator's own copy of the instance lacks large numbers and infinities.
    for part in place:
        try:
            instance = instance[part]
        except (LookupError, TypeError):
            return error.instance
    return instance


_SHORT = 3
"""The length of a name with which too many other words begin."""
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
    """Return the letters and digits of a name in lower case, to compare names regardless of spelling."""
    return "".join(filter(str.isalnum, name.casefold()))[:200]


def named(name: str, names: Collection[str]) -> str | None:
    """Return the name itself if it is one of the names, else the only one with the same letters, or None."""
    alike = [known for known in names if letters(known) == letters(name)]
    return name if name in names else alike[0] if len(alike) == 1 else None


def is_blank(value: Any) -> bool:
    """Return whether a value is null, or an empty text, list or object."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (list, dict)) and not value)


def in_form(value: Any, schema: dict[str, Any]) -> Any:
    """Return the value unwrapped, then coerced."""
    return coerced(unwrapped(value, schema), schema)


def unwrapped(value: Any, schema: dict[str, Any]) -> Any:
    """Return a value without a one-item list or an object around it, or with the list that it lacks."""
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
    """Return the value in the schema's form, as far as nothing is lost.

    Keys and choices get the schema's spelling, text becomes a number or a number text, an item a one-item list or vice
    versa. With `drop`, keys that a closed object does not know are left out, unless nothing would remain. The result
    may still not fit.
    """
    return _coerced(value, schema, schema, drop)


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the properties that an object may have, over all of its alternatives, with their schemas."""
    return _merged(alternatives(schema, schema))


def alternatives(schema: Any, root: dict[str, Any], *, first: bool = False) -> list[dict[str, Any]]:
    """Return a schema with everything that it refers to and its branches, or only the `first` branch of each kind."""
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
    choices = [choice for node in nodes for choice in _list_of(node.get("enum"))]
    choices += [node["const"] for node in nodes if "const" in node]
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


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


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
    """Yield the value in equivalent forms."""
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
    # An object without a known key has another form: everything in it would be left out.
    drop = drop and (not known or any(_names(key, known) for key in value))
    closed = any(node.get("additionalProperties") is False for node in nodes)
    required = {name for node in nodes for name in _list_of(node.get("required"))}
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
    """Return the names that a key may mean: those with the same letters, else those that it abbreviates."""
    alike = [name for name in names if letters(name) == letters(key)]
    return alike or [name for name in names if _abbreviates(letters(key), letters(name))]


def _abbreviates(key: str, name: str) -> bool:
    """Return whether a key abbreviates a name, or begins with it unless the name is short."""
    return (len(key) > 1 and name.startswith(key)) or (len(name) > _SHORT and key.startswith(name))


def _accepts_null(schema: Any, root: dict[str, Any]) -> bool:
    kinds = [kind for node in alternatives(schema, root) for kind in _kinds(node)]
    return not kinds or "null" in kinds
