"""An agent's conversation: messages as adapters take them, and the same as turns of Converse (REQ-051, REQ-061)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aeon_core.llm.base import LLMResponse, Message, ToolCallDict

NOTHING_SAID = "(no text)"
"""Stands for a reply without content: an empty turn is refused by the service."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_ID = 64

Turn = dict[str, Any]
"""`{"role": "user" | "assistant", "content": [block, …]}`, as Converse has it."""


@dataclass(frozen=True)
class ToolUseRequest:
    """A tool use that a model asks for."""

    tool_use_id: str
    name: str
    input: dict[str, Any]
    malformed: bool = False
    """Whether the model wrote no JSON object; `input` then holds what it wrote under `text`."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool use gave (REQ-030, REQ-053)."""

    tool_use_id: str
    content: str
    is_error: bool = False

    @property
    def message(self) -> Message:
        """The result as a message of the conversation."""
        message: Message = {"role": "tool", "content": self.content, "tool_call_id": self.tool_use_id}
        if self.is_error:
            message["is_error"] = True
        return message


def tool_uses(response: LLMResponse, taken: Iterable[str] = ()) -> list[ToolUseRequest]:
    """Return the tool uses of a reply. Each has an id of its own, none of which is among `taken`."""
    ids, uses = set(taken), []
    for call in response.tool_calls:
        arguments, use_id = call["arguments"], _free(_UNSAFE.sub("_", call.get("id") or "")[:_MAX_ID] or "tool", ids)
        malformed = isinstance(arguments, str)
        uses.append(
            ToolUseRequest(
                use_id, call["name"], arguments if isinstance(arguments, dict) else {"text": arguments}, malformed
            )
        )
    return uses


def reply_message(response: LLMResponse, uses: Iterable[ToolUseRequest]) -> Message:
    """Return a reply as a message of the conversation."""
    calls: list[ToolCallDict] = [{"id": use.tool_use_id, "name": use.name, "arguments": use.input} for use in uses]
    text = response.text if response.text.strip() else ""
    message: Message = {"role": "assistant", "content": text or ("" if calls else NOTHING_SAID)}
    return {**message, "tool_calls": calls} if calls else message


def use_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the ids of all tool uses, in order."""
    return (call["id"] for message in messages for call in message.get("tool_calls", ()))


def as_turns(messages: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """Return messages as turns of Converse: results are the user's, and neighbours of one role are one turn."""
    turns: list[Turn] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "content": []})
        content = turns[-1]["content"]
        if message["role"] == "tool":
            status = "error" if message.get("is_error") else "success"
            result = {"toolUseId": message["tool_call_id"], "content": [{"text": message["content"]}], "status": status}
            content.append({"toolResult": result})
            continue
        if message["content"]:
            content.append({"text": message["content"]})
        for call in message.get("tool_calls", ()):
            content.append({"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": call["arguments"]}})
    return turns


def _free(wished: str, ids: set[str]) -> str:
    """Return the wished id, or one like it that is not taken, and take it: a result could not say which it is of."""
    candidate, number = wished, 2
    while candidate in ids:
        suffix = f"_{number}"
        candidate, number = wished[: _MAX_ID - len(suffix)] + suffix, number + 1
    ids.add(candidate)
    return candidate


SUMMARIZED = "[CONTEXT SUMMARIZED]"
"""Marks a history that was compressed, for the agent (REQ-055)."""
NOT_CARRIED_OUT = "not carried out: the orchestrator ended this part of the work before"


class Conversation:
    """What was said, and what is to be said next; the caller sends it.

    What the user says next holds the results of the last reply's tool uses first, then texts. What was left without a
    result is answered as not carried out when the next request is asked for.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """What was sent and answered, oldest first; not to be changed."""
        self._results: dict[str, ToolResult] = {}
        self._texts: list[str] = []
        self._opening: list[str] = []
        """The texts that the conversation, or what follows its summary, began with."""

    @property
    def open_uses(self) -> list[str]:
        """The ids of the last reply's tool uses that have no result yet."""
        return [use_id for use_id in use_ids(self.messages[-1:]) if use_id not in self._results]

    def say(self, text: str) -> None:
        """Have the user say something next."""
        self._texts.append(text)

    def answer(self, result: ToolResult) -> None:
        """Give a tool use of the last reply its result. Raises ValueError for any other, or a second result."""
        if result.tool_use_id not in self.open_uses:
            raise ValueError(f"{result.tool_use_id!r} is no open tool use; open are {self.open_uses}")
        self._results[result.tool_use_id] = result

    def outgoing(self) -> list[Message]:
        """Return the messages to send: the history and what the user says next. Raises ValueError for nothing."""
        for use_id in self.open_uses:
            self._results[use_id] = ToolResult(use_id, NOT_CARRIED_OUT, is_error=True)
        said: list[Message] = [self._results[use_id].message for use_id in use_ids(self.messages[-1:])]
        if texts := [text for text in self._texts if text.strip()]:
            said.append({"role": "user", "content": "\n\n".join(texts)})
        if not said:
            raise ValueError("there is nothing to say to the agent")
        return [*self.messages, *said]

    def replied(self, message: Message) -> None:
        """Take the reply to what was outgoing."""
        if not self.messages:
            self._opening = self._texts
        self.messages = [*self.outgoing(), message]
        self._results, self._texts = {}, []

    def summarized(self, summary: str) -> None:
        """Put a summary in the place of all that was said; the task stays, and what was to be said besides results."""
        task = [text for text in self._opening if text.strip() and SUMMARIZED not in text]
        kept = [text for text in self._texts if SUMMARIZED not in text and text not in task]
        self.messages, self._results = [], {}
        self._texts = [*task, f"{SUMMARIZED}\n\nWhat was said and done so far:\n\n{summary.strip()}", *kept]
