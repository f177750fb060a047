"""How each provider says on the wire what every adapter must understand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.aeon_core.llm.converse_server import stream as converse_stream
from tests.aeon_core.llm.converse_server import text_frames, usage_frame
from tests.aeon_core.llm.server import Reply, named_stream, stream


@dataclass(frozen=True)
class Dialect:
    """How one provider says things on the wire."""

    reply: Callable[..., dict[str, Any]]
    """Of text, calls and a stop word of the house: a whole reply with the tokens of the tests' USAGE."""

    events: Callable[[str], list[Any]]
    """Of text: a stream's events up to the last one, the tokens of the tests' USAGE among them."""

    stream: Callable[..., Reply]
    broken: Any
    """An event that cannot be read."""

    seen: Callable[[dict[str, Any]], list[tuple[Any, ...]]]
    """Of a request's body: the conversation in the form of SEEN."""

    too_long: dict[str, Any]
    """An error's body."""

    cached: dict[str, Any]
    """The tokens of the tests' USAGE, 6 of the input read from a cache."""


def _openai_reply(text: str = "", calls: Any = (), stop: str = "end") -> dict[str, Any]:
    wire = [
        {"id": call_id, "type": "function", "function": {"name": name.replace(".", "_"), "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    word = {"end": "stop", "tool_use": "tool_calls", "refusal": "content_filter", "max_tokens": "length"}[stop]
    choice = {"message": {"role": "assistant", "content": text, "tool_calls": wire}, "finish_reason": word}
    return {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}


def _openai_events(text: str) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": 11, "completion_tokens": 7}
    return [{"choices": [{"delta": {"content": text}, "finish_reason": None}], "usage": usage}]


def _openai_seen(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    seen: list[tuple[Any, ...]] = []
    for message in body["messages"][1:]:
        if message["role"] == "tool":
            content = message["content"]
            wrong = content.startswith("Error: ")
            seen.append(("result", message["tool_call_id"], content.removeprefix("Error: "), wrong))
            continue
        seen.append((message["role"], message["content"]))
        for call in message.get("tool_calls", []):
            arguments = {"{}": {}, '{"a": 5}': {"a": 5}}[call["function"]["arguments"]]
            seen.append(("call", call["id"], call["function"]["name"], arguments))
    return seen


def _anthropic_reply(text: str = "", calls: Any = (), stop: str = "end") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_use", "id": call_id, "name": name.replace(".", "_"), "input": arguments}
        for call_id, name, arguments in calls
    ]
    word = {"end": "end_turn"}.get(stop, stop)
    return {"model": "m", "content": blocks, "stop_reason": word, "usage": {"input_tokens": 11, "output_tokens": 7}}


def _anthropic_events(text: str) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 11, "output_tokens": 7}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    ]


def _anthropic_seen(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    seen: list[tuple[Any, ...]] = []
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "text":
                seen.append((message["role"], block["text"]))
            elif block["type"] == "tool_use":
                seen.append(("call", block["id"], block["name"], block["input"]))
            else:
                seen.append(("result", block["tool_use_id"], block["content"], block.get("is_error", False)))
    return seen


def _converse_reply(text: str = "", calls: Any = (), stop: str = "end") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"text": text}] if text else []
    blocks += [
        {"toolUse": {"toolUseId": call_id, "name": name.replace(".", "_"), "input": arguments}}
        for call_id, name, arguments in calls
    ]
    word = {"end": "end_turn", "refusal": "content_filtered"}.get(stop, stop)
    usage = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
    return {"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": word, "usage": usage}


def _converse_events(text: str) -> list[bytes]:
    return [usage_frame(), *text_frames(text)]


def _converse_seen(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    seen: list[tuple[Any, ...]] = []
    for message in body["messages"]:
        for block in message["content"]:
            if "text" in block:
                seen.append((message["role"], block["text"]))
            elif "toolUse" in block:
                use = block["toolUse"]
                seen.append(("call", use["toolUseId"], use["name"], use["input"]))
            else:
                result = block["toolResult"]
                told = "".join(part["text"] for part in result["content"])
                seen.append(("result", result["toolUseId"], told, result.get("status") == "error"))
    return seen


DIALECTS = {
    "openai": Dialect(
        _openai_reply,
        _openai_events,
        partial(stream, done=False),
        "{broken",
        _openai_seen,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens",
                "code": "context_length_exceeded",
            }
        },
        {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 6}},
    ),
    "anthropic": Dialect(
        _anthropic_reply,
        _anthropic_events,
        named_stream,
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta"}},
        _anthropic_seen,
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}},
        {"input_tokens": 5, "cache_read_input_tokens": 6, "output_tokens": 7, "cache_creation_input_tokens": 0},
    ),
    "bedrock": Dialect(
        _converse_reply,
        _converse_events,
        converse_stream,
        b"\0\0\0\x20 no frame" + bytes(20),
        _converse_seen,
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"inputTokens": 5, "cacheReadInputTokens": 6, "outputTokens": 7, "cacheWriteInputTokens": 0},
    ),
}
