"""Lint: every structural issue of a plan, classified, with a repair (contract: lint)."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.entities import IssueType, SemanticValidationReport
from aeon_core.errors import LLMError, RunAborted
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import parse_plan
from aeon_core.tools.registry import ToolRegistry, default_registry
from aeon_core.validation.validator import MAX_ISSUES, lint_plan, lint_report
from tests.fakes import ScriptedModel

REGISTRY = default_registry()


def plan(*steps: Any) -> dict[str, Any]:
    numbered = [{"step_id": f"s{n}", "description": "d", **fields} for n, fields in enumerate(steps, 1)]
    return {"goal": "g", "steps": numbered}


def found(data: Any) -> list[tuple[str, str, str | None, str, str]]:
    report = lint_report(data, REGISTRY)
    return [
        (issue.type, issue.severity, issue.location.step_id, issue.description, issue.proposed_repair)
        for issue in report.issues
    ]


ADD = {"tool": "calculator", "arguments": {"operation": "add", "a": 1, "b": 2}}


def test_a_sound_plan_has_no_issue_and_no_severity() -> None:
    report = lint_report(plan(ADD, {"agent": "llm", "depends_on": ["s1"]}), REGISTRY)
    assert report.issues == []
    assert report.overall_severity is None
    assert report.issue_summary == dict.fromkeys(get_args(IssueType), 0)
    assert report.artifact_type == "plan"


def test_a_plan_object_has_the_issues_of_its_file() -> None:
    data = plan({"tool": "web_search"}, ADD)
    assert lint_plan(Plan.model_validate(data)).issues == lint_plan(data).issues != []


@pytest.mark.parametrize(
    ("data", "issue"),
    [
        (
            plan({"tool": "calculater"}),
            (
                "hallucination",
                "high",
                "s1",
                "steps[0]: the tool 'calculater' is not registered",
                "Call 'calculator' instead.",
            ),
        ),
        (
            plan(ADD, {"tool": "web_search"}),
            (
                "hallucination",
                "high",
                "s2",
                "steps[1]: the tool 'web_search' is not registered",
                "Set tool to null and agent to 'llm', or register the tool.",
            ),
        ),
        (
            plan({}),
            (
                "specificity",
                "medium",
                "s1",
                "steps[0]: neither a tool nor agent 'llm'",
                "Name a registered tool, or set agent to 'llm'.",
            ),
        ),
        (
            plan({"tool": "calculator", "arguments": {"operation": "add", "a": "1", "b": 2}}),
            (
                "consistency",
                "high",
                "s1",
                'steps[0]: the arguments do not fit: a: expected number, got "1"',
                "Change the arguments to fit the input_schema of 'calculator': a: expected number, got \"1\".",
            ),
        ),
        (
            plan({**ADD, "depends_on": ["s9"]}),
            (
                "consistency",
                "high",
                "s1",
                "steps[0]: depends_on names 's9': no step has that id",
                "Remove 's9' from depends_on, or name an earlier step.",
            ),
        ),
        (
            plan({**ADD, "depends_on": ["s2"]}, {"agent": "llm"}),
            (
                "consistency",
                "high",
                "s1",
                "steps[0]: depends_on names 's2': that step does not end before this one runs",
                "Remove 's2' from depends_on, or move this step after it.",
            ),
        ),
        (
            plan({**ADD, "agent": "robot"}),
            (
                "consistency",
                "high",
                "s1",
                "steps[0].agent: expected 'llm', got \"robot\"",
                "Make steps[0].agent 'llm'.",
            ),
        ),
        (
            plan({"tool": 5}),
            ("consistency", "high", "s1", "steps[0].tool: expected a string, got 5", "Make steps[0].tool a string."),
        ),
        (
            plan({**ADD, "depends_on": ["s1"]}),
            (
                "consistency",
                "high",
                "s1",
                "steps[0]: depends_on names 's1': that step does not end before this one runs",
                "Remove 's1' from depends_on, or move this step after it.",
            ),
        ),
        (
            "no plan",
            (
                "consistency",
                "high",
                None,
                "plan: expected an object with 'goal' and 'steps', got \"no plan\"",
                "Make plan an object with 'goal' and 'steps'.",
            ),
        ),
    ],
)
def test_each_issue_has_type_severity_place_and_repair(data: Any, issue: tuple[Any, ...]) -> None:
    assert found(data) == [issue]


def test_a_parent_may_depend_on_its_substeps_but_not_vice_versa() -> None:
    flat = {
        "goal": "g",
        "steps": [
            {"id": "a", "parent": None, "description": "d", "depends_on": ["a.1"]},
            {"id": "a.1", "parent": "a", "description": "d", "agent": "llm", "depends_on": ["a"]},
        ],
    }
    assert [issue[3] for issue in found(flat)] == [
        "steps[1]: depends_on names 'a': that step does not end before this one runs"
    ]


def test_a_malformed_plan_is_still_checked_as_far_as_it_can_be_read() -> None:
    report = lint_report(
        {"steps": [{"step_id": "s1", "tool": "nope"}, 7, {"step_id": " ", "description": "d"}]}, REGISTRY
    )
    assert [(issue.type, issue.severity) for issue in report.issues] == [
        *[("consistency", "high")] * 4,
        ("hallucination", "high"),
        ("specificity", "medium"),
    ]
    assert [issue.issue_id for issue in report.issues] == [f"issue-{n}" for n in range(1, 7)]
    assert report.overall_severity == "high"
    assert report.issue_summary["consistency"] == 4
    assert report.proposed_repairs == [issue.proposed_repair for issue in report.issues]


def test_the_same_plan_gets_the_same_report_and_another_plan_another_id() -> None:
    first, again, other = (lint_report(plan(*steps), REGISTRY) for steps in ([ADD], [ADD], [ADD, ADD]))
    assert first == again
    assert first.validation_id != other.validation_id
    assert SemanticValidationReport.model_validate_json(first.model_dump_json()) == first


def test_the_number_of_issues_is_bounded() -> None:
    assert len(lint_report(plan(*[{}] * 5000), REGISTRY).issues) == MAX_ISSUES
    thrice = {"tool": "nope", "depends_on": ["x", "y"]}
    assert len(lint_report(plan(*[thrice] * 500), REGISTRY).issues) == MAX_ISSUES
    assert len(lint_report({str(n): n for n in range(5000)}, REGISTRY).issues) == MAX_ISSUES


rough = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["goal", "steps", "step_id", "id", "parent", "description", "tool", "subplan", "substeps", "x"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(rough | st.fixed_dictionaries({"goal": rough, "steps": st.lists(rough, max_size=4)}))
def test_lint_never_raises_and_finds_what_parsing_refuses(data: Any) -> None:
    report = lint_report(data, ToolRegistry())
    structural = [issue for issue in report.issues if issue.type == "consistency"]
    try:
        parse_plan(data)
    except Exception:
        assert structural


def test_endless_nesting_is_an_issue() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert lint_report(deep, REGISTRY).overall_severity == "high"


def reviewed(step_id: str | None, kind: str = "relevance") -> dict[str, Any]:
    return {
        "issue_id": "r1",
        "type": kind,
        "severity": "medium",
        "description": "beside the point",
        "location": {"artifact": "plan", "step_id": step_id},
        "proposed_repair": "r",
    }


def test_review_findings_follow_proven_issues() -> None:
    judge = ScriptedModel(review={"issues": [reviewed("s1"), reviewed("s9", "hallucination"), reviewed(None)]})
    report = lint_report(plan({"tool": "calculater"}), REGISTRY, judge=judge)
    alone = lint_report(plan({"tool": "calculater"}), REGISTRY)
    assert report.issues[: len(alone.issues)] == alone.issues
    assert [(issue.type, issue.location.step_id) for issue in report.issues[len(alone.issues) :]] == [
        ("relevance", "s1"),
        ("hallucination", None),
        ("relevance", None),
    ]
    assert len(judge.requests) == 1


def test_an_unreadable_plan_is_not_reviewed() -> None:
    judge = ScriptedModel(review={"issues": []})
    assert lint_report([1, 2], REGISTRY, judge=judge).issues
    assert judge.requests == []


@pytest.mark.parametrize("reply", [LLMError("busy"), RuntimeError("broken adapter"), "prose", {"issues": 5}, {}])
def test_a_failed_or_unreadable_review_finds_nothing(reply: Any) -> None:
    sound = plan(ADD, {"agent": "llm", "depends_on": ["s1"]})
    assert lint_report(sound, REGISTRY, judge=ScriptedModel(review=reply)) == lint_report(sound, REGISTRY)


def test_errors_that_end_a_run_end_a_review() -> None:
    with pytest.raises(RunAborted):
        lint_report(plan(ADD), REGISTRY, judge=ScriptedModel(review=RunAborted("by a person")))
