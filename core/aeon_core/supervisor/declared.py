"""What a tool's schema allows at one place of the arguments: its choices, and its defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MAX_NODES = 100


def choices_at(root: dict[str, Any], path: tuple[str | int, ...]) -> list[Any]:
    """Return the values that `enum` and `const` list for a place."""
    found: list[Any] = []
    for node in _declared(root, path):
        found += node["enum"] if isinstance(node.get("enum"), list) else []
        found += [node["const"]] if "const" in node else []
    return found


def defaults_at(root: dict[str, Any], path: tuple[str | int, ...]) -> list[Any]:
    """Return the defaults of a place."""
    return [node["default"] for node in _declared(root, path) if "default" in node]


def properties_at(root: dict[str, Any], path: tuple[str | int, ...] = ()) -> list[str]:
    """Return the names that the schema declares for an object, in their order."""
    listed = (node.get("properties") for node in _declared(root, path))
    return list(dict.fromkeys(name for properties in listed if isinstance(properties, dict) for name in properties))


def _declared(root: dict[str, Any], path: tuple[str | int, ...]) -> list[dict[str, Any]]:
    nodes = _alternatives(root, root)
    for part in path:
        nodes = [found for node in nodes for child in _children(node, part) for found in _alternatives(child, root)]
        nodes = nodes[:_MAX_NODES]
    return nodes


def _children(node: dict[str, Any], part: str | int) -> Iterator[Any]:
    if isinstance(part, int):
        first = node.get("prefixItems")
        yield first[part] if isinstance(first, list) and part < len(first) else node.get("items")
        return
    properties = node.get("properties")
    known = properties if isinstance(properties, dict) else {}
    yield known[part] if part in known else node.get("additionalProperties")


def _alternatives(schema: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a schema with all it refers to and branches into."""
    found: list[dict[str, Any]] = []
    waiting = [schema]
    while waiting and len(found) < _MAX_NODES:
        node = waiting.pop(0)
        if not isinstance(node, dict) or any(node is known for known in found):
            continue
        found.append(node)
        for key in ("anyOf", "oneOf", "allOf"):
            waiting += node[key] if isinstance(node.get(key), list) else []
        if isinstance(node.get("$ref"), str):
            waiting.append(_target(node["$ref"], root))
    return found


def _target(reference: str, root: dict[str, Any]) -> Any:
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target
