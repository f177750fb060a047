"""What no step serves gets a step, a wrong answer another answer, and what stays wanting goes to a person."""

from __future__ import annotations

from typing import Any

from tests.aeon_core.plan.test_subplans_run import SUM, VAGUE, act, divide, found, of, outputs, plan, refined, run

LEFT_OUT = {
    "issue_id": "j1",
    "type": "relevance",
    "severity": "high",
    "description": "no step divides 1 by 2",
    "location": {"artifact": "plan", "step_id": None},
    "proposed_repair": "Add a step that divides 1 by 2.",
}
MISTOLD = {
    **LEFT_OUT,
    "type": "consistency",
    "description": "the answer gives the sum as 16",
    "location": {"artifact": "answer", "step_id": None},
    "proposed_repair": "Say 15.",
}
RIGHT = "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5."


def test_an_unserved_part_of_the_goal_gets_a_step_in_the_next_pass() -> None:
    result, _, scripted = run(
        plan({**SUM, "step_id": "s1"}),
        refined([act("step_add", "plan", divide("s2", 2))]),
        judge=[{"issues": [LEFT_OUT]}, {"issues": []}],
    )

    assert (result.status, result.passes) == ("converged", 2)
    assert outputs(result) == {"s1": {"result": 15}, "s2": {"result": 0.5}}
    assert '"step_id": "plan"' in scripted.asked("refine")[0].messages[0]["content"]
    assert result.manual_intervention == []


def test_a_wrong_answer_is_given_again_with_what_was_wrong_and_no_step_runs_twice() -> None:
    again = {"type": "plan_update", "target": "answer", "changes": {}, "reason": "the steps gave 15"}
    result, records, scripted = run(
        plan({**SUM, "step_id": "s1"}, divide("s2", 2)),
        refined([again]),
        answer=["The sum of 5 and 10 is 16, and 1 divided by 2 is 0.5.", RIGHT],
        judge=[{"issues": [MISTOLD]}, {"issues": []}],
    )

    assert (result.status, result.passes, result.answer) == ("converged", 2, RIGHT)
    first, second = (request.messages[0]["content"] for request in scripted.asked("answer"))
    assert "<assessment>" not in first
    assert "Say 15." in second.partition("<assessment>")[2]
    assert len([record for record in of(records, "tool") if record["state"] == "started"]) == 2


def test_a_persistently_wrong_answer_ends_after_three_more() -> None:
    again = {"type": "plan_update", "target": "answer", "changes": {}, "reason": "the steps gave 15"}
    result, _, scripted = run(
        plan({**SUM, "step_id": "s1"}, divide("s2", 2)),
        [{"actions": [again], "follow_up_questions": []}],
        answer="The sum of 5 and 10 is 16, and 1 divided by 2 is 0.5.",
        judge={"issues": [MISTOLD]},
    )

    assert (result.status, result.passes) == ("not_converged", 4)
    assert [len(scripted.asked(each)) for each in ("answer", "refine", "judge")] == [4, 2, 1]
    assert [(entry["step_id"], entry["attempts"]) for entry in result.manual_intervention] == [("plan", 3)]


def test_a_step_with_three_failed_replacements_is_left_to_a_person() -> None:
    wrong = [[act("step_modify", each, divide(each, 0))] for each in ("s2", "s2-r1", "s2-r2")]
    result, _, _ = run(
        plan({**SUM, "step_id": "s1"}, divide("s2", 0)),
        refined(*wrong),
        answer="The sum is 15; one cannot divide by 0.",
    )

    assert [(entry["step_id"], entry["attempts"]) for entry in result.manual_intervention] == [("s2", 3)]
    reason = result.manual_intervention[0]["reason"]
    assert reason.startswith("refined 3 times and still insufficient: step 's2-r3' failed: ")
    assert result.status == "not_converged"


def test_complete_substeps_still_count_for_the_replacement() -> None:
    first = act("subplan_create", "s1", SUM, divide("s1.2", 0))
    result, _, _ = run(
        plan({"step_id": "s1", "description": VAGUE}), refined([first], [act("step_modify", "s1.2", divide("s1.2", 2))])
    )

    assert result.status == "converged"
    assert outputs(result)["s1-r1"] == {"s1.1": {"result": 15}, "s1.2-r1": {"result": 0.5}}
    assert found(result, "s1").status == "invalid"


def test_only_the_questions_of_the_model_are_asked() -> None:
    steps = plan({"step_id": "s1", "description": VAGUE})
    settled: Any = refined([act("subplan_create", "s1", SUM, divide("s1.2", 2))])

    assert run(steps, settled)[0].follow_up_questions == []
    assert run(steps, refined([]))[0].follow_up_questions == []
    asks = {"actions": [], "follow_up_questions": ["Which things?"]}
    assert run(steps, [asks])[0].follow_up_questions == ["Which things?"]
