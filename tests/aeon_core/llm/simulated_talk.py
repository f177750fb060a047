"""Talking to the simulated model as the kernel does, without the kernel: plan, steps, answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aeon_core.llm.base import LLMResponse, Purpose
from aeon_core.llm.simulated import SimulatedModel
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.prompts import build_request
from aeon_core.tools.registry import ToolRegistry, default_registry

Tools = list[dict[str, Any]]

CALCULATOR_AND_ECHO: Tools = default_registry().export_tools_for_llm()
READ_FILE: dict[str, Any] = {
    "name": "read_file",
    "description": "Reads a text file and returns its content.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
WRITE_FILE: dict[str, Any] = {
    "name": "write_file",
    "description": "Writes a text to a file.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
}
GET_WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Returns the weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
GET_WORDS: dict[str, Any] = {
    "name": "get_words",
    "description": "Counts words.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def lines(values: Sequence[Any]) -> str:
    return "\n".join(json.dumps(value) for value in values)


def ask(model: SimulatedModel, purpose: Purpose, native: Tools | None = None, **sections: str) -> LLMResponse:
    return model.complete(replace(build_request(purpose, sections), tools=native or []))


def plan_of(task: str, tools: Tools | None = None, model: SimulatedModel | None = None) -> dict[str, Any]:
    listed = CALCULATOR_AND_ECHO if tools is None else tools
    reply = ask(model or SimulatedModel(), "plan", task=task, tools=lines(listed), ttl="50 cycles remaining of 50")
    parsed: dict[str, Any] = json.loads(reply.text)
    return parsed


def as_plan(flat: dict[str, Any]) -> Plan:
    """Read the flat form by the data model; the simulated model nests nothing."""
    steps = []
    for step in flat["steps"]:
        assert step["parent"] is None
        fields = {key: value for key, value in step.items() if key not in ("id", "parent") and value is not None}
        steps.append(PlanStep(step_id=step["id"], **fields))
    return Plan(goal=flat["goal"], steps=steps)


def shape(plan: dict[str, Any]) -> list[tuple[str, Any]]:
    """What each step runs on, and with which arguments."""
    return [(step["tool"] or step["agent"], step["arguments"]) for step in plan["steps"]]


class Talk:
    """A task carried out step by step with the default tools; what is said is kept."""

    def __init__(self, task: str, registry: ToolRegistry | None = None) -> None:
        self.model = SimulatedModel()
        self.task = task
        self.registry = default_registry() if registry is None else registry
        self.plan = as_plan(plan_of(task, self.registry.export_tools_for_llm()))
        self.results: list[dict[str, Any]] = []
        for step in self.plan.steps:
            self._execute(step)
        self.answer = ask(self.model, "answer", **self._around(), task=task).text

    @property
    def outputs(self) -> list[Any]:
        return [result.get("output") for result in self.results]

    def _around(self) -> dict[str, str]:
        plan = [{"goal": self.plan.goal}, *(step.model_dump(exclude={"arguments"}) for step in self.plan.steps)]
        return {"goal": self.plan.goal, "plan": lines(plan), "results": lines(self.results)}

    def _execute(self, step: PlanStep) -> None:
        around = {**self._around(), "step": json.dumps(step.model_dump(exclude_none=True))}
        if step.tool is None:
            output = {"text": ask(self.model, "reason", **around).text}
            self.results.append({"step_id": step.step_id, "output": output})
            return
        tool = self.registry.get(step.tool)
        assert tool is not None
        arguments: Any = step.arguments
        if arguments is None:
            native = [one for one in self.registry.export_tools_for_llm() if one["name"] == step.tool]
            (call,) = ask(self.model, "tool_call", native, **around, tools=lines(native)).tool_calls
            assert call["name"] == step.tool
            arguments = call["arguments"]
        try:
            self.results.append({"step_id": step.step_id, "output": tool.invoke(**arguments)})
        except Exception as error:
            self.results.append({"step_id": step.step_id, "errors": [str(error)]})
