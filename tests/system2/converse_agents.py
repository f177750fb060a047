"""Amazon Bedrock on loopback whose model is the simulated agents: whole workflows through the real SDK."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from aeon_core.llm.base import LLMRequest, Message, ToolCallDict
from system2.converse import as_turns, reply_message, tool_uses
from system2.simulated import SimulatedAgents
from tests.aeon_core.llm.converse_server import refused
from tests.aeon_core.llm.server import Reply, Request, Server

Interfere = Callable[[int, dict[str, Any]], Reply | None]
"""Gets the number of a request, from 1, and its body; may answer in place of the agents."""


class AgentServer(Server):
    """Answers each Converse request as the simulated agents do; `interfere` may answer first."""

    def __init__(self, name: str = "default") -> None:
        super().__init__()
        self.interfere: Interfere = lambda number, body: None
        self._agents = SimulatedAgents(name)

    def next_reply(self, request: Request) -> Reply:
        self.requests.append(request)
        self.arrived.release()
        return self.interfere(len(self.requests), request.body) or self._agents_reply(request.body)

    def _agents_reply(self, body: dict[str, Any]) -> Reply:
        tools = [tool["toolSpec"] for tool in body.get("toolConfig", {}).get("tools", ())]
        asked = LLMRequest(
            "tool_call",
            body["system"][0]["text"],
            list(_messages(body["messages"])),
            tools=[{"name": tool["name"], "input_schema": tool["inputSchema"]["json"]} for tool in tools],
        )
        reply = self._agents.complete(asked)
        assert reply.usage is not None
        read, written = reply.usage["input_tokens"], reply.usage["output_tokens"]
        return Reply(
            {
                "output": {"message": as_turns([reply_message(reply, tool_uses(reply))])[0]},
                "stopReason": "end_turn" if reply.stop_reason == "end" else reply.stop_reason,
                "usage": {"inputTokens": read, "outputTokens": written, "totalTokens": read + written},
            }
        )


def _messages(turns: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield turns of Converse as an adapter's messages."""
    for turn in turns:
        blocks, role = turn["content"], turn["role"]
        for result in (block["toolResult"] for block in blocks if "toolResult" in block):
            text = "\n".join(part["text"] for part in result["content"])
            failed = result.get("status") == "error"
            yield {"role": "tool", "content": text, "tool_call_id": result["toolUseId"], "is_error": failed}
        text = "\n\n".join(block["text"] for block in blocks if "text" in block)
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        calls: list[ToolCallDict] = [
            {"id": use["toolUseId"], "name": use["name"], "arguments": use["input"]} for use in uses
        ]
        if text or calls:
            yield {"role": role, "content": text, "tool_calls": calls}


class PromptCache:
    """Bills each request as Bedrock does: what a `cachePoint` ends is written once, and read from then on."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def usage(self, body: dict[str, Any]) -> dict[str, int]:
        """Return the tokens of a request, about four characters each, and of its short reply."""
        blocks = [body.get("toolConfig"), *body.get("system", ()), *(b for t in body["messages"] for b in t["content"])]
        prompt, ends = "", []
        for block in blocks:
            if "cachePoint" in (block or {}):
                ends.append(prompt)
            else:
                prompt += json.dumps(block)
        read = max((len(end) for end in ends if end in self._known), default=0)
        written = max([len(end) - read for end in ends], default=0)
        self._known.update(ends)
        counted = {"cacheReadInputTokens": read // 4, "cacheWriteInputTokens": written // 4}
        return {"inputTokens": (len(prompt) - read - written) // 4, "outputTokens": 60, **counted}


def failing(*replies: Reply, at: int = 1) -> Interfere:
    """Give these replies from request number `at` on, then let the agents answer."""
    left = list(replies)

    def interfere(number: int, body: dict[str, Any]) -> Reply | None:
        return left.pop(0) if number >= at and left else None

    return interfere


def throttled() -> Reply:
    return refused("ThrottlingException", "Too many requests", 429)


def broken() -> Reply:
    return refused("InternalServerException", "something broke", 500)
