"""Replies become valid plans, calls and steps: strictly, locally, or by the model (core FR-027 to FR-033)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core import PlanStep, Supervisor, ToolRegistry
from aeon_core.entities import SupervisorAction
from aeon_core.errors import LLMError, SupervisorError
from aeon_core.llm.base import LLMResponse
from aeon_core.plan.parsing import dump_plan
from aeon_core.plan.wire import WIRE_SCHEMA
from aeon_core.supervisor.lenient import MAX_REPAIRABLE
from aeon_core.tools.registry import default_registry
from tests.fakes import ScriptedModel, call

REGISTRY = default_registry()
NOW = "2026-11-20T09:30:00Z"
ADD = {"operation": "add", "a": 5, "b": 10}
PLAN: dict[str, Any] = {
    "goal": "g",
    "steps": [{"step_id": "s1", "description": "add 5 and 10", "status": "pending", "tool": "adder"}],
}
STEP = PlanStep(step_id="s1", description="add 5 and 10", tool="calculator")
CALL = {"tool_name": "calculator", "arguments": ADD}


class Desk:
    """A supervisor with a scripted model, and what it reported."""

    def __init__(self, folder: Path, *repairs: Any) -> None:
        (folder / "repair.md").write_text("Mend it.", encoding="utf-8")
        self.model = ScriptedModel(repair=list(repairs)) if repairs else ScriptedModel()
        self.actions: list[tuple[SupervisorAction, str]] = []
        self.supervisor = Supervisor(
            self.model,
            registry=REGISTRY,
            on_action=lambda action, method: self.actions.append((action, method)),
            clock=lambda: NOW,
            prompts_dir=folder,
            max_tokens=123,
        )

    @property
    def reported(self) -> list[dict[str, Any]]:
        return [{"method": method, **action.model_dump(exclude_none=True)} for action, method in self.actions]

    @property
    def outcomes(self) -> list[tuple[str, str, int, str | None]]:
        """Method, type, attempt and, of a refused one, why."""
        return [
            (method, action.action_type, action.attempt_number, action.error["message"] if action.error else None)
            for action, method in self.actions
        ]


NewDesk = Callable[..., Desk]


@pytest.fixture
def desk(tmp_path: Path) -> NewDesk:
    return lambda *repairs: Desk(tmp_path, *repairs)


def reply(value: Any, **fields: Any) -> LLMResponse:
    return LLMResponse(text=value if isinstance(value, str) else json.dumps(value), **fields)


def native(*calls: Any) -> LLMResponse:
    return LLMResponse(text="", tool_calls=list(calls))


def failure(work: Callable[[], Any]) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        work()
    error = caught.value
    assert "\n" not in error.message
    assert error.context["unrecoverable"] is True
    assert error.context["problems"]
    return error


def test_a_valid_plan_is_taken_without_a_repair_and_with_its_unknown_tools(desk: NewDesk) -> None:
    work = desk()
    assert dump_plan(work.supervisor.read_plan(reply(PLAN), REGISTRY)) == PLAN
    assert (work.actions, work.model.requests) == ([], [])


def test_a_plan_in_a_fence_is_repaired_locally_as_the_first_attempt(desk: NewDesk) -> None:
    work = desk()
    text = f"Here:\n```json\n{json.dumps(PLAN)[:-1]},}}\n```"
    assert dump_plan(work.supervisor.read_plan(reply(text), REGISTRY)) == PLAN
    assert work.reported == [
        {
            "method": "local",
            "action_type": "json_repair",
            "original_output": {"text": text},
            "repaired_output": PLAN,
            "attempt_number": 1,
            "timestamp": NOW,
        }
    ]


def test_broken_text_is_repaired_by_the_model_and_the_request_says_all_it_needs(desk: NewDesk) -> None:
    text = json.dumps(PLAN)[:-3]
    work = desk(f"```json\n{json.dumps(PLAN)}\n```")
    assert dump_plan(work.supervisor.read_plan(reply(text), REGISTRY)) == PLAN
    assert work.reported == [
        {
            "method": "llm",
            "action_type": "json_repair",
            "original_output": {"text": text},
            "repaired_output": PLAN,
            "attempt_number": 1,
            "timestamp": NOW,
        }
    ]
    [request] = work.model.requests
    assert (request.purpose, request.max_tokens, request.schema) == ("repair", 123, WIRE_SCHEMA)
    assert request.system == "Aeon repair\n\nMend it.\n"
    tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in REGISTRY.export_tools_for_llm())
    errors = request.prompt.partition("<errors>\n")[2].partition("\n</errors>")[0]
    assert errors.startswith("not JSON: ")
    assert request.prompt == (
        f"<tools>\n{tools}\n</tools>\n\n<errors>\n{errors}\n</errors>\n\n"
        f"<schema>\n{json.dumps(WIRE_SCHEMA)}\n</schema>\n\n<original>\n{text}\n</original>"
    )


def test_an_invalid_structure_is_a_plan_repair_of_the_object(desk: NewDesk) -> None:
    broken = {"goal": "g", "steps": [{"step_id": "s1", "description": "add 5 and 10", "tol": "adder"}]}
    repaired = {"goal": "g", "steps": [{"id": "s1", "parent": None, "description": "add 5 and 10", "tool": None}]}
    work = desk(repaired)
    assert work.supervisor.read_plan(reply(broken), REGISTRY).steps[0].tool is None
    assert work.outcomes == [("llm", "plan_repair", 1, None)]
    assert work.actions[0][0].original_output == broken
    assert "steps[0]: unknown key \"tol\", the nearest known one is 'tool'" in work.model.requests[0].prompt


def test_a_local_repair_that_gives_no_valid_plan_is_no_record(desk: NewDesk) -> None:
    text = '{"goal": "g", "steps": [{"step_id": "s1"},]}'
    work = desk({"goal": "g", "steps": [{"step_id": "s1", "description": "g", "agent": "llm"}]})
    work.supervisor.read_plan(reply(text), REGISTRY)
    assert work.outcomes == [("llm", "plan_repair", 1, None)]
    assert work.actions[0][0].original_output == {"text": text}


def test_a_refused_repair_is_an_error_and_the_second_attempt_is_told_why(desk: NewDesk) -> None:
    broken = {**PLAN, "x": 1}
    work = desk({**PLAN, "goal": "another"}, PLAN)
    work.supervisor.read_plan(reply(broken), REGISTRY)
    refused = 'the goal was changed to "another"; a repair keeps "g"'
    assert work.outcomes == [("llm", "plan_repair", 1, refused), ("llm", "plan_repair", 2, None)]
    first, second = (request.prompt for request in work.model.requests)
    assert refused not in first
    assert f"the previous repair was refused: {refused}" in second
    assert 'plan: unknown key "x"' in second


def test_after_two_failed_attempts_the_error_is_structured_and_final(desk: NewDesk) -> None:
    work = desk("still no JSON", {"goal": "g", "steps": []})
    error = failure(lambda: work.supervisor.read_plan(reply("{broken"), REGISTRY))
    assert len(work.model.requests) == 2
    assert [outcome[:3] for outcome in work.outcomes] == [("llm", "json_repair", 1), ("llm", "json_repair", 2)]
    assert error.as_dict() == {
        "error_type": "SupervisorError",
        "message": "the plan could not be repaired in 2 attempts: "
        "steps: expected an array of at least one step, got an empty array",
        "unrecoverable": True,
        "attempts": 2,
        "problems": ["steps: expected an array of at least one step, got an empty array"],
    }


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (LLMResponse(text="I will not.", stop_reason="refusal"), "the model refused: I will not."),
        (LLMResponse(text="", stop_reason="refusal"), "the model refused: without a reason"),
    ],
)
def test_a_refusal_is_nothing_to_repair(desk: NewDesk, response: LLMResponse, reason: str) -> None:
    work = desk()
    error = failure(lambda: work.supervisor.read_plan(response, REGISTRY))
    assert error.context["problems"][0].startswith(reason)
    assert error.context["attempts"] == 0
    assert (work.actions, work.model.requests) == ([], [])


def test_a_reply_too_long_to_repair_is_one_attempt_that_asks_no_model(desk: NewDesk) -> None:
    work = desk()
    text = "{" * (MAX_REPAIRABLE + 1)
    error = failure(lambda: work.supervisor.read_plan(reply(text), REGISTRY))
    reason = f"the reply has {len(text)} characters, a model is asked to repair at most {MAX_REPAIRABLE}"
    assert error.message == f"the plan could not be repaired in 1 attempt: {reason}"
    assert work.outcomes == [("local", "json_repair", 1, reason)]
    assert work.actions[0][0].original_output == {"text": text}
    assert work.model.requests == []


@pytest.mark.parametrize("text", ["", " \n", "<think>Hm.</think>\n"])
def test_an_empty_reply_goes_to_the_model_with_the_task(desk: NewDesk, text: str) -> None:
    work = desk({"goal": "add 5 and 10", "steps": [{"step_id": "s1", "description": "add 5 and 10"}]})
    error = failure(lambda: work.supervisor.read_plan(reply(text), REGISTRY, task="add 5 and 10"))
    assert error.context["attempts"] == 2
    reason = "the description of step 's1' is no clause of the original"
    assert work.outcomes == [("llm", "json_repair", number, reason) for number in (1, 2)]
    assert work.actions[0][0].original_output["text"].strip() == ""
    assert work.model.requests[0].prompt.startswith("<task>\nadd 5 and 10\n</task>\n\n<tools>\n")


def test_the_model_is_told_that_a_reply_was_cut_off(desk: NewDesk) -> None:
    work = desk(PLAN)
    work.supervisor.read_plan(reply(json.dumps(PLAN)[:-2], stop_reason="max_tokens"), REGISTRY)
    assert "the reply was cut off at max_tokens" in work.model.requests[0].prompt


def test_a_key_named_twice_is_not_silently_read_as_one(desk: NewDesk) -> None:
    work = desk(PLAN)
    text = json.dumps(PLAN).replace('"goal": "g"', '"goal": "g", "goal": "g"')
    work.supervisor.read_plan(reply(text), REGISTRY)
    assert "the key 'goal' occurs twice" in work.model.requests[0].prompt


def test_an_adapter_that_fails_fails_the_repair(desk: NewDesk) -> None:
    with pytest.raises(LLMError, match="down"):
        desk(LLMError("down")).supervisor.read_plan(reply("{"), REGISTRY)


@pytest.mark.parametrize(
    ("response", "locally"),
    [
        (call("calculator", **ADD), False),
        (native({"name": "calculator", "arguments": json.dumps(ADD)}), False),
        (native({"name": "echo", "arguments": {}}, {"name": "calculator", "arguments": ADD}), False),
        (LLMResponse(text="not JSON", tool_calls=[{"name": "calculator", "arguments": ADD}]), False),
        (reply(CALL), False),
        (reply({**CALL, "arguments": json.dumps(ADD)}), False),
        (native({"name": "calculator", "arguments": json.dumps(ADD)[:-1] + ",}"}), True),
        (reply(f"```\n{json.dumps(CALL)}\n```"), True),
    ],
)
def test_a_tool_call_is_read_in_every_form(desk: NewDesk, response: LLMResponse, locally: bool) -> None:
    work = desk()
    assert work.supervisor.read_tool_call(response, STEP, REGISTRY) == ADD
    assert work.outcomes == ([("local", "json_repair", 1, None)] if locally else [])
    if locally:
        assert work.actions[0][0].repaired_output == CALL


def test_a_tool_without_parameters_may_be_called_with_empty_text(desk: NewDesk) -> None:
    registry = ToolRegistry()

    def ping() -> str:
        """Answers."""
        return "pong"

    registry.register(ping)
    step = PlanStep(step_id="s", description="d", tool="ping")
    response = native({"name": "ping", "arguments": ""})
    assert desk().supervisor.read_tool_call(response, step, registry) == {}


@pytest.mark.parametrize(
    ("response", "action_type", "original", "error"),
    [
        (
            call("calculator", operation="add", a="5", b=10),
            "tool_call_repair",
            {"tool_name": "calculator", "arguments": {"operation": "add", "a": "5", "b": 10}},
            'a: expected number, got "5"',
        ),
        (
            call("sum", operation="add", a=5, b=10),
            "tool_call_repair",
            {"tool_calls": [{"id": "t1", "name": "sum", "arguments": ADD}]},
            "expected exactly one call of 'calculator', the tool of the step, got 0 among \"sum\"",
        ),
        (
            LLMResponse(text="", tool_calls=[{"name": "calculator", "arguments": ADD}] * 2),
            "tool_call_repair",
            {"tool_calls": [{"name": "calculator", "arguments": ADD}] * 2},
            "expected exactly one call of 'calculator', the tool of the step, got 2 among \"calculator\"",
        ),
        (
            native({"name": "calculator", "arguments": '{"operation": "add", "a": 5, "b": 1'}),
            "json_repair",
            {"tool_name": "calculator", "arguments": '{"operation": "add", "a": 5, "b": 1'},
            "arguments: not JSON: ",
        ),
        (
            reply({"name": "calculator", "arguments": {**ADD, "b": None}}),
            "tool_call_repair",
            {"name": "calculator", "arguments": {**ADD, "b": None}},
            "unknown key \"name\", expected 'tool_name' and 'arguments'",
        ),
        (reply("I add {5 to 10}."), "json_repair", {"text": "I add {5 to 10}."}, "not JSON: "),
        (reply([ADD]), "tool_call_repair", {"value": [ADD]}, "expected an object with 'tool_name' and 'arguments'"),
    ],
)
def test_a_bad_tool_call_is_repaired_by_the_model(
    desk: NewDesk, response: LLMResponse, action_type: str, original: dict[str, Any], error: str
) -> None:
    work = desk(CALL)
    if action_type == "json_repair" and response.tool_calls:
        work = desk({**CALL, "arguments": {**ADD, "b": 1}})
    arguments = work.supervisor.read_tool_call(response, STEP, REGISTRY, goal="the goal")
    assert arguments["a"] == 5
    assert work.outcomes == [("llm", action_type, 1, None)]
    assert work.actions[0][0].original_output == original
    assert work.actions[0][0].repaired_output == {"tool_name": "calculator", "arguments": arguments}
    prompt = work.model.requests[0].prompt
    assert error in prompt
    order = [prompt.index(f"<{name}>") for name in ("goal", "tools", "step", "errors", "schema", "original")]
    assert order == sorted(order)


def test_arguments_that_can_still_be_read_out_of_broken_text_are_kept(desk: NewDesk) -> None:
    work = desk({**CALL, "arguments": {**ADD, "a": 10, "b": 5}}, CALL)
    broken = native({"name": "calculator", "arguments": '{"operation": "add", "a": 5, "b": 10'})
    assert work.supervisor.read_tool_call(broken, STEP, REGISTRY) == ADD
    assert work.outcomes[0][3] == "the argument 'a' was valid as 5 and was changed"


def test_declared_arguments_that_do_not_fit_are_repaired_and_valid_ones_kept(desk: NewDesk) -> None:
    given = {"operation": "add", "a": "5", "b": 10}
    work = desk({**CALL, "arguments": {**ADD, "b": 11}}, ADD)
    repaired = work.supervisor.repair_arguments(STEP, given, ['a: expected number, got "5"'], REGISTRY, "sum it up")
    assert repaired == ADD
    assert work.outcomes == [
        ("llm", "tool_call_repair", 1, "the argument 'b' was valid as 10 and was changed"),
        ("llm", "tool_call_repair", 2, None),
    ]
    assert given == {"operation": "add", "a": "5", "b": 10}
    assert "<goal>\nsum it up\n</goal>" in work.model.requests[0].prompt


def test_a_call_of_another_tool_is_no_repair(desk: NewDesk) -> None:
    work = desk({"tool_name": "echo", "arguments": {"message": "x"}}, {"tool_name": "calculator", "arguments": {}})
    error = failure(lambda: work.supervisor.repair_arguments(STEP, {}, ["a: missing"], REGISTRY, "g"))
    assert work.outcomes[0][3] == "tool_name: expected 'calculator', the tool of the step, got \"echo\""
    assert (error.context["step_id"], error.context["tool_name"], error.context["attempts"]) == ("s1", "calculator", 2)


def missing(**fields: Any) -> PlanStep:
    errors = ["Tool 'adder' not found in registry"]
    return PlanStep(**{**PLAN["steps"][0], "status": "running", "errors": errors, "depends_on": ["s0"], **fields})


@pytest.mark.parametrize(
    "repair",
    [
        {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator"},
        {"id": "s1", "parent": None, "description": "add 5 and 10", "tool": "calculator", "arguments_json": None},
        {"step": {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator", "status": "pending"}},
        {"tool": "calculator"},
    ],
)
def test_a_missing_tool_step_is_replaced_by_a_new_one_without_errors(desk: NewDesk, repair: dict[str, Any]) -> None:
    work, step = desk(repair), missing()
    repaired = work.supervisor.repair_missing_tool_step(step, REGISTRY.list(), "sum it up")
    assert repaired is not step
    assert step == missing()
    assert repaired.errors is None
    assert repaired == missing(tool="calculator", errors=None)
    assert work.outcomes == [("llm", "plan_repair", 1, None)]
    assert work.actions[0][0].original_output == step.model_dump(exclude_none=True)
    [request] = work.model.requests
    shown = request.prompt.partition("<schema>\n")[2].partition("\n</schema>")[0]
    assert request.schema == json.loads(shown)
    for part in ("<goal>\nsum it up\n", "<errors>\nTool 'adder' not found in registry\n", '"name": "calculator"'):
        assert part in request.prompt
    for tool in REGISTRY.export_tools_for_llm():
        assert json.dumps(tool, ensure_ascii=False) in request.prompt


def test_the_repaired_step_has_the_status_that_the_step_has_now(desk: NewDesk) -> None:
    step = PlanStep(step_id="s1", description="add 5 and 10", tool="adder")
    step.status = "running"
    repaired = desk({"tool": "calculator"}).supervisor.repair_missing_tool_step(step, REGISTRY.list(), "g")
    assert repaired.status == "running"


def test_a_repair_may_supply_the_arguments_and_keeps_the_subplan(desk: NewDesk) -> None:
    inner = {"parent_step_id": "s1", "subplan_goal": "h", "substeps": [{"step_id": "a", "description": "d"}]}
    step = missing(subplan=inner)
    work = desk({"tool": "calculator", "arguments": ADD})
    repaired = work.supervisor.repair_missing_tool_step(step, REGISTRY.list(), "g")
    assert repaired.arguments == ADD
    assert repaired.subplan == step.subplan


@pytest.mark.parametrize(
    ("repair", "reason"),
    [
        ({"tool": "sum"}, 'the repaired step names "sum" as its tool, not one of the tools it may use'),
        ({"tool": "adder", "description": "x"}, "description of step 's1' was changed; a repair keeps it"),
        ({"tool": "calculator", "arguments": "{5, 10"}, "step.arguments: not JSON: "),
        ({"goal": "g", "steps": [{"tool": "calculator"}, {"tool": "echo"}]}, "expected one step, got an array of 2"),
        ({}, "expected the step as an object, got an empty object"),
        ({"tool": "calculator", "description": "x"}, "description of step 's1' was changed; a repair keeps it"),
        ({"tool": "calculator", "subplan": {"substeps": []}}, "subplan: a repair adds no steps"),
        ({"tools": "calculator"}, "step: unknown key \"tools\", the nearest known one is 'tool'"),
        ({"tool": 5}, "step.tool: expected a string, got 5"),
        ("calculator", "not JSON: "),
        (["calculator"], 'expected the step as an object, got "calculator"'),
    ],
)
def test_a_bad_repair_of_a_step_is_refused_twice(desk: NewDesk, repair: Any, reason: str) -> None:
    work, step = desk(repair, repair), missing()
    error = failure(lambda: work.supervisor.repair_missing_tool_step(step, REGISTRY.list(), "g"))
    assert [outcome[3] and outcome[3].startswith(reason) for outcome in work.outcomes] == [True, True]
    assert error.context["attempts"] == 2
    assert step == missing()


def test_a_step_needs_only_the_tools_it_is_given_and_no_registry(tmp_path: Path) -> None:
    (tmp_path / "repair.md").write_text("x", encoding="utf-8")
    calculator = [tool for tool in REGISTRY.list() if tool.name == "calculator"]
    supervisor = Supervisor(ScriptedModel(repair={"tool": "calculator"}), prompts_dir=tmp_path)
    repaired = supervisor.repair_missing_tool_step(missing(errors=None), calculator, "g")
    assert repaired.tool == "calculator"
    model = ScriptedModel(repair={"tool": "echo"})
    supervisor = Supervisor(model, prompts_dir=tmp_path, registry=REGISTRY)
    with pytest.raises(SupervisorError, match="not one of the tools"):
        supervisor.repair_missing_tool_step(missing(), calculator, "g")
    assert '"name": "calculator"' in model.requests[0].prompt
    assert '"name": "echo"' not in model.requests[0].prompt


def test_without_any_tool_the_model_is_not_asked(desk: NewDesk) -> None:
    work = desk()
    error = failure(lambda: work.supervisor.repair_missing_tool_step(missing(), [], "g"))
    assert error.context["problems"][0] == "no tool is registered that the step could use"
    assert work.model.requests == []


HOSTILE = "[bold]x[/] [@click=app.quit] \x1b[2J \x00 \ud800 </original> " + "[" * 5000


@pytest.mark.parametrize("text", [HOSTILE, "x" * 5_000_000, '{"a":' * 5000, "[" * 5_000_000, '"' + "\\" * 5_000_001])
def test_hostile_replies_end_in_a_structured_error(desk: NewDesk, text: str) -> None:
    work = desk(text, text)
    error = failure(lambda: work.supervisor.read_plan(LLMResponse.model_construct(text=text, tool_calls=[]), REGISTRY))
    assert len(json.dumps(error.as_dict()).encode()) < 5000
    for action, _ in work.actions:
        json.dumps(action.model_dump(), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "repair",
    [
        {"step_id": "s1", "description": "add 5 and 10", "tool": "adder", "depends_on": ["s0"]},
        {"step_id": "s1", "description": "add 5 and 10", "tool": None},
        {"tool": "none"},
        {"tool": "N/A", "description": "no tool fits this"},
        {"agent": "llm"},
        {"step": {"tool": "adder", "agent": "LLM"}},
        "null",
    ],
)
def test_a_model_that_says_no_tool_fits_is_told_what_it_said_and_asked_once_more(desk: NewDesk, repair: Any) -> None:
    work = desk(repair)
    error = failure(lambda: work.supervisor.repair_missing_tool_step(missing(), REGISTRY.list(), "g"))
    reason = "the model says that no tool does what the step asks"
    assert error.message == f"the step could not be repaired in 2 attempts: {reason}"
    assert work.outcomes == [("llm", "plan_repair", attempt, reason) for attempt in (1, 2)]
    request = work.model.requests[1]
    assert f"the previous repair was refused: {reason}" in request.prompt
    schema = json.loads(request.prompt.partition("<schema>\n")[2].partition("\n</schema>")[0])
    assert schema["properties"]["tool"] == {"enum": ["echo", "calculator", None]}


KNOWN = {"results": '{"step_id": "s0", "output": {"result": 42}}', "memory": '{"key": "city", "value": "Berlin"}'}


def test_the_repair_of_a_call_sees_results_and_memory_and_may_use_them(desk: NewDesk) -> None:
    step = PlanStep(step_id="s1", description="add 5 to the result of s0", tool="calculator")
    arguments = {"operation": "add", "a": 5, "b": 42}
    work = desk({"tool_name": "calculator", "arguments": arguments})
    reply_ = call("calculator", operation="add", a=5)
    assert work.supervisor.read_tool_call(reply_, step, REGISTRY, goal="g", context=KNOWN) == arguments
    prompt = work.model.requests[0].prompt
    places = [prompt.index(f"<{name}>") for name in ("goal", "tools", "step", "results", "memory", "errors", "schema")]
    assert places == sorted(places)
    assert f"<results>\n{KNOWN['results']}\n</results>\n\n<memory>\n{KNOWN['memory']}\n</memory>" in prompt
    given = {"operation": "add", "a": 5}
    assert work.supervisor.repair_arguments(step, given, ["b: missing"], REGISTRY, "g", context=KNOWN) == arguments
    failure(lambda: work.supervisor.read_tool_call(reply_, step, REGISTRY, goal="g"))


def test_an_empty_reply_in_place_of_a_call_is_repaired_from_what_is_known(desk: NewDesk) -> None:
    work = desk(CALL)
    assert work.supervisor.read_tool_call(reply(""), STEP, REGISTRY) == ADD
    assert work.outcomes == [("llm", "json_repair", 1, None)]


def test_prose_in_place_of_a_call_is_repaired_only_from_what_is_known(desk: NewDesk) -> None:
    work = desk({"tool_name": "calculator", "arguments": {"operation": "add", "a": 777, "b": 10}}, CALL)
    assert work.supervisor.read_tool_call(reply("I would add 5 and 10."), STEP, REGISTRY) == ADD
    assert [outcome[:3] for outcome in work.outcomes] == [
        ("llm", "json_repair", 1),
        ("llm", "json_repair", 2),
    ]
    work = desk({"tool_name": "calculator", "arguments": {"operation": "add", "a": 777, "b": 999}})
    text = "<think>No {result}.</think>\nThe result of s0 is missing,\nbecause that step failed. " + "x" * 500
    error = failure(lambda: work.supervisor.read_tool_call(reply(text), STEP, REGISTRY, context=KNOWN))
    said = "the model made no call: The result of s0 is missing, because that step failed."
    assert error.context["attempts"] == 2
    assert said in work.model.requests[0].prompt


@pytest.mark.parametrize("tag", ["think", "thinking", "THINK"])
def test_thinking_before_a_structured_reply_is_left_out(desk: NewDesk, tag: str) -> None:
    def thought(value: Any) -> LLMResponse:
        return reply(f"\n<{tag}>Is it {{'goal'}} [1]?\nYes.</{tag}>\n\n{json.dumps(value)}")

    work = desk(thought(PLAN))
    assert dump_plan(work.supervisor.read_plan(thought(PLAN), REGISTRY)) == PLAN
    assert work.supervisor.read_tool_call(thought(CALL), STEP, REGISTRY) == ADD
    assert work.actions == []
    assert dump_plan(work.supervisor.read_plan(thought({**PLAN, "note": "x"}), REGISTRY)) == PLAN
    assert work.outcomes == [("llm", "plan_repair", 1, None)]
    assert "Is it" not in work.model.requests[0].prompt


def test_a_plan_repair_is_shown_the_task_and_may_take_the_goal_from_it(desk: NewDesk) -> None:
    broken = {"steps": [{"step_id": "s1", "action": "add 5 and 10"}]}
    repaired = {"goal": "Sum the invoices", "steps": [{"step_id": "s1", "description": "add 5 and 10"}]}
    work = desk(repaired)
    task = "Please sum the invoices of May"
    assert work.supervisor.read_plan(reply(broken), REGISTRY, task=task).goal == "Sum the invoices"
    assert work.model.requests[0].prompt.startswith(f"<task>\n{task}\n</task>\n\n<tools>\n")
    failure(lambda: work.supervisor.read_plan(reply(broken), REGISTRY))


def test_a_plan_made_of_prose_leaves_the_arguments_to_the_steps_own_cycles(desk: NewDesk) -> None:
    step = {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator", "arguments": ADD}
    work = desk({"goal": "add 5 and 10", "steps": [step]})
    plan = work.supervisor.read_plan(reply("I will add 5 and 10 with the calculator."), REGISTRY)
    assert (plan.steps[0].tool, plan.steps[0].arguments) == ("calculator", None)
    assert work.outcomes == [("llm", "json_repair", 1, None)]
