"""A tool that a repair chose, and that is not pure, is called only where a person or a rule allows it (core FR-032)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult, ToolRegistry, tool
from aeon_core.policy import PolicyRules
from aeon_core.runs.fork import Fork, starting_edit
from aeon_core.runs.resume import resume
from aeon_core.tools.base import Effect
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import MENDED, NOTHING, TASK, model, plan
from tests.fakes import ScriptedModel, call, steps

FIXED = {"step_id": "s1", "description": "do part 1", "tool": "remove", "arguments": {"path": "a"}}
KEY = "sk-ant-" + "api03-" + "0123456789abcdefghij"


def tools(called: list[str], effect: Effect = "unsafe") -> ToolRegistry:
    @tool(effect=effect)
    def remove(path: str) -> str:
        """Removes a file."""
        called.append(path)
        return KEY if path == "secret" else path

    registry: ToolRegistry = default_registry()
    registry.register(remove)
    return registry


def approves(request: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(decision="approve")


def cut_behind(path: Path, **fields: Any) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if fields.items() <= json.loads(line).items())
    path.write_bytes(b"".join(lines[: last + 1]))


def run(called: list[str], effect: Effect = "unsafe", *, named: str | None = "rm", **options: Any) -> RunResult:
    registry = tools(called, effect)
    approver = options.pop("approver", None)
    llm = ScriptedModel(repair=FIXED, tool_call=call("remove", path="a"), answer="done")
    config = RunConfig(single_pass=True, durability="off", **options)
    given = steps({"tool": named} if named else {})
    return Orchestrator(llm, registry, config=config, approver=approver, journal=False).run("a task", given)


@pytest.mark.parametrize("effect", ["unsafe", "idempotent"])
@pytest.mark.parametrize("named", ["rm", None])
def test_an_unaskable_substitution_fails_naming_the_rule_to_add(effect: Effect, named: str | None) -> None:
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


def test_a_fork_of_the_first_pass_asks_about_the_repairs_tool(tmp_path: Path) -> None:
    parent, called = tmp_path / "p.jsonl", list[str]()
    broken = {"goal": "g", "steps": [{"id": "s1", "description": "", "tool": "rm", "arguments": {"path": "a"}}]}
    whole = {"goal": "g", "steps": [{**broken["steps"][0], "description": "do part 1", "tool": "remove"}]}
    config = RunConfig(single_pass=True, durability="off", approve=("tool",))
    llm = ScriptedModel(plan=broken, repair=whole, answer="done")
    Orchestrator(llm, tools(called), config=config, approver=approves, journal=parent).run("a task")
    assert called == ["a"]
    again = ScriptedModel(repair=FIXED, answer="done")
    result = Fork(parent, 1, again, tools(called), config=config, journal=tmp_path / "f.jsonl").run()
    assert called == ["a"]
    assert "a repair chose 'remove' for a step that names the tool 'rm'" in (result.steps[0].errors or [""])[0]


def test_a_fork_of_a_later_pass_asks_about_it_again(tmp_path: Path) -> None:
    parent, called = tmp_path / "p.jsonl", list[str]()
    fixed = {**FIXED, "step_id": "s9", "description": "Remove the file a"}
    written = plan(by=0)
    written["steps"].append({**fixed, "tool": "rm"})
    scripts: dict[str, Any] = {"plan": written, "refine": [NOTHING, MENDED], "repair": fixed}
    config = RunConfig(durability="off", approve=("tool",))
    Orchestrator(model(**scripts), tools(called), config=config, approver=approves, journal=parent).run(TASK)
    assert called == ["a"]
    start = starting_edit(parent, 2).plan
    assert start is not None
    edited = start.model_dump(exclude_none=True)
    next(step for step in edited["steps"] if step["step_id"] == "s9")["status"] = "pending"
    result = Fork(parent, 2, model(**scripts), tools(called), config=config, plan=edited, journal=False).run()
    assert called == ["a"]
    [errors] = [step.errors for step in result.steps if step.step_id == "s9"]
    assert "a repair chose 'remove' for a step that names the tool 'rm'" in (errors or [""])[0]


def test_a_resumed_run_asks_about_it(tmp_path: Path) -> None:
    path, called = tmp_path / "r.jsonl", list[str]()
    llm = ScriptedModel(repair=FIXED, answer="done")
    config = RunConfig(single_pass=True, durability="off")
    Orchestrator(llm, tools(called), config=config, journal=path).run("a task", steps({"tool": "rm"}))
    cut_behind(path, type="plan", cause="repaired")
    result = resume(path, llm, tools(called))
    assert (called, result.steps[0].status) == ([], "failed")


@pytest.mark.parametrize(("named", "times"), [("rm", 1), ("remove", 2)])
def test_a_resumed_run_does_not_repeat_its_call_for_a_secret_in_the_result(
    tmp_path: Path, named: str, times: int
) -> None:
    path, called = tmp_path / "r.jsonl", list[str]()
    arguments = {"path": "secret"}
    llm = ScriptedModel(repair={**FIXED, "arguments": arguments}, reason="ok", answer="done")
    config = RunConfig(single_pass=True, durability="off", approve=("tool",))
    given = steps({"tool": named, "arguments": arguments}, {"agent": "llm"})
    Orchestrator(llm, tools(called, "idempotent"), config=config, approver=approves, journal=path).run("t", given)
    cut_behind(path, type="step", step_id="s1", status="complete")
    result = resume(path, llm, tools(called, "idempotent"))
    assert len(called) == times
    assert result.status == ("completed" if times == 2 else "failed")


@pytest.mark.parametrize(("effect", "calls"), [("unsafe", []), ("pure", ["a"])])
def test_a_refinement_that_names_another_tool_for_an_unknown_one_substitutes_it(
    effect: Effect, calls: list[str]
) -> None:
    called: list[str] = []
    fixed = {**FIXED, "step_id": "s9", "description": "Remove the file a"}
    written = plan()
    written["steps"].append({**fixed, "tool": "rm"})
    changes = {"tool": "remove", "arguments": {"path": "a"}}
    change = {"type": "step_modify", "target": "s9", "changes": changes, "reason": "that tool is there"}
    llm = model(plan=written, refine={"actions": [change], "follow_up_questions": []}, repair=fixed)
    result = Orchestrator(llm, tools(called, effect), config=RunConfig(durability="off"), journal=False).run(TASK)
    assert called == calls
    assert llm.asked("repair") == []
    [errors] = [step.errors for step in result.steps if step.step_id == "s9"]
    why = "a repair chose 'remove' for a step that names the tool 'rm'"
    assert [why in error for error in errors or []] == ([] if calls else [True])
