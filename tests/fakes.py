"""Models that tests script: no provider, no network, every request kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse

Reply = LLMResponse | str | dict[str, Any] | Exception
Script = Reply | list[Reply] | Callable[[LLMRequest], Reply]


class ScriptedModel(LLMAdapter):
    """Answers each purpose as told: one reply for all calls, a list for one after the other, or a function.

    A dict is sent as JSON text, an exception is raised. A purpose without a script is a test's mistake.
    """

    model = "scripted:test"

    def __init__(self, **scripts: Script) -> None:
        self.scripts = scripts
        self.requests: list[LLMRequest] = []
        self._turn: dict[str, int] = {}

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(request)
        script = self.scripts.get(request.purpose)
        if script is None:
            raise AssertionError(f"no script for {request.purpose!r}")
        if isinstance(script, list):
            turn = self._turn.get(request.purpose, 0)
            self._turn[request.purpose] = turn + 1
            script = script[min(turn, len(script) - 1)]
        reply = script(request) if callable(script) else script
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, LLMResponse):
            return reply
        return LLMResponse(text=reply if isinstance(reply, str) else json.dumps(reply))

    def asked(self, purpose: str) -> list[LLMRequest]:
        return [request for request in self.requests if request.purpose == purpose]


def call(name: str, **arguments: Any) -> LLMResponse:
    """A native tool use."""
    return LLMResponse(text="", tool_calls=[{"id": "t1", "name": name, "arguments": arguments}], stop_reason="tool_use")


def steps(*described: dict[str, Any]) -> dict[str, Any]:
    """A plan of steps s1, s2, … with the given fields."""
    return {
        "goal": "a goal",
        "steps": [
            {"step_id": f"s{number}", "description": f"do part {number}", **fields}
            for number, fields in enumerate(described, start=1)
        ],
    }


def add(a: float, b: float) -> dict[str, Any]:
    """A step that adds with the calculator."""
    return {"tool": "calculator", "arguments": {"operation": "add", "a": a, "b": b}}
