"""What no model is needed for: badly written JSON, other names, wrappers, types (core FR-029; Decision 4)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from aeon_core import PlanStep, Supervisor, ToolRegistry
from aeon_core.errors import AeonError, SupervisorError, ValidationError
from aeon_core.llm.base import LLMResponse
from aeon_core.plan.parsing import dump_plan, parse_plan
from aeon_core.prompts import build_request
from tests.aeon_core.supervisor.malformed import malformed_calls, malformed_plans
from tests.aeon_core.validation.labelled.tools import registry
from tests.fakes import ScriptedModel
from tests.sampling import each

TOOLS = registry()


def search(query: str, limit: int = 10) -> dict[str, Any]:
    """Searches for a query."""
    return {"query": query, "limit": limit}


TOOLS.register(search)
AMBIGUOUS = [
    # Cut: nobody knows what follows.
    '{"goal": "g", "steps": [{"id": "s1", "description": "d", "agent": "llm"}',
    '{"goal": "g", "steps": [{"id": "s1", "description": "d", "agent": "llm"},',
    '{"goal": "g", "steps": [{"id": "s1", "description": "read a.txt and',
    # Two plans, and which is meant?
    '{"goal": "g", "steps": ["read"]}\n{"goal": "g", "steps": ["write"]}',
    # Something is missing, or occurs twice.
    '{"goal": "g", "steps": [{"id": "s1", "description": "d"}, ...]}',
    '{"goal": "g", "steps": [{"id": "s1", "description": "d", "description": "e"}]}',
    '{"goal": "g", "steps": [{"id": "s1", "title": "read a", "details": "read b"}]}',
    '{"goal": "g", "steps": [{"id": "s1", "description": "d"}], "steps": []}',
]


@each(case[1:] for case in malformed_plans())
def test_an_unambiguous_malformed_plan_is_read(text: str, plan: dict[str, Any]) -> None:
    read = Supervisor(ScriptedModel(), registry=TOOLS).read_plan(LLMResponse(text=text))
    assert dump_plan(read) == dump_plan(parse_plan(plan))


@each(case[1:] for case in malformed_calls())
def test_an_unambiguous_malformed_call_is_read(text: str, call: dict[str, Any]) -> None:
    step = PlanStep(step_id="s1", description="d", tool=call["tool_name"])
    read = Supervisor(ScriptedModel(), registry=TOOLS).read_tool_call(LLMResponse(text=text), step)
    assert read == call["arguments"]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_ambiguous_text_is_not_repaired_without_a_model(text: str) -> None:
    model = ScriptedModel(repair="no", plan="no")
    with pytest.raises(SupervisorError):
        Supervisor(model, registry=TOOLS).read_plan(LLMResponse(text=text))
    assert model.requests


def test_dropped_and_renamed_keys_are_journaled_as_a_local_repair() -> None:
    actions: list[Any] = []
    given = {"objective": "g", "priority": 1, "plan": [{"stepId": 1, "action": "d", "agent": "LLM", "note": "soon"}]}
    supervisor = Supervisor(ScriptedModel(), on_action=lambda action, method: actions.append((method, action)))
    plan = supervisor.read_plan(LLMResponse(text=json.dumps(given)))
    assert dump_plan(plan) == {
        "goal": "g",
        "steps": [{"step_id": "1", "description": "d", "status": "pending", "agent": "llm"}],
    }
    [(method, action)] = actions
    assert (method, action.action_type, action.attempt_number) == ("local", "plan_repair", 1)
    assert json.loads(action.original_output["text"]) == given
    assert action.repaired_output == dump_plan(plan)


@pytest.mark.parametrize(
    "written",
    [
        "{'query': 'a \"b\"', 'limit': 3}",
        '{query: "a \\"b\\"", limit: 3,}',
        '{"query": "a \\"b\\"", "limit": 3}"}, {',
        '"{"query": "a \\"b\\"", "limit": 3}"',
    ],
)
def test_arguments_that_are_written_as_python_or_end_too_late_need_no_model(written: str) -> None:
    step = {"id": "s1", "parent": None, "description": "d", "tool": "search", "arguments_json": written}
    reply = LLMResponse(text=json.dumps({"goal": "g", "steps": [{**step, "depends_on": []}]}))
    read = Supervisor(ScriptedModel(), registry=TOOLS).read_plan(reply)
    assert read.steps[0].arguments == {"query": 'a "b"', "limit": 3}


@pytest.mark.parametrize(
    "written",
    ["{'query': 'the harbour's boats'}", "{'query': 'a'} {'query': 'b'}", "{'query': 'a", "use {'query': 'a'}"],
)
def test_arguments_whose_end_is_not_certain_are_not_guessed(written: str) -> None:
    step = {"id": "s1", "parent": None, "description": "d", "tool": "search", "arguments_json": written}
    reply = LLMResponse(text=json.dumps({"goal": "g", "steps": [{**step, "depends_on": []}]}))
    model = ScriptedModel(repair="no", plan="no")
    with pytest.raises(SupervisorError):
        Supervisor(model, registry=TOOLS).read_plan(reply)
    assert model.requests


def nested(reply: Any, model: ScriptedModel | None = None) -> list[Any]:
    """The ids of the steps of the plan in a reply, with the ids of their parts."""

    def ids(steps: Iterable[PlanStep]) -> list[Any]:
        return [(step.step_id, ids(step.substeps)) if step.substeps else step.step_id for step in steps]

    return ids(
        Supervisor(model or ScriptedModel(), registry=TOOLS).read_plan(LLMResponse(text=json.dumps(reply))).steps
    )


def flat(*rows: tuple[str, str | None, list[str]], **fields: Any) -> dict[str, Any]:
    given = {"description": "d", "agent": "llm", **fields}
    steps = [{"id": step_id, "parent": parent, "depends_on": needs, **given} for step_id, parent, needs in rows]
    return {"goal": "g", "steps": steps}


def test_a_step_that_depends_on_its_parent_follows_it_as_small_models_mean_it() -> None:
    chain = flat(("s1", None, []), ("s2", "s1", ["s1"]), ("s3", "s2", ["s1", "s2"]), ("s4", "s3", []))
    assert nested(chain) == ["s1", "s2", ("s3", ["s4"])]
    parts = flat(("s1", None, []), ("a", "s1", []), ("b", "s1", ["a"]), ("c", "a", ["a", "s1"]), ("d", "b", ["b"]))
    assert nested(parts) == [("s1", ["a", "b", "d"]), "c"]
    alone = flat(("s1", None, ["s1"]), ("s2", "s1", ["s2", "s1"]))
    assert nested(alone) == ["s1", "s2"]
    read = Supervisor(ScriptedModel(), registry=TOOLS).read_plan(LLMResponse(text=json.dumps(alone)))
    assert [step.depends_on for step in read.steps] == [[], ["s1"]]
    # A parent that comes later, or is no step, is left to the checks.
    later = flat(("a", "s1", ["s1"]), ("s1", None, []))
    assert nested(later) == [("s1", ["a"])]


def test_a_plan_brought_in_sequence_can_still_be_repaired_by_the_model() -> None:
    broken = flat(("s1", None, []), ("s2", "s1", ["s1"]))
    del broken["steps"][0]["description"]
    whole = flat(("s1", None, []), ("s2", "s1", ["s1"]))
    assert nested(broken, ScriptedModel(repair=whole)) == ["s1", "s2"]


def test_a_valid_plan_is_not_a_repair() -> None:
    actions: list[Any] = []
    plan = {"goal": "g", "steps": [{"id": "s1", "parent": None, "description": "d", "tool": "nope"}]}
    supervisor = Supervisor(ScriptedModel(), on_action=lambda *action: actions.append(action))
    assert supervisor.read_plan(LLMResponse(text=json.dumps(plan))).steps[0].tool == "nope"
    assert actions == []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"depth": 3, "count": 1}, None),
        ({"depth": "High", "count": 1, "note": "x"}, {"depth": "high", "count": "1"}),
        ([{"depth": " HIGH", "count": "1"}], {"depth": "high", "count": "1"}),
        ({"profile": {"Depth": ["high"], "count": "1"}}, {"depth": "high", "count": "1"}),
    ],
)
def test_other_replies_are_brought_into_the_form_of_their_schema(given: Any, read: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"depth": {"enum": ["low", "high"]}, "count": {"type": "string"}},
        "required": ["depth", "count"],
        "additionalProperties": False,
    }

    def strict(value: Any) -> Any:
        if not isinstance(value, dict) or value not in ({"depth": depth, "count": "1"} for depth in ("low", "high")):
            raise ValidationError("no", problems=["no"])
        return value

    supervisor = Supervisor(ScriptedModel(repair="no", profile="no"))
    reply, request = LLMResponse(text=json.dumps(given)), build_request("profile", {"task": "t"}, schema=schema)
    if read is None:
        with pytest.raises(AeonError):
            supervisor.read_object(reply, "the profile", strict, request=request, task="t")
    else:
        assert supervisor.read_object(reply, "the profile", strict, request=request, task="t") == read


def test_an_argument_that_a_tool_with_effects_does_not_know_is_not_left_out_without_a_model() -> None:
    def remove(path: str) -> str:
        """Removes a file."""
        return path

    tools = ToolRegistry()
    tools.register(remove)
    step = PlanStep(step_id="s1", description="d", tool="remove")
    given = LLMResponse(text="", tool_calls=[{"name": "remove", "arguments": {"path": "a", "simulate": True}}])
    model = ScriptedModel(repair={"tool_name": "remove", "arguments": {"path": "a"}})
    assert Supervisor(model, registry=tools).read_tool_call(given, step) == {"path": "a"}
    assert len(model.requests) == 1
