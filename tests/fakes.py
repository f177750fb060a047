"""Models that tests script: no provider, no network, every request kept."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse

Reply = LLMResponse | str | dict[str, Any] | Exception
Script = Reply | list[Reply] | Callable[[LLMRequest], Reply]


class ScriptedModel(LLMAdapter):
    """Answers each purpose as told: one reply for all calls, a list for one after the other, or a function.

    A dict is sent as JSON text, an exception is raised. A purpose without a script is a test's mistake. A judge's dict
    that holds issues alone is completed to the judgement that goes with them.
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
        if request.purpose == "judge" and isinstance(reply, dict) and reply.keys() == {"issues"}:
            reply = judged(request, *reply["issues"])
        return LLMResponse(text=reply if isinstance(reply, str) else json.dumps(reply))

    def asked(self, purpose: str) -> list[LLMRequest]:
        return [request for request in self.requests if request.purpose == purpose]


def judged(request: LLMRequest, *issues: dict[str, Any], met: str | None = None) -> dict[str, Any]:
    """The judgement that goes with these issues: good where there are none but remarks, else not; quotes the answer."""
    serious = [issue for issue in issues if issue.get("severity") != "low"]
    places = [issue.get("location", {}) for issue in serious]
    of_answer = [place for place in places if place.get("artifact") == "answer" and place.get("step_id") is None]
    quote = json.loads(section(request, "answer"))[:40].rsplit(" ", 1)[0]
    check = {"evidence": quote, "ok": True}
    unmet = met or ("no" if len(serious) > len(of_answer) else "yes")
    return {
        "requirements": [
            {"n": n, "evidence": quote, "met": unmet}
            for n in range(1, len(lines_of(section(request, "requirements"))) + 1)
        ],
        "coherent": check,
        "consistent": {"plan": check, "step": check, "answer": {**check, "ok": not of_answer}, "memory": check},
        "suspicions": [
            {"n": n, "evidence": quote, "stands": False}
            for n in range(1, len(lines_of(section(request, "suspicions"))) + 1)
        ],
        "issues": list(issues),
    }


def section(request: LLMRequest, name: str) -> str:
    """A section of a request's message, empty where it is left out."""
    content = request.messages[-1]["content"]
    _, _, rest = content.partition(f"<{name}>\n")
    return rest.partition(f"\n</{name}>")[0]


def _numbered(request: LLMRequest, name: str) -> Iterable[tuple[int, str]]:
    return enumerate(lines_of(section(request, name)), 1)


def lines_of(text: str) -> list[str]:
    """The lines of a section that are not empty."""
    return [line for line in text.split("\n") if line]


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


@contextmanager
def full_disk() -> Iterator[None]:
    """Within the block, this process can create files, but write nothing into them."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
