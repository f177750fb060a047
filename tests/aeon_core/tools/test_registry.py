from __future__ import annotations

import json
import math
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.base import Tool
from aeon_core.tools.registry import OPERATIONS, CalculatorTool, EchoTool, ToolRegistry, default_registry

OBJECT: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}

ANYTHING: dict[str, Any] = {"type": "object"}


class Duck:
    """The five members, and no base class."""

    name = "duck"
    description = "Quacks."
    input_schema: Any = OBJECT
    output_schema: Any = ANYTHING

    def invoke(self, n: int = 1) -> dict[str, Any]:
        return {"quacks": n}


def duck(**members: Any) -> Any:
    return type("Duck", (Duck,), members)()


class Broken:
    @property
    def name(self) -> str:
        raise RuntimeError("no name today")


def twice(number: int) -> int:
    """Double a number."""
    return number * 2


async def later() -> int:
    """Come later."""
    return 1


def test_tools_are_listed_in_order_of_registration() -> None:
    registry = ToolRegistry()
    tools: list[Tool] = [CalculatorTool(), EchoTool()]
    for tool in tools:
        registry.register(tool)
    assert registry.list() == tools
    assert list(registry) == tools
    assert len(registry) == 2
    assert registry.get("echo") is tools[1]


def test_an_unknown_name_gives_none() -> None:
    registry = default_registry()
    assert registry.get("ecko") is None
    assert "ecko" not in registry
    assert "echo" in registry
    assert ["echo"] not in registry


def test_the_default_registry_has_echo_and_calculator_only() -> None:
    assert [tool.name for tool in default_registry()] == ["echo", "calculator"]


def test_an_object_with_the_five_members_is_a_tool() -> None:
    registry = ToolRegistry()
    registry.register(duck(reconcile=lambda self, call_id, arguments: call_id))
    tool: Any = registry.get("duck")
    assert tool.invoke(n=3) == {"quacks": 3}
    assert (tool.effect, tool.needs_approval, tool.examples) == ("unsafe", False, ())
    assert tool.reconcile("c1", {}) == "c1"
    assert registry.export_tools_for_llm()[0]["examples"] == [{"n": 1}]


def test_the_optional_members_of_a_foreign_object_count() -> None:
    registry = ToolRegistry()
    registry.register(duck(effect="pure", needs_approval=True, examples=[{"n": 7}]))
    tool = registry.list()[0]
    assert (tool.effect, tool.needs_approval) == ("pure", True)
    assert registry.export_tools_for_llm()[0]["examples"] == [{"n": 7}]


def test_a_typed_function_is_registered_as_a_tool() -> None:
    registry = ToolRegistry()
    registry.register(twice)
    tool = registry.get("twice")
    assert tool is not None
    assert tool.invoke(number=4) == {"result": 8}


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (duck(name=""), 'a tool\'s name must be a non-empty string of printable characters, got ""'),
        (duck(name=" \t"), "a tool's name must be"),
        (duck(name=7), "got 7"),
        (duck(name="a\ud800"), "a tool's name must be"),
        (duck(name="a\x1b[1m"), "a tool's name must be"),
        (duck(description=" "), "tool 'duck': its description must say what it does, got \" \""),
        (duck(description=None), "got null"),
        (duck(input_schema={"type": "strnig"}), "tool 'duck': input_schema: not a valid JSON Schema: type: expected"),
        (duck(input_schema="object"), 'input_schema: expected a JSON Schema as a dict, got "object"'),
        (
            duck(input_schema={"type": "string"}),
            "input_schema must have type 'object', as arguments do",
        ),
        (duck(input_schema={"$ref": "http://example.org/x"}), "leads out of the schema and is not fetched"),
        (duck(output_schema={"type": 5}), "tool 'duck': output_schema: not a valid JSON Schema"),
        (duck(output_schema=None), "output_schema: expected a JSON Schema as a dict, got null"),
        (duck(invoke="run"), "tool 'duck': invoke must be callable, got \"run\""),
        (duck(invoke=later), "tool 'duck': invoke is async"),
        (duck(effect="harmless"), "effect must be one of 'pure', 'idempotent', 'unsafe', got \"harmless\""),
        (duck(effect=["pure"]), "effect must be one of"),
        (duck(needs_approval="no"), 'needs_approval must be true or false, got "no"'),
        (duck(examples=[{"n": "x"}]), 'example 1 does not fit its input_schema: n: expected integer, got "x"'),
        (duck(examples=[{}, "x"]), "example 2 does not fit its input_schema: the value: expected object"),
        (duck(examples={"n": 1}), 'examples must be a list of arguments, got an object with "n"'),
        (Duck, "got the class 'Duck'; register an instance of it"),
        (EchoTool, "got the class 'EchoTool'; register an instance of it"),
        (object(), "write a function with types and a docstring"),
        (None, "write a function with types and a docstring"),
        ({"name": "x"}, "write a function with types and a docstring"),
        (Broken(), "'name' of a tool of type 'Broken' cannot be read"),
        (later, "function 'later' is async"),
    ],
)
def test_an_object_that_is_not_a_tool_is_refused_in_one_line(tool: Any, message: str) -> None:
    registry = ToolRegistry()
    with pytest.raises(ToolError) as caught:
        registry.register(tool)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(registry) == 0


def test_a_tool_without_one_of_the_five_members_is_refused() -> None:
    class Nameless(Tool):
        description = "d"
        input_schema = OBJECT
        output_schema = OBJECT

        def invoke(self) -> dict[str, Any]:
            return {}

    with pytest.raises(ToolError, match="a tool of type 'Nameless' has no 'name'"):
        ToolRegistry().register(Nameless())


def test_a_taken_name_is_refused_and_the_first_tool_stays() -> None:
    registry = default_registry()
    first = registry.get("echo")
    with pytest.raises(ToolError, match="a tool named 'echo' is already registered"):
        registry.register(duck(name="echo"))
    assert registry.get("echo") is first


def test_a_tool_can_be_unregistered_and_registered_again() -> None:
    registry = default_registry()
    registry.unregister("echo")
    assert registry.get("echo") is None
    assert [tool["name"] for tool in registry.export_tools_for_llm()] == ["calculator"]
    registry.register(EchoTool())
    assert [tool.name for tool in registry] == ["calculator", "echo"]


@pytest.mark.parametrize("method", ["unregister", "input_schema", "output_schema"])
def test_an_unknown_name_is_an_error_that_names_the_nearest(method: str) -> None:
    with pytest.raises(ToolError, match="no tool named \"calclator\" is registered; did you mean 'calculator'"):
        getattr(default_registry(), method)("calclator")


def test_an_unknown_name_without_suggestions_lists_all_names() -> None:
    with pytest.raises(ToolError, match="registered are 'echo', 'calculator'"):
        default_registry().unregister("zzz")
    with pytest.raises(ToolError, match="registered are none"):
        ToolRegistry().unregister("zzz")


def test_the_export_holds_what_a_model_needs() -> None:
    echo = default_registry().export_tools_for_llm()[0]
    assert list(echo) == ["name", "description", "input_schema", "output_schema", "effect", "examples"]
    assert echo["name"] == "echo"
    assert echo["effect"] == "pure"
    assert echo["examples"] == [{"text": "Hello"}]
    assert echo["input_schema"]["required"] == ["text"]


def test_every_exported_example_fits_its_schema() -> None:
    registry = default_registry()
    registry.register(duck())
    registry.register(twice)
    for exported in registry.export_tools_for_llm():
        assert exported["examples"]
        for example in exported["examples"]:
            assert registry.input_schema(exported["name"]).errors(example) == []


def test_changing_an_export_changes_nothing_in_the_registry() -> None:
    registry = default_registry()
    before = registry.export_tools_for_llm()
    damaged = registry.export_tools_for_llm()
    damaged[0]["input_schema"]["properties"].clear()
    damaged.clear()
    assert registry.export_tools_for_llm() == before
    assert registry.input_schema("echo").errors({"text": 5}) == ["text: expected string, got 5"]


def test_changing_a_tool_after_registration_changes_nothing_in_the_registry() -> None:
    tool = duck(input_schema={"type": "object", "properties": {"n": {"type": "integer"}}}, examples=[{"n": 1}])
    registry = ToolRegistry()
    registry.register(tool)
    before = registry.export_tools_for_llm()
    tool.name = "goose"
    tool.input_schema["properties"]["n"]["type"] = "string"
    tool.examples[0]["n"] = "x"
    assert registry.get("duck") is not None
    assert registry.input_schema("duck").errors({"n": 5}) == []
    registry.register(EchoTool())
    assert registry.export_tools_for_llm()[0] == before[0]


def test_the_export_is_made_once_for_the_same_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    from aeon_core.tools.schema import Schema

    made: list[int] = []
    monkeypatch.setattr(Schema, "example", lambda self: made.append(1))
    registry = ToolRegistry()
    registry.register(duck())
    registry.export_tools_for_llm()
    registry.export_tools_for_llm()
    assert made == [1]
    registry.register(EchoTool())
    registry.export_tools_for_llm()
    assert made == [1, 1]


def test_an_input_schema_without_a_type_is_one_of_an_object() -> None:
    registry = ToolRegistry()
    registry.register(duck(input_schema={}))
    assert registry.export_tools_for_llm()[0]["input_schema"] == {"type": "object"}
    assert registry.input_schema("duck").errors("text") == ['the value: expected object, got "text"']


def test_the_output_schema_is_compiled_too() -> None:
    schema = default_registry().output_schema("calculator")
    assert schema.errors({"result": 15}) == []
    assert schema.errors({"result": "15"}) == ['result: expected number, got "15"']


def test_schemas_are_compiled_once() -> None:
    registry = default_registry()
    assert registry.input_schema("echo") is registry.input_schema("echo")


def test_hostile_text_in_a_description_is_kept_as_text() -> None:
    registry = ToolRegistry()
    registry.register(duck(description="[bold]\ud800\x00" + "x" * 1_000_000))
    assert registry.export_tools_for_llm()[0]["description"].startswith("[bold]�\x00xxx")


def test_the_registry_can_be_read_while_another_thread_changes_it() -> None:
    registry = default_registry()
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                assert [tool.name for tool in registry][:2] == ["echo", "calculator"]
                assert len(registry.export_tools_for_llm()) in (2, 3)
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        registry.register(duck())
        registry.unregister("duck")
    done.set()
    reader.join()
    assert failures == []


def test_a_failing_close_does_not_keep_others_open() -> None:
    registry, closed = ToolRegistry(), list[str]()
    registry.closes_with(lambda: closed.append("first opened"))
    registry.closes_with(lambda: {}["last opened"])
    with pytest.raises(KeyError, match="last opened"):
        registry.close()
    assert closed == ["first opened"]
    registry.close()


NUMBERS = st.integers(-(10**320), 10**320) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.text())
def test_echo_returns_its_text(text: str) -> None:
    assert EchoTool().invoke(text=text) == {"text": text}


@pytest.mark.parametrize(
    ("operation", "a", "b", "result"),
    [
        ("add", 5, 10, 15),
        ("subtract", 5, 10, -5),
        ("multiply", 6, 7, 42),
        ("divide", 10, 5, 2),
        ("divide", 10, 4, 2.5),
        ("divide", -7, 7, -1),
        ("divide", 10**30, 10**29, 10),
        ("add", 0.5, 1, 1.5),
        ("add", 1.0, 1, 2.0),
        ("divide", 9.0, 3, 3.0),
    ],
)
def test_the_calculator_is_exact_for_integers(operation: str, a: float, b: float, result: float) -> None:
    found = CalculatorTool().invoke(operation=operation, a=a, b=b)["result"]
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_division_by_zero_is_an_error(zero: float) -> None:
    with pytest.raises(ToolError, match=r"calculator: division by zero, 1 / -?0"):
        CalculatorTool().invoke(operation="divide", a=1, b=zero)


@pytest.mark.parametrize(
    ("operation", "a", "b"),
    [
        ("multiply", 1e308, 10),
        ("add", 1.7e308, 1.7e308),
        ("multiply", 10**200, 10**200),
        ("add", 10**400, 0.5),
        ("divide", 10**400, 3),
        ("divide", 1e308, 1e-308),
        ("multiply", 10**4000, 10**4000),
    ],
    ids=range(7),
)
def test_a_result_too_large_for_a_number_is_an_error(operation: str, a: float, b: float) -> None:
    with pytest.raises(ToolError, match="is too large for a number"):
        CalculatorTool().invoke(operation=operation, a=a, b=b)


@pytest.mark.parametrize("value", [True, "5", None, math.nan, math.inf, [1]])
def test_a_value_that_is_not_a_number_is_refused(value: Any) -> None:
    with pytest.raises(ToolError, match="calculator: b must be a number, got"):
        CalculatorTool().invoke(operation="add", a=1, b=value)


@pytest.mark.parametrize(("operation", "shown"), [("power", '"power"'), (["add"], "an array of 1")])
def test_an_unknown_operation_is_refused_with_the_known_ones(operation: Any, shown: str) -> None:
    with pytest.raises(ToolError, match=f"unknown operation {shown}, expected one of add, subtract, multiply, divide"):
        CalculatorTool().invoke(operation=operation, a=1, b=2)


@given(st.sampled_from(list(OPERATIONS)), NUMBERS, NUMBERS)
def test_a_result_is_a_finite_number_that_fits_the_output_schema(operation: str, a: float, b: float) -> None:
    try:
        result = CalculatorTool().invoke(operation=operation, a=a, b=b)
    except ToolError:
        return
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert default_registry().output_schema("calculator").errors(result) == []


@pytest.mark.parametrize("arguments", [{"operation": "add", "a": True, "b": 1}, {"operation": "add", "a": 1}, {}])
def test_the_calculators_schema_refuses_wrong_arguments(arguments: dict[str, Any]) -> None:
    assert default_registry().input_schema("calculator").errors(arguments)


def test_both_are_pure_and_their_examples_work() -> None:
    for tool in default_registry():
        assert tool.effect == "pure"
        assert tool.examples
        for example in tool.examples:
            assert default_registry().output_schema(tool.name).errors(tool.invoke(**example)) == []
