"""Putting a streamed Chat Completion together: the same document as an unstreamed one comes out."""

from __future__ import annotations

from typing import Any

from aeon_core.errors import LLMError
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm._streamed import StreamedReply
from aeon_core.llm.base import Usage
from aeon_core.llm.errors import failure, told_failure
from aeon_core.llm.wire import Deltas, read_usage, with_cache


def completion_usage(usage: Any) -> Usage | None:
    """Return the tokens of a completion, with those of its input that a cache held; None where none were counted."""
    tokens = read_usage(usage, ("prompt_tokens",), ("completion_tokens",))
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    return with_cache(tokens, read=details.get("cached_tokens") if isinstance(details, dict) else None)


class StreamedCompletion(StreamedReply):
    """The parts that have come so far."""

    def __init__(self, place: Endpoint, sdk: Any) -> None:
        super().__init__(place)
        self._sdk = sdk
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[Any, dict[str, Any]] = {}
        self._usage: Any = None
        self._model: Any = None

    def _take(self, chunk: Any, deltas: Deltas) -> None:
        if not isinstance(chunk, dict):
            raise self._unusable(f"an event is JSON of type {type(chunk).__name__}, expected an object")
        if chunk.get("error"):
            raise told_failure(chunk, self._place, completion_usage(self._usage))
        self._usage = chunk.get("usage") or self._usage
        self._model = chunk.get("model") or self._model
        choices = chunk.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise self._unusable("an event's choices are of a wrong type")
        for choice in choices[:1]:
            delta = choice.get("delta") or {}
            if not isinstance(delta, dict):
                raise self._unusable("an event's delta is of a wrong type")
            self._add_text(delta, deltas)
            for call in delta.get("tool_calls") or []:
                self._add_call(call)
            stop = choice.get("finish_reason")
            self._stop = stop if isinstance(stop, str) and stop else self._stop

    def _add_text(self, delta: dict[str, Any], deltas: Deltas) -> None:
        for key, parts in (("content", self._content), ("refusal", self._refusal)):
            text = delta.get(key)
            if text is not None and not isinstance(text, str):
                raise self._unusable(f"an event's {key} is of type {type(text).__name__}, expected text")
            if text:
                parts.append(text)
                deltas(text)

    def _add_call(self, part: Any) -> None:
        function = part.get("function") if isinstance(part, dict) else None
        if not isinstance(function, dict):
            raise self._unusable("an event's tool call is of a wrong type")
        # Some servers number no calls: then an id opens one, and what has none belongs to the last.
        key = part.get("index")
        if not isinstance(key, int):
            key = part.get("id") or next(reversed(self._calls), 0)
        call = self._calls.setdefault(key, {"id": part.get("id"), "name": None, "texts": [], "whole": None})
        arguments = function.get("arguments")
        call["name"] = call["name"] or function.get("name")
        if isinstance(arguments, str):
            call["texts"].append(arguments)
        elif arguments is not None:
            call["whole"] = arguments

    def _whole(self) -> dict[str, Any]:
        message = {
            "content": "".join(self._content),
            "refusal": "".join(self._refusal) or None,
            "tool_calls": [
                {
                    "id": call["id"],
                    "function": {"name": call["name"], "arguments": call["whole"] or "".join(call["texts"])},
                }
                for call in self._calls.values()
            ],
        }
        return {
            "model": self._model,
            "usage": self._usage,
            "choices": [{"message": message, "finish_reason": self._stop}],
        }

    def _tokens(self) -> Usage | None:
        return completion_usage(self._usage)

    def _failed(self, error: Exception) -> LLMError:
        return failure(error, self._sdk, self._place, self._tokens())
