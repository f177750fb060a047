"""A task runs: plan, steps in their four modes, answer (core FR-001 to FR-005, FR-052 to FR-066)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from aeon_core import (
    InMemoryStore,
    LLMError,
    LLMResponse,
    Memory,
    Orchestrator,
    Plan,
    RunConfig,
    RunResult,
    ToolRegistry,
    tool,
)
from aeon_core.tools.registry import default_registry
from tests.fakes import ScriptedModel, add, call, steps
from tests.replays import replays_the_same

Records = list[dict[str, Any]]


def run(
    model: ScriptedModel, plan: Any = None, *, task: str = "a task", ttl: int = 50, replays: bool = True, **options: Any
) -> tuple[RunResult, Records]:
    """Run the task in one pass; then see that its records replay, which `replays=False` leaves out."""
    records: Records = []
    orchestrator = Orchestrator(
        model,
        config=RunConfig(single_pass=True, ttl=ttl, durability="off"),
        journal=False,
        on_record=records.append,
        **options,
    )
    result = orchestrator.run(task, plan)
    if replays:
        replays_the_same(records)
    return result, records


def of(records: Records, kind: str) -> Records:
    return [record for record in records if record["type"] == kind]


def test_the_sum_reaches_the_step_the_memory_the_next_prompt_and_the_answer() -> None:
    memory = InMemoryStore()
    model = ScriptedModel(
        plan=steps({"tool": "calculator"}, {"agent": "llm"}),
        tool_call=call("calculator", operation="add", a=5, b=10),
        reason=lambda request: "seen" if '{"result": 15}' in request.prompt else "not seen",
        answer=lambda request: "It is 15." if '{"result": 15}' in request.prompt else "unknown",
    )
    result, _ = run(model, task="calculate the sum of 5 and 10", memory=memory)
    assert result.status == "completed"
    assert result.exit_code == 0
    assert result.steps[0].output == {"result": 15}
    assert memory.read("s1") == {"result": 15}
    assert result.steps[1].output == {"text": "seen"}
    assert result.answer == "It is 15."
    assert [step.mode for step in result.steps] == ["tool", "llm"]


def test_the_task_reaches_the_plan_prompt_unaltered_with_every_tool_its_schemas_and_examples() -> None:
    task = "  two\n\nlines, “quotes” & <tags> \x00 end "
    model = ScriptedModel(plan=steps(add(1, 2)), answer="3")
    run(model, task=task)
    [request] = model.asked("plan")
    assert task in request.prompt
    for described in default_registry().export_tools_for_llm():
        line = json.dumps(described, ensure_ascii=False)
        assert line in request.prompt
        assert described["examples"]
        assert described["input_schema"]["properties"]
        assert described["output_schema"]["properties"]


def test_existing_memory_reaches_the_plan_prompt() -> None:
    memory = InMemoryStore()
    model = ScriptedModel(plan=steps(add(1, 2)), answer="3")
    run(model, memory=memory)
    assert "<memory>" not in model.asked("plan")[0].prompt

    held = {"asked": "add 5 and 10", "answered": "15"}
    memory = InMemoryStore()
    memory.write("earlier-prompt-1", held)
    model = ScriptedModel(plan=steps(add(15, 2)), answer="17")
    run(model, task="now add 2", memory=memory)
    assert json.dumps({"key": "earlier-prompt-1", "value": held}) in model.asked("plan")[0].prompt


def test_every_iteration_gets_plan_state_earlier_results_errors_and_remaining_ttl() -> None:
    model = ScriptedModel(
        plan=steps(
            {"tool": "calculator", "arguments": {"operation": "divide", "a": 1, "b": 0}}, add(2, 3), {"agent": "llm"}
        ),
        reason="thought",
        answer="done",
    )
    run(model, ttl=9)
    [request] = model.asked("reason")
    assert '"step_id": "s1", "description": "do part 1", "status": "failed"' in request.prompt
    assert '"step_id": "s3", "description": "do part 3", "status": "running"' in request.prompt
    assert '{"step_id": "s2", "output": {"result": 5}}' in request.prompt
    assert "division by zero" in request.prompt.lower()
    assert "8 cycles remaining of 9" in request.prompt
    [answer] = model.asked("answer")
    assert "7 cycles remaining of 9" in answer.prompt


def test_steps_run_in_order_regardless_of_dependencies() -> None:
    plan = steps({**add(1, 1), "depends_on": ["s3"]}, add(2, 2), add(3, 3))
    _, records = run(ScriptedModel(answer="done"), plan)
    moves = [(record["step_id"], record["status"]) for record in of(records, "step")]
    assert moves == [(f"s{n}", status) for n in (1, 2, 3) for status in ("running", "complete")]


def test_a_failing_tool_fails_its_step_and_the_next_one_runs() -> None:
    registry = ToolRegistry()

    @tool(effect="pure")
    def fragile() -> int:
        """Always breaks."""
        raise RuntimeError("broken [bold]pipe[/]\x1b[31m \ud800")

    registry.register(fragile)
    for stub in default_registry():
        registry.register(stub)
    result, records = run(
        ScriptedModel(answer="one of two"), steps({"tool": "fragile", "arguments": {}}, add(1, 1)), tools=registry
    )
    assert [step.status for step in result.steps] == ["failed", "complete"]
    assert result.status == "not_converged"
    assert result.exit_code == 5
    assert result.steps[0].errors[0].startswith("RuntimeError: broken [bold]pipe[/]\x1b[31m")
    assert result.plan is not None
    assert result.plan.steps[0].errors is None
    cycle = of(records, "cycle")[0]
    assert cycle["errors"][0]["step_id"] == "s1"
    assert cycle["errors"][0]["tool_name"] == "fragile"
    assert "error" in cycle["tool_calls"][0]
    assert "result" not in cycle["tool_calls"][0]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"error": "no such record"}, "no such record"),
        ({"count": "three"}, "output_schema"),
        ({"count": object()}, "no JSON"),
    ],
)
def test_a_returned_error_and_an_unfitting_result_fail_the_step(value: Any, why: str) -> None:
    class Counter:
        name = "counter"
        description = "Counts."
        input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
        output_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"count": {"type": "integer"}}}

        def invoke(self, **_: Any) -> Any:
            return value

    registry = ToolRegistry()
    registry.register(Counter())
    result, _ = run(ScriptedModel(answer="x"), steps({"tool": "counter", "arguments": {}}), tools=registry)
    assert result.steps[0].status == "failed"
    assert why in result.steps[0].errors[0]


def test_a_tool_cannot_change_its_recorded_arguments() -> None:
    registry = ToolRegistry()

    @tool(effect="pure")
    def greedy(items: list[int]) -> int:
        """Empties what it is given."""
        total = sum(items)
        items.clear()
        return total

    registry.register(greedy)
    plan = Plan.model_validate(steps({"tool": "greedy", "arguments": {"items": [1, 2]}}))
    result, records = run(ScriptedModel(answer="3"), plan, tools=registry)
    assert result.steps[0].output == {"result": 3}
    assert plan.steps[0].arguments == {"items": [1, 2]}
    assert of(records, "cycle")[0]["tool_calls"][0]["arguments"] == {"items": [1, 2]}


def test_a_missing_tool_is_repaired_in_place_in_the_same_plan_object() -> None:
    plan = Plan.model_validate(steps({"tool": "adder", "description": "add 5 and 10"}))
    listed = plan.steps

    def repair(request: Any) -> Any:
        assert "Tool 'adder' not found in registry" in request.prompt
        assert "a goal" in request.prompt
        assert '"name": "calculator"' in request.prompt
        return {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator"}

    model = ScriptedModel(repair=repair, tool_call=call("calculator", operation="add", a=5, b=10), answer="15")
    result, records = run(model, plan)
    assert result.plan is plan
    assert plan.steps is listed
    assert plan.steps[0].tool == "calculator"
    assert plan.steps[0].errors is None
    assert result.steps[0].mode == "tool"
    assert result.steps[0].output == {"result": 15}
    assert [record["cause"] for record in of(records, "plan")] == ["given", "repaired"]
    assert of(records, "plan")[0]["plan"]["steps"][0]["errors"] == ["Tool 'adder' not found in registry"]
    [action] = of(records, "supervisor")
    assert (action["action_type"], action["attempt_number"], action["method"]) == ("plan_repair", 1, "llm")


def test_a_step_that_cannot_be_repaired_falls_back_to_reasoning_on_its_description() -> None:
    model = ScriptedModel(
        repair={"step_id": "s1", "description": "weigh the options", "tool": "scale"},
        fallback=lambda request: f"thought about: {'weigh the options' in request.prompt}",
        answer="done",
    )
    result, records = run(model, steps({"tool": "scale", "description": "weigh the options"}))
    assert result.steps[0].mode == "fallback"
    assert result.steps[0].output == {"text": "thought about: True"}
    assert result.status == "completed"
    assert [record["attempt_number"] for record in of(records, "supervisor")] == [1, 2]
    assert all("error" in record for record in of(records, "supervisor"))
    assert len(model.asked("repair")) == 2


def test_a_tool_takes_precedence_over_the_agent() -> None:
    result, _ = run(ScriptedModel(answer="2"), steps({**add(1, 1), "agent": "llm"}))
    assert result.steps[0].mode == "tool"


def test_a_tool_that_is_unregistered_during_the_run_makes_a_missing_tool_step() -> None:
    registry = default_registry()

    @tool(effect="pure")
    def saboteur() -> str:
        """Removes the calculator."""
        registry.unregister("calculator")
        return "gone"

    registry.register(saboteur)
    model = ScriptedModel(repair="no", fallback="by hand: 2", answer="2")
    plan = steps({"tool": "saboteur", "arguments": {}}, add(1, 1))
    # What comes and goes during a run is in no record.
    result, _ = run(model, plan, tools=registry, replays=False)
    assert [step.mode for step in result.steps] == ["tool", "fallback"]
    assert result.steps[1].output == {"text": "by hand: 2"}


def test_given_arguments_that_do_not_fit_are_repaired() -> None:
    plan = steps({"tool": "calculator", "arguments": {"operation": "add", "first": 5, "b": 10}})
    model = ScriptedModel(
        repair={"tool_name": "calculator", "arguments": {"operation": "add", "a": 5, "b": 10}}, answer="15"
    )
    result, records = run(model, plan)
    assert result.steps[0].output == {"result": 15}
    [action] = of(records, "supervisor")
    assert action["action_type"] == "tool_call_repair"


def test_an_unrepairable_tool_call_fails_the_step_and_the_run_continues() -> None:
    model = ScriptedModel(
        tool_call=call("calculator", operation="add", a="x", b="y"),
        repair={"tool_name": "calculator", "arguments": {"operation": "add", "a": "z", "b": 1}},
        answer="done",
    )
    result, records = run(model, steps({"tool": "calculator"}, add(1, 1)))
    assert [step.status for step in result.steps] == ["failed", "complete"]
    assert len(of(records, "supervisor")) == 2
    assert of(records, "cycle")[0]["errors"][0]["error_type"] == "SupervisorError"


def test_a_memory_that_fails_never_stops_a_run_and_is_noted_in_the_cycle() -> None:
    class Full(Memory):
        def write(self, key: str, value: Any) -> None:
            raise OSError("no room")

        def read(self, key: str) -> Any:
            raise OSError("unreadable")

        def search(self, prefix: str) -> list[tuple[str, Any]]:
            raise OSError("unreadable")

    model = ScriptedModel(reason="fine", answer="done")
    result, records = run(model, steps(add(1, 1), {"agent": "llm"}), memory=Full())
    assert result.status == "completed"
    assert "no room" in of(records, "memory")[0]["error"]
    assert of(records, "cycle")[0]["errors"][0]["error_type"] == "MemoryStoreError"
    (notice,) = of(records, "notice")
    assert (notice["kind"], notice["message"]) == ("memory", "memory cannot be read: OSError: unreadable")
    assert '{"step_id": "s1", "output": {"result": 2}}' in model.asked("reason")[0].prompt


def test_what_a_readable_store_refuses_is_still_known() -> None:
    class Full(InMemoryStore):
        def write(self, key: str, value: Any) -> None:
            raise OSError("no room")

    _, records = run(
        ScriptedModel(reason="fine", answer="done"), steps(add(1, 1), {"agent": "llm"}, add(2, 2)), memory=Full()
    )
    assert [(record["key"], record["source"]) for record in of(records, "memory")] == [
        (step_id, "kernel") for step_id in ("s1", "s2", "s3")
    ]


def test_outside_writes_to_memory_reach_the_next_prompt_and_the_journal() -> None:
    memory = InMemoryStore()
    memory.write("project", "Apollo")
    registry = ToolRegistry()

    @tool(effect="pure")
    def note() -> str:
        """Writes a note of its own."""
        memory.write("note", {"by": "tool"})
        return "noted"

    registry.register(note)
    model = ScriptedModel(reason="ok", answer="ok")
    _, records = run(model, steps({"tool": "note", "arguments": {}}, {"agent": "llm"}), tools=registry, memory=memory)
    prompt = model.asked("reason")[0].prompt
    assert '{"key": "project", "value": "Apollo"}' in prompt
    assert '{"key": "note", "value": {"by": "tool"}}' in prompt
    assert of(records, "run_started")[0]["memory"] == {"project": "Apollo"}
    assert [(r["key"], r["source"]) for r in of(records, "memory")][:2] == [("s1", "kernel"), ("note", "external")]


def test_substeps_run_before_their_parent_gathers_their_outputs() -> None:
    plan = steps(
        {
            "subplan": {
                "parent_step_id": "s1",
                "subplan_goal": "parts",
                "substeps": [
                    {"step_id": "s1.1", "description": "first", **add(1, 2)},
                    {"step_id": "s1.2", "description": "second", **add(3, 4)},
                ],
            }
        }
    )
    result, records = run(ScriptedModel(answer="ok"), plan)
    assert result.steps[0].output == {"s1.1": {"result": 3}, "s1.2": {"result": 7}}
    assert [step.step_id for step in result.steps] == ["s1", "s1.1", "s1.2"]
    assert [r["step_number"] for r in of(records, "cycle")] == [1, 2, 3, 4]


@pytest.mark.parametrize("reply", ["", "  \n", LLMResponse(text="no", stop_reason="refusal")])
def test_an_empty_reply_or_a_refusal_fails_the_reasoning_step(reply: Any) -> None:
    result, _ = run(ScriptedModel(reason=reply, answer="x"), steps({"agent": "llm"}))
    assert result.steps[0].status == "failed"
    assert result.steps[0].errors


def no_wait(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(
        "aeon_core.effects.record_stream.RecordStream.wait",
        lambda self, seconds: None if self.recording else waits.append(seconds),
    )
    return waits


def test_a_model_that_stays_down_fails_the_step_and_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = no_wait(monkeypatch)
    model = ScriptedModel(reason=LLMError("overloaded", True, status_code=529))
    result, records = run(model, steps({"agent": "llm"}, add(1, 1)))
    assert len(model.requests) == 3
    assert len(waits) == 2
    assert waits[0] < waits[1]
    assert result.status == "failed"
    assert result.exit_code == 1
    assert [step.status for step in result.steps] == ["failed", "pending"]
    assert result.error is not None
    assert (result.error["error_type"], result.error["step_id"]) == ("LLMError", "s1")
    finished = [record for record in of(records, "llm") if record["state"] == "finished"]
    assert [record["attempt"] for record in finished] == [1, 2, 3]
    assert ["retry_in_s" in record for record in finished] == [True, True, False]
    assert of(records, "cycle")[-1]["errors"][0]["message"] == "overloaded"
    assert records[-1]["type"] == "run_finished"


def test_a_refused_key_is_not_tried_again_and_exits_with_3() -> None:
    model = ScriptedModel(plan=LLMError("the key was refused", status_code=401))
    result, records = run(model)
    assert len(model.requests) == 1
    assert (result.status, result.exit_code) == ("failed", 3)
    assert of(records, "cycle")[0]["errors"][0]["message"] == "the key was refused"


def test_an_adapter_that_breaks_its_contract_fails_the_run_in_one_line() -> None:
    class Odd(ScriptedModel):
        def complete(self, request: Any) -> Any:
            return None

    result, _ = run(Odd())
    assert result.status == "failed"
    assert result.error is not None
    assert "expected LLMResponse" in result.error["message"]


@pytest.mark.parametrize(
    "build",
    [
        lambda: Orchestrator(ScriptedModel(), journal=False).run("   "),
        lambda: Orchestrator(ScriptedModel(), journal=False).run("x", {"goal": "g", "steps": []}),
    ],
)
def test_errors_at_start_are_raised_before_anything_is_written(build: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as caught:  # both are AeonErrors, of different kinds
        build()
    assert "\n" not in str(caught.value)


def test_an_executed_plan_is_not_run_again() -> None:
    plan = Plan.model_validate(steps(add(1, 1)))
    run(ScriptedModel(answer="2"), plan)
    with pytest.raises(Exception, match="already executed"):
        run(ScriptedModel(answer="2"), plan)


def test_a_tool_that_needs_approval_asks_and_without_anyone_to_ask_fails() -> None:
    from aeon_core import ApprovalDecision, ApprovalRequest

    calls: list[int] = []

    @tool(effect="unsafe", needs_approval=True)
    def launch(count: int) -> int:
        """Launches."""
        calls.append(count)
        return count

    registry = ToolRegistry()
    registry.register(launch)
    plan = steps({"tool": "launch", "arguments": {"count": 2}})
    result, _ = run(ScriptedModel(answer="x"), plan, tools=registry)
    assert calls == []
    assert result.steps[0].status == "failed"
    asked: list[ApprovalRequest] = []

    def edit(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(decision="edit", edited={"count": 1})

    result, records = run(ScriptedModel(answer="x"), plan, tools=registry, approver=edit)
    assert calls == [1]
    assert asked[0].subject["arguments"] == {"count": 2}
    assert [record["state"] for record in of(records, "approval")] == ["asked", "decided"]
