"""Putting a streamed Converse reply together: the same document as an unstreamed one comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aeon_core.errors import LLMError
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm._streamed import StreamedReply
from aeon_core.llm.base import Usage
from aeon_core.llm.converse import converse_usage
from aeon_core.llm.wire import Deltas

Failure = Callable[[Exception, Usage | None], LLMError]
"""Makes the LLMError for what the SDK raised and the usage that came before it."""


class StreamedConverse(StreamedReply):
    """The parts that have come so far."""

    def __init__(self, place: Endpoint, failure: Failure) -> None:
        super().__init__(place)
        self._failure = failure
        self._texts: dict[int, list[str]] = {}
        self._uses: dict[int, dict[str, Any]] = {}
        self._usage: Any = None

    def _whole(self) -> dict[str, Any]:
        indexes = sorted(self._texts.keys() | self._uses.keys())
        content = [self._block(index) for index in indexes]
        return {"output": {"message": {"content": content}}, "stopReason": self._stop, "usage": self._usage}

    def _take(self, event: Any, deltas: Deltas) -> None:
        if not isinstance(event, dict):
            raise self._unusable(f"an event is of type {type(event).__name__}, expected an object")
        if (begun := event.get("contentBlockStart")) is not None:
            self._begin(self._index(begun), begun)
        elif (part := event.get("contentBlockDelta")) is not None:
            self._add(self._index(part), part, deltas)
        elif (end := event.get("messageStop")) is not None:
            stop = end.get("stopReason") if isinstance(end, dict) else None
            self._stop = stop if isinstance(stop, str) and stop else self._stop
        elif isinstance(told := event.get("metadata"), dict):
            self._usage = told.get("usage", self._usage)

    def _begin(self, index: int, begun: dict[str, Any]) -> None:
        start = begun.get("start")
        use = start.get("toolUse") if isinstance(start, dict) else None
        if isinstance(use, dict):
            self._uses[index] = use
            self._texts[index] = []

    def _add(self, index: int, part: dict[str, Any], deltas: Deltas) -> None:
        delta = part.get("delta")
        if not isinstance(delta, dict):
            raise self._unusable("an event's delta is no object")
        use = delta.get("toolUse")
        text = use.get("input") if isinstance(use, dict) else delta.get("text")
        if "toolUse" not in delta and "text" not in delta:
            return
        if not isinstance(text, str) or ("toolUse" in delta) != (index in self._uses):
            raise self._unusable("an event's delta has no text, or no block that it belongs to")
        self._texts.setdefault(index, []).append(text)
        if "text" in delta:
            deltas(text)

    def _block(self, index: int) -> dict[str, Any]:
        text = "".join(self._texts[index])
        return {"toolUse": {**self._uses[index], "input": text}} if index in self._uses else {"text": text}

    def _index(self, part: Any) -> int:
        index = part.get("contentBlockIndex") if isinstance(part, dict) else None
        if not isinstance(index, int):
            raise self._unusable("an event has no number of the block that it belongs to")
        return index

    def _tokens(self) -> Usage | None:
        return converse_usage(self._usage)

    def _failed(self, error: Exception) -> LLMError:
        return self._failure(error, self._tokens())
