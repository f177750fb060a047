"""`@tool`: a Tool made from a typed function (contract: Python)."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any, Generic, NotRequired, ParamSpec, Required, TypeVar, get_origin, get_type_hints, overload

import pydantic
from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import ArgsKwargs, PydanticSerializationError
from typing_extensions import TypedDict, is_typeddict, override

from aeon_core.errors import ToolError
from aeon_core.suggest import first_problem
from aeon_core.tools.base import Effect, Tool, object_schema
from aeon_core.tools.schema import describe

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Tool, Generic[P, R]):
    """A typed function as a tool; calling it calls the function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        effect: Effect = "unsafe",
        needs_approval: bool = False,
        examples: Iterable[dict[str, Any]] = (),
    ) -> None:
        _refuse_what_is_no_function(function)
        hints = _hints(function)
        parameters, returned = f"the parameters of {_label(function)}", f"the return annotation of {_label(function)}"
        functools.update_wrapper(self, function)
        self._function = function
        self.name: str = function.__name__ if name is None else name
        self.description: str = _description(function)
        self._arguments, taken = _adapted(_collector(function, hints), "validation", parameters)
        _, given = _adapted(hints["return"], "serialization", returned)
        # In a list, since a model's own configuration would silently turn NaN and infinities into null.
        several: Any = GenericAlias(list, hints["return"])
        self._results: TypeAdapter[Any] = TypeAdapter(several, config=ConfigDict(ser_json_inf_nan="constants"))
        self._wraps = not _is_object(given)
        self.input_schema: dict[str, Any] = taken
        self.output_schema: dict[str, Any] = _wrapped(given) if self._wraps else given
        self.effect: Effect = effect
        self.needs_approval = needs_approval
        # A registry checks them, like all of a tool.
        self.examples: Any = tuple(examples) if isinstance(examples, Iterable) else examples

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function returns."""
        return self._function(*args, **kwargs)

    def __reduce__(self) -> Any:
        name = self._function.__qualname__
        found: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name  # decorated, so that the name of the function is the tool's
        state = {key: value for key, value in vars(self).items() if key not in ("_arguments", "_results")}
        return type(self), (self._function,), state

    def invoke(self, /, **arguments: Any) -> dict[str, Any]:
        """Return the function's result as a dict: itself if the annotation is an object, else `{"result": …}`.

        Raises ToolError if the arguments do not fit the signature or the result does not fit the annotation;
        exceptions of the function propagate.
        """
        try:
            values = self._arguments.validator.validate_python(ArgsKwargs((), arguments))
        except pydantic.ValidationError as error:
            raise self._error(first_problem(error)) from None
        function: Callable[..., Any] = self._function
        value = function(**values)
        try:
            result = self._results.dump_python([value], mode="json", by_alias=True, warnings=False)[0]
        except (PydanticSerializationError, RecursionError, ValueError) as error:
            raise self._error(f"its result has no JSON form: {error}") from None
        if self._wraps:
            return {"result": result}
        if not isinstance(result, dict):
            raise self._error(f"expected an object as result, by its return annotation, got {describe(result)}")
        return result

    def _error(self, message: str) -> ToolError:
        return ToolError(f"tool {self.name!r}: {message}")


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: Effect = "unsafe",
    needs_approval: bool = False,
    examples: Iterable[dict[str, Any]] = (),
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a Tool of a typed function, as `@tool` or `@tool(effect=…, needs_approval=…, name=…, examples=…)`.

    The schemas come from the signature, the description from the docstring. Raises ToolError for a function that is
    async, lacks a docstring or an annotation, takes *args or **kwargs, or has a type without JSON Schema.
    """
    if function is None:
        return lambda function: FunctionTool(function, **options)
    return FunctionTool(function, **options)


def _label(function: Any) -> str:
    return f"function {getattr(function, '__name__', type(function).__name__)!r}"


def _refuse_what_is_no_function(function: Any) -> None:
    if not inspect.isroutine(function):
        raise ToolError(f"@tool expected a function, got {describe(function)}; write @tool or @tool(name=…)")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ToolError(
            f"{_label(function)} is async, expected a plain function; run the coroutine inside it with asyncio.run"
        )


def _description(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function)
    if text is None or not text.strip():
        removed = ", which python -OO removes" if sys.flags.optimize > 1 else ""
        raise ToolError(f"{_label(function)} has no docstring{removed}; a tool needs one: it is the tool's description")
    return text


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved annotations by parameter, with `return`. Raises ToolError if a tool cannot be made."""
    label = _label(function)
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(function, localns=_enclosing_names(function), include_extras=True)
    except Exception as error:  # evaluating an annotation runs code
        raise ToolError(f"the annotations of {label} cannot be resolved: {error}") from None
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(
                f"parameter {str(parameter)!r} of {label} is {parameter.kind.description}; "
                "a tool's arguments are passed by keyword; declare each one by name"
            )
        if parameter.name not in hints:
            name = parameter.name
            raise ToolError(f"parameter {name!r} of {label} has no annotation; write its type, such as '{name}: int'")
    if "return" not in hints:
        raise ToolError(f"{label} has no return annotation; write the type of its result, such as '-> int'")
    return {name: _typed_dict(hint) if is_typeddict(hint) else hint for name, hint in hints.items()}


def _typed_dict(annotation: Any) -> Any:
    """Return the TypedDict of typing_extensions: before Python 3.12, pydantic accepts no other."""
    required = annotation.__required_keys__
    fields = {
        name: hint if get_origin(hint) in (Required, NotRequired) or name in required else NotRequired[hint]
        for name, hint in get_type_hints(annotation, include_extras=True).items()
    }
    made: Any = TypedDict
    return made(annotation.__name__, fields)


def _enclosing_names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the local names of the function that defines this one, which annotations in quotes may use."""
    outer = function.__qualname__.rpartition(".<locals>.")[0]
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_qualname != outer:
        frame = frame.f_back
    return {} if frame is None else dict(frame.f_locals)


def _collector(function: Callable[..., Any], hints: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """Return a function with the same signature that returns its arguments, to validate them before the call."""

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    functools.update_wrapper(collect, function)
    collect.__annotations__ = hints
    return collect


class _ToolJsonSchema(GenerateJsonSchema):
    """Omits titles that only repeat a name, and warnings about defaults without a JSON form."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    @override
    def emit_warning(self, kind: Any, detail: str) -> None:
        pass


def _adapted(annotation: Any, mode: JsonSchemaMode, what: str) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Return the type's validator and JSON Schema."""
    try:
        adapter = TypeAdapter(annotation)
        return adapter, adapter.json_schema(mode=mode, schema_generator=_ToolJsonSchema)
    except (pydantic.errors.PydanticUserError, NameError, TypeError, ValueError, RecursionError) as error:
        # The rest of the message is advice about pydantic's own models.
        reason = next(iter(str(error).splitlines()), type(error).__name__).partition(". Set ")[0]
        what = f"{what}: a type cannot be validated, or has no JSON Schema: {reason}"
        # This message already names the type to use.
        is_advice = getattr(error, "code", None) == "typed-dict-version"
        raise ToolError(what if is_advice else f"{what}; use types that JSON has") from None


def _is_object(schema: dict[str, Any]) -> bool:
    if reference := schema.get("$ref"):
        schema = schema["$defs"][reference.rpartition("/")[2]]
    return schema.get("type") == "object"


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {**object_schema({"result": result}), **definitions}
