from __future__ import annotations

import copy
import datetime
import enum
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from aeon_core.errors import ToolError
from aeon_core.tools.base import Tool
from aeon_core.tools.decorator import FunctionTool, tool
from aeon_core.tools.registry import EchoTool, ToolRegistry
from aeon_core.tools.schema import Schema


class Point(BaseModel):
    x: int
    y: int = 0


class Node(BaseModel):
    children: list[Node] = []


class Found(TypedDict):
    count: int
    more: NotRequired[bool]


@dataclass
class Box:
    size: int


class Colour(enum.Enum):
    RED = "red"


@tool
def search(
    words: list[str],
    mode: Literal["any", "all"] = "any",
    limit: Annotated[int, Field(description="The most results.", ge=1)] = 10,
    after: str | None = None,
    *,
    weights: dict[str, float] | None = None,
    schema: int = Field(3, description="A name that models have."),
) -> Found:
    """Search for words.

    Looks everywhere.
    """
    return {"count": len(words) * limit}


@tool(effect="idempotent", needs_approval=True, name="move", examples=[{"point": {"x": 1}, "by": 2}])
def move_point(point: Point, by: int) -> Point:
    """Move a point to the right."""
    assert isinstance(point, Point)
    return Point(x=point.x + by, y=point.y)


def returning(annotation: Any, value: Any) -> FunctionTool[[], Any]:
    def give() -> Any:
        """Give it."""
        return value

    give.__annotations__ = {"return": annotation}
    return tool(give)


def test_the_schema_comes_from_the_signature() -> None:
    assert search.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["words"],
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}},
            "mode": {"type": "string", "enum": ["any", "all"], "default": "any"},
            "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "The most results."},
            "after": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "weights": {
                "anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}],
                "default": None,
            },
            "schema": {"type": "integer", "default": 3, "description": "A name that models have."},
        },
    }


def test_name_and_description_come_from_the_function() -> None:
    assert isinstance(search, Tool)
    assert search.name == "search"
    assert search.description == "Search for words.\n\nLooks everywhere."
    assert (search.effect, search.needs_approval, search.examples) == ("unsafe", False, ())


def test_the_options_are_taken() -> None:
    assert (move_point.name, move_point.effect, move_point.needs_approval) == ("move", "idempotent", True)
    assert move_point.examples == ({"point": {"x": 1}, "by": 2},)


def test_the_tool_stays_callable_as_the_function() -> None:
    assert search(["a", "b"], limit=2) == {"count": 4}
    assert move_point(Point(x=1), 2) == Point(x=3)
    assert vars(search)["__name__"] == "search"


def test_defaults_are_filled_in_by_invoke() -> None:
    assert search.invoke(words=["a", "b"]) == {"count": 20}


def test_a_pydantic_argument_is_passed_as_a_model_and_returned_as_json() -> None:
    assert move_point.invoke(point={"x": 1, "y": 5}, by=2) == {"x": 3, "y": 5}
    assert Schema(move_point.output_schema).errors({"x": 3, "y": 5}) == []


@pytest.mark.parametrize(
    ("annotation", "value", "schema", "result"),
    [
        (int, 3, {"type": "integer"}, {"result": 3}),
        (None, None, {"type": "null"}, {"result": None}),
        (list[Point], [Point(x=1)], None, {"result": [{"x": 1, "y": 0}]}),
        (datetime.date, datetime.date(2026, 1, 2), {"type": "string", "format": "date"}, {"result": "2026-01-02"}),
        (Colour, Colour.RED, None, {"result": "red"}),
        (dict[str, int] | None, {"a": 1}, None, {"result": {"a": 1}}),
        (Any, {"a": 1}, {}, {"result": {"a": 1}}),
    ],
)
def test_a_result_that_is_not_an_object_is_wrapped(annotation: Any, value: Any, schema: Any, result: Any) -> None:
    made = returning(annotation, value)
    assert made.invoke() == result
    assert Schema(made.output_schema).errors(result) == []
    assert made.output_schema["required"] == ["result"]
    if schema is not None:
        assert made.output_schema["properties"] == {"result": schema}


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (dict, {"a": 1}, {"a": 1}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Found, {"count": 1}, {"count": 1}),
        (Box, Box(4), {"size": 4}),
        (Node, Node(children=[Node()]), {"children": [{"children": []}]}),
    ],
)
def test_a_result_that_is_an_object_is_not_wrapped(annotation: Any, value: Any, result: Any) -> None:
    made = returning(annotation, value)
    assert made.invoke() == result
    assert Schema(made.output_schema).errors(result) == []


def test_an_optional_key_of_a_typed_dict_stays_optional() -> None:
    schema = Schema(search.output_schema)
    assert schema.errors({"count": 1}) == []
    assert schema.errors({"more": True}) == ["count: missing, but required"]
    assert schema.errors({"count": 1, "more": 2}) == ["more: expected boolean, got 2"]


def test_a_result_that_is_not_the_declared_object_is_an_error() -> None:
    with pytest.raises(ToolError, match=r"tool 'give': expected an object as result, .* got null"):
        returning(dict[str, Any], None).invoke()


def test_a_result_of_another_type_does_not_fit_the_output_schema() -> None:
    made = returning(int, "three")
    assert Schema(made.output_schema).errors(made.invoke()) == ['result: expected integer, got "three"']


def test_nan_in_a_model_stays_for_the_caller_to_report() -> None:
    class Reading(BaseModel):
        value: Any

    @tool
    def read() -> Reading:
        """Read."""
        return Reading(value=float("nan"))

    assert str(read.invoke()["value"]) == "nan"


def test_a_result_without_a_json_form_is_an_error() -> None:
    with pytest.raises(ToolError, match="tool 'give': its result has no JSON form"):
        returning(Any, object()).invoke()


def test_an_unknown_argument_is_refused() -> None:
    assert Schema(search.input_schema).errors({"words": [], "wrods": 1}) == ['the value: unexpected "wrods"']
    with pytest.raises(ToolError, match="tool 'search': wrods: Unexpected keyword argument"):
        search.invoke(words=[], wrods=1)


def test_wrong_arguments_are_refused_before_the_call() -> None:
    with pytest.raises(ToolError, match=r"tool 'move': point\.x: Field required") as caught:
        move_point.invoke(point={}, by=1)
    assert "\n" not in str(caught.value)


def test_an_argument_that_does_not_match_its_pattern_is_refused_with_the_pattern() -> None:
    @tool
    def by_code(code: Annotated[str, Field(pattern="^[0-9]+$")]) -> str:
        """Look up a code."""
        return code

    with pytest.raises(ToolError, match=r"tool 'by_code': code: String should match pattern '\^\[0-9\]\+\$'"):
        by_code.invoke(code="x")


def test_exceptions_of_the_function_propagate() -> None:
    @tool
    def fail(value: int) -> int:
        """Validate something of its own."""
        return Point.model_validate({"x": "no"}).x + value

    with pytest.raises(ValueError, match="validation error for Point"):
        fail.invoke(value=1)


def test_a_mutable_default_is_not_shared_between_calls() -> None:
    @tool
    def collect(into: list[int] = []) -> int:  # noqa: B006
        """Collect."""
        into.append(1)
        return len(into)

    assert [collect.invoke(), collect.invoke()] == [{"result": 1}, {"result": 1}]


def test_annotations_may_name_local_types() -> None:
    class Local(BaseModel):
        x: int

    @tool(effect="pure")
    def take(local: Local) -> int:
        """Take a local type."""
        return local.x

    assert take.invoke(local={"x": 2}) == {"result": 2}


def test_a_method_becomes_a_tool_of_its_object() -> None:
    class Counter:
        total = 0

        def count(self, by: int) -> int:
            """Count up."""
            self.total += by
            return self.total

    counter = Counter()
    registry = ToolRegistry()
    registry.register(counter.count)
    made = registry.list()[0]
    assert made.input_schema["required"] == ["by"]
    assert made.invoke(by=2) == {"result": 2}
    assert counter.total == 2


def test_a_recursive_model_can_be_a_parameter() -> None:
    @tool
    def depth(node: Node) -> int:
        """Measure."""
        return len(node.children)

    registry = ToolRegistry()
    registry.register(depth)
    assert registry.input_schema("depth").errors({"node": {"children": [{}]}}) == []
    assert depth.invoke(node={"children": [{}]}) == {"result": 1}


def test_a_default_without_a_json_form_is_left_out_of_the_schema() -> None:
    @tool
    def paint(colour: Any = object()) -> int:  # noqa: B008
        """Paint."""
        return 1

    assert paint.input_schema["properties"] == {"colour": {}}


async def asynchronous(a: int) -> int:
    """Wait."""
    return a


def variadic(*a: int) -> int:
    """Many."""
    return len(a)


def keywords(**a: int) -> int:
    """Many."""
    return len(a)


def positional(a: int, /) -> int:
    """One."""
    return a


def bare(a) -> int:  # type: ignore[no-untyped-def]
    """Bare."""
    return int(a)


def endless(a: int):  # type: ignore[no-untyped-def]
    """Return what?"""


def silent(a: int) -> int:
    return a


def blank(a: int) -> int:
    """ """
    return a


def unresolved(a: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    """Name a type that is not there."""
    return 1


def call(a: Callable[[int], int]) -> int:
    """Take a function."""
    return a(1)


def nested(a: list[Found]) -> int:
    """Take many."""
    return len(a)


def opaque(a: int) -> Exception:
    """Return an exception."""
    return ValueError(a)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (asynchronous, "function 'asynchronous' is async, expected a plain function"),
        (variadic, "parameter \"*a: 'int'\" of function 'variadic' is variadic positional"),
        (keywords, "of function 'keywords' is variadic keyword"),
        (positional, "of function 'positional' is positional-only"),
        (bare, "parameter 'a' of function 'bare' has no annotation; write its type, such as 'a: int'"),
        (endless, "function 'endless' has no return annotation; write the type of its result, such as '-> int'"),
        (silent, "function 'silent' has no docstring"),
        (blank, "function 'blank' has no docstring"),
        (unresolved, "the annotations of function 'unresolved' cannot be resolved: name 'Nowhere' is not defined"),
        (call, "the parameters of function 'call': a type cannot be validated, or has no JSON Schema"),
        (opaque, "for <class 'Exception'>; use types that JSON has"),
        (lambda a: a, "parameter 'a' of function '<lambda>' has no annotation"),
        (len, "of function 'len' is positional-only"),
        ("search", '@tool expected a function, got "search"'),
        (Point, "@tool expected a function, got the class Point; write @tool"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_in_one_line(function: Any, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        tool(function)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_python_without_docstrings_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.tools.decorator.sys", SimpleNamespace(flags=SimpleNamespace(optimize=2)))
    with pytest.raises(ToolError, match="has no docstring, which python -OO removes; a tool needs one"):
        tool(silent)


@tool(effect="pure")
def decorated(a: int) -> int:
    """Return the number."""
    return a


def undecorated(a: int) -> int:
    """Return the number."""
    return a


def test_tools_and_registries_reach_another_process() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    renamed = tool(name="other", effect="idempotent", needs_approval=True, examples=iter([{"a": 1}]))(undecorated)
    registry = ToolRegistry([decorated, renamed, EchoTool()])
    for copied in (pickle.loads(pickle.dumps(registry)), copy.deepcopy(registry)):
        assert copied.export_tools_for_llm() == registry.export_tools_for_llm()
        assert copied.get("other").needs_approval
        assert copied.get("other").invoke(a=3) == {"result": 3}
        assert (
            copied.input_schema("decorated").errors({"a": "x"})
            == registry.input_schema("decorated").errors({"a": "x"})
            != []
        )


class Holder:
    @staticmethod
    @tool
    def held(a: int) -> int:
        """Double."""
        return 2 * a


class Louder(FunctionTool[Any, Any]):
    def invoke(self, /, **arguments: Any) -> dict[str, Any]:
        return {"result": f"{super().invoke(**arguments)['result']}!"}


def test_a_copy_keeps_the_class_and_the_attributes_of_a_tool() -> None:
    assert pickle.loads(pickle.dumps(Holder.held)) is Holder.held
    made = Louder(undecorated)
    made.description = "Loud."
    for copied in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert (copied.description, copied.invoke(a=3)) == ("Loud.", {"result": "3!"})


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic accepts it there")
def test_advice_about_a_typed_dict_is_not_contradicted() -> None:
    with pytest.raises(ToolError, match=r"use `typing_extensions\.TypedDict` instead .* on Python < 3\.12\.$"):
        tool(nested)
