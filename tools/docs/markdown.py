"""Markdown from code: tables, and what a class says of its fields."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from aeon_core.schemas import field_docs


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell's line breaks become spaces, and its pipes are escaped."""
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def code(text: str) -> str:
    """Return a text as code; nothing for no text."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Return a docstring as Markdown that shows every character outside of code as it is."""
    parts = inspect.cleandoc(text).split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]]
    return "`".join(parts)


def fields(model: type[BaseModel]) -> list[list[str]]:
    """Return a row for each field of a model: its key, its type, its default where it has one, and what it holds."""
    docs, schema = field_docs(model), model.model_json_schema(by_alias=True)
    properties, needed = schema.get("properties", {}), schema.get("required", [])
    rows = []
    for name, info in model.model_fields.items():
        key = info.serialization_alias or name
        if info.exclude or key not in properties:
            continue
        default = "required" if key in needed else code(_default(properties[key].get("default")))
        text = docs.get(name) or info.description or ""
        rows.append([code(key), json_type(properties[key], schema.get("$defs", {})), default, plain(text)])
    return rows


def _default(value: Any) -> str:
    return "" if value is None or value in ([], {}) else str(value).lower() if isinstance(value, bool) else str(value)


def json_type(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return a JSON Schema in words: `text`, `number`, `list of …`, `one of …`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        referred = definitions.get(name, {})
        return json_type(referred, definitions) if "enum" in referred else name
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return " ".join(code(str(value)) for value in schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(json_type(option, definitions) for option in options))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {json_type(schema['items'], definitions)}" if schema.get("items") else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {json_type(schema['additionalProperties'], definitions)}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return words.get(str(kind), str(kind or "anything")) + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return "".join(f" {sign} {schema[key]}" for key, sign in signs.items() if key in schema)
