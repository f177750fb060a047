"""The model judge: its request, what is taken of its reply, and that it never fails a validation."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from aeon_core.errors import LLMError, RunAborted
from aeon_core.tools.registry import default_registry
from aeon_core.validation.judge import JUDGE_SCHEMA, MAX_ISSUES, beyond
from aeon_core.validation.report import ValidationIssue
from aeon_core.validation.semantic.finding import Finding
from aeon_core.validation.validator import SemanticValidator
from tests.aeon_core.validation.semantic.plans import plan
from tests.fakes import Reply, ScriptedModel

PLAN = plan("Count the rows of rows.csv", "Read rows.csv", "Do stuff")


def issue(kind: str = "consistency", step_id: str | None = "s1", **changed: Any) -> dict[str, Any]:
    return {
        "issue_id": "j1",
        "type": kind,
        "severity": "medium",
        "description": "rows.csv has no header",
        "location": {"artifact": "plan", "step_id": step_id},
        "proposed_repair": "Name the columns.",
        **changed,
    }


def found(reply: Reply) -> list[tuple[str, str, str | None]]:
    report = SemanticValidator(default_registry(), ScriptedModel(judge=reply)).validate_plan(PLAN)
    return [(i.issue_id, i.type, i.location.step_id) for i in report.issues]


RULES = [("issue-1", "specificity", "s2")]


def test_what_the_judge_finds_is_added_to_the_rules() -> None:
    assert found({"issues": [issue()]}) == [*RULES, ("issue-2", "consistency", "s1")]


def test_what_the_rules_found_already_is_not_added() -> None:
    assert found({"issues": [issue("specificity", "s2"), issue(), issue()]}) == [
        *RULES,
        ("issue-2", "consistency", "s1"),
    ]


@pytest.mark.parametrize(
    "reply",
    [
        LLMError("down"),
        RuntimeError("broken adapter"),
        "no JSON at all",
        '{"issues": [',
        {"issues": 5},
        {"problems": []},
        {"issues": []},
        {"issues": [7, issue(description=" "), {}]},
    ],
)
def test_a_judge_that_fails_or_answers_nonsense_leaves_the_rules_alone(reply: Reply) -> None:
    assert found(reply) == RULES


@pytest.mark.parametrize(
    ("changed", "read"),
    [
        ({"severity": "High"}, ("consistency", "high", "s1")),
        ({"severity": "fatal"}, ("consistency", "high", "s1")),
        ({"severity": None}, ("consistency", "high", "s1")),
        ({"type": "Relevance"}, ("relevance", "medium", "s1")),
        ({"type": "style"}, ("consistency", "medium", "s1")),
        ({"location": {"artifact": "plan", "step_id": "s9"}}, ("consistency", "medium", None)),
        ({"location": "s1"}, ("consistency", "medium", None)),
        ({"proposed_repair": None}, ("consistency", "medium", "s1")),
    ],
)
def test_an_issue_in_another_form_counts_and_is_never_read_as_a_milder_one(
    changed: dict[str, Any], read: tuple[str, str, str | None]
) -> None:
    shown = judged({**issue(), **changed})[-1]
    assert (shown.type, shown.severity, shown.location.step_id) == read


def test_a_judge_that_finds_it_worse_than_the_rules_is_heard() -> None:
    rule = Finding("specificity", "medium", "s2", "it is vague", "say what")
    worse = replace(rule, severity="high", description="nobody knows what to do")
    assert beyond([rule], [rule, worse, replace(worse, description="again")]) == [worse]


@pytest.mark.parametrize("around", ["```json\n{}\n```", "<think>hm</think> {}", "Here: {} Done."])
def test_text_around_the_reply_does_no_harm(around: str) -> None:
    text = around.replace("{}", json.dumps({"issues": [issue(location=None)]}))
    assert found(text) == [*RULES, ("issue-2", "consistency", None)]


def test_an_object_among_the_thoughts_is_not_taken_for_the_reply() -> None:
    thoughts = '<think>{"maybe": [1]} or {no}</think>'
    assert found(f"{thoughts} {json.dumps({'issues': [issue()]})}") == [*RULES, ("issue-2", "consistency", "s1")]


def test_a_reply_of_braces_alone_is_given_up() -> None:
    assert found("{" * 100_000 + "}") == RULES


@pytest.mark.parametrize(
    ("issues", "left_out"),
    [
        ([issue(), {"type": "style"}, "no object"], "2 of the judge's 3 issues"),
        ([issue()] * 1000, f"{1000 - MAX_ISSUES} of the judge's 1000 issues"),
        ("nonsense", "is no report"),
    ],
)
def test_what_cannot_be_used_costs_one_line(issues: Any, left_out: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="aeon"):
        found({"issues": issues})
    (line,) = caplog.messages
    assert left_out in line
    assert "\n" not in line


def test_a_sound_reply_costs_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="aeon"):
        found({"issues": [issue()]})
    assert caplog.messages == []


def judged(*issues: dict[str, Any], **execution: Any) -> list[ValidationIssue]:
    validator = SemanticValidator(default_registry(), ScriptedModel(judge={"issues": list(issues)}))
    if execution:
        return validator.validate_execution(goal=PLAN.goal, plan=PLAN, **execution).issues
    return validator.validate_plan(PLAN).issues


def test_text_of_the_judge_is_made_harmless() -> None:
    bad = issue(description="\x1b[2Jgone\nsecond\u202e line \ud800", proposed_repair="[red]x[/red] " * 200)
    shown = judged(bad)[-1]
    assert shown.description == "\\x1b[2Jgone second\\u202e line \ufffd"
    assert len(shown.proposed_repair) == 500


def test_an_artifact_that_is_none_is_the_one_that_was_looked_at() -> None:
    shown = judged(issue(location={"artifact": "your mailbox\n", "step_id": "s1"}))[-1]
    assert (shown.location.artifact, shown.location.step_id) == ("plan", "s1")


def test_a_duplicate_in_other_words_is_merged_and_another_artifact_is_not() -> None:
    places = [("answer", None), ("memory", None), ("answer", None)]
    issues = [issue(location={"artifact": artifact, "step_id": step_id}) for artifact, step_id in places]
    results = {"s1": {"rows": 7}}
    shown = judged(*issues, results=results, answer="The rows number 9", memory={"s1": {"rows": 7}})
    assert [i.location.artifact for i in shown] == ["answer", "memory"]
    assert shown[0].description.startswith("the answer")
    assert shown[1].description == "rows.csv has no header"


def test_a_report_with_a_judge_adds_up() -> None:
    validator = SemanticValidator(default_registry(), ScriptedModel(judge={"issues": [issue(severity="low")]}))
    report = validator.validate_plan(PLAN)
    assert {kind: n for kind, n in report.issue_summary.items() if n} == {"specificity": 1, "consistency": 1}
    assert report.overall_severity == report.issues[0].severity
    assert report.proposed_repairs == [i.proposed_repair for i in report.issues]


def test_what_ends_a_run_is_not_swallowed() -> None:
    with pytest.raises(RunAborted):
        found(RunAborted("stopped"))


def test_the_number_of_issues_is_bounded() -> None:
    many = [issue(kind, step) for kind in ("consistency", "relevance") for step in ("s1", "s2", None)] * MAX_ISSUES
    assert len(found({"issues": many})) == 1 + 6


def test_the_request_shows_plan_arguments_and_tools() -> None:
    model = ScriptedModel(judge={"issues": []})
    step = ("Add 2 and 3", "calculator", {"operation": "add", "a": 2, "b": 3})
    SemanticValidator(default_registry(), model).validate_plan(plan("Add 2 and 3", step))
    (request,) = model.requests
    assert request.system.startswith("Aeon judge\n")
    assert (request.purpose, request.schema) == ("judge", JUDGE_SCHEMA)
    for shown in ('"goal": "Add 2 and 3"', '{"operation": "add", "a": 2, "b": 3}', '"name": "calculator"'):
        assert shown in request.prompt
    assert "<answer>" not in request.prompt


def test_an_execution_is_judged_with_results_memory_and_answer() -> None:
    model = ScriptedModel(judge={"issues": [issue(location={"artifact": "answer", "step_id": None})]})
    report = SemanticValidator(default_registry(), model).validate_execution(
        goal=PLAN.goal,
        plan=PLAN,
        results={"s1": "7 rows"},
        answer="rows.csv holds 7 rows",
        memory={"unit": "row"},
        failures={"s2": ["no such file"]},
    )
    for shown in ('{"result": "7 rows"}', '"no such file"', '"key": "unit"', '"rows.csv holds 7 rows"'):
        assert shown in model.requests[0].prompt
    assert [(i.type, i.location.artifact) for i in report.issues] == [("consistency", "answer")]


def test_of_a_step_only_what_is_about_it_is_kept() -> None:
    model = ScriptedModel(judge={"issues": [issue(step_id="s1"), issue(step_id="s2")]})
    report = SemanticValidator(default_registry(), model).validate_step(PLAN.steps[0], PLAN)
    assert [(i.type, i.location.step_id) for i in report.issues] == [("consistency", "s1")]
    assert "<step>" in model.requests[0].prompt


def test_every_object_of_the_schema_is_closed_and_every_key_required() -> None:
    def check(schema: Any) -> None:
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            for inner in schema["properties"].values():
                check(inner)
        elif schema.get("type") == "array":
            check(schema["items"])

    check(JUDGE_SCHEMA)
