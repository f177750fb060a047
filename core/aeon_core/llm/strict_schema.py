"""Which JSON Schemas a provider's strict mode takes: the others are sent loosely, or left to the prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_OPENAI_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"),
    *("definitions", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
}
_OPENAI_DEPTH = 10
_ANTHROPIC_OPTIONAL = 24
_ANTHROPIC_UNIONS = 16
_OPEN_KEYWORDS = ("patternProperties", "unevaluatedProperties", "propertyNames", "dependentSchemas")


def is_strict(schema: Any) -> bool:
    """Return whether OpenAI's strict mode takes the schema: every object closed, every property required."""
    return isinstance(schema, dict) and schema.get("type") == "object" and "anyOf" not in schema and _strict(schema, 0)


def _strict(node: Any, depth: int) -> bool:
    if not isinstance(node, dict) or not node.keys() <= _OPENAI_KEYWORDS or depth > _OPENAI_DEPTH:
        return False
    if not node.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        return False
    if "object" in _types(node):
        properties, required = node.get("properties"), node.get("required")
        if node.get("additionalProperties") is not False or not isinstance(properties, dict):
            return False
        if not isinstance(required, list) or sorted(required, key=str) != sorted(properties):
            return False
    return all(_strict(child, depth + 1) for child in _children(node))


def closed_schema(schema: Any) -> dict[str, Any] | None:
    """Return the schema for Anthropic's structured output, None where it cannot be said there.

    Objects must be closed (an open one, such as a step's arguments, would be forced empty), there is no recursion,
    and optional properties and unions are limited. Lists of types become unions; nothing else is changed.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    if not all(_closable(node) for node in _nodes(schema)) or _recursive(schema):
        return None
    split = _split_types(schema)
    unions = sum(1 for node in _nodes(split) if node.keys() & {"anyOf", "oneOf"})
    optional = sum(len(node["properties"].keys() - set(node.get("required", []))) for node in _objects(split))
    return split if unions <= _ANTHROPIC_UNIONS and optional <= _ANTHROPIC_OPTIONAL else None


def _closable(node: Any) -> bool:
    if not isinstance(node, dict) or any(keyword in node for keyword in _OPEN_KEYWORDS):
        return False
    if "$ref" in node:
        return isinstance(node["$ref"], str) and node["$ref"].startswith("#/$defs/")
    if not node.keys() & {"type", "anyOf", "oneOf", "allOf", "enum", "const"}:
        return False
    if "object" not in _types(node):
        return True
    return bool(node.get("properties")) and node.get("additionalProperties", False) is False


def _recursive(schema: dict[str, Any]) -> bool:
    definitions = schema.get("$defs", {})

    def reached(node: Any, path: tuple[str, ...]) -> bool:
        for inner in _nodes(node, definitions=False):
            name = inner["$ref"].removeprefix("#/$defs/") if "$ref" in inner else None
            if name is None:
                continue
            if name in path or name not in definitions or reached(definitions[name], (*path, name)):
                return True
        return False

    return reached(schema, ())


def _split_types(node: dict[str, Any]) -> dict[str, Any]:
    copy = {key: _split_child(key, value) for key, value in node.items()}
    types = copy.get("type")
    if not isinstance(types, list) or "enum" in copy or "const" in copy:
        return copy
    shared: dict[str, Any] = {key: copy[key] for key in ("title", "description", "default") if key in copy}
    rest = {key: value for key, value in copy.items() if key not in shared and key != "type"}
    return {**shared, "anyOf": [{"type": name, **_for_type(rest, name)} for name in types]}


_FOR_TYPE = {"object": ("properties", "required", "additionalProperties"), "array": ("items", "minItems", "maxItems")}


def _for_type(keywords: dict[str, Any], name: Any) -> dict[str, Any]:
    if name == "null":
        return {}
    foreign = {key for other, keys in _FOR_TYPE.items() if other != name for key in keys}
    return {key: value for key, value in keywords.items() if key not in foreign}


def _split_child(key: str, value: Any) -> Any:
    if key in ("properties", "$defs") and isinstance(value, dict):
        return {name: _split_types(child) for name, child in value.items()}
    if key == "items" and isinstance(value, dict):
        return _split_types(value)
    if key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
        return [_split_types(child) for child in value]
    return value


def _types(node: dict[str, Any]) -> list[Any]:
    types = node.get("type")
    return types if isinstance(types, list) else [types]


def _children(node: dict[str, Any], definitions: bool = True) -> Iterator[Any]:
    for key in ("properties", "$defs", "definitions") if definitions else ("properties",):
        children = node.get(key)
        if children is not None:
            yield from children.values() if isinstance(children, dict) else (children,)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        variants = node.get(key)
        if variants is not None:
            yield from variants if isinstance(variants, list) else (variants,)
    if "items" in node:
        yield node["items"]


def _nodes(node: Any, definitions: bool = True) -> Iterator[Any]:
    yield node
    if isinstance(node, dict):
        for child in _children(node, definitions):
            yield from _nodes(child, definitions)


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (node for node in _nodes(schema) if isinstance(node.get("properties"), dict))
