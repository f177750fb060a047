"""What each simulated model does wrong, seen through the real supervisor and the real run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.entities import RunResult
from aeon_core.errors import LLMError, ModelUnavailableError, SupervisorError
from aeon_core.llm.simulated import SIMULATED_MODELS, SimulatedModel
from aeon_core.plan.models import PlanStep
from aeon_core.prompts import build_request
from aeon_core.runs.orchestrator import Orchestrator
from aeon_core.supervisor import Supervisor
from aeon_core.tools.registry import ToolRegistry, default_registry
from tests.aeon_core.llm.simulated_talk import CALCULATOR_AND_ECHO, READ_FILE, ask, lines, plan_of

CHAIN = "multiply 3 by 4 and add 2"


class Run:
    """A run of the simulated model of that name, and its supervisor's attempts as (method, whether it succeeded)."""

    def __init__(self, name: str, task: str, tools: ToolRegistry | None = None) -> None:
        records: list[dict[str, Any]] = []
        config = RunConfig(single_pass=True, ttl=30)
        orchestrator = Orchestrator(
            SimulatedModel(name), tools=tools, config=config, journal=False, on_record=records.append
        )
        self.result: RunResult = orchestrator.run(task)
        supervised = [record for record in records if record["type"] == "supervisor"]
        self.repairs = [(record["method"], record.get("repaired_output") is not None) for record in supervised]
        self.modes = [step.mode for step in self.result.steps]


@pytest.mark.parametrize(
    ("name", "repairs"),
    [
        ("default", []),
        ("malformed", [("local", True)]),
        ("rambling", [("local", True)]),
        ("broken", [("llm", True)]),
        ("missing-tool", [("llm", True)] * 2),
        ("bad-arguments", [("local", True)] * 2),
        ("hostile", []),
    ],
)
def test_repairable_behaviours_end_with_the_right_result(name: str, repairs: list[Any]) -> None:
    run = Run(name, CHAIN)

    assert run.repairs == repairs
    assert run.result.status == "completed"
    assert run.result.model == f"simulated:{name}"
    assert run.result.simulated
    assert run.modes == ["tool", "tool"]
    assert [step.output for step in run.result.steps] == [{"result": 12}, {"result": 14}]


def test_a_model_that_insists_on_an_unknown_tool_reaches_fallback_reasoning() -> None:
    run = Run("no-such-tool", CHAIN)

    assert run.repairs == [("llm", False)] * 4
    assert run.modes == ["fallback", "fallback"]
    assert run.result.steps[1].output == {"text": "The sum of 12 and 2 is 14."}


def test_a_missing_tool_without_a_match_reaches_fallback_reasoning() -> None:
    run = Run("missing-tool", "design a REST API for invoices")

    assert run.repairs == [("llm", False)] * 2
    assert run.modes == ["fallback", *["llm"] * 4]


def test_the_missing_tool_is_never_registered() -> None:
    named = {**READ_FILE, "name": "assistant_tool"}

    plan = plan_of("design a REST API", [named], SimulatedModel("missing-tool"))

    assert plan["steps"][0]["tool"] not in (None, "assistant_tool")


def test_an_unrepairable_plan_fails_the_run_after_two_attempts() -> None:
    run = Run("unrepairable", "echo hello")

    assert run.repairs == [("llm", False)] * 2
    assert run.result.status == "failed"
    assert run.result.error is not None
    assert run.result.error["error_type"] == "SupervisorError"


def test_flaky_fails_every_first_attempt_of_a_call_and_no_second() -> None:
    model = SimulatedModel("flaky")
    requests = [build_request("plan", {"task": task}) for task in ("echo a", "echo b", "echo a")]

    for request in requests:
        with pytest.raises(LLMError) as caught:
            model.complete(request)
        assert (caught.value.retryable, caught.value.status_code) == (True, 503)
        assert model.complete(request) == SimulatedModel().complete(request).model_copy(update={"model": model.model})


@pytest.mark.parametrize(("name", "retryable", "status"), [("down", True, 503), ("refused-key", False, 401)])
def test_a_model_that_is_down_or_refuses_the_key_never_answers(name: str, retryable: bool, status: int) -> None:
    model = SimulatedModel(name)

    for _ in range(3):
        with pytest.raises(LLMError) as caught:
            model.complete(build_request("plan", {"task": "echo a"}))
        assert (caught.value.retryable, caught.value.status_code) == (retryable, status)
        assert caught.value.exit_code == (3 if status == 401 else 1)


def test_hostile_texts_hold_markup_escapes_nul_and_a_lone_surrogate() -> None:
    plan = plan_of("echo hello", model=SimulatedModel("hostile"))
    answer = ask(SimulatedModel("hostile"), "answer", task="echo hello", results="").text

    for text in (plan["goal"], plan["steps"][0]["description"], answer):
        assert all(part in text for part in ("[bold]", "[/]", "[@click=app.quit]", "\x1b[31m", "\x00", "\ud800"))
    assert plan["steps"][0]["arguments"] == {"text": "hello"}


def test_hostile_text_does_not_prevent_the_calculation() -> None:
    run = Run("hostile", "add 5 and 10, then multiply it by 2", ToolRegistry())

    assert [step.mode for step in run.result.steps] == ["llm", "llm"]
    assert str(run.result.steps[1].output).startswith("{'text': 'The product of 15 and 2 is 30. [bold]")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        SimulatedModel("malformd")

    message = caught.value.message
    assert "'malformd'" in message
    assert "did you mean 'malformed'?" in message
    assert all(name in message for name in SIMULATED_MODELS)
    assert "\n" not in message


def test_every_behaviour_is_described_in_one_line() -> None:
    assert next(iter(SIMULATED_MODELS)) == "default"
    for name, described in SIMULATED_MODELS.items():
        assert SimulatedModel(name).model == f"simulated:{name}"
        assert described
        assert "\n" not in described


@pytest.mark.parametrize(
    ("description", "arguments", "tool"),
    [
        ("Add 5 and 10", {"operation": "add", "a": 5, "b": 10}, "calculator"),
        ("Add 5 and 10", {"operation": "add", "a": "5", "b": "10"}, "calculator"),
        ("Multiply the result of s1 by 3", None, "calculator"),
        ("Multiply it by 3", None, "calculator"),
        ('Echo the text "hello"', {"text": "hello"}, "echo"),
        ("Echo the result of s1", None, "echo"),
        ("Read README.md", {"path": "README.md"}, "read_file"),
        ("Work it out", None, None),
        ("Translate hello to French", {"text": "hello"}, None),
        ("Send an invoice", None, None),
    ],
)
def test_a_step_is_repaired_with_the_tool_that_fits_or_returned_unchanged(
    description: str, arguments: Any, tool: str | None
) -> None:
    step = {"step_id": "s2", "description": description, "tool": "nope", "depends_on": ["s1"]}
    if arguments is not None:
        step["arguments"] = arguments
    listed = [*CALCULATOR_AND_ECHO, READ_FILE]
    reply = ask(SimulatedModel(), "repair", tools=lines(listed), step=json.dumps(step), original=json.dumps(step))
    repaired = json.loads(reply.text)

    if tool is None:
        assert repaired == step
    else:
        wanted = {"operation": "add", "a": 5, "b": 10} if "5" in description else arguments
        assert repaired == {**step, "tool": tool, **({"arguments": wanted} if wanted else {})}


def test_a_misspelt_tool_is_resolved() -> None:
    step = PlanStep(step_id="s1", description="Work it out", tool="calculater")
    registry = default_registry()

    repaired = Supervisor(SimulatedModel(), registry=registry).repair_missing_tool_step(step, registry.list(), "goal")

    assert (repaired.tool, repaired.errors) == ("calculator", None)


@pytest.mark.parametrize(
    "arguments",
    [
        {"operation": "add", "a": "5", "b": "10"},
        {"operation": "ADD", "a": 5.0, "b": ["10"]},
        {"operation": ["add"], "a": [5], "b": 10},
        {"op": "add", "a": 5, "b": 10},
    ],
)
def test_arguments_are_converted_to_the_schema(arguments: dict[str, Any]) -> None:
    registry = default_registry()
    step = PlanStep(step_id="s1", description="Add 5 and 10", tool="calculator", arguments=arguments)
    problems = registry.input_schema("calculator").errors(arguments)

    repaired = Supervisor(SimulatedModel(), registry=registry).repair_arguments(step, arguments, problems)

    assert problems
    assert repaired == {"operation": "add", "a": 5, "b": 10}


def test_missing_arguments_are_not_invented() -> None:
    registry = default_registry()
    step = PlanStep(step_id="s1", description="Add", tool="calculator", arguments={"operation": "add"})

    with pytest.raises(SupervisorError):
        Supervisor(SimulatedModel(), registry=registry).repair_arguments(step, {"operation": "add"}, ["a: missing"])


def test_a_truncated_plan_keeps_its_content() -> None:
    text = '{"goal": "g", "steps": [{"id": "s1", "description": "d", "agent": "llm"'
    reply = ask(SimulatedModel(), "repair", tools=lines(CALCULATOR_AND_ECHO), errors="x", original=text)

    assert json.loads(reply.text) == {"goal": "g", "steps": [{"id": "s1", "description": "d", "agent": "llm"}]}


@pytest.mark.parametrize(
    "text",
    ["I would rather not.", "", "[" * 5000, "{" * 60_000, '"just text"', '{"goal": "' + "long " * 20_000],
    ids=lambda text: text[:9],
)
def test_non_json_text_is_returned_unchanged(text: str) -> None:
    assert ask(SimulatedModel(), "repair", errors="x", original=text).text == text
