"""A tool that a repair chose, and that is not pure, is called only where a person or a rule allows it (core FR-032)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult, ToolRegistry, tool
from aeon_core.policy import PolicyRules
from aeon_core.tools.base import Effect
from tests.fakes import ScriptedModel, call, steps

FIXED = {"step_id": "s1", "description": "do part 1", "tool": "remove", "arguments": {"path": "a"}}


def run(called: list[str], effect: Effect = "unsafe", *, named: str | None = "rm", **options: Any) -> RunResult:
    @tool(effect=effect)
    def remove(path: str) -> str:
        """Removes a file."""
        called.append(path)
        return path

    registry = ToolRegistry()
    registry.register(remove)
    approver = options.pop("approver", None)
    model = ScriptedModel(repair=FIXED, tool_call=call("remove", path="a"), answer="done")
    config = RunConfig(single_pass=True, durability="off", **options)
    plan = steps({"tool": named} if named else {})
    return Orchestrator(model, registry, config=config, approver=approver, journal=False).run("a task", plan)


@pytest.mark.parametrize("effect", ["unsafe", "idempotent"])
@pytest.mark.parametrize("named", ["rm", None])
def test_where_nobody_can_be_asked_the_step_fails_and_names_the_rule_that_would_allow_it(
    effect: Effect, named: str | None
) -> None:
    called: list[str] = []
    result = run(called, effect, named=named)
    assert called == []
    assert result.steps[0].status == "failed"
    [error] = result.steps[0].errors
    what = "the tool 'rm'" if named else "no tool"
    assert f"a repair chose 'remove' for a step that names {what}" in error
    assert "--allow remove" in error


def test_a_pure_tool_needs_no_approval() -> None:
    called: list[str] = []
    assert run(called, "pure").steps[0].status == "complete"
    assert called == ["a"]


def test_a_rule_allows_it() -> None:
    called: list[str] = []
    assert run(called, policy=PolicyRules(allow=("remove",))).steps[0].status == "complete"
    assert called == ["a"]


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_person_is_asked(decision: Any) -> None:
    called: list[str] = []
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(decision=decision)

    result = run(called, approver=approver, approve=("tool",))
    assert [request.point for request in asked] == ["tool"]
    assert called == (["a"] if decision == "approve" else [])
    assert result.steps[0].status == ("complete" if decision == "approve" else "failed")


def test_another_spelling_of_the_name_is_the_tool_that_the_step_names() -> None:
    called: list[str] = []
    assert run(called, named="Remove").steps[0].status == "complete"
    assert called == ["a"]


def test_after_the_fallback_the_plan_names_no_tool_that_is_not_registered() -> None:
    model = ScriptedModel(repair={**FIXED, "tool": None}, fallback="by hand", answer="done")
    result = Orchestrator(model, config=RunConfig(single_pass=True, durability="off"), journal=False).run(
        "a task", steps({"tool": "nope"})
    )
    assert result.plan is not None
    assert [(step.tool, step.agent, step.status) for step in result.plan.walk()] == [(None, "llm", "complete")]
    assert [step.mode for step in result.steps] == ["fallback"]
    assert len(model.asked("repair")) == 1
