"""An agent's conversation in the form of Converse: turns of content blocks, tool uses, results (REQ-051, REQ-061).

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


SUMMARIZED = "[CONTEXT SUMMARIZED]"
"""Marks a history that was compressed, for the agent (REQ-055)."""
NOT_CARRIED_OUT = "not carried out: the orchestrator ended this part of the work before"


class Conversation:
    """What was said, and what is to be said next; the caller sends it.

    A turn of the user that is not sent yet holds the results of the last reply's tool uses first, then texts. What was
    left without a result is answered as not carried out when the next turn is asked for.
    """

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._results: dict[str, ToolResult] = {}
        self._texts: list[str] = []

    @property
    def turns(self) -> list[Turn]:
        """The turns that were sent and answered, oldest first; not to be changed."""
        return self._turns

    @property
    def open_uses(self) -> list[str]:
        """The ids of the last reply's tool uses that have no result yet."""
        return [use_id for use_id in self._last_uses() if use_id not in self._results]

    def say(self, text: str) -> None:
        """Have the user say something in the next turn."""
        self._texts.append(text)

    def answer(self, result: ToolResult) -> None:
        """Give a tool use of the last reply its result. Raises ValueError for any other, or a second result."""
        if result.tool_use_id not in self.open_uses:
            raise ValueError(f"{result.tool_use_id!r} is no open tool use; open are {self.open_uses}")
        self._results[result.tool_use_id] = result

    def outgoing(self) -> list[Turn]:
        """Return the conversation to send: the history and the user's next turn. Raises ValueError for an empty one."""
        for use_id in self.open_uses:
            self._results[use_id] = ToolResult(use_id, NOT_CARRIED_OUT, is_error=True)
        content = [self._results[use_id].block() for use_id in self._last_uses()]
        content += [{"text": text} for text in self._texts if text.strip()]
        if not content:
            raise ValueError("there is nothing to say to the agent")
        return [*self._turns, {"role": "user", "content": content}]

    def replied(self, turn: ConverseTurn) -> None:
        """Take the reply to what was outgoing."""
        self._turns = [*self.outgoing(), turn.raw_message]
        self._results, self._texts = {}, []

    def summarized(self, summary: str) -> None:
        """Put a summary in the place of all that was said; the task stays, and what was to be said besides results."""
        first = self._turns[0]["content"] if self._turns else []
        task = [block["text"] for block in first if "text" in block and SUMMARIZED not in block["text"]]
        kept = [text for text in self._texts if SUMMARIZED not in text and text not in task]
        self._turns, self._results = [], {}
        self._texts = [*task, f"{SUMMARIZED}\n\nWhat was said and done so far:\n\n{summary.strip()}", *kept]

    def _last_uses(self) -> list[str]:
        return use_ids(self._turns[-1]) if self._turns else []
