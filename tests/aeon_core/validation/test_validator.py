"""The semantic validator: reports on plans, steps and executions, by exact checks alone."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from aeon_core.entities import SemanticValidationReport
from aeon_core.memory import InMemoryStore
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.tools.registry import ToolRegistry, default_registry
from aeon_core.validation.validator import SemanticValidator, lint_report
from tests.aeon_core.validation.plans import plan

VALIDATOR = SemanticValidator(default_registry())
SUM = plan(
    "Add 2 and 3, then multiply by 4",
    ("Add 2 and 3", "calculator", {"operation": "add", "a": 2, "b": 3}),
    ("Multiply the sum by 4", "calculator", None, ["s1"]),
)
RESULTS: dict[str, Any] = {"s1": {"result": 5}, "s2": {"result": 20}}


def judged(**changed: Any) -> list[tuple[str, str, str, str | None]]:
    done = [step.model_copy(update={"status": "complete"}) for step in SUM.steps]
    given = {"goal": SUM.goal, "plan": Plan(goal=SUM.goal, steps=done), "results": RESULTS, **changed}
    report = VALIDATOR.validate_execution(**given)
    return [(i.type, i.severity, i.location.artifact, i.location.step_id) for i in report.issues]


def test_a_report_adds_up() -> None:
    faulty = plan("Add 2 and 3", "Do stuff", ("Add 2 and 3", "adder"), ("Say the sum aloud", None, None, ["s9"]))
    report = VALIDATOR.validate_plan(faulty)
    assert [(i.issue_id, i.type, i.location.step_id) for i in report.issues] == [
        ("issue-1", "hallucination", "s2"),
        ("issue-2", "consistency", "s3"),
    ]
    assert (report.artifact_type, report.overall_severity) == ("plan", "high")
    assert {kind: n for kind, n in report.issue_summary.items() if n} == {"hallucination": 1, "consistency": 1}
    assert report.proposed_repairs == [issue.proposed_repair for issue in report.issues]
    assert SemanticValidationReport.model_validate_json(report.model_dump_json()) == report


def test_validation_is_deterministic_and_leaves_the_plan_unchanged() -> None:
    before = SUM.model_dump()
    first = VALIDATOR.validate_plan(SUM)
    assert SUM.model_dump() == before
    assert first == SemanticValidator(default_registry()).validate_plan(Plan.model_validate(before))
    assert first.validation_id != VALIDATOR.validate_plan(SUM, task="another task").validation_id


def test_a_tool_that_is_registered_later_is_known() -> None:
    registry = ToolRegistry()
    validator = SemanticValidator(registry)
    step = plan("Say hello", ("Say hello", "echo", {"text": "hello"}))
    assert [i.type for i in validator.validate_plan(step).issues] == ["hallucination"]
    for tool in default_registry():
        registry.register(tool)
    assert validator.validate_plan(step).issues == []


def test_an_executed_step_has_no_issues() -> None:
    done = plan("Read parcels.csv", "Read parcels.csv", ("Weigh them", "scales"))
    assert len(VALIDATOR.validate_plan(done).issues) == 1
    step = done.steps[1]
    step.status = "running"
    step.status = "complete"
    assert VALIDATOR.validate_plan(done).issues == []


def test_one_step_is_reported_on_within_its_plan() -> None:
    whole = plan("Count the rows", ("Weigh them", "scales"), ("Measure them", "ruler"))
    report = VALIDATOR.validate_step(whole.steps[1], whole)
    assert [(i.type, i.location.artifact, i.location.step_id) for i in report.issues] == [
        ("hallucination", "step", "s2")
    ]
    assert report.artifact_type == "step"


@pytest.mark.parametrize("step_id", ["s2", "s3"])
def test_a_proposed_step_is_checked_at_its_place(step_id: str) -> None:
    whole = plan("Count the rows", "Read rows.csv", "Count the rows of rows.csv")
    proposed = PlanStep(step_id=step_id, description="Weigh them", tool="scales", depends_on=["s8", "s1"])
    report = VALIDATOR.validate_step(proposed, whole)
    assert [(i.type, i.location.step_id) for i in report.issues] == [
        ("hallucination", step_id),
        ("consistency", step_id),
    ]
    assert [step.step_id for step in whole.steps] == ["s1", "s2"]


@pytest.mark.parametrize("answer", [None, "20", "Es sind 42.", "Bananas grow in warm countries."])
def test_exact_checks_do_not_interpret_the_answer(answer: str | None) -> None:
    assert judged(answer=answer, memory=RESULTS) == []


@pytest.mark.parametrize(
    ("changed", "artifact", "step_id"),
    [
        ({"answer": " "}, "answer", None),
        ({"memory": {"s1": {"result": 6}}}, "memory", "s1"),
        ({"results": {**RESULTS, "s9": {"result": 1}}}, "execution_artifact", None),
        ({"failures": {"s2": ["boom"]}}, "execution_artifact", "s2"),
        ({"results": {**RESULTS, "s2": {"success": False}}, "answer": "20"}, "cross_phase", "s2"),
        ({"results": {"s1": {"result": 5}}, "answer": "20"}, "cross_phase", "s2"),
    ],
)
def test_provable_faults_of_an_execution_are_found(changed: Any, artifact: str, step_id: str | None) -> None:
    assert judged(**changed) == [("consistency", "high", artifact, step_id)]


def test_a_missing_answer_is_not_reported() -> None:
    assert judged(answer=None) == []
    assert judged(answer="") == [("consistency", "high", "answer", None)]


def test_the_report_type_names_what_was_compared() -> None:
    alone = VALIDATOR.validate_execution(goal=SUM.goal, plan=SUM, results=RESULTS)
    assert alone.artifact_type == "execution_artifact"
    store = InMemoryStore()
    store.write("s1", {"result": 6})
    across = VALIDATOR.validate_execution(goal=SUM.goal, plan=SUM, results=RESULTS, memory=store)
    assert (across.artifact_type, across.overall_severity) == ("cross_phase", "high")


def test_lint_report_lists_structure_and_literal_issues_once() -> None:
    wrong = {"operation": "x", "a": 1, "b": 2}
    data = {
        "goal": "Add 2 and 3",
        "steps": [
            {"step_id": "a", "description": "Add 2 and 3", "tool": "adder", "depends_on": ["z"]},
            {"step_id": "b", "description": "Do stuff"},
            {"step_id": "c", "description": "Add", "tool": "calculator", "arguments": wrong},
            {"step_id": "d", "description": 'Say "good day"', "tool": "echo", "arguments": {"text": "good may"}},
        ],
    }
    issues = [(i.type, i.severity, i.location.step_id) for i in lint_report(data, default_registry()).issues]
    assert issues == [
        ("hallucination", "high", "a"),
        ("consistency", "high", "a"),
        ("specificity", "medium", "b"),
        ("consistency", "high", "c"),
        ("do_say_mismatch", "high", "d"),
    ]


def test_lint_report_checks_the_readable_part_of_a_broken_plan() -> None:
    say = {"step_id": "a", "description": "Add 20 and 30", "tool": "calculator"}
    data = {"steps": [{**say, "arguments": {"operation": "add", "a": 20, "b": 35}}, 7]}
    kinds = [i.type for i in lint_report(data, default_registry()).issues]
    assert kinds == ["consistency", "consistency", "do_say_mismatch"]


@pytest.mark.exhaustive
def test_the_report_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from tests.aeon_core.validation.labelled.plans import labelled_plans\n"
        "from tests.aeon_core.validation.labelled.tools import registry\n"
        "from aeon_core.plan.models import Plan\n"
        "from aeon_core.validation.validator import SemanticValidator\n"
        "validator = SemanticValidator(registry())\n"
        "for labelled in labelled_plans():\n"
        "    print(validator.validate_plan(Plan.model_validate(labelled['plan'])).model_dump_json())\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
