"""Replies become valid plans, calls and steps: strictly, locally, or by the model (core FR-027 to FR-033)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core import PlanStep, Supervisor, ToolRegistry
from aeon_core.entities import SupervisorAction
from aeon_core.errors import LLMError, SupervisorError, ValidationError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.plan.parsing import dump_plan
from aeon_core.plan.requests import plan_schema, read_refinement, refine_schema
from aeon_core.prompts import build_request
from aeon_core.task_profile import ProfileReply, profile_request, read_profile_reply
from aeon_core.tools.registry import default_registry
from tests.fakes import ScriptedModel, call

REGISTRY = default_registry()
SCHEMA = plan_schema(tool.name for tool in REGISTRY)
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
        self.model = ScriptedModel(repair=list(repairs), plan=list(repairs)) if repairs else ScriptedModel()
        self.substitutions: dict[str, str] = {}
        self.actions: list[tuple[SupervisorAction, str]] = []
        self.supervisor = Supervisor(
            self.model,
            registry=REGISTRY,
            on_action=lambda action, method: self.actions.append((action, method)),
            on_substitution=self.substitutions.__setitem__,
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


def test_a_plan_without_an_id_is_repaired_by_the_model(desk: NewDesk) -> None:
    broken = {"goal": "g", "steps": [{"description": "add 5 and 10", "tool": "adder"}]}
    work = desk(f"```json\n{json.dumps(PLAN)}\n```")
    assert dump_plan(work.supervisor.read_plan(reply(broken), REGISTRY, task="sum it")) == PLAN
    assert work.reported == [
        {
            "method": "llm",
            "action_type": "plan_repair",
            "original_output": broken,
            "repaired_output": PLAN,
            "attempt_number": 1,
            "timestamp": NOW,
        }
    ]
    [request] = work.model.requests
    assert (request.purpose, request.max_tokens, request.schema) == ("repair", 123, SCHEMA)
    assert request.system == "Aeon repair\n\nMend it.\n"
    tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in REGISTRY.export_tools_for_llm())
    assert request.prompt == (
        f"<task>\nsum it\n</task>\n\n<tools>\n{tools}\n</tools>\n\n"
        "<errors>\nsteps[0].step_id: missing, expected a non-empty string\n</errors>\n\n"
        f"<schema>\n{json.dumps(SCHEMA)}\n</schema>\n\n<original>\n{json.dumps(broken)}\n</original>"
    )


def test_the_second_repair_attempt_gets_the_reason_for_the_first_refusal(desk: NewDesk) -> None:
    broken = {"goal": "g", "steps": [{"description": "add 5 and 10", "tool": "adder"}]}
    work = desk({**PLAN, "goal": "another"}, PLAN)
    work.supervisor.read_plan(reply(broken), REGISTRY)
    refused = 'goal was changed from "g" to "another"; a repair keeps it'
    assert work.outcomes == [("llm", "plan_repair", 1, refused), ("llm", "plan_repair", 2, None)]
    first, second = (request.prompt for request in work.model.requests)
    assert refused not in first
    assert f"the previous reply was refused: {refused}" in second


@pytest.mark.parametrize(
    "text",
    [
        *["", " \n", "<think>Hm.</think>\n", "I cannot plan this.", "1. Read a.txt\n2. Sum it up", "{}", "[]", "null"],
        *[
            "42",
            '"text"',
            '{"error": "no"}',
            '{"goal": "g"}',
            '{"goal": "g", "steps": []}',
            '{"goal": "Sum',
            "{" * 60_000,
        ],
    ],
    ids=range(15),
)
def test_a_reply_without_a_plan_repeats_the_request(desk: NewDesk, text: str) -> None:
    asked = LLMRequest(purpose="plan", system="Aeon plan", messages=[{"role": "user", "content": "<task>t</task>"}])
    work = desk(PLAN)
    assert dump_plan(work.supervisor.read_plan(reply(text), REGISTRY, request=asked)) == PLAN
    [again] = work.model.requests
    assert (again.purpose, again.system) == ("plan", "Aeon plan")
    assert again.prompt.startswith("<task>t</task>\n\n<errors>\n")
    assert [outcome[0:1] + outcome[2:] for outcome in work.outcomes] == [("llm", 1, None)]
    assert asked.prompt == "<task>t</task>"


def test_a_plan_that_comes_broken_the_second_time_is_repaired_as_the_second_attempt(desk: NewDesk) -> None:
    work = desk()
    work.model.scripts = {"plan": {"steps": PLAN["steps"]}, "repair": PLAN}
    assert dump_plan(work.supervisor.read_plan(reply("Gladly!"), REGISTRY)) == PLAN
    assert [request.purpose for request in work.model.requests] == ["plan", "repair"]
    assert '<original>\n{"steps"' in work.model.requests[1].prompt


def test_after_two_failed_attempts_the_error_is_structured_and_final(desk: NewDesk) -> None:
    work = desk("still no JSON", {"goal": "g", "steps": []})
    error = failure(lambda: work.supervisor.read_plan(reply("{broken"), REGISTRY))
    assert len(work.model.requests) == 2
    assert [outcome[:3] for outcome in work.outcomes] == [("llm", "json_repair", 1), ("llm", "json_repair", 2)]
    assert error.as_dict() == {
        "error_type": "SupervisorError",
        "message": "the plan could not be repaired in 2 attempts: "
        "steps: missing, expected an array of at least one step",
        "unrecoverable": True,
        "attempts": 2,
        "problems": ["steps: missing, expected an array of at least one step"],
    }


@pytest.mark.parametrize("said", ["I can only chat. " * 10, ""])
def test_a_model_that_answers_plain_text_is_quoted_instead_of_a_plan(desk: NewDesk, said: str) -> None:
    work = desk("{broken", said)
    error = failure(lambda: work.supervisor.read_plan(reply("Hello!"), REGISTRY))
    quoted = f"{said!r:.80}{'…' if said else ''}"
    assert error.message == (
        f"the model replied {quoted} instead of a plan; use a model that can write JSON, or pass a plan of your own"
    )
    assert (error.context["attempts"], error.context["unrecoverable"]) == (2, True)
    assert error.context["problems"][0].startswith("not JSON: ")


@pytest.mark.parametrize("said", ["", '{"goal": "g", "steps": [{"description": "ad'])
def test_a_reply_that_stays_cut_off_names_the_limit_to_raise(said: str) -> None:
    cut = LLMResponse(text=said, stop_reason="max_tokens")
    work = Supervisor(ScriptedModel(plan=cut, repair=cut, judge=cut, tool_call=cut), registry=REGISTRY)
    request = build_request("judge", {"goal": "t"}, schema={"type": "object"})
    fails: dict[str, Callable[[], Any]] = {
        "the plan": lambda: work.read_plan(cut),
        "the judgement": lambda: work.read_object(cut, "the judgement", read_refinement, request=request, task="t"),
        "the tool call": lambda: work.read_tool_call(cut, STEP),
    }
    for subject, fail in fails.items():
        error = failure(fail)
        assert error.message == f"{subject} could not be repaired in 2 attempts: it was cut off; raise max_tokens"
        assert error.context["problems"] != []


@pytest.mark.parametrize("said", ["I will not.", ""])
def test_a_refusal_is_not_repaired(desk: NewDesk, said: str) -> None:
    work = desk()
    error = failure(lambda: work.supervisor.read_plan(LLMResponse(text=said, stop_reason="refusal"), REGISTRY))
    assert error.context["problems"][0] == f"the model refused: {said or 'without a reason'}"
    assert error.context["attempts"] == 0
    assert (work.actions, work.model.requests) == ([], [])


def test_a_plan_that_was_cut_off_continues_where_it_broke_off(desk: NewDesk) -> None:
    text = '{"goal": "g", "steps": [{"id": "s1", "description": "read a.txt", "agent": "llm"}, {"id": "s2", "descri'
    whole = [
        {"id": "s1", "description": "read a.txt", "agent": "llm"},
        {"id": "s2", "description": "sum", "agent": "llm"},
    ]
    other = [{**whole[0], "description": "read b.txt"}, whole[1]]
    work = desk({"goal": "g", "steps": other}, {"goal": "g", "steps": whole})
    cut = LLMResponse(text=text, stop_reason="max_tokens")
    assert [step.description for step in work.supervisor.read_plan(cut, REGISTRY).walk()] == ["read a.txt", "sum"]
    assert work.outcomes[0][3] == "what the original says under 'description' was changed; a repair keeps it"
    assert "the reply was cut off at max_tokens" in work.model.requests[0].prompt


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (json.dumps(PLAN), []),
        (f"```json\n{json.dumps(PLAN)}\n```", ["json_repair"]),
        (json.dumps(PLAN)[:-1] + ",}", ["json_repair"]),
        (
            json.dumps({**PLAN, "steps": [{**PLAN["steps"][0], "depends_on": "none", "status": "Pending"}]}),
            ["plan_repair"],
        ),
    ],
)
def test_a_plan_that_code_repairs_is_one_local_action(desk: NewDesk, text: str, made: list[str]) -> None:
    work = desk()
    assert dump_plan(work.supervisor.read_plan(reply(text), REGISTRY)) == PLAN
    assert work.outcomes == [("local", action, 1, None) for action in made]


def test_a_step_without_a_tool_has_no_call_to_read(desk: NewDesk) -> None:
    thinks = PlanStep(step_id="s1", description="think", agent="llm")
    with pytest.raises(ValidationError, match="step 's1' names no tool"):
        desk().supervisor.read_tool_call(reply(CALL), thinks, REGISTRY)


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
        (native({"name": "calculator", "arguments": {"Operation": "ADD", "a": "5", "b": [10]}}), True),
        (native(*[{"name": "calculator", "arguments": ADD}] * 2), True),
        (native({"name": "sum_up", "arguments": ADD}), True),
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


ASKED = LLMRequest(purpose="tool_call", system="Aeon tool_call", messages=[{"role": "user", "content": "<step>"}])


@pytest.mark.parametrize("given", [{"operation": "add", "a": 5}, {"operation": "add", "a": 5, "b": None}])
def test_a_missing_argument_requests_the_steps_call_again(desk: NewDesk, given: dict[str, Any]) -> None:
    work = desk()
    work.model.scripts = {"tool_call": call("calculator", operation="add", a=6, b=10), "repair": CALL}
    assert work.supervisor.read_tool_call(call("calculator", **given), STEP, REGISTRY, request=ASKED) == ADD
    assert [request.purpose for request in work.model.requests] == ["tool_call", "repair"]
    assert work.outcomes == [
        ("llm", "tool_call_repair", 1, "a was changed from 5 to 6; a repair keeps it"),
        ("llm", "tool_call_repair", 2, None),
    ]


def test_a_missing_declared_argument_requests_the_steps_call(desk: NewDesk) -> None:
    work = desk()
    work.model.scripts = {"tool_call": call("calculator", **ADD)}
    given = {"operation": "add", "a": 5}
    problems = ["b: missing, but required"]
    assert work.supervisor.repair_arguments(STEP, given, problems, REGISTRY, request=ASKED) == ADD
    assert work.model.requests[0].prompt == "<step>\n\n<errors>\nb: missing, but required\n</errors>"


def test_a_missing_call_is_requested_again(desk: NewDesk) -> None:
    work = desk()
    work.model.scripts = {"tool_call": ["Still not.", call("calculator", **ADD)]}
    assert work.supervisor.read_tool_call(reply("I would rather not."), STEP, REGISTRY, request=ASKED) == ADD
    assert [outcome[2] for outcome in work.outcomes] == [1, 2]


def op(operation: str, a: Any, b: Any) -> dict[str, Any]:
    return {"operation": operation, "a": a, "b": b}


@pytest.mark.parametrize(
    ("given", "repaired", "taken"),
    [
        # What is missing may be written.
        ({"operation": "add", "a": 5}, ADD, True),
        ({"a": 5}, op("subtract", 5, 2), True),
        ({}, ADD, True),
        # What is there may be renamed, in its order.
        ({"operator": "add", "first": 5, "second": 10}, ADD, True),
        ({"operation": "add", "values": [5, 10]}, ADD, True),
        ({"operator": "subtract", "first": 5, "second": 10}, op("subtract", 10, 5), False),
        ({"operator": "subtract", "first": 5, "second": 10}, op("subtract", 5, 11), False),
        ({"operator": "add", "first": 5, "second": 10}, op("divide", 5, 10), False),
        # What is there is never replaced.
        ({"operation": "add", "a": 5}, op("add", 6, 10), False),
        ({"operation": "plus", "a": 5, "b": 10}, ADD, False),
        ({"operation": "add", "a": "five", "b": 10}, ADD, False),
        ({"operation": "add", "a": "many", "b": 10}, op("add", 77, 10), False),
        ('{"operation": "add", "a": 5, "b": 1', op("add", 5, 10), True),
        ('{"operation": "add", "a": 5, "b": 1', op("add", 5, 20), False),
        ('{"operation": "add, "a": 5, "b": 10, "c}', op("add", 7, 10), False),
    ],
)
def test_a_repaired_call_keeps_the_original_values(desk: NewDesk, given: Any, repaired: Any, taken: bool) -> None:
    work = desk({"tool_name": "calculator", "arguments": repaired})
    response = native({"name": "calculator", "arguments": given})
    if taken:
        assert work.supervisor.read_tool_call(response, STEP, REGISTRY, goal="the goal") == repaired
    else:
        error = failure(lambda: work.supervisor.read_tool_call(response, STEP, REGISTRY))
        assert error.context["step_id"] == "s1"
    prompt = work.model.requests[0].prompt
    order = [prompt.index(f"<{name}>") for name in ("tools", "step", "errors", "schema", "original")]
    assert order == sorted(order)


BAD = {"step_id": "s1", "description": "add 5 and 10", "tool": "adder"}


@pytest.mark.parametrize(
    ("given", "repair", "changes"),
    [
        (BAD, {**BAD, "tool": "calculator"}, {}),
        (BAD, {"tool": "calculator"}, {}),
        (BAD, [{**BAD, "tool": "calculator"}], {}),
        (BAD, {"repaired_step": {**BAD, "tool": "Calculator", "agent": "none"}}, {}),
        (BAD, {"goal": "g", "steps": [{**BAD, "tool": "calculator"}]}, {}),
        (BAD, {**BAD, "tool": "calculator", "arguments": ADD}, {"arguments": ADD}),
        (BAD, {**BAD, "tool": "calculator", "arguments": {"a": 5}}, {}),
        ({**BAD, "arguments": ADD}, {"tool": "calculator", "arguments": op("add", 500, 10)}, {"arguments": ADD}),
        (
            {**BAD, "arguments": {"op": "add", "x": 5, "y": 10}},
            {"tool": "calculator", "arguments": ADD},
            {"arguments": ADD},
        ),
        (
            {**BAD, "arguments": {"op": "add", "x": 5, "y": 10}},
            {"tool": "calculator", "arguments": op("add", 7, 3)},
            None,
        ),
        (BAD, {**BAD, "tool": "calculator", "description": "add 5 and 11"}, None),
        (BAD, {**BAD, "tool": "calculator", "depends_on": ["s0"]}, None),
        (BAD, {**BAD, "tool": "sum"}, None),
        (BAD, {"goal": "g", "steps": [{**BAD, "tool": "calculator"}, {**BAD, "step_id": "s2"}]}, None),
        (BAD, "Use the calculator.", None),
    ],
)
def test_the_repair_of_a_step_changes_only_its_tool(
    desk: NewDesk, given: dict[str, Any], repair: Any, changes: dict[str, Any] | None
) -> None:
    work = desk(reply(repair))
    step = PlanStep(**given)
    if changes is None:
        error = failure(lambda: work.supervisor.repair_missing_tool_step(step, REGISTRY.list(), "the goal"))
        assert error.context["attempts"] == 2
        assert work.substitutions == {}
        return
    repaired = work.supervisor.repair_missing_tool_step(step, REGISTRY.list(), "the goal")
    expected = {"status": "pending", **given, "tool": "calculator", **changes}
    assert repaired.model_dump(exclude_none=True) == expected
    assert work.substitutions == {"s1": "adder"}
    assert step.tool == "adder"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"description": "add", "replaces": "s0", "step_id": "s9"}, 'id was changed from "s1" to "s9"'),
        ({"replaces": "s0", "description": "add"}, 'description was changed from "add 5 and 10" to "add"'),
        ({"replaces": "s0", "depends_on": ["s0"]}, "depends_on was changed from null to an array of 1"),
    ],
)
def test_the_reported_change_is_the_same_in_every_process(desk: NewDesk, changed: dict[str, Any], problem: str) -> None:
    work = desk(reply({**BAD, **changed, "tool": "calculator"}))
    error = failure(lambda: work.supervisor.repair_missing_tool_step(PlanStep(**BAD), REGISTRY.list(), "g"))
    assert error.context["problems"] == [f"{problem}; a repair keeps it"]


@pytest.mark.parametrize(
    "repair", ["null", {**BAD, "tool": None}, {**BAD, "tool": "none"}, {"step": {**BAD, "tool": ""}}]
)
def test_no_fitting_tool_is_final(desk: NewDesk, repair: Any) -> None:
    work = desk(reply(repair))
    error = failure(lambda: work.supervisor.repair_missing_tool_step(PlanStep(**BAD), REGISTRY.list(), "g"))
    assert error.context["attempts"] == len(work.model.requests) == 1
    assert error.context["problems"] == ["the model says that no tool does what the step asks"]


def test_another_spelling_of_a_tool_name_is_not_a_substitution(desk: NewDesk) -> None:
    work = desk()
    step = PlanStep(step_id="s1", description="d", tool="Calculator")
    assert work.supervisor.repair_missing_tool_step(step, REGISTRY.list(), "g").tool == "calculator"
    assert work.outcomes == [("local", "plan_repair", 1, None)]
    assert work.substitutions == {}


def test_a_supervisor_without_a_registry_takes_plain_functions_as_tools() -> None:
    def count(text: str) -> int:
        """Count the words of a text."""
        return len(text.split())

    step = PlanStep(step_id="s1", description="d", tool="Count")
    tools: Any = [count]
    assert Supervisor(ScriptedModel()).repair_missing_tool_step(step, tools, "g").tool == "count"


def test_a_tool_chosen_by_a_plan_repair_is_a_substitution(desk: NewDesk) -> None:
    broken = {"steps": [{**BAD}, {"step_id": "s2", "description": "tell it"}]}
    work = desk(
        {
            "goal": "g",
            "steps": [
                {**BAD, "tool": "calculator"},
                {"step_id": "s2", "description": "tell it", "tool": "echo", "arguments": {"text": "x"}},
            ],
        }
    )
    plan = work.supervisor.read_plan(reply(broken), REGISTRY)
    assert [(step.tool, step.arguments) for step in plan.walk()] == [("calculator", None), ("echo", {"text": "x"})]
    assert work.substitutions == {"s1": "adder", "s2": ""}


def test_without_tools_a_step_cannot_be_repaired(desk: NewDesk) -> None:
    work = desk()
    error = failure(lambda: work.supervisor.repair_missing_tool_step(PlanStep(**BAD), [], "g"))
    assert error.context["attempts"] == 0
    assert work.model.requests == []


@pytest.mark.parametrize("empty", ["", "I would refine the second step.", "{}", "[" * 100_001])
def test_a_reply_with_nothing_to_keep_is_asked_for_again_and_never_invented(empty: str) -> None:
    model = ScriptedModel(refine='{"actions": []}', repair="never")
    request = build_request("refine", {"task": "t"}, schema=refine_schema([]))
    made = Supervisor(model).read_object(reply(empty), "the refinement", read_refinement, request=request, task="t")
    assert made.actions == []
    (again,) = model.requests
    assert again.purpose == "refine"
    assert again.prompt.startswith(request.prompt)
    assert "<errors>" in again.prompt


ENDLESS = "The result is a number. " * 20
PROFILE = {
    "profile_version": 1,
    "requirements": ["The sum is given."],
    **dict.fromkeys(("reasoning_depth", "information_sufficiency", "confidence_requirement"), "high"),
    "expected_tool_usage": "minimal",
    "output_breadth": "narrow",
}
PROFILE_ASKED = profile_request("17 + 25", [], ttl_remaining=9, ttl_limit=9, max_tokens=123)


def cut_profile(**fields: Any) -> LLMResponse:
    """The reply of a small model that repeats itself until it is cut off in its last field."""
    return LLMResponse(text=json.dumps({**PROFILE, **fields}).removesuffix('"}'), stop_reason="max_tokens")


def read_profile(response: LLMResponse, work: Supervisor) -> ProfileReply:
    return work.read_object(response, "the profile", read_profile_reply, request=PROFILE_ASKED, task="17 + 25")


def test_a_profile_that_is_cut_off_in_its_reasons_costs_no_other_call(desk: NewDesk) -> None:
    work = desk()
    read = read_profile(cut_profile(raw_inference=ENDLESS), work.supervisor)
    assert (read.requirements, read.follow_up_questions) == (["The sum is given."], [])
    assert (read.profile.reasoning_depth, read.profile.raw_inference) == ("high", ENDLESS.strip())
    assert (work.outcomes, work.model.requests) == ([("local", "json_repair", 1, None)], [])


@pytest.mark.parametrize(
    "fields", [{"output_breadth": "nar"}, {"requirements": "The sum"}, {"raw_inference": "so", "note": "x"}]
)
def test_a_profile_that_lacks_more_than_the_end_of_its_reasons_is_not_closed(
    fields: dict[str, str],
) -> None:
    model = ScriptedModel(profile="no", repair="no")
    given = {key: value for key, value in PROFILE.items() if key not in fields}
    text = json.dumps({**given, **fields}).removesuffix('"}')
    failure(lambda: read_profile(LLMResponse(text=text, stop_reason="max_tokens"), Supervisor(model)))
    assert len(model.requests) == 2


@pytest.mark.parametrize(("characters", "asked"), [(246, "repair"), (247, "again")])
def test_what_a_repair_has_no_room_to_repeat_is_asked_for_again(characters: int, asked: str) -> None:
    whole = {**PROFILE, "raw_inference": "short", "follow_up_questions": []}
    model = ScriptedModel(profile=whole, plan=PLAN, repair=[whole, PLAN])
    supervisor = Supervisor(model, max_tokens=123)
    texts = '{"requirements": ["', '{"goal": "g", "steps": [{"id": "s1", "description": "'
    profile, plan = (LLMResponse(text=text.ljust(characters), stop_reason="max_tokens") for text in texts)
    read = read_profile(profile, supervisor)
    assert read.requirements == ["The sum is given."]
    assert dump_plan(supervisor.read_plan(plan, REGISTRY, task="17 + 25")) == PLAN
    assert [each.purpose for each in model.requests] == (["profile", "plan"] if asked == "again" else ["repair"] * 2)
    hint = "your previous reply was too long; write a much shorter one"
    assert [hint in each.prompt for each in model.requests] == [asked == "again"] * 2


def test_a_repair_keeps_the_limits_of_the_lists() -> None:
    model = ScriptedModel(repair='{"actions": []}')
    request = build_request("refine", {"task": "t"}, schema=refine_schema([]), most={"actions": 3})
    Supervisor(model).read_object(reply('{"x": "'), "the refinement", read_refinement, request=request, task="t")
    assert [(each.purpose, each.most) for each in model.requests] == [("repair", {"actions": 3})]


def test_the_repair_of_a_refinement_chooses_no_tool(desk: NewDesk) -> None:
    changes = {"steps": [{"description": "d"}]}
    given = {"actions": [{"type": "", "target": "s1", "changes": changes}]}
    fixed = {"actions": [{"type": "step_modify", "target": "s1", "changes": changes}]}
    chosen = json.loads(json.dumps(fixed).replace('"d"', '"d", "tool": "calculator"'))
    request = build_request("refine", {"task": "t"}, schema=refine_schema(tool.name for tool in REGISTRY))
    sat = desk(chosen, fixed)
    made = sat.supervisor.read_object(reply(given), "the refinement", read_refinement, request=request, task="t")
    assert made.actions[0].changes == changes
    why = 'actions[0].changes.steps[0].tool was added, "calculator"; a repair chooses no tool here'
    assert [outcome[2:] for outcome in sat.outcomes] == [(1, why), (2, None)]
