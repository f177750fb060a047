"""Putting a streamed Message together: the same document as an unstreamed one comes out."""

from __future__ import annotations

from typing import Any

from aeon_core.errors import LLMError
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm._streamed import StreamedReply
from aeon_core.llm.base import Usage
from aeon_core.llm.errors import failure, told_failure
from aeon_core.llm.wire import Deltas, read_usage, with_cache

_WRITTEN, _READ = "cache_creation_input_tokens", "cache_read_input_tokens"
_PARTS = {"text_delta": "text", "input_json_delta": "partial_json"}


def message_usage(usage: Any) -> Usage | None:
    """Return the tokens of a message, those written to and read from the provider's cache among its input."""
    tokens = read_usage(usage, ("input_tokens", _WRITTEN, _READ), ("output_tokens",))
    if not isinstance(usage, dict):
        return tokens
    return with_cache(tokens, read=usage.get(_READ), written=usage.get(_WRITTEN))


class StreamedMessage(StreamedReply):
    """The parts that have come so far."""

    def __init__(self, place: Endpoint, sdk: Any) -> None:
        super().__init__(place)
        self._sdk = sdk
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._parts: dict[Any, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._model: Any = None

    def _whole(self) -> dict[str, Any]:
        content = [self._block(index, block) for index, block in self._blocks.items()]
        return {"model": self._model, "usage": self._usage, "content": content, "stop_reason": self._stop}

    def _take(self, event: Any, deltas: Deltas) -> None:
        if not isinstance(event, dict):
            raise self._unusable(f"an event is JSON of type {type(event).__name__}, expected an object")
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "error":
            raise told_failure(event, self._place, message_usage(self._usage))
        if kind == "message_start":
            message = self._object(event, "message")
            self._model = message.get("model")
            self._count(message.get("usage"))
        elif kind == "content_block_start":
            self._blocks[self._index(index)] = block = self._object(event, "content_block")
            self._parts[index] = []
            deltas(block.get("text"))
        elif kind == "content_block_delta":
            self._add(self._index(index), self._object(event, "delta"), deltas)
        elif kind == "message_delta":
            stop = self._object(event, "delta").get("stop_reason")
            self._stop = stop if isinstance(stop, str) and stop else self._stop
            self._count(event.get("usage"))

    def _add(self, index: int, delta: dict[str, Any], deltas: Deltas) -> None:
        kind = delta.get("type")
        key = _PARTS.get(kind) if isinstance(kind, str) else None
        if key is None:
            return
        text = delta.get(key)
        if not isinstance(text, str) or index not in self._blocks:
            raise self._unusable("an event's delta has no text, or no block that it belongs to")
        self._parts[index].append(text)
        if key == "text":
            deltas(text)

    def _block(self, index: Any, block: dict[str, Any]) -> dict[str, Any]:
        text = "".join(self._parts[index])
        if block.get("type") == "text":
            begun = block.get("text")
            return {**block, "text": (begun if isinstance(begun, str) else "") + text}
        return {**block, "input": text} if text and block.get("type") == "tool_use" else block

    def _count(self, usage: Any) -> None:
        # The counts are cumulative, and an event leaves out what has not changed.
        if isinstance(usage, dict):
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    def _object(self, event: dict[str, Any], key: str) -> dict[str, Any]:
        value = event.get(key)
        if not isinstance(value, dict):
            raise self._unusable(f"an event's {key} is of type {type(value).__name__}, expected an object")
        return value

    def _index(self, index: Any) -> int:
        if not isinstance(index, int):
            raise self._unusable(f"an event's index is of type {type(index).__name__}, expected a number")
        return index

    def _tokens(self) -> Usage | None:
        return message_usage(self._usage)

    def _failed(self, error: Exception) -> LLMError:
        return failure(error, self._sdk, self._place, self._tokens())
