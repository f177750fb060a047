from __future__ import annotations

import http.server
import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ValidationError
from aeon_core.redaction import redact_text
from aeon_core.tools.schema import MAX_ERROR_LENGTH, MAX_ERRORS, Schema, describe
from tests.cpu_limit import cpu_limit

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": ["integer", "null"], "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
TREE = {"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": False}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def requested() -> Iterator[tuple[str, list[str]]]:
    """The address of a server on loopback that has a schema to give, and the paths it was asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", paths
    server.shutdown()
    thread.join()
    server.server_close()


def nested(depth: int, key: str = "child") -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {key: value}
    return value


def test_a_valid_instance_has_no_errors() -> None:
    assert Schema(PERSON).errors({"name": "Ada", "age": None, "tags": ["a"]}) == []


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ({}, ["name: missing, but required"]),
        ({"name": 5}, ["name: expected string, got 5"]),
        ({"name": ""}, ['name: expected minLength 1, got ""']),
        ({"name": "A", "age": "old"}, ['age: expected null or integer, got "old"']),
        ({"name": "A", "age": -1}, ["age: expected minimum 0, got -1"]),
        ({"name": "A", "tags": ["a", "c"]}, ['tags[1]: expected one of "a", "b", got "c"']),
        ({"name": "A", "size": 1}, ['the value: unexpected "size"']),
        ("Ada", ['the value: expected object, got "Ada"']),
        ({"name": True}, ["name: expected string, got true"]),
    ],
)
def test_an_error_names_the_place_what_was_expected_and_what_was_found(instance: Any, expected: list[str]) -> None:
    assert Schema(PERSON).errors(instance) == expected


@pytest.mark.parametrize(
    ("schema", "instance", "expected"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "the value: expected string or null, got 1"),
        (
            {"oneOf": [{"type": "string"}, {"type": "object", "required": ["id"]}]},
            {},
            "the value: expected string or an object with id, got an empty object",
        ),
        ({"oneOf": [{"minimum": 0}, {"maximum": 9}]}, 5, "the value: expected exactly one alternative to fit, got 5"),
        (
            {"type": "object", "additionalProperties": False},
            {"x": 1, "y": 2},
            'the value: unexpected "x", "y"',
        ),
        (
            {"propertyNames": {"maxLength": 1}},
            {"ab": 1},
            'the value: expected keys of maxLength 1, got an object with "ab"',
        ),
        ({"type": "integer"}, math.inf, "the value: expected integer, got inf"),
        ({"type": "string"}, 10**400, "the value: expected string, got an integer of 1329 bits"),
    ],
)
def test_less_common_keywords_are_explained_too(schema: dict[str, Any], instance: Any, expected: str) -> None:
    assert Schema(schema).errors(instance) == [expected]


def test_true_is_not_a_number() -> None:
    assert Schema({"type": "number"}).errors(True) == ["the value: expected number, got true"]


def test_errors_are_few_and_short() -> None:
    schema = Schema({"type": "array", "items": {"enum": [letter * 50 for letter in "abcdefgh"]}})
    errors = schema.errors(["x"] * 50)
    assert len(errors) == MAX_ERRORS
    assert {len(error) for error in errors} == {MAX_ERROR_LENGTH}


def test_a_key_in_the_instance_is_redacted() -> None:
    secret = "sk-ant-" + "a1" * 20
    errors = Schema(PERSON).errors({"name": {"x": secret}, "age": secret, secret: 1, "tags": ["x" * 40 + " " + secret]})
    assert len(errors) == 4
    assert not any("a1a1" in error for error in errors)
    assert f'age: expected null or integer, got "{redact_text(secret)}"' in errors


@pytest.mark.parametrize(
    "keyword",
    [{"maxLength": 5}, {"minLength": 30}, {"pattern": "^x"}, {"enum": ["a"]}, {"const": "a"}, {"not": {"minLength": 3}},
     {"anyOf": [{"maxLength": 3}, {"type": "integer"}]}, {"oneOf": [{"maxLength": 3}, {"type": "integer"}]}],
    ids=str,
)  # fmt: skip
def test_a_secrets_token_is_not_checked_against_a_pattern(keyword: dict[str, Any]) -> None:
    token = redact_text("sk-ant-" + "a1" * 20)
    properties = {"x": keyword, "y": {"type": "integer"}}
    schema = Schema({"type": "object", "properties": properties, "required": ["y"], "additionalProperties": False})
    assert schema.errors({"x": token, token: 1}) == ["y: missing, but required"]
    assert schema.errors({"x": f"a {token} b", "y": 1, "z": 1}) == ['the value: unexpected "z"']
    assert schema.errors({"x": token, "y": token}) == [f'y: expected integer, got "{token}"']


def test_control_characters_are_escaped() -> None:
    [error] = Schema({"type": "integer"}).errors("\x1b[31m\x00\x9b\nred")
    assert error == 'the value: expected integer, got "\\u001b[31m\\u0000\\u009b\\nred"'


def test_a_lone_surrogate_is_judged_by_its_clean_form() -> None:
    assert Schema({"type": "string"}).errors("a\ud800") == []
    assert Schema({"type": "integer"}).errors({"\ud800": "\udfff"}) == [
        'the value: expected integer, got an object with "�"'
    ]


@pytest.mark.parametrize("depth", [5_000, 100_000])
@pytest.mark.parametrize("schema", [TREE, {"type": "object"}, {"type": "string"}, {"enum": [1]}])
def test_deep_nesting_is_handled(schema: dict[str, Any], depth: int) -> None:
    errors = Schema(schema).errors(nested(depth))
    if schema == {"type": "object"}:
        assert errors == []
    else:
        # How deep the interpreter's own JSON goes differs between versions, and with it which check says no.
        deep = "the value: nested deeper than 100 levels"
        assert errors in ([deep], [f"{deep}, or contains itself"])


def test_deep_alternatives_are_explained_in_bounded_time() -> None:
    branches = [{"type": "object", "required": [name], "properties": {"child": {"$ref": "#"}}} for name in "abc"]
    schema = Schema({"anyOf": branches})
    too_deep = ["the value: does not fit the schema; it nests too deeply to say where"]
    assert schema.errors({"child": {}}) == [
        'the value: expected an object with a or an object with b or an object with c, got an object with "child"'
    ]
    assert schema.errors({"a": 1, "child": nested(90)}) == too_deep
    assert schema.errors({"a": 1, "child": {"b": 1}}) == []


def test_five_megabytes_give_one_short_line() -> None:
    [error] = Schema({"type": "integer"}).errors("x" * 5_000_000)
    assert error == f'the value: expected integer, got "{"x" * 60}…"'


def test_a_value_without_a_json_form_is_an_error() -> None:
    assert Schema({"minProperties": 2}).errors({"a": object()}) == ["the value: object has no JSON form"]


@given(JSON)
def test_no_instance_raises(instance: Any) -> None:
    schemas: list[dict[str, Any]] = [PERSON, TREE, {"enum": [1]}, {"not": {}}]
    for schema in schemas:
        errors = Schema(schema).errors(instance)
        assert len(errors) <= MAX_ERRORS
        assert all(error.isprintable() and len(error) <= MAX_ERROR_LENGTH for error in errors)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strnig"}, 'type: expected one of "array", "boolean"'),
        ({"properties": {"a": 5}}, "properties.a: expected boolean or object, got 5"),
        ({"pattern": "("}, 'pattern: expected format "regex", got "("'),
        ({"$ref": "#/$defs/none"}, "Pointer '/$defs/none' does not exist"),
        ({"enum": {object()}}, "not a JSON Schema: object has no JSON form"),
        (nested(5_000, "not"), "nested deeper than 100 levels"),
        ([], "expected a JSON Schema as a dict, got an empty array"),
        (True, "expected a JSON Schema as a dict, got true"),
        (None, "expected a JSON Schema as a dict, got null"),
    ],
)
def test_an_invalid_json_schema_is_refused_with_the_place(schema: Any, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Schema(schema)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_remote_reference_is_refused_and_never_fetched(requested: tuple[str, list[str]]) -> None:
    address, paths = requested
    with pytest.raises(ValidationError, match="leads out of the schema and is not fetched"):
        Schema({"properties": {"a": {"$ref": f"{address}/schema.json"}}})
    assert paths == []


def test_a_file_reference_is_refused() -> None:
    with pytest.raises(ValidationError, match="file:///etc/hostname"):
        Schema({"$ref": "file:///etc/hostname"})


def test_later_changes_to_the_given_dict_have_no_effect() -> None:
    given_schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = Schema(given_schema)
    given_schema["properties"]["a"]["type"] = "string"
    assert schema.errors({"a": 1}) == []
    assert schema.schema["properties"]["a"]["type"] == "integer"


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "object"}, {}),
        (PERSON, {"name": "text"}),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"const": "x"}}}, {"a": 1, "b": "x"}),
        (
            {
                "type": "object",
                "properties": {
                    "half": {"exclusiveMinimum": 0, "exclusiveMaximum": 1, "type": "number"},
                    "week": {"multipleOf": 7, "minimum": 10, "type": "integer"},
                    "words": {"type": "array", "items": {"type": "string", "minLength": 6}, "minItems": 2.0},
                    "day": {"type": "string", "format": "date"},
                    "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                    "both": {"allOf": [{"type": "object", "required": ["x"]}, {"properties": {"x": {"enum": [9]}}}]},
                    "flag": {"type": "boolean"},
                    "mode": {"default": "fast", "type": "string"},
                    "nothing": {"type": "null"},
                },
            },
            {
                "half": 0.5,
                "week": 14,
                "words": ["texttt", "texttt"],
                "day": "2026-01-31",
                "note": "text",
                "both": {"x": 9},
                "flag": True,
                "mode": "fast",
                "nothing": None,
            },
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "properties": {"n": {"type": "number", "minimum": 1, "exclusiveMinimum": True}},
                "required": ["n"],
            },
            {"n": 2},
        ),
        (
            {"properties": {"p": {"$ref": "#/$defs/P~1Q"}}, "$defs": {"P/Q": {"enum": ["x"]}}, "required": ["p"]},
            {"p": "x"},
        ),
        ({"properties": {"p": False}, "required": ["p"], "type": "object"}, None),
        ({"properties": {"p": {"type": "string", "pattern": "^x+$"}}, "required": ["p"], "type": "object"}, None),
    ],
)
def test_an_example_is_made_from_the_schema(schema: dict[str, Any], example: Any) -> None:
    compiled = Schema(schema)
    assert compiled.example() == example
    if example is not None:
        assert compiled.errors(example) == []


def test_an_example_of_a_widely_recursive_schema_stays_small() -> None:
    properties = {name: {"$ref": "#"} for name in "abcdefgh"}
    schema = Schema({"type": "object", "properties": properties})
    example = schema.example()
    assert schema.errors(example) == []
    assert len(str(example)) < 10_000


def test_an_example_fills_in_optional_properties_to_a_small_depth() -> None:
    assert Schema(TREE).example() == {"child": {"child": {"child": {}}}}


def test_a_schema_that_only_refers_to_itself_has_an_example() -> None:
    assert Schema({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "object"}]}).example() == {}


SCALARS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["number", "integer"])},
        optional={
            "minimum": st.integers(-1000, 1000) | st.floats(-1e300, 1e300),
            "maximum": st.integers(-1000, 1000) | st.floats(-1e300, 1e300),
            "exclusiveMinimum": st.integers(-1000, 1000),
            "multipleOf": st.sampled_from([1, 2, 7, 0.5, 1e-300]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 3000), "maxLength": st.integers(0, 9), "pattern": st.just("^a+$")},
    ),
    st.just({}),
    st.just({"$ref": "#"}),
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner)},
            optional={"required": st.lists(st.sampled_from("abcd"), unique=True)},
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 40), "maxItems": st.integers(0, 5), "uniqueItems": st.booleans()},
        ),
        st.builds(
            lambda kind, parts: {kind: parts}, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1)
        ),
    ),
    max_leaves=8,
)


@given(SCHEMAS)
def test_an_example_is_valid_and_always_the_same(schema: dict[str, Any]) -> None:
    compiled = Schema(schema)
    example = compiled.example()
    assert example == Schema(schema).example()
    if example is not None:
        assert compiled.errors(example) == []


def test_nested_arrays_have_no_example_beyond_bounds() -> None:
    schema: dict[str, Any] = {"type": "array", "minItems": 20, "items": {"$ref": "#"}}
    with cpu_limit(10):
        assert Schema(schema).example() is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2], "an array of 2"),
        ((), "an empty array"),
        ({"a": 1, "b": 2}, 'an object with "a", "b"'),
        (dict.fromkeys("abcdefghij"), 'an object with "a", "b", "c", "d", "e", "f", "g", "h", …'),
        (1.5, "1.5"),
        (object(), "a value of type object"),
    ],
)
def test_a_described_value_is_short(value: Any, text: str) -> None:
    assert describe(value) == text
