"""What providers' requests and replies share: conversations, tool names, arguments, usage and strict schemas."""

from __future__ import annotations

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, cast

from aeon_core.errors import AeonError, LLMError
from aeon_core.json_safe import json_safe, parse_json
from aeon_core.llm.base import LLMRequest, LLMResponse, Message, ToolCallDict, Usage
from aeon_core.llm.connect import Endpoint
from aeon_core.llm.errors import unusable

logger: logging.Logger = logging.getLogger("aeon")

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64

Failure = Callable[[Exception, Usage | None], LLMError]
"""Returns the LLMError for what an SDK raised and the usage received before that."""


class ToolNames:
    """Maps tool names to names that providers allow (letters, digits, `_`, `-`, at most 64), and back."""

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        names = [str(tool["name"]) for tool in tools]
        self._wire = {name: name for name in names if name == _safe(name)}
        for name in names:
            if name not in self._wire:
                self._wire[name] = self._free(_safe(name))
        self._real = {wire: name for name, wire in self._wire.items()}

    def wire(self, name: str) -> str:
        """Return the name to send."""
        return self._wire.get(name) or _safe(name)

    def real(self, wire: str) -> str:
        """Return the tool's own name; an unknown name stays as it is."""
        return self._real.get(wire, wire)

    def _free(self, wire: str) -> str:
        used, number, candidate = set(self._wire.values()), 2, wire
        while candidate in used:
            suffix = f"_{number}"
            candidate, number = wire[: _MAX_NAME - len(suffix)] + suffix, number + 1
        return candidate


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_MAX_NAME] or "tool"


def with_ids(messages: list[Message]) -> list[Message]:
    """Return the conversation with an id on every tool call and result, in the characters that providers allow.

    A result without an id answers the oldest open call; one that matches no call becomes text of the user.
    """
    open_calls: list[str] = []
    number = 0
    turns: list[Message] = []
    for message in messages:
        turn = message.copy()
        if calls := message.get("tool_calls"):
            turn["tool_calls"] = []
            for call in calls:
                number += 1
                call_id = _UNSAFE.sub("_", call.get("id") or "") or f"call_{number}"
                turn["tool_calls"].append({"id": call_id, "name": call["name"], "arguments": call["arguments"]})
                open_calls.append(call_id)
        if message["role"] == "tool":
            given = _UNSAFE.sub("_", message.get("tool_call_id") or "")
            answered = given if given in open_calls else open_calls[0] if open_calls and not given else None
            if answered is None:
                turn = {"role": "user", "content": message["content"]}
            else:
                open_calls.remove(answered)
                turn["tool_call_id"] = answered
        turns.append(turn)
    return turns


def parted(messages: list[Message]) -> list[Message]:
    """Return the conversation with a reply between tool results and a message of the user, as some models require."""
    kept: list[Message] = []
    for message in messages:
        if message["role"] == "user" and kept and kept[-1]["role"] == "tool":
            kept.append({"role": "assistant", "content": "OK."})
        kept.append(message)
    return kept


def turns(messages: list[Message], blocks: Callable[[Message], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the conversation as turns of content blocks, for providers with two roles.

    Tool results are the user's, adjacent messages of one role are merged, and messages without blocks are left out.
    """
    merged: list[dict[str, Any]] = []
    for message in with_ids(messages):
        role = "assistant" if message["role"] == "assistant" else "user"
        content = blocks(message)
        if not content:
            continue
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += content
        else:
            merged.append({"role": role, "content": content})
    return merged


def arguments_text(arguments: dict[str, Any] | str) -> str:
    """Return a tool call's arguments as JSON text, or as the text that the model wrote."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def read_arguments(value: Any) -> dict[str, Any] | str:
    """Return a tool call's arguments: an object, or the text of anything else, for the supervisor to repair."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, str):
        return value if isinstance(value, dict) else json.dumps(value, ensure_ascii=False)
    try:
        parsed = parse_json(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict) else value


def input_object(arguments: dict[str, Any] | str) -> dict[str, Any]:
    """Return a call's arguments for a provider that accepts only objects; other text is put under `text`."""
    read = read_arguments(arguments)
    return read if isinstance(read, dict) else {"text": read}


def read_usage(usage: Any, names: Mapping[str, str]) -> Usage | None:
    """Return the token counts in a provider's `usage`; None if one is unusable, or that of the input or output missing.

    `names` maps our names to the provider's, whose cache counts are not part of its input count; zeros are left out.
    """
    if not isinstance(usage, Mapping):
        return None
    counts = {ours: read_count(usage[name]) for ours, name in names.items() if usage.get(name) is not None}
    if None in counts.values() or not counts.keys() >= {"input_tokens", "output_tokens"}:
        return None
    known = cast("dict[str, int]", counts)
    cached = {kind: known[kind] for kind in ("cache_read_tokens", "cache_write_tokens") if known.get(kind)}
    total = known["input_tokens"] + sum(cached.values())
    return cast("Usage", {"input_tokens": total, "output_tokens": known["output_tokens"], **cached})


def added(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum of two calls' tokens; None if neither has counts."""
    if first is None or second is None:
        return second if first is None else first
    one, other = cast("dict[str, int]", first), cast("dict[str, int]", second)
    return cast("Usage", {kind: one.get(kind, 0) + other.get(kind, 0) for kind in {**one, **other}})


def read_count(value: Any) -> int | None:
    """Return a number of tokens, None if the value is not one."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return None if isinstance(value, bool) or not whole or value < 0 else int(value)


class _Call:
    """A tool call that is being received."""

    def __init__(self, call_id: Any, name: str, whole: Any) -> None:
        self.id, self.name, self.whole = call_id, name, whole
        self.texts: list[str] = []

    def read(self) -> ToolCallDict:
        text = "".join(self.texts)
        arguments = read_arguments(text if text.strip() else self.whole)
        call: ToolCallDict = {"name": self.name, "arguments": arguments}
        if isinstance(self.id, str) and self.id:
            call["id"] = self.id
        return call


class WrongFormError(TypeError):
    """What is wrong with the form of a reply, in words of ours; a TypeError of Python's is in words of its own."""


class ReplyReader(ABC):
    """Builds one reply from a provider's document or stream, and passes its parts to listeners as they arrive.

    A subclass parses documents and events; it may raise anything if one has an unexpected form. A listener that fails
    is dropped, and the call continues.
    """

    stop_reasons: ClassVar[Mapping[str, str]]
    """Maps the provider's stop reasons to ours."""
    token_names: ClassVar[Mapping[str, str]]
    """Maps our names of token counts to the provider's."""

    def __init__(
        self, endpoint: Endpoint, request: LLMRequest, names: ToolNames, failure: Failure | None = None
    ) -> None:
        self._endpoint, self._names = endpoint, names
        self._failure = failure or self._bad_form
        self._on_text, self._on_call = request.on_delta, request.on_call
        self._texts: dict[int, list[str]] = {}
        self._calls: dict[Any, _Call] = {}
        self._stop: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None

    def document(self, body: Any) -> LLMResponse:
        """Return the reply in a document. Raises a retryable LLMError, with the usage, if there is none."""
        if not isinstance(body, dict):
            raise self._bad_form(WrongFormError("it is not a JSON object"), self._usage)
        try:
            self._take_document(body)
            return self._reply()
        except AeonError:
            raise
        except Exception as error:
            raise self._bad_form(error, self._usage) from None

    def stream(self, events: Iterable[Any]) -> LLMResponse:
        """Return the reply in a stream. Raises a retryable LLMError, with the usage, if it breaks before its end.

        Its end is the stop reason; a failure after that loses at most the usage.
        """
        try:
            for event in events:
                self._take_event(json_safe(event))
        except AeonError:
            raise
        except Exception as error:
            if self._stop is None:
                odd = isinstance(error, (AttributeError, LookupError, TypeError))
                raise (self._bad_form if odd else self._failure)(error, self._usage) from None
            logger.warning("%s: the stream broke after its reply: %s", self._endpoint.model, type(error).__name__)
        if self._stop is None:
            raise unusable(self._endpoint, "the stream ended before its end event", self._usage)
        return self._reply()

    @classmethod
    def tokens(cls, usage: Any) -> Usage | None:
        """Return the token counts in a reply's `usage`, None if there are none."""
        return read_usage(usage, cls.token_names)

    @abstractmethod
    def _take_document(self, body: Any) -> None:
        """Read a whole reply. Raises LLMError for an error in its place."""

    @abstractmethod
    def _take_event(self, event: Any) -> None:
        """Read one event of a stream. Raises LLMError if it reports an error."""

    def _add_text(self, text: Any, block: Any = 0) -> None:
        """Add a part of the text of a content block, given by its number."""
        if not isinstance(text, str) or not isinstance(block, int):
            raise WrongFormError(f"a text of type {type(text).__name__} in block {block!r}")
        self._texts.setdefault(block, []).append(text)
        if text and self._on_text is not None:
            self._notify(self._on_text, text)

    def _begin_call(self, key: Any, call_id: Any, name: Any, arguments: Any = None) -> None:
        """Begin a tool call, with its arguments if they arrive at once; one without a name is of an unknown tool."""
        if not isinstance(name, str | None):
            raise WrongFormError(f"a tool call with the name {name!r}")
        self._calls[key] = _Call(call_id, self._names.real(name or ""), arguments)
        if self._on_call is not None:
            self._notify(self._on_call, self._calls[key].name, "")

    def _add_arguments(self, key: Any, text: Any) -> None:
        """Add a part of the JSON text of a call's arguments."""
        call = self._calls[key]
        if not isinstance(text, str):
            raise WrongFormError(f"arguments of type {type(text).__name__}")
        if text:
            call.texts.append(text)
            if self._on_call is not None:
                self._notify(self._on_call, call.name, text)

    def _end(self, reason: Any) -> None:
        """Set the stop reason, if one is given."""
        if isinstance(reason, str) and reason:
            self._stop = self.stop_reasons.get(reason, reason)

    def _reply(self) -> LLMResponse:
        return LLMResponse(
            text="".join(part for block in sorted(self._texts) for part in self._texts[block]),
            tool_calls=[call.read() for call in self._calls.values()],
            usage=self._usage,
            stop_reason=self._stop,
            model=self._model,
        )

    def _notify(self, listener: Callable[..., None], *parts: str) -> None:
        try:
            listener(*parts)
        except AeonError:
            raise
        except Exception as error:
            logger.warning("a listener for streamed text failed and was removed: %s", type(error).__name__)
            self._on_text = self._on_call = None

    def _bad_form(self, error: Exception, usage: Usage | None) -> LLMError:
        odd = {
            KeyError: f"there is no {error}",
            IndexError: "a list in it is empty",
            AttributeError: "a part of it has another type",
            TypeError: "a part of it has another type",
        }
        what = odd.get(type(error), str(error))
        hint = "; is the base URL right?" if self._endpoint.url and not isinstance(error, IndexError) else ""
        return unusable(self._endpoint, f"it does not have the form of a reply ({what}){hint}", usage)


_OPENAI_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"),
    *("definitions", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
}
_OPENAI_DEPTH = 10
_ANTHROPIC_OPTIONAL = 24
_ANTHROPIC_UNIONS = 16
_OPEN_KEYWORDS = ("patternProperties", "unevaluatedProperties", "propertyNames", "dependentSchemas")
_FOR_TYPE = {"object": ("properties", "required", "additionalProperties"), "array": ("items", "minItems", "maxItems")}
_DEFINITION = "#/$defs/"


def is_strict(schema: Any) -> bool:
    """Return whether OpenAI's strict mode accepts the schema: every object closed, every property required."""
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
    """Return the schema for Anthropic's structured output, None if it is not supported there.

    Objects must be closed (an open one, such as a step's arguments, would be forced to be empty), recursion is not
    allowed, and optional properties and unions are limited. Lists of types become unions; nothing else is changed.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object" or not all(map(_closable, _nodes(schema))):
        return None
    definitions = schema.get("$defs", {})
    if _recurs({key: value for key, value in schema.items() if key != "$defs"}, definitions, ()):
        return None
    split = _split_types(schema)
    nodes = list(_nodes(split))
    unions = sum(1 for node in nodes if node.keys() & {"anyOf", "oneOf"})
    optional = sum(len(node.get("properties", {}).keys() - set(node.get("required", ()))) for node in nodes)
    return split if unions <= _ANTHROPIC_UNIONS and optional <= _ANTHROPIC_OPTIONAL else None


def _closable(node: Any) -> bool:
    if not isinstance(node, dict) or any(keyword in node for keyword in _OPEN_KEYWORDS):
        return False
    if "$ref" in node:
        return isinstance(node["$ref"], str) and node["$ref"].startswith(_DEFINITION)
    if not node.keys() & {"type", "anyOf", "oneOf", "allOf", "enum", "const"}:
        return False
    if "object" not in _types(node):
        return True
    return bool(node.get("properties")) and node.get("additionalProperties", False) is False


def _recurs(schema: Any, definitions: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Return whether a schema refers to a definition that it is part of, or to a missing one."""
    names = [node["$ref"].removeprefix(_DEFINITION) for node in _nodes(schema) if "$ref" in node]
    return any(
        name in path or name not in definitions or _recurs(definitions[name], definitions, (*path, name))
        for name in names
    )


def _split_types(node: Any) -> Any:
    copy = map_schema(node, _split_types)
    types = copy.get("type")
    if not isinstance(types, list) or "enum" in copy or "const" in copy:
        return copy
    shared = {key: copy[key] for key in ("title", "description", "default") if key in copy}
    rest = {key: value for key, value in copy.items() if key not in shared and key != "type"}
    return {**shared, "anyOf": [{"type": name, **_for_type(rest, name)} for name in types]}


def _for_type(keywords: dict[str, Any], name: Any) -> dict[str, Any]:
    if name == "null":
        return {}
    foreign = {key for other, keys in _FOR_TYPE.items() if other != name for key in keys}
    return {key: value for key, value in keywords.items() if key not in foreign}


def map_schema(node: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy of a schema with `change` applied to its direct subschemas."""
    copy = dict(node)
    for key, value in node.items():
        if key in ("properties", "$defs", "definitions"):
            named = isinstance(value, dict)
            copy[key] = {name: change(child) for name, child in value.items()} if named else change(value)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            copy[key] = [change(child) for child in value] if isinstance(value, list) else change(value)
        elif key == "items":
            copy[key] = change(value)
    return copy


def _children(node: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    map_schema(node, found.append)
    return found


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    if isinstance(node, dict):
        for child in _children(node):
            yield from _nodes(child)


def _types(node: dict[str, Any]) -> list[Any]:
    types = node.get("type")
    return types if isinstance(types, list) else [types]
