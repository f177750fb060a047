"""What providers' requests and replies share: conversations, tools' names, arguments, usage, strict schemas."""

from __future__ import annotations

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from aeon_core.errors import AeonError, LLMError
from aeon_core.json_safe import json_safe, parse_json
from aeon_core.llm.base import LLMRequest, Message, ToolCallDict, Usage
from aeon_core.llm.connect import Endpoint
from aeon_core.llm.errors import unusable

logger: logging.Logger = logging.getLogger("aeon")

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64


class ToolNames:
    """Tools' names as providers allow them (letters, digits, `_`, `-`, at most 64), and back again."""

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
        """Return the tool's own name; a name that was never sent stays as it is."""
        return self._real.get(wire, wire)

    def _free(self, wire: str) -> str:
        taken, number, candidate = set(self._wire.values()), 2, wire
        while candidate in taken:
            suffix = f"_{number}"
            candidate, number = wire[: _MAX_NAME - len(suffix)] + suffix, number + 1
        return candidate


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_MAX_NAME] or "tool"


def with_ids(messages: list[Message]) -> list[Message]:
    """Return the conversation with an id on every tool call and result, of the characters that providers allow.

    A result without an id answers the oldest open call; one that answers no call becomes the user's text.
    """
    open_calls: list[str] = []
    made = 0
    turns: list[Message] = []
    for message in messages:
        turn = message.copy()
        if calls := message.get("tool_calls"):
            turn["tool_calls"] = []
            for call in calls:
                made += 1
                call_id = _UNSAFE.sub("_", call.get("id") or "") or f"call_{made}"
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


def turns(messages: list[Message], blocks: Callable[[Message], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the conversation in turns of content blocks, as providers want it that know two roles.

    Tool results are the user's, neighbours of one role are one turn, and what makes no blocks is left out.
    """
    made: list[dict[str, Any]] = []
    for message in with_ids(messages):
        role = "assistant" if message["role"] == "assistant" else "user"
        content = blocks(message)
        if not content:
            continue
        if made and made[-1]["role"] == role:
            made[-1]["content"] += content
        else:
            made.append({"role": role, "content": content})
    return made


def arguments_text(arguments: dict[str, Any] | str) -> str:
    """Return a tool call's arguments as the text that a model wrote or would write."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def read_arguments(value: Any) -> dict[str, Any] | str | None:
    """Return a tool call's arguments: an object, or the text that is none; None for a value of another type."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, str):
        return value if isinstance(value, dict) else None
    try:
        parsed = parse_json(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict) else value


def tool_call(call_id: Any, name: str, arguments: dict[str, Any] | str) -> ToolCallDict:
    """Return a tool call, with its id where the provider gave one."""
    call: ToolCallDict = {"name": name, "arguments": arguments}
    if isinstance(call_id, str) and call_id:
        call["id"] = call_id
    return call


def read_usage(usage: Any, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Usage | None:
    """Return the tokens that a provider counted, the named fields added up; None where it counted none."""
    if not isinstance(usage, Mapping):
        return None
    counts = {name: count for name in (*inputs, *outputs) if (count := _count(usage.get(name))) is not None}
    if not counts:
        return None
    return {
        "input_tokens": sum(counts.get(name, 0) for name in inputs),
        "output_tokens": sum(counts.get(name, 0) for name in outputs),
    }


def with_cache(tokens: Usage | None, *, read: Any = None, written: Any = None) -> Usage | None:
    """Return the usage with what of its input came from, or went to, the provider's cache; zero is left out."""
    if tokens is None:
        return None
    whole = tokens.copy()
    if count := _count(read):
        whole["cache_read_tokens"] = count
    if count := _count(written):
        whole["cache_write_tokens"] = count
    return whole


def added(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return two calls' tokens together; None where neither was counted."""
    if first is None or second is None:
        return second if first is None else first
    sums: Usage = {
        "input_tokens": first["input_tokens"] + second["input_tokens"],
        "output_tokens": first["output_tokens"] + second["output_tokens"],
    }
    return with_cache(
        sums,
        read=first.get("cache_read_tokens", 0) + second.get("cache_read_tokens", 0),
        written=first.get("cache_write_tokens", 0) + second.get("cache_write_tokens", 0),
    )


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != int(value):
        return None
    return int(value)


class Deltas:
    """Hands text and tool calls on as they arrive. A listener that fails is dropped; the call continues."""

    def __init__(self, request: LLMRequest, names: ToolNames) -> None:
        self._on_text, self._on_call = request.on_delta, request.on_call
        self._names = names

    def __call__(self, text: Any) -> None:
        """Hand on a part of the reply's text."""
        if self._on_text is not None and isinstance(text, str) and text:
            self._tell(self._on_text, text)

    def begin_call(self, wire_name: Any) -> None:
        """Tell that a tool call begins."""
        if self._on_call is not None and isinstance(wire_name, str) and wire_name:
            self._tell(self._on_call, self._names.real(wire_name), "")

    def add_arguments(self, wire_name: Any, text: str) -> None:
        """Hand on a part of the JSON of a tool call's arguments."""
        if self._on_call is not None and isinstance(wire_name, str) and wire_name and text:
            self._tell(self._on_call, self._names.real(wire_name), text)

    def _tell(self, listener: Callable[..., None], *parts: str) -> None:
        try:
            listener(*parts)
        except AeonError:
            raise
        except Exception as error:
            logger.warning("a listener for streamed text failed and was removed: %s", type(error).__name__)
            self._on_text = self._on_call = None


class StreamedReply(ABC):
    """The parts that have come so far. A subclass says how an event is taken, and what document they make."""

    def __init__(self, place: Endpoint) -> None:
        self._place = place
        self._stop: str | None = None

    def read(self, events: Iterable[Any], deltas: Deltas) -> dict[str, Any]:
        """Return the whole reply, as if unstreamed. Raises LLMError, retryable, for one that is cut before its end.

        The stop reason is the end; what breaks after it costs at most the usage.
        """
        try:
            for event in events:
                self._take(json_safe(event), deltas)
        except AeonError:
            raise
        except Exception as error:
            if self._stop is None:
                raise self._failed(error) from None
            logger.warning("%s: the stream broke after its reply: %s", self._place.model, type(error).__name__)
        if self._stop is None:
            raise self._unusable("the stream ended before its end event")
        return self._whole()

    def _unusable(self, why: str) -> LLMError:
        return unusable(self._place, why, self._tokens())

    @abstractmethod
    def _take(self, event: Any, deltas: Deltas) -> None:
        """Take one event. Raises LLMError for one that is none, or that tells an error."""

    @abstractmethod
    def _whole(self) -> dict[str, Any]:
        """Return the document that the parts make."""

    @abstractmethod
    def _tokens(self) -> Usage | None:
        """Return the usage that has come so far."""

    @abstractmethod
    def _failed(self, error: Exception) -> LLMError:
        """Return the LLMError for what the SDK raised."""


_OPENAI_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"),
    *("definitions", "title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
}
_OPENAI_DEPTH = 10
_ANTHROPIC_OPTIONAL = 24
_ANTHROPIC_UNIONS = 16
_OPEN_KEYWORDS = ("patternProperties", "unevaluatedProperties", "propertyNames", "dependentSchemas")


def is_strict(schema: Any) -> bool:
    """Return whether OpenAI's strict mode takes the schema: every object closed, every property required."""
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
    """Return the schema for Anthropic's structured output, None where it cannot be said there.

    Objects must be closed (an open one, such as a step's arguments, would be forced empty), there is no recursion,
    and optional properties and unions are limited. Lists of types become unions; nothing else is changed.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    if not all(_closable(node) for node in _nodes(schema)) or _recursive(schema):
        return None
    split = _split_types(schema)
    unions = sum(1 for node in _nodes(split) if node.keys() & {"anyOf", "oneOf"})
    optional = sum(len(node["properties"].keys() - set(node.get("required", []))) for node in _objects(split))
    return split if unions <= _ANTHROPIC_UNIONS and optional <= _ANTHROPIC_OPTIONAL else None


def _closable(node: Any) -> bool:
    if not isinstance(node, dict) or any(keyword in node for keyword in _OPEN_KEYWORDS):
        return False
    if "$ref" in node:
        return isinstance(node["$ref"], str) and node["$ref"].startswith("#/$defs/")
    if not node.keys() & {"type", "anyOf", "oneOf", "allOf", "enum", "const"}:
        return False
    if "object" not in _types(node):
        return True
    return bool(node.get("properties")) and node.get("additionalProperties", False) is False


def _recursive(schema: dict[str, Any]) -> bool:
    definitions = schema.get("$defs", {})

    def reached(node: Any, path: tuple[str, ...]) -> bool:
        for inner in _nodes(node, definitions=False):
            name = inner["$ref"].removeprefix("#/$defs/") if "$ref" in inner else None
            if name is None:
                continue
            if name in path or name not in definitions or reached(definitions[name], (*path, name)):
                return True
        return False

    return reached(schema, ())


def _split_types(node: dict[str, Any]) -> dict[str, Any]:
    copy = {key: _split_child(key, value) for key, value in node.items()}
    types = copy.get("type")
    if not isinstance(types, list) or "enum" in copy or "const" in copy:
        return copy
    shared: dict[str, Any] = {key: copy[key] for key in ("title", "description", "default") if key in copy}
    rest = {key: value for key, value in copy.items() if key not in shared and key != "type"}
    return {**shared, "anyOf": [{"type": name, **_for_type(rest, name)} for name in types]}


_FOR_TYPE = {"object": ("properties", "required", "additionalProperties"), "array": ("items", "minItems", "maxItems")}


def _for_type(keywords: dict[str, Any], name: Any) -> dict[str, Any]:
    if name == "null":
        return {}
    foreign = {key for other, keys in _FOR_TYPE.items() if other != name for key in keys}
    return {key: value for key, value in keywords.items() if key not in foreign}


def _split_child(key: str, value: Any) -> Any:
    if key in ("properties", "$defs") and isinstance(value, dict):
        return {name: _split_types(child) for name, child in value.items()}
    if key == "items" and isinstance(value, dict):
        return _split_types(value)
    if key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
        return [_split_types(child) for child in value]
    return value


def _types(node: dict[str, Any]) -> list[Any]:
    types = node.get("type")
    return types if isinstance(types, list) else [types]


def _children(node: dict[str, Any], definitions: bool = True) -> Iterator[Any]:
    for key in ("properties", "$defs", "definitions") if definitions else ("properties",):
        children = node.get(key)
        if children is not None:
            yield from children.values() if isinstance(children, dict) else (children,)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        variants = node.get(key)
        if variants is not None:
            yield from variants if isinstance(variants, list) else (variants,)
    if "items" in node:
        yield node["items"]


def _nodes(node: Any, definitions: bool = True) -> Iterator[Any]:
    yield node
    if isinstance(node, dict):
        for child in _children(node, definitions):
            yield from _nodes(child, definitions)


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (node for node in _nodes(schema) if isinstance(node.get("properties"), dict))
