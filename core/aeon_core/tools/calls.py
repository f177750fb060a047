"""Tool calls in replies: native tool use, or text in any usual form (core FR-024)."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aeon_core.errors import ValidationError, invalid
from aeon_core.json_safe import clean_text, json_safe
from aeon_core.llm.base import LLMResponse
from aeon_core.loose_json import Doubt, UnreadableError, read_reply
from aeon_core.tools.base import Tool
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import coerced, describe, is_blank, named, properties

_NAMES = ("tool_name", "name", "tool", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "args", "parameters", "params", "input", "inputs", "tool_input", "action_input", "kwargs")
_AROUND = ("tool_calls", "tool_call", "function_call", "function", "call", "value")
_BESIDE = frozenset({"id", "type", "index", "call_id", *_NAMES, *_ARGUMENTS, *_AROUND})
_FUNCTION_TAG = re.compile(r"<function=([^>\s]+)>")
_MAX_WRAPPED = 5
_MAX_SENTENCE = 200


@dataclass(slots=True)
class Call:
    """A call of one tool, as far as it could be parsed. Without problems, `arguments` fit the tool."""

    original: dict[str, Any]
    text: str
    arguments: Any = None
    """The arguments as far as they could be parsed, None if the text is not JSON."""
    changed: bool = False
    """Whether parsing needed a local repair."""
    written: str | None = None
    """The arguments, or the whole call, as text that is not JSON."""
    problems: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether it contains nothing that a repair could keep."""
        given = self.arguments.values() if isinstance(self.arguments, dict) else [self.arguments]
        return all(map(is_blank, given)) and '"' not in (self.written or "")


class CallReader:
    """Parses calls of one tool."""

    def __init__(self, tool: str, registry: ToolRegistry) -> None:
        self._tool = tool
        self._registry = registry
        self._schema = registry.input_schema(tool)
        self._keys = properties(self._schema.schema)
        registered: Tool | None = registry.get(tool)
        self._is_pure = registered is not None and registered.effect == "pure"

    def read(self, response: LLMResponse) -> Call:
        """Return the call in a reply; native tool use wins over accompanying text."""
        cut = response.stop_reason == "max_tokens"
        if response.tool_calls:
            return self._native(response, cut)
        text = clean_text(response.text)
        call = Call({"text": text}, text)
        if text.strip() and not re.search(r"[\[\]{}]", text):
            call.written, call.problems = text, [f"the model made no call: {' '.join(text[:_MAX_SENTENCE].split())}"]
            return call
        return self._into(call, text, cut)

    def fitting(self, arguments: Any) -> Any:
        """Return arguments in the tool's spelling and types if that makes them fit, else unchanged.

        Raises ValidationError with problems if they do not fit.
        """
        if errors := self._errors(arguments):
            # Never drop an argument of a tool with effects, even an unknown one.
            form = coerced(arguments, self._schema.schema, drop=self._is_pure)
            if self._errors(form):
                raise invalid(errors)
            return form
        return arguments

    def _errors(self, arguments: Any) -> list[str]:
        if not isinstance(arguments, dict):
            return [f"arguments: expected an object, got {describe(arguments)}"]
        return self._schema.errors(arguments)

    def _native(self, response: LLMResponse, cut: bool) -> Call:
        calls = json_safe(response.tool_calls)
        matching = [call for call in calls if self._is_meant(call["name"], len(calls))]
        same = [call for call in matching if call["arguments"] == matching[0]["arguments"]]
        if not matching or len(same) != len(matching):
            names = ", ".join(describe(call["name"]) for call in calls[:5])
            count = f"got {len(matching)} among {names}"
            problem = f"expected exactly one call of {self._tool!r}, the tool of the step, {count}"
            return Call({"tool_calls": calls}, _written({"tool_calls": calls}), problems=[problem])
        arguments = matching[0]["arguments"]
        original = {"tool_name": self._tool, "arguments": arguments}
        call = Call(original, _written(original), changed=matching[0]["name"] != self._tool or len(matching) > 1)
        if isinstance(arguments, str):
            # Some servers send no text at all for a tool without parameters.
            return self._into(call, arguments if arguments.strip() else "{}", cut)
        return self._checked(call, arguments)

    def _is_meant(self, name: str, count: int) -> bool:
        """Return whether a name is the tool's; for a single call, any name that is not another tool's."""
        return named(name, [self._tool]) is not None or (count == 1 and name not in self._registry)

    def _into(self, call: Call, text: str, cut: bool) -> Call:
        tag = _FUNCTION_TAG.search(text)
        if tag is not None and not self._is_meant(tag[1], 1):
            call.problems = ["the call is one of another tool"]
            return call
        try:
            arguments, local = read_reply(text, self._read, cut=lambda: cut)
        except UnreadableError as error:
            call.problems, call.written = error.problems, text if error.value is None else None
            if error.value is not None:
                with suppress(ValidationError):
                    call.arguments = self._arguments_in(error.value)
                call.original = error.value if isinstance(error.value, dict) and call.text == text else call.original
            return call
        found, exact = arguments
        call.arguments, call.changed = found, call.changed or local or not exact
        return call

    def _checked(self, call: Call, arguments: Any) -> Call:
        call.arguments = arguments
        try:
            call.arguments = self._arguments_in(arguments) if self._errors(arguments) else arguments
            call.arguments = self.fitting(call.arguments)
        except ValidationError as error:
            call.problems = error.context["problems"]
        call.changed = call.changed or call.arguments != arguments
        return call

    def _read(self, value: Any, doubt: Doubt) -> tuple[dict[str, Any], bool]:
        """Return the arguments in a value, and whether they had the contract's form and fit."""
        arguments = self._arguments_in(value)
        form = self.fitting(arguments)
        in_form = isinstance(value, dict) and (value.keys() == {"tool_name", "arguments"} or value == form)
        in_form = in_form and form == arguments
        # If the end is a guess, an optional argument may be missing.
        whole = in_form or doubt < 2 or form.keys() >= self._keys.keys()
        if doubt and (form != arguments or not whole):
            raise invalid(["the arguments do not fit"])
        return form, in_form

    def _arguments_in(self, value: Any) -> Any:
        """Return the arguments of a call in any form. Raises ValidationError if it is another tool's."""
        for _ in range(_MAX_WRAPPED):
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                value = _parsed(value)
            if isinstance(value, list) and len(value) == 1:
                value = value[0]
                continue
            if not isinstance(value, dict):
                break
            self._check_name(value)
            given = next((key for key in _ARGUMENTS if key in value and key not in self._keys), None)
            given = given or ("arguments" if "arguments" in value and "tool_name" in value else None)
            inner = next((key for key in _AROUND if isinstance(value.get(key), (dict, list))), None)
            is_call = given is not None and any(name in value for name in _NAMES)
            if given is not None and (is_call or value.keys() <= _BESIDE):
                value = _parsed(value[given]) if isinstance(value[given], str) else value[given]
                return {} if value is None else value
            if inner is None or not value.keys() <= _BESIDE or inner in self._keys:
                break
            value = value[inner]
        if isinstance(value, dict) and not value.keys() & self._keys.keys():
            return {key: item for key, item in value.items() if key not in _NAMES}
        return value

    def _check_name(self, value: dict[str, Any]) -> None:
        name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
        has_name = name is not None and value.keys() <= _BESIDE and not value.keys() <= self._keys.keys()
        if has_name and not self._is_meant(str(name).removeprefix("functions."), 1):
            raise invalid([f"tool_name: expected {self._tool!r}, the tool of the step, got {describe(name)}"])


def _parsed(text: str) -> Any:
    try:
        return read_reply(text, lambda value, _: value)[0] if text.strip() else {}
    except UnreadableError:
        return text


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
