"""A conversation in the form of Converse: turns of content blocks, tool uses and their results (REQ-061).

The history is kept, and written to the transcript, in this form; for a call it becomes the adapters' messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon_core.llm.base import LLMResponse, Message, ToolCallDict

NOTHING_SAID = "(no text)"
"""Stands for a reply without content: an empty turn is refused by the service."""
_STOP_REASONS = {"end": "end_turn"}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_ID = 64

Turn = dict[str, Any]
"""`{"role": "user" | "assistant", "content": [block, …]}`."""


@dataclass(frozen=True)
class ToolUseRequest:
    """A tool use that a model asks for."""

    tool_use_id: str
    name: str
    input: dict[str, Any]
    malformed: str | None = None
    """What the model wrote where that is no JSON object; `input` then holds it under `text`."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool use gave (REQ-030, REQ-053)."""

    tool_use_id: str
    content: str
    is_error: bool = False

    def block(self) -> dict[str, Any]:
        """Return the result as a content block of Converse."""
        status = "error" if self.is_error else "success"
        return {"toolResult": {"toolUseId": self.tool_use_id, "content": [{"text": self.content}], "status": status}}


@dataclass(frozen=True)
class ConverseTurn:
    """A model's reply, taken apart."""

    text_blocks: list[str]
    tool_use_blocks: list[ToolUseRequest]
    stop_reason: str | None
    """`end_turn`, `tool_use`, `max_tokens`, or the provider's own word."""
    input_tokens: int
    output_tokens: int
    raw_message: Turn = field(repr=False)
    """The assistant's turn as it is appended to the history."""

    @property
    def text(self) -> str:
        """The text of all blocks."""
        return "\n\n".join(self.text_blocks)


def turn_of(response: LLMResponse, taken: Iterable[str] = ()) -> ConverseTurn:
    """Return a reply as a turn. Each tool use has an id of its own, none of which is among `taken`."""
    ids = set(taken)
    uses = [_use(call, ids) for call in response.tool_calls]
    texts = [response.text] if response.text.strip() else []
    blocks: list[dict[str, Any]] = [{"text": text} for text in texts]
    blocks += [{"toolUse": {"toolUseId": use.tool_use_id, "name": use.name, "input": use.input}} for use in uses]
    usage = response.usage
    return ConverseTurn(
        text_blocks=texts,
        tool_use_blocks=uses,
        stop_reason=_STOP_REASONS.get(response.stop_reason or "", response.stop_reason),
        input_tokens=usage["input_tokens"] if usage else 0,
        output_tokens=usage["output_tokens"] if usage else 0,
        raw_message={"role": "assistant", "content": blocks or [{"text": NOTHING_SAID}]},
    )


def as_messages(history: Iterable[Turn]) -> list[Message]:
    """Return a history as the messages of an adapter's request."""
    messages: list[Message] = []
    for turn in history:
        text = "\n\n".join(block["text"] for block in turn["content"] if "text" in block)
        if turn["role"] == "assistant":
            said: Message = {"role": "assistant", "content": text}
            if calls := [_call(block["toolUse"]) for block in turn["content"] if "toolUse" in block]:
                said["tool_calls"] = calls
            messages.append(said)
            continue
        messages += [_answer(block["toolResult"]) for block in turn["content"] if "toolResult" in block]
        if text:
            messages.append({"role": "user", "content": text})
    return messages


def as_turns(messages: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """Return the messages of an adapter's request as turns: what `as_messages` made them of."""
    turns: list[Turn] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "content": []})
        content = turns[-1]["content"]
        if message["role"] == "tool":
            is_error = message.get("is_error", False)
            content.append(ToolResult(message["tool_call_id"], message["content"], is_error).block())
            continue
        if message["content"]:
            content.append({"text": message["content"]})
        content += [_use_block(call) for call in message.get("tool_calls", ())]
    return turns


def use_ids(turn: Turn) -> list[str]:
    """Return the ids of a turn's tool uses, in order."""
    return [block["toolUse"]["toolUseId"] for block in turn["content"] if "toolUse" in block]


def _use(call: ToolCallDict, ids: set[str]) -> ToolUseRequest:
    arguments = call["arguments"]
    use_id = _free(_UNSAFE.sub("_", call.get("id") or "")[:_MAX_ID] or "tool", ids)
    if isinstance(arguments, str):
        return ToolUseRequest(use_id, call["name"], {"text": arguments}, malformed=arguments)
    return ToolUseRequest(use_id, call["name"], arguments)


def _free(wished: str, ids: set[str]) -> str:
    """Return the wished id, or one like it that is not taken, and take it: a result could not say which it is of."""
    candidate, number = wished, 2
    while candidate in ids:
        suffix = f"_{number}"
        candidate, number = wished[: _MAX_ID - len(suffix)] + suffix, number + 1
    ids.add(candidate)
    return candidate


def _call(use: Mapping[str, Any]) -> ToolCallDict:
    return {"id": use["toolUseId"], "name": use["name"], "arguments": use["input"]}


def _use_block(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": call["arguments"]}}


def _answer(result: Mapping[str, Any]) -> Message:
    text = "\n".join(block["text"] for block in result["content"] if "text" in block)
    message: Message = {"role": "tool", "content": text, "tool_call_id": result["toolUseId"]}
    if result.get("status") == "error":
        message["is_error"] = True
    return message
