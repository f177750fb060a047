"""A person's answers to open questions: part of the task from the decision that they come with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, connect
from aeon_core.journal.reader import read_records
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from aeon_core.runs.fork import Fork
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from tests.aeon_core.kernel.test_passes import MENDED, model, of, plan
from tests.aeon_core.kernel.test_reviews import Person, fresh, records, run
from tests.fakes import ScriptedModel

WHICH = "Which notation?"
WHO = "For whom?"
ANSWERS = {WHICH: "decimal fractions", WHO: "   ", "Something else?": "yes"}


def asking() -> ScriptedModel:
    return model(plan=plan(by=0), refine={**MENDED, "follow_up_questions": [WHICH, WHO]})


def of_purpose(scripted: ScriptedModel, purpose: str) -> list[str]:
    return [request.prompt for request in scripted.requests if request.purpose == purpose]


def test_answers_refine_the_next_pass_and_reach_every_later_prompt(tmp_path: Path) -> None:
    scripted, person = asking(), Person({"decision": "approve", "answers": ANSWERS})
    result = run(tmp_path, scripted, person, "pass")
    assert (result.status, result.passes) == ("converged", 2)
    assert person.points == [("pass", 1), ("pass", 2)]
    before, after = of_purpose(scripted, "refine")
    assert "<answers>" not in before
    assert f"the user answers the question '{WHICH}': decimal fractions" in after
    first, second = of_purpose(scripted, "answer")
    assert "<answers>" not in first
    assert f'{{"question": "{WHICH}", "answer": "decimal fractions"}}' in second
    assert WHO not in second
    assert "decimal fractions" in of_purpose(scripted, "judge")[-1]


def test_an_answered_question_is_closed_and_not_asked_again(tmp_path: Path) -> None:
    person = Person({"decision": "approve", "answers": ANSWERS})
    result = run(tmp_path, asking(), person, "pass")
    assert person.asked[0].subject["questions"] == [WHICH, WHO]
    assert person.asked[1].subject["questions"] == result.follow_up_questions == [WHO]
    view = RunView()
    for record in records(tmp_path):
        reducer.apply(view, record)
    assert view.answers[WHICH] == "decimal fractions"
    assert view.follow_up_questions == [WHO]


@pytest.mark.parametrize("decision", ["reject", "replay"])
def test_a_rejection_needs_no_reason_next_to_an_answer_and_a_replayed_pass_has_it(
    tmp_path: Path, decision: str
) -> None:
    scripted, person = asking(), Person({"decision": decision, "answers": {WHICH: "decimal"}})
    run(tmp_path, scripted, person, "pass")
    told = [issue["description"] for report in of(records(tmp_path), "validation") for issue in report["issues"]]
    assert not any("without saying why" in each for each in told)
    assert '"answer": "decimal"' in of_purpose(scripted, "answer" if decision == "replay" else "refine")[-1]


def test_an_approved_plan_runs_as_shown(tmp_path: Path) -> None:
    profile: dict[str, Any] = {**asking().scripts["profile"], "follow_up_questions": [WHICH]}
    scripted = model(profile=profile)
    person = Person({"decision": "approve", "answers": {WHICH: "decimal"}})
    run(tmp_path, scripted, person, "plan")
    assert person.points == [("plan", 1)]
    assert of_purpose(scripted, "refine") == []
    assert '"answer": "decimal"' in of_purpose(scripted, "answer")[0]


def test_answers_are_kept_if_the_person_ends_the_run(tmp_path: Path) -> None:
    result = run(tmp_path, asking(), Person({"decision": "accept", "answers": {WHICH: "decimal"}}), "pass")
    assert result.status == "accepted"
    decided = next(each for each in of(records(tmp_path), "approval") if each["state"] == "decided")
    assert decided["answers"] == {WHICH: "decimal"}


def test_approving_a_converged_result_ends_the_run_despite_answers(tmp_path: Path) -> None:
    scripted = model(profile={**asking().scripts["profile"], "follow_up_questions": [WHICH]})
    person = Person({"decision": "approve", "answers": {WHICH: "decimal"}})
    result = run(tmp_path, scripted, person, "pass")
    assert (result.status, result.passes, person.points) == ("converged", 1, [("pass", 1)])
    assert replay(tmp_path / "r.jsonl").difference is None


def test_answers_given_with_an_abort_are_kept_for_the_next_question(tmp_path: Path) -> None:
    path, scripted = tmp_path / "r.jsonl", asking()
    ended = run(tmp_path, scripted, Person({"decision": "abort", "answers": ANSWERS}), "pass")
    assert ended.status == "aborted"
    aborted_again = Person({"decision": "abort"})
    resume(path, fresh(scripted), approver=aborted_again)
    assert aborted_again.asked[0].subject["answers"] == {WHICH: "decimal fractions"}
    person, resumed = Person({"decision": "approve"}), fresh(scripted)
    assert resume(path, resumed, approver=person).status == "converged"
    assert person.asked[0].subject["answers"][WHICH] == "decimal fractions"
    assert "answers" not in person.asked[1].subject
    assert f"the user answers the question '{WHICH}': decimal fractions" in of_purpose(resumed, "refine")[-1]
    decided = [each for each in of(list(read_records(path)), "approval") if each["state"] == "decided"]
    assert decided[0]["answers"][WHICH] == "decimal fractions"
    assert replay(path).difference is None


def test_new_answers_replace_those_given_with_an_abort(tmp_path: Path) -> None:
    path, scripted = tmp_path / "r.jsonl", asking()
    run(tmp_path, scripted, Person({"decision": "abort", "answers": ANSWERS}), "pass")
    resumed = fresh(scripted)
    resume(path, resumed, approver=Person({"decision": "approve", "answers": {}}))
    assert not any("decimal fractions" in each.prompt for each in resumed.requests)


def test_a_fork_starts_with_the_answers(tmp_path: Path) -> None:
    scripted = asking()
    run(tmp_path, scripted, Person({"decision": "approve", "answers": {WHICH: "decimal"}}), "pass")
    model_of_fork, forked = fresh(scripted), tmp_path / "fork.jsonl"
    Fork(tmp_path / "r.jsonl", 2, model_of_fork, journal=forked).run()
    assert '"answer": "decimal"' in of_purpose(model_of_fork, "answer")[0]
    assert replay(forked).difference is None


def test_the_simulated_model_accepts_answers(tmp_path: Path) -> None:
    def decide(request: ApprovalRequest) -> ApprovalDecision:
        answers = dict.fromkeys(request.subject["questions"], "the fields and the routes")
        return ApprovalDecision(decision="approve", answers=answers)

    config = RunConfig(durability="off", approve=["pass"])
    path = tmp_path / "r.jsonl"
    result = Orchestrator(connect("simulated:default"), config=config, approver=decide, journal=path).run(
        "design a REST API for invoices"
    )
    assert (result.status, result.follow_up_questions) == ("converged", [])
