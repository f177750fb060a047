"""The registry of the tools that a run may use (core FR-020, FR-021; Decision 13), and the default tools.

Those are echo and calculator, and no others (core FR-023).
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, get_args

from aeon_core.errors import ToolError, ValidationError
from aeon_core.json_safe import clean_text, json_safe
from aeon_core.suggest import close
from aeon_core.tools.base import Effect, Tool, Tools, object_schema
from aeon_core.tools.decorator import FunctionTool
from aeon_core.tools.schema import Schema, describe

_MEMBERS = ("name", "description", "input_schema", "output_schema", "invoke")
_MISSING = object()
_ABOUT_ARGUMENTS = {"properties", "additionalProperties", "patternProperties", "anyOf", "oneOf", "allOf", "$ref"}
logger: logging.Logger = logging.getLogger("aeon")

# Inside the class, `list` is its method.
_Tools = list[Tool]
_Export = list[dict[str, Any]]


class ToolRegistry:
    """Tools by name, in order of registration.

    A tool's members are read and its schemas compiled once, at registration: what its author or a reader of the export
    changes later has no effect here. Reading from another thread while tools come and go is safe. `tools` are
    registered in order, as `register` does.
    """

    def __init__(self, tools: Tools = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        self._closing = ExitStack()
        self._export: tuple[dict[str, _Entry], str] | None = None
        if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            raise ToolError(f"tools is {describe(tools)}; write a list of functions or Tools, such as [word_count]")
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool | Callable[..., Any] | object) -> None:
        """Add a Tool, any object with a Tool's five members, or a typed function with a docstring (core FR-020).

        Raises ToolError, in one line, for an invalid tool: a missing member, a blank or used name, a blank
        description, an invalid JSON Schema, examples that do not fit, an unknown effect.
        """
        entry = _entry(_as_tool(tool))
        if entry.name in self._entries:
            raise ToolError(
                f"a tool named {entry.name!r} is already registered; unregister it first, or choose another name",
                tool_name=entry.name,
            )
        self._entries = {**self._entries, entry.name: entry}

    def unregister(self, name: str) -> None:
        """Remove a tool. Raises ToolError if none has that name."""
        self._entry(name)
        self._entries = {key: entry for key, entry in self._entries.items() if key != name}

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, or None. An object that is not a Tool is wrapped as one."""
        entry = self._entries.get(name)
        return None if entry is None else entry.tool

    def list(self) -> _Tools:
        """Return all tools in order of registration (core FR-021)."""
        return [entry.tool for entry in self._entries.values()]

    def input_schema(self, name: str) -> Schema:
        """Return the compiled schema of a tool's arguments (core FR-025). Raises ToolError for an unknown name."""
        return self._entry(name).input_schema

    def output_schema(self, name: str) -> Schema:
        """Return the compiled schema of a tool's result. Raises ToolError for an unknown name."""
        return self._entry(name).output_schema

    def export_tools_for_llm(self) -> _Export:
        """Return every tool as name, description, input_schema, output_schema, effect and examples (Decision 13).

        `examples` are arguments of example invocations: the tool's own, else one made from its input_schema (none if no
        fitting one was found). The same tools give the same export; the caller may change what it gets.
        """
        entries, made = self._entries, self._export
        if made is None or made[0] is not entries:
            made = self._export = (entries, json.dumps([entry.export() for entry in entries.values()]))
        exported: _Export = json.loads(made[1])
        return exported

    def closes_with(self, close: Callable[[], None]) -> None:
        """Register a function that `close()` calls to end what tools hold open."""
        self._closing.callback(close)

    def close(self) -> None:
        """End what the tools hold open, last opened first; any number of times, from any thread.

        What fails to end keeps nothing else open; its error is raised afterwards.
        """
        self._closing.pop_all().close()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.list())

    def _entry(self, name: str) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            near = close(name, self._entries, 0.5)
            hint = f"did you mean {near!r}?" if near else f"registered are {_names(self._entries)}"
            raise ToolError(f"no tool named {describe(name)} is registered; {hint}")
        return entry


def default_registry() -> ToolRegistry:
    """Return a registry with echo and calculator, and nothing else (core FR-023)."""
    return ToolRegistry([EchoTool(), CalculatorTool()])


@dataclass(frozen=True, slots=True)
class _Entry:
    tool: Tool
    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    effect: Effect
    examples: list[dict[str, Any]]

    def export(self) -> dict[str, Any]:
        examples: list[Any] = self.examples
        if not examples:
            example = self.input_schema.example()
            examples = [] if example is None else [example]
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema.schema,
            "output_schema": self.output_schema.schema,
            "effect": self.effect,
            "examples": examples,
        }


class _ForeignTool(Tool):
    """An object that has a tool's five members without being a Tool."""

    def __init__(self, foreign: Any) -> None:
        self._foreign = foreign
        for member in (*_MEMBERS[:-1], "effect", "needs_approval", "examples"):
            value = _member(foreign, member, getattr(Tool, member, _MISSING))
            setattr(self, member, value)
        _check_invoke(_name(self.name), _member(foreign, "invoke"))

    def invoke(self, /, **arguments: Any) -> Any:
        return self._foreign.invoke(**arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._foreign, name)


def _as_tool(tool: Any) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, str):
        what = describe(tool)
        raise ToolError(f'expected a function or a Tool, got {what}; named tools go in config={{"tools": [{what}]}}')
    if inspect.isclass(tool):
        raise ToolError(f"expected a tool, got the class {tool.__name__!r}; register an instance of it")
    if inspect.isroutine(tool):
        return FunctionTool(tool)
    if all(_member(tool, member, None) is None for member in ("name", "invoke")):
        what = describe(tool)
        raise ToolError(f"expected a function or a Tool, got {what}; write a function with types and a docstring")
    return _ForeignTool(tool)


def _entry(tool: Tool) -> _Entry:
    name = _name(_member(tool, "name"))
    description = _member(tool, "description")
    if not isinstance(description, str) or not description.strip():
        raise _error(name, f"its description must say what it does, got {describe(description)}")
    _check_invoke(name, _member(tool, "invoke"))
    effect = _member(tool, "effect")
    if effect not in get_args(Effect):
        raise _error(name, f"effect must be one of {_names(get_args(Effect))}, got {describe(effect)}")
    if not isinstance(needs_approval := _member(tool, "needs_approval"), bool):
        raise _error(name, f"needs_approval must be true or false, got {describe(needs_approval)}")
    input_schema = _input_schema(name, _member(tool, "input_schema"))
    return _Entry(
        tool=tool,
        name=name,
        description=clean_text(description),
        input_schema=input_schema,
        output_schema=_schema(name, "output_schema", _member(tool, "output_schema")),
        effect=effect,
        examples=_examples(name, _member(tool, "examples"), input_schema),
    )


def _member(tool: Any, member: str, default: Any = _MISSING) -> Any:
    try:
        return getattr(tool, member)
    except AttributeError:
        if default is not _MISSING:
            return default
        raise ToolError(
            f"a tool of type {type(tool).__name__!r} has no {member!r}; a tool has {', '.join(_MEMBERS)}"
        ) from None
    except Exception as error:  # a property may raise anything
        raise ToolError(f"{member!r} of a tool of type {type(tool).__name__!r} cannot be read: {error!r}") from None


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ToolError(f"a tool's name must be a non-empty string of printable characters, got {describe(name)}")
    return name


def _check_invoke(name: str, invoke: Any) -> None:
    if not callable(invoke):
        raise _error(name, f"invoke must be callable, got {describe(invoke)}")
    if inspect.iscoroutinefunction(invoke):
        raise _error(name, "invoke is async, expected a plain function; run the coroutine inside it with asyncio.run")


def _input_schema(name: str, schema: Any) -> Schema:
    compiled = _schema(name, "input_schema", schema)
    if not compiled.schema.keys() & _ABOUT_ARGUMENTS:
        logger.warning("the tool %r takes any arguments: its input_schema has no 'properties'", name[:100])
    kind = compiled.schema.get("type")
    if kind is None:
        # Arguments are always an object, and providers require the type.
        return _schema(name, "input_schema", {"type": "object", **compiled.schema})
    if kind != "object" and "object" not in kind:
        raise _error(name, f"input_schema must have type 'object', as arguments do; got {describe(kind)}")
    return compiled


def _schema(name: str, member: str, schema: Any) -> Schema:
    try:
        return Schema(schema)
    except ValidationError as error:
        raise _error(name, f"{member}: {error.message}") from None


def _examples(name: str, examples: Any, input_schema: Schema) -> list[dict[str, Any]]:
    if not isinstance(examples, (list, tuple)):
        raise _error(name, f"examples must be a list of arguments, got {describe(examples)}")
    for number, example in enumerate(examples, 1):
        if errors := input_schema.errors(example):
            raise _error(name, f"example {number} does not fit its input_schema: {errors[0]}")
    try:
        return [json_safe(example) for example in examples]
    except ValueError as error:
        raise _error(name, f"an example has no JSON form: {error}") from None


def _error(name: str, message: str) -> ToolError:
    return ToolError(f"tool {name[:100]!r}: {message}", tool_name=name)


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def divide(a: float, b: float) -> float:
    """Return the quotient, an int if that of two ints is exact. Raises ZeroDivisionError, OverflowError."""
    return a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else a / b


OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": divide,
}


class EchoTool(Tool):
    """Returns the text that it gets."""

    name = "echo"
    description = "Returns the given text unchanged."
    input_schema: dict[str, Any] = object_schema({"text": {"type": "string", "description": "The text to return."}})
    output_schema: dict[str, Any] = object_schema({"text": {"type": "string"}})
    effect: Effect = "pure"
    examples: tuple[dict[str, Any], ...] = ({"text": "Hello"},)

    def invoke(self, text: str) -> dict[str, Any]:
        """Return `{"text": text}`."""
        return {"text": text}


class CalculatorTool(Tool):
    """Applies one arithmetic operation to two numbers."""

    name = "calculator"
    description = "Adds, subtracts, multiplies or divides two numbers and returns the result."
    input_schema: dict[str, Any] = object_schema(
        {
            "operation": {"type": "string", "enum": list(OPERATIONS), "description": "What to do with a and b."},
            "a": {"type": "number", "description": "The first number."},
            "b": {"type": "number", "description": "The second number; the divisor in a division."},
        }
    )
    output_schema: dict[str, Any] = object_schema({"result": {"type": "number"}})
    effect: Effect = "pure"
    examples: tuple[dict[str, Any], ...] = (
        {"operation": "add", "a": 5, "b": 10},
        {"operation": "divide", "a": 10, "b": 4},
    )

    def invoke(self, operation: str, a: float, b: float) -> dict[str, Any]:
        """Return `{"result": number}`, an int if the operation on ints is exact.

        Raises ToolError for an unknown operation, a value that is not a number, a division by zero, or a result
        that is too large.
        """
        for name, number in (("a", a), ("b", b)):
            if not is_number(number) or (isinstance(number, float) and not math.isfinite(number)):
                raise ToolError(f"calculator: {name} must be a number, got {describe(number)}")
        if operation not in [*OPERATIONS]:  # it may be of any type
            raise ToolError(
                f"calculator: unknown operation {describe(operation)}, expected one of {', '.join(OPERATIONS)}"
            )
        try:
            result = OPERATIONS[operation](a, b)
        except ZeroDivisionError:
            raise ToolError(
                f"calculator: division by zero, {describe(a)} / {describe(b)}; use a divisor other than 0"
            ) from None
        except OverflowError:
            result = math.inf
        if abs(result) > sys.float_info.max:
            what = f"{operation} of {describe(a)} and {describe(b)}"
            raise ToolError(f"calculator: {what} is too large for a number; use smaller numbers")
        return {"result": result}


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number, which true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
