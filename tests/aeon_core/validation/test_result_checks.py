"""Exact checks on what came of a plan: statuses, ids, tools, memory (adaptive FR-018 to FR-021, FR-041)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aeon_core.plan.models import Plan
from aeon_core.validation.result_checks import Artifacts, check_result

RESULTS: dict[str, Any] = {"s1": {"boats": 37}, "s2": {"buoys": 112}}


def plan(first: dict[str, Any] | None = None, second: dict[str, Any] | None = None, *more: dict[str, Any]) -> Plan:
    made = [
        {"step_id": f"s{n}", "description": "Zähle", "status": "complete", **(fields or {})}
        for n, fields in enumerate((first, second, *more), 1)
    ]
    return Plan(goal="g", steps=made)


def artifacts(**changed: Any) -> Artifacts:
    return Artifacts(**{"goal": "g", "plan": plan(), "results": RESULTS, "answer": "37 und 112", **changed})


def test_a_complete_result_has_no_finding() -> None:
    memory = {"s1": {"boats": 37}, "s2": 112, "other": "x"}
    assert check_result(artifacts(memory=memory, tools=["sonar"])) == []


@pytest.mark.parametrize(
    ("changed", "description", "flag", "step_id"),
    [
        (
            {"plan": plan(None, {"status": "failed"}), "failures": {"s2": ["late", "wet"]}},
            "step 's2' failed: late; wet",
            None,
            "s2",
        ),
        ({"failures": {"s2": ["late"]}}, "step 's2' failed: late", None, "s2"),
        ({"plan": plan(None, {"status": "failed"})}, "step 's2' failed: no reason is known", None, "s2"),
        (
            {"results": {**RESULTS, "s2": {"success": False}}},
            "step 's2' failed: success is false",
            None,
            "s2",
        ),
        (
            {"results": {**RESULTS, "s2": {"error": "disk\nfull"}}},
            "step 's2' failed: error is 'disk full'",
            None,
            "s2",
        ),
        *(
            ({"results": {**RESULTS, "s2": output}}, f"step 's2' failed: {why}", None, "s2")
            for output, why in (
                ({"success": "False", "output": "", "rows": []}, "success is false"),
                ({"success": False, "exit_code": 2}, "success is false"),
                ({"success": False, "error": "late", "rows": [1]}, "error is 'late'"),
                ({"error": "late", "ok": False, "data": None}, "error is 'late'"),
                ({"error": True}, "error is 'true'"),
                ({"error": ["late"]}, "error is '[\"late\"]'"),
                ({"error": {"code": 500, "at": 3}}, 'error is \'{"at": 3, "code": 500}\''),
            )
        ),
        ({"plan": plan(None, {"status": "pending"})}, "step 's2' was not done: it is pending", None, "s2"),
        ({"plan": plan(None, {"status": "invalid"})}, "step 's2' was not done: it is invalid", None, "s2"),
        ({"results": {"s1": {"boats": 37}}}, "step 's2' is complete, but has no output", "step", "s2"),
        ({"answer": " \n"}, "there is no answer", "answer", None),
        (
            {"results": {**RESULTS, "s9": {"gulls": 4}}},
            "there is a result for step 's9', which is not in the plan",
            "plan",
            None,
        ),
        (
            {"failures": {"s9": ["late"]}},
            "there is a result for step 's9', which is not in the plan",
            "plan",
            None,
        ),
        (
            {"plan": plan(None, {"depends_on": ["s7"]})},
            "step 's2' depends on 's7', which is not in the plan",
            "plan",
            "s2",
        ),
        (
            {"plan": plan({"depends_on": ["s2"]})},
            "step 's1' depends on 's2', which does not end before it",
            "plan",
            "s1",
        ),
        (
            {"plan": plan(None, {"tool": "sonar"}), "tools": ["counter"]},
            "step 's2' names the tool 'sonar', which is not registered",
            "plan",
            "s2",
        ),
        (
            {"memory": {"s2": {"buoys": 111}}},
            "memory has a different value for step 's2' than the step returned",
            "memory",
            "s2",
        ),
    ],
)
def test_each_fault_is_found_separately(
    changed: dict[str, Any], description: str, flag: str | None, step_id: str | None
) -> None:
    [found] = check_result(artifacts(**changed))
    assert (found.finding.description, found.flag, found.finding.step_id) == (description, flag, step_id)
    assert found.finding.severity == "high"
    assert found.hallucinated is (found.finding.type == "hallucination") is ("tool" in description)


def test_a_step_that_built_on_a_failed_one_and_is_complete_breaks_the_step_flag() -> None:
    made = plan({"status": "failed"}, {"depends_on": ["s1"]})
    first, second = check_result(artifacts(plan=made, results={"s2": {"buoys": 112}}))
    assert first.finding.description.startswith("step 's1' failed")
    assert second.finding.description == "step 's2' depends on 's1', which is complete but has no result"
    assert second.flag == "step"


@pytest.mark.parametrize(
    "output",
    [
        {"success": True, "error": None},
        {"error": ""},
        {"errors": 412},
        {"error": 0.02},
        {"error": "0"},
        {"error": " 0.04 "},
        {"error": []},
        {"error": False},
        {"value": 9.79, "error": "±0.04"},
        {"value": 9.79, "error": {"mean": 0.1}},
        {"success": False, "issues": ["line 8 is too long"]},
        {"success": True, "error": "none"},
        {"text": "The build failed: success is false, error: disk full"},
        {"status": "failed", "ok": False},
        {"exit_code": 0},
        "error",
        [],
        0,
        False,
    ],
)
def test_exact_checks_do_not_interpret_outputs(output: Any) -> None:
    assert check_result(artifacts(results={**RESULTS, "s2": output})) == []


@pytest.mark.parametrize("stored", [{"buoys": 112}, 112, {"result": {"buoys": 112}}, {"text": {"buoys": 112}}])
def test_memory_may_hold_an_output_with_or_without_its_wrapping(stored: Any) -> None:
    assert check_result(artifacts(memory={"s2": stored})) == []


def test_a_replacement_resolves_an_invalid_step() -> None:
    made = plan({"status": "invalid", "tool": "sonar"}, None, {"replaces": "s1"})
    results = {"s2": {"buoys": 112}, "s3": {"boats": 37}}
    assert check_result(artifacts(plan=made, results=results, tools=[])) == []


def test_a_step_with_substeps_needs_no_own_output() -> None:
    part = {"step_id": "a", "description": "d", "status": "complete"}
    made = plan({"subplan": {"parent_step_id": "s1", "subplan_goal": "g", "substeps": [part]}})
    assert check_result(artifacts(plan=made, results={"a": 1, "s2": 2})) == []
    [missing] = check_result(artifacts(plan=made, results={"s2": 2}))
    assert missing.finding.step_id == "a"


keys = st.sampled_from(["s1", "s2", "s3", "text", "error", "success", "exit_code", "result", "x"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def is_replaced(step_id: str, by: dict[Any, str]) -> bool:
    seen = [step_id]
    while seen[-1] in by and by[seen[-1]] not in seen:
        seen.append(by[seen[-1]])
    return len(seen) > 1 and seen[-1] not in by


@example([{"status": "invalid", "replaces": "s1"}], {}, {}, {}, "")
@example([{"status": "invalid", "replaces": "s2"}, {"status": "invalid", "replaces": "s1"}], {}, {}, {}, "")
@given(
    st.lists(
        st.fixed_dictionaries(
            {"status": st.sampled_from(["pending", "running", "complete", "failed", "invalid"])},
            optional={
                "depends_on": st.lists(keys, max_size=2),
                "tool": st.sampled_from(["sonar", "counter"]),
                "replaces": keys,
            },
        ),
        min_size=1,
        max_size=3,
    ),
    st.dictionaries(keys, values),
    st.dictionaries(keys, values),
    st.dictionaries(keys, st.lists(st.text(max_size=5), max_size=2)),
    st.text(max_size=10),
)
def test_result_checks_never_raise_and_are_deterministic(
    steps: list[dict[str, Any]],
    results: dict[str, Any],
    memory: dict[str, Any],
    failures: dict[str, list[str]],
    answer: str,
) -> None:
    made = [{"step_id": f"s{n}", "description": "d", **fields} for n, fields in enumerate(steps, 1)]
    given: dict[str, Any] = {"plan": Plan(goal="g", steps=made), "results": results, "memory": memory}
    given |= {"failures": failures, "answer": answer, "tools": ["counter"]}
    first = check_result(artifacts(**given))
    assert first == check_result(artifacts(**given))
    own = [errors for step_id, errors in failures.items() if step_id in {step["step_id"] for step in made}]
    by = {step.get("replaces"): step["step_id"] for step in made if "replaces" in step}
    done = not any(own) and all(
        step["status"] == "complete" or (step["status"] == "invalid" and is_replaced(step["step_id"], by))
        for step in made
    )
    assert any("failed" in each.finding.description or "not done" in each.finding.description for each in first) or done
