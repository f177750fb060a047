"""Exact checks on a plan: tools, arguments, dependencies, repeated calls (adaptive FR-037 to FR-040, Decision 7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.plan.models import Plan
from aeon_core.validation.plan_checks import check_plan
from tests.aeon_core.validation.labelled.tools import registry
from tests.aeon_core.validation.plans import Step, found, plan, said

REGISTRY = registry()
READ = ("Read parcels.csv", "read_file", {"path": "parcels.csv"})


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (("Add them", "calculater"), ("the tool 'calculater' is not registered", "Call 'calculator' instead.")),
        (
            ("Weigh it", "q"),
            ("the tool 'q' is not registered", "Set tool to null and agent to 'llm', or register the tool."),
        ),
        (
            ("Add them", "calculator", {"operation": "add", "a": "2", "b": 3}),
            (
                'the arguments do not fit: a: expected number, got "2"',
                "Change the arguments to fit the input_schema of 'calculator': a: expected number, got \"2\".",
            ),
        ),
        (
            ("Find it", "read_file", {}),
            (
                "the arguments do not fit: path: missing, but required",
                "Change the arguments to fit the input_schema of 'read_file': path: missing, but required.",
            ),
        ),
        (
            ("Think", None, None, ["s9"]),
            (
                "depends_on names 's9': no step has that id",
                "Remove 's9' from depends_on, or name an earlier step.",
            ),
        ),
        (
            ("Think", None, None, ["s1"]),
            (
                "depends_on names 's1': that step does not end before this one runs",
                "Remove 's1' from depends_on, or move this step after it.",
            ),
        ),
    ],
    ids=["tool", "tool-unlike-any", "type", "missing", "unknown", "itself"],
)
def test_each_fault_is_reported_with_its_repair(step: Step, told: tuple[str, str]) -> None:
    assert said(step) == [told]


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"items": [], "order": "descend"}, 1),
        ({"items": "b, a", "order": "ascending"}, 1),
        ({"items": [1], "order": "ascending"}, 1),
        ({"items": [], "order": "ascending", "by": "name"}, 1),
        ({"items": [], "order": "ascending"}, 0),
        (None, 0),
    ],
    ids=["enum", "type", "item-type", "unknown-key", "fits", "left-to-the-cycle"],
)
def test_arguments_are_checked_against_the_whole_input_schema(arguments: Any, faults: int) -> None:
    assert found(("Sort them", "sort_list", arguments)) == [("consistency", "high", "s1")] * faults


def test_a_cycle_is_reported_at_the_step_that_closes_it() -> None:
    steps = [("One", None, None, ["s3"]), ("Two", None, None, ["s1"]), ("Three", None, None, ["s2"])]
    assert found(*steps) == [("consistency", "high", "s1")]


def test_a_parent_may_depend_on_its_substeps_but_not_vice_versa() -> None:
    part = {"step_id": "a.1", "description": "Part", "agent": "llm", "depends_on": ["a"]}
    whole = {"step_id": "a", "description": "Whole", "depends_on": ["a.1"]}
    whole["subplan"] = {"parent_step_id": "a", "subplan_goal": "g", "substeps": [part]}
    issues = check_plan(Plan.model_validate({"goal": "g", "steps": [whole]}), REGISTRY)
    assert [(issue.step_id, issue.type) for issue in issues] == [("a.1", "consistency")]


@pytest.mark.parametrize(
    ("steps", "repeated"),
    [
        ([READ, READ], ["s2"]),
        ([READ, "Think", READ, READ], ["s3", "s4"]),
        ([READ, ("Other", "read_file", {"path": "letters.csv"})], []),
        ([READ, ("Save it", "write_file", {"path": "x.csv", "content": "1"}), READ], []),
        ([READ, ("Look", "Bash", {"command": "ls"}), READ], []),
        ([("Look", "Bash", {"command": "ls"})] * 2, []),
        ([("Read it", "read_file", None)] * 2, []),
    ],
    ids=["twice", "three-times", "other-arguments", "after-a-write", "after-a-command", "unsafe", "no-arguments"],
)
def test_a_repeated_pure_call_is_a_low_issue(steps: list[Step], repeated: list[str]) -> None:
    assert found(*steps) == [("relevance", "low", step_id) for step_id in repeated]


def test_executed_steps_are_context_without_issues() -> None:
    faulty = [
        ("Add them", "calculater"),
        ("Think", None, None, ["s9"]),
        ("Read x/a.txt", "read_file", {"path": "x/b.txt"}),
    ]
    made = plan("Weigh", *faulty, READ, READ)
    assert len(check_plan(made, REGISTRY)) == 3 + 1
    for step in made.steps:
        step.status = "running"
        step.status = "complete"
    assert check_plan(made, REGISTRY) == []


words = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "Read src/a.py to `b`",
            "2026-01-02 and 3 kg at https://a.example/x?y=1",
            "„x y“ von ann@example.org",
            "host-7 «oui» 「はい」 ١٢ px 1e9",
            "../" * 9 + "a.b",
        ]
    ),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
    | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from([tool.name for tool in REGISTRY] + ["nope", ""])


@given(
    st.lists(
        st.tuples(
            words.filter(str.strip),
            st.none() | names.filter(bool),
            st.none() | st.dictionaries(st.sampled_from(["path", "url", "text", "a", "b", "command"]), values),
            st.none() | st.lists(st.sampled_from(["s1", "s2", "s3", "x"]), max_size=3),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_checks_never_raise_and_are_deterministic(steps: list[Any]) -> None:
    made = plan("Weigh", *steps)
    before = made.model_dump_json()
    first = check_plan(made, REGISTRY)
    assert first == check_plan(made.model_copy(deep=True), REGISTRY)
    assert made.model_dump_json() == before
    assert {finding.step_id for finding in first} <= {step.step_id for step in made.steps}
    assert all(finding.description.strip() and finding.repair.strip() for finding in first)
