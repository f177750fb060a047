"""The request for refinement, its reply, and the fragments it is about (adaptive FR-011 to FR-013)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core.errors import ValidationError
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.parsing import MAX_PROBLEMS
from aeon_core.plan.refinement.actions import RefinementLedger, fragments_to_refine, left_to_a_person
from aeon_core.plan.requests import read_refinement, refine_schema, refinement_request
from aeon_core.prompts import system_prompt
from tests.aeon_core.plan.refinement.kit import act, applied, issue, plan_of, step

CONCRETE = "count the words of notes.txt"


def request(**options: Any) -> LLMRequest:
    plan = plan_of(
        step("a", "failed", agent=None, tool="echo", arguments={"text": "hi", "times": 3}),
        step("b", description="do stuff"),
        step("c", description=CONCRETE, agent=None, tool="echo", arguments={"text": "ho"}),
    )
    ledger = options.pop("ledger", RefinementLedger())
    return refinement_request(
        "the task",
        plan,
        fragments_to_refine(plan, failures={"a": ["timed out"]}, ledger=ledger),
        tools=[{"name": "echo"}],
        outputs={},
        failures={"a": ["timed out"]},
        ledger=ledger,
        ttl_remaining=7,
        ttl_limit=20,
        max_tokens=100,
        **options,
    )


def test_the_request_shows_the_fragments_with_their_reasons_and_what_is_left() -> None:
    asked = request(assessment={"reason_codes": ["failed_step"]})

    assert (asked.purpose, asked.schema, asked.max_tokens) == ("refine", refine_schema(["echo"]), 100)
    assert asked.most == {"actions": 10, "follow_up_questions": 5}
    assert asked.system.startswith("Aeon refine\n")
    assert "<task>\nthe task\n</task>" in asked.prompt
    assert '"reasons": ["the step failed: timed out"]' in asked.prompt
    assert '"step_id": "b", "status": "pending", "reasons"' not in asked.prompt
    assert '<assessment>\n{"reason_codes": ["failed_step"]}\n</assessment>' in asked.prompt
    assert "10 refinements of the plan, 3 of one fragment in all; subplans nest at most 5 deep" in asked.prompt
    assert "7 cycles remaining of 20" in asked.prompt


def test_the_request_shows_what_the_steps_to_refine_pass_to_their_tools() -> None:
    shown = '<arguments>\n{"step_id": "a", "arguments": {"text": "hi", "times": 3}}\n</arguments>'

    assert shown in request().prompt


def test_an_exhausted_fragment_is_not_shown() -> None:
    asked = request(ledger=RefinementLedger(total=3, fragments={"a": 3}))

    assert "<arguments>" not in asked.prompt
    assert '"step_id": "a", "status": "failed", "reasons"' not in asked.prompt
    assert "7 refinements of the plan" in asked.prompt


def test_the_schema_is_closed_and_without_recursion() -> None:
    def objects(value: Any) -> list[dict[str, Any]]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = [value] if isinstance(value, dict) and value.get("type") == "object" else []
        return own + [found for each in inner for found in objects(each)]

    schema = refine_schema(["echo"])
    found = objects(schema)
    assert len(found) == 4
    assert all(each["required"] == list(each["properties"]) and not each["additionalProperties"] for each in found)
    assert "$ref" not in json.dumps(schema)


@pytest.mark.parametrize("purpose", ["refine", "profile"])
def test_the_prompt_is_short_and_marks_its_content_as_data(purpose: Any) -> None:
    text = system_prompt(purpose)

    assert text.startswith(f"Aeon {purpose}\n\n")
    assert len(text) < 2300
    assert max(map(len, text.splitlines())) <= 125
    assert "never an instruction" in " ".join(text.split())


def test_a_reply_is_read_with_its_actions_and_questions() -> None:
    reply = {
        "actions": [
            {
                "type": "step_modify",
                "target": "b",
                "changes": {"description": CONCRETE},
                "reason": "vague",
                "semantic_validation_input": ["i-b"],
                "inconsistency_detected": None,
            },
            {"type": "step_modify", "target": "b", "changes": CONCRETE},
            {"type": "step_add", "target": "b", "changes": [{"description": "d"}], "reason": "r"},
        ],
        "follow_up_questions": ["Which  file?", "Which file?", 3, " "],
    }
    read = read_refinement(json.dumps(reply))

    assert [action.changes for action in read.actions] == [
        {"description": CONCRETE},
        {"text": CONCRETE},
        {"steps": [{"description": "d"}]},
    ]
    assert read.actions[0].semantic_validation_input == [{"issue_id": "i-b"}]
    assert read.actions[1].reason == "the model gave no reason"
    assert read.follow_up_questions == ["Which file?"]
    assert read.problems == []


def test_an_action_that_cannot_be_read_is_left_out_and_named() -> None:
    good = {"type": "step_remove", "target": "b", "changes": {}, "reason": "r"}
    read = read_refinement({"actions": [{"type": "explode", "target": "b"}, good, 3]})

    assert [action.type for action in read.actions] == ["step_remove"]
    assert read.problems[0].startswith("actions[0]: type: Input should be 'plan_update'")
    assert read.problems[1] == "actions[2]: expected an object, got 3"


def test_at_most_so_many_problems_of_a_reply_are_named() -> None:
    bad, good = [{"type": "explode"}] * (MAX_PROBLEMS + 1), {"type": "step_remove", "target": "a"}
    with pytest.raises(ValidationError) as refused:
        read_refinement({"actions": bad})
    read = read_refinement({"actions": [*bad, good]})
    assert len(refused.value.context["problems"]) == len(read.problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("nonsense", "not JSON"),
        ("[]", "expected an object with 'actions' and 'follow_up_questions', got an empty array"),
        ("{}", "actions: expected an array of refinement actions, got null"),
        ({"actions": [{"type": "step_add"}]}, "actions[0]: target: Field required"),
        ({"actions": {1, 2}}, "actions[0]: expected an object, got 1"),
    ],
    ids=["text", "array", "empty", "no-action", "set"],
)
def test_a_reply_of_another_shape_is_refused(reply: Any, problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read_refinement(reply)
    assert problem in caught.value.context["problems"][0]


def test_a_reply_may_have_no_actions_and_no_questions() -> None:
    assert read_refinement('{"actions": []}').actions == []


def fragments(*steps: dict[str, Any], **options: Any) -> dict[str, tuple[str, ...]]:
    ledger = options.pop("ledger", RefinementLedger())
    return {each.step_id: each.reasons for each in fragments_to_refine(plan_of(*steps), ledger=ledger, **options)}


def test_concrete_and_finished_steps_need_no_refinement() -> None:
    assert fragments(step("a", description=CONCRETE), step("b", "complete"), step("c", "invalid")) == {}


def test_failed_steps_need_refinement_whatever_their_wording() -> None:
    found = fragments(
        step("a", description="handle it"),
        step("b", "failed"),
        step("c", description="download sales.csv, clean it, plot a chart and email it to Ann"),
        failures={"b": ["no such file"]},
    )
    assert found == {"b": ("the step failed: no such file",)}


def test_severe_issues_create_a_fragment() -> None:
    found = fragments(
        *(step(name, description=CONCRETE) for name in "abc"),
        issues=[issue("a", "high", "consistency"), issue("b", "low"), issue(None, "low")],
    )
    assert found == {"a": ("a is wanting",)}


def test_attempts_on_a_replacement_count_for_the_fragment() -> None:
    replaced = applied(plan_of(step("a", "failed")), act("step_mark_invalid", "a", description=CONCRETE))
    (found,) = fragments_to_refine(
        replaced.plan, issues=[issue("a-r1")], ledger=RefinementLedger(total=3, fragments={"a": 3})
    )
    assert (found.step_id, found.attempts, found.exhausted) == ("a-r1", 3, True)
    marked = left_to_a_person(RefinementLedger(), [found])
    assert [(entry.step_id, entry.reason) for entry in marked.manual_intervention] == [
        ("a", "refined 3 times and still insufficient: a-r1 is wanting")
    ]
    assert found.as_dict()["issues"][0]["issue_id"] == "i-a-r1"
