"""Which schemas go to a provider's strict mode, and in what form."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.llm.wire import closed_schema, is_strict


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
RECURSIVE = {**closed(next={"$ref": "#/$defs/Node"}), "$defs": {"Node": closed(next={"$ref": "#/$defs/Node"})}}
SHARED = {
    **closed(a={"$ref": "#/$defs/Leaf"}, b={"$ref": "#/$defs/Leaf"}),
    "$defs": {"Leaf": closed(text=TEXT)},
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (closed(a=TEXT), True),
        (closed(a={"type": ["string", "null"]}, b={"type": "array", "items": closed(c=TEXT)}), True),
        (closed(a={"anyOf": [TEXT, {"type": "null"}]}), True),
        (closed(a={"enum": ["x"]}), True),
        (RECURSIVE, True),
        (closed(a={"type": "object"}), False),
        (closed(a={}), False),
        (closed(a=True), False),
        (closed(a={"type": "string", "minLength": 1}), False),
        (closed(a={"type": "array", "items": {"type": "object", "properties": {}}}), False),
        ({**closed(a=TEXT, b=TEXT), "required": ["a"]}, False),
        ({**closed(a=TEXT), "required": 5}, False),
        ({**closed(a=TEXT), "additionalProperties": True}, False),
        ({**closed(a=TEXT), "anyOf": [TEXT]}, False),
        ({"type": "array", "items": TEXT}, False),
        ({"oneOf": [closed(a=TEXT)]}, False),
        (True, False),
        ("schema", False),
    ],
)
def test_strict_mode_is_used_only_if_it_supports_the_schema(schema: Any, strict: bool) -> None:
    assert is_strict(schema) is strict


def test_a_schema_too_deep_for_strict_mode_is_not_strict() -> None:
    schema = closed(a=TEXT)
    for _ in range(12):
        schema = closed(a=schema)
    assert not is_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        RECURSIVE,
        closed(a={"type": "object"}),
        closed(a={"type": "object", "properties": {"b": TEXT}, "additionalProperties": True}),
        closed(a={"type": "object", "additionalProperties": TEXT}),
        closed(a={**closed(b=TEXT), "patternProperties": {"^x": TEXT}}),
        closed(a={}),
        closed(a=True),
        closed(a={"$ref": "#/$defs/Gone"}),
        closed(a={"$ref": "https://example.com/schema"}),
        {"type": "array", "items": TEXT},
        {**closed(**{f"p{n}": TEXT for n in range(25)}), "required": []},
        closed(**{f"p{n}": {"type": ["string", "null"]} for n in range(17)}),
        None,
        True,
    ],
)
def test_a_schema_that_anthropic_cannot_express_is_left_out(schema: Any) -> None:
    assert closed_schema(schema) is None


@pytest.mark.parametrize("schema", [closed(a=TEXT), SHARED, closed(a={"oneOf": [TEXT, {"type": "null"}]})])
def test_a_schema_that_anthropic_can_express_is_unchanged(schema: dict[str, Any]) -> None:
    assert closed_schema(schema) == schema


def test_options_and_unions_within_anthropics_limits_are_kept() -> None:
    optional = {**closed(**{f"p{n}": TEXT for n in range(24)}), "required": []}
    unions = closed(**{f"p{n}": {"type": ["string", "null"]} for n in range(16)})
    assert closed_schema(optional) is not None
    assert closed_schema(unions) is not None


def test_a_list_of_types_becomes_a_union() -> None:
    from anthropic import transform_schema  # A second of imports, which only this test needs.

    mixed = {"type": ["array", "null"], "description": "d", "items": TEXT}
    schema = closed_schema(closed(a=mixed))
    assert schema is not None
    union = {"description": "d", "anyOf": [{"type": "array", "items": TEXT}, {"type": "null"}]}
    assert schema["properties"]["a"] == union
    assert transform_schema(schema)["properties"]["a"]["anyOf"] == union["anyOf"]
