"""A person looks at the plan before it runs, and at a pass when it has ended: what they decide is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult
from aeon_core.effects import approvals
from aeon_core.effects.approvals import MAX_EDITS
from aeon_core.journal.reader import read_records
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from tests.aeon_core.kernel.test_passes import MENDED, PROFILE, TASK, model, of, plan
from tests.fakes import ScriptedModel

Decision = dict[str, Any] | Callable[[ApprovalRequest], dict[str, Any]]
APPROVE = {"decision": "approve"}


class Person:
    """Decides as told, then approves; `asked` holds what was to be decided."""

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = list(decisions)
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        decision = self.decisions.pop(0) if self.decisions else APPROVE
        return ApprovalDecision(**(decision(request) if callable(decision) else decision))

    @property
    def points(self) -> list[tuple[str, int]]:
        return [(request.point, request.pass_number) for request in self.asked]


def two_passes() -> ScriptedModel:
    return model(plan=plan(by=0), refine=MENDED)


def run(tmp_path: Path, scripted: ScriptedModel, person: Person | None, *approve: str) -> RunResult:
    """Return the result, having made sure that the run goes over its records again, and on from each approval."""
    path = tmp_path / "r.jsonl"
    config = RunConfig(approve=list(approve), durability="off")
    decisions = list(person.decisions) if person is not None else []
    result = Orchestrator(scripted, config=config, approver=person, journal=path).run(TASK)
    assert replay(path).difference is None
    lines = path.read_bytes().splitlines(keepends=True)
    decided = [place for place, line in enumerate(lines) if b'"type":"approval"' in line[:200] and b'"decided"' in line]
    for number, place in enumerate(decided):
        for left in (place, place + 1):
            part = tmp_path / f"{place}-{left}.jsonl"
            part.write_bytes(b"".join(lines[:left]))
            in_progress = Person(*decisions[number + (left > place) :])
            if person is not None and result.status != "aborted":
                assert resume(part, fresh(scripted), approver=in_progress).answer == result.answer
    return result


def fresh(scripted: ScriptedModel) -> ScriptedModel:
    return ScriptedModel(**scripted.scripts)


def records(tmp_path: Path) -> list[dict[str, Any]]:
    return list(read_records(tmp_path / "r.jsonl"))


def test_the_plan_is_shown_before_it_runs_and_each_pass_when_it_has_ended(tmp_path: Path) -> None:
    person = Person()
    result = run(tmp_path, two_passes(), person, "plan", "pass")
    assert (result.status, result.passes) == ("converged", 2)
    assert person.points == [("plan", 1), ("pass", 1), ("plan", 2), ("pass", 2)]
    plans, passes = person.asked[0].subject, person.asked[1].subject
    assert plans["plan"]["steps"][0]["status"] == "pending"
    assert plans.keys().isdisjoint({"answer", "single_pass"})
    assert passes["convergence"]["converged"] is False
    assert passes["ended"] is None
    assert [change["accepted"] for change in passes["refinements"]] == [True]
    assert person.asked[2].subject["refinements"] == passes["refinements"]
    assert passes["earlier_refinements"] == []
    last = person.asked[3].subject
    assert (last["ended"], last["refinements"], last["earlier_refinements"]) == ("converged", [], passes["refinements"])


def test_nobody_is_asked_if_nothing_needs_approval(tmp_path: Path) -> None:
    person = Person()
    assert run(tmp_path, two_passes(), person, "tool").status == "converged"
    assert person.asked == []


def test_a_result_can_be_accepted(tmp_path: Path) -> None:
    result = run(tmp_path, two_passes(), Person({"decision": "accept"}), "pass")
    assert (result.status, result.converged, result.passes, result.exit_code) == ("accepted", False, 1, 0)


@pytest.mark.parametrize("point", ["plan", "pass"])
def test_feedback_becomes_an_issue_to_refine(tmp_path: Path, point: str) -> None:
    person = Person({"decision": "reject", "feedback": "say it in French"})
    scripted = model(plan=plan(), refine=MENDED)
    run(tmp_path, scripted, person, point)
    assert person.points[:2] == [(point, 1), (point, 1)]
    told = [issue["description"] for report in of(records(tmp_path), "validation") for issue in report["issues"]]
    assert "the user says: say it in French" in told
    assert "say it in French" in next(request for request in scripted.requests if request.purpose == "refine").prompt
    assert person.asked[1].digest != person.asked[0].digest


def edited(request: ApprovalRequest) -> dict[str, Any]:
    first, second = request.subject["plan"]["steps"]
    return {"decision": "edit", "edited": {"goal": TASK, "steps": [first, {**second, "description": "Halve 1"}]}}


@pytest.mark.parametrize(("point", "passes", "ran"), [("plan", 1, ["s1", "s2"]), ("pass", 2, ["s1", "s2", "s2"])])
def test_an_edited_plan_replaces_the_current_one(tmp_path: Path, point: str, passes: int, ran: list[str]) -> None:
    result = run(tmp_path, model(), Person(edited), point)
    assert (result.status, result.passes) == ("converged", passes)
    assert [step.description for step in result.steps] == ["Add 5 and 10", "Halve 1"]
    assert [r["step_id"] for r in of(records(tmp_path), "step") if r["status"] == "running"] == ran
    assert [record["cause"] for record in of(records(tmp_path), "plan")] == ["generated", "edited"]


def lengthened(request: ApprovalRequest) -> dict[str, Any]:
    more = [{"step_id": f"t{number}", "description": "think", "agent": "llm"} for number in range(20)]
    return {"decision": "edit", "edited": {"goal": TASK, "steps": [*request.subject["plan"]["steps"], *more]}}


def test_a_plan_that_a_person_lengthens_gets_the_cycles_for_its_steps(tmp_path: Path) -> None:
    result = run(tmp_path, model(reason="thought"), Person(lengthened), "plan")
    assert (result.status, len(result.steps)) == ("converged", 22)
    assert result.ttl.allocated <= result.ttl.limit == 50


def test_a_plan_that_a_person_rejects_often_still_has_the_cycles_for_its_steps(tmp_path: Path) -> None:
    ids = [f"s{number}" for number in range(5)]
    many = {"goal": TASK, "steps": [{"step_id": each, "description": each, "agent": "llm"} for each in ids]}
    again = [
        {"actions": [{"type": "step_modify", "target": each, "changes": {"description": f"do {each}"}, "reason": "so"}]}
        for each in ids * 2
    ]
    simple = {**PROFILE, "reasoning_depth": "low", "expected_tool_usage": "none", "confidence_requirement": "low"}
    person = Person(*[{"decision": "reject", "feedback": "not like that"}] * len(again))
    result = run(tmp_path, model(profile=simple, plan=many, refine=again, reason="thought"), person, "plan")
    assert (result.status, {step.status for step in result.steps}) == ("converged", {"complete"})
    assert len(person.points) == len(again) + 1


def test_an_invalid_edited_plan_is_asked_about_again(tmp_path: Path) -> None:
    person = Person({"decision": "edit", "edited": {"goal": ""}}, {"decision": "edit"}, edited)
    assert run(tmp_path, model(), person, "plan").status == "converged"
    problems = [request.subject.get("problem") for request in person.asked]
    assert problems[0] is None
    assert all("not a valid plan: " in str(problem) for problem in problems[1:])


def test_a_pass_is_replayed_from_its_start(tmp_path: Path) -> None:
    person = Person(APPROVE, {"decision": "replay"})
    result = run(tmp_path, model(), person, "plan", "pass")
    assert (result.status, result.passes) == ("converged", 2)
    assert person.points == [("plan", 1), ("pass", 1), ("pass", 2)]
    ran = [(r["pass"], r["step_id"]) for r in of(records(tmp_path), "step") if r["status"] == "running"]
    assert ran == [(1, "s1"), (1, "s2"), (2, "s1"), (2, "s2")]
    first, second = of(records(tmp_path), "pass")
    assert [step["status"] for step in second["plan_state"]["steps"]] == ["pending", "pending"]
    assert first["execution_results"]["steps"][0]["output"] == {"result": 15}


def test_a_rerun_step_does_not_see_its_previous_output(tmp_path: Path) -> None:
    reasoned = {
        "goal": TASK,
        "steps": [{"step_id": "s1", "description": "Describe the sum of 5 and 10", "agent": "llm"}],
    }
    scripted = model(plan=reasoned, reason=["first thought", "second thought"], answer="15")
    run(tmp_path, scripted, Person({"decision": "replay"}), "pass")
    again = [request.prompt for request in scripted.requests if request.purpose == "reason"][1]
    assert "first thought" not in again


def test_a_pass_whose_plan_a_person_shortens_can_converge(tmp_path: Path) -> None:
    def shortened(request: ApprovalRequest) -> dict[str, Any]:
        thought = {"step_id": "s3", "description": "Describe the sum", "agent": "llm"}
        return {"decision": "edit", "edited": {"goal": TASK, "steps": [request.subject["plan"]["steps"][0], thought]}}

    scripted = model(reason="a thought")
    result = run(tmp_path, scripted, Person(shortened), "pass")
    assert (result.status, result.passes) == ("converged", 2)
    assert [step.step_id for step in result.steps] == ["s1", "s3"]
    asked = next(request.prompt for request in scripted.requests if request.purpose == "reason")
    assert '"s2"' not in asked


def test_a_run_is_resumed_after_a_step_failed_again(tmp_path: Path) -> None:
    outcomes = iter([{"value": "outdated"}])

    def fetch() -> dict[str, Any]:
        """Fetch a value once."""
        return next(outcomes)

    def with_a_thought(request: ApprovalRequest) -> dict[str, Any]:
        thought = {"step_id": "s3", "description": "Think", "agent": "llm"}
        return {"decision": "edit", "edited": {"goal": TASK, "steps": [*request.subject["plan"]["steps"], thought]}}

    fetched = {"goal": TASK, "steps": [{"step_id": "s1", "description": "Fetch", "tool": "fetch", "arguments": {}}]}
    path, replies = tmp_path / "r.jsonl", {"plan": fetched, "review": {"issues": []}, "reason": "a thought"}
    person = Person({"decision": "replay"}, with_a_thought, {"decision": "accept"})
    scripted = model(**replies)
    Orchestrator(scripted, [fetch], config={"approve": ["pass"]}, approver=person, journal=path).run(TASK)
    lines = path.read_bytes().splitlines(keepends=True)
    asked = next(place for place, line in enumerate(lines) if b'"purpose":"reason"' in line)
    for left in (asked, asked + 1):
        part, again = tmp_path / f"{left}.jsonl", model(**replies)
        part.write_bytes(b"".join(lines[:left]))
        result = resume(part, again, [fetch], approver=Person({"decision": "accept"}))
        assert result.status == "accepted"
        assert "outdated" not in next(each for each in again.requests if each.purpose == "reason").prompt


def test_a_run_aborted_at_a_question_asks_again_on_resume(tmp_path: Path) -> None:
    result = run(tmp_path, two_passes(), Person({"decision": "abort"}), "pass")
    assert (result.status, result.exit_code) == ("aborted", 1)
    person = Person()
    assert resume(tmp_path / "r.jsonl", two_passes(), approver=person).status == "converged"
    assert person.points == [("pass", 1), ("pass", 2)]


@pytest.mark.parametrize("point", ["plan", "pass"])
def test_the_run_stops_if_nobody_can_be_asked(tmp_path: Path, point: str) -> None:
    result = run(tmp_path, two_passes(), None, point)
    assert result.status == "aborted"
    assert result.error is not None
    assert result.error["message"] == (
        f"the {point} needed approval, but there was no one to ask; "
        "resume it at a terminal, with --wait SECONDS, with approver= in Python, or with --approve none"
    )
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text((tmp_path / "r.jsonl").read_text().replace(", with approver= in Python", ""))
    assert replay(earlier).difference is None
    person = Person()
    assert resume(tmp_path / "r.jsonl", two_passes(), approver=person).status == "converged"
    assert person.points[0] == (point, 1)


@pytest.mark.parametrize("point", ["plan", "pass"])
@pytest.mark.parametrize("approver", [lambda _: 1 / 0, lambda _: "yes"])
def test_a_failing_approver_ends_the_run(tmp_path: Path, point: str, approver: Any) -> None:
    config = RunConfig(approve=[point], durability="off")  # type: ignore[list-item]
    result = Orchestrator(two_passes(), config=config, approver=approver, journal=tmp_path / "r.jsonl").run(TASK)
    assert result.status == "aborted"
    assert result.error is not None
    assert result.error["message"].startswith(f"the run was aborted at the question about the {point}: the approver ")


def test_an_answer_that_does_not_fit_a_plan_does_not_approve_it() -> None:
    config = RunConfig(approve=["plan"])
    replays = Person({"decision": "replay"})
    result = Orchestrator(two_passes(), config=config, approver=replays, journal=False).run(TASK)
    assert (result.status, result.passes) == ("aborted", 0)
    assert "the approver answered 'replay' about a plan, expected approve, edit, reject, abort" in str(result.error)


@pytest.mark.parametrize("point", ["plan", "pass"])
def test_a_waiting_run_continues_unasked_if_overridden(tmp_path: Path, point: str) -> None:
    run(tmp_path, two_passes(), None, point)
    path = tmp_path / "r.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    asked = next(place for place, line in enumerate(lines) if b'"type":"approval"' in line[:200])
    for left in (len(lines), asked + 1):
        path.write_bytes(b"".join(lines[:left]))
        assert resume(path, two_passes(), options={"approve": ["none"]}).status == "converged"
        assert replay(path).difference is None


def test_overridden_approval_applies_from_the_resume_on(tmp_path: Path) -> None:
    run(tmp_path, two_passes(), Person({"decision": "abort"}), "pass")
    person = Person()
    path = tmp_path / "r.jsonl"
    assert resume(path, two_passes(), options={"approve": ["plan"]}, approver=person).status == "converged"
    assert person.points == [("plan", 2)]
    assert replay(path).difference is None


class Stubborn(Person):
    """Decides the same each time; gives up where nothing ends it."""

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        assert len(self.asked) < 50
        self.decisions = self.decisions[:1] * 2
        return super().__call__(request)


def rejected_for_ever(tmp_path: Path, scripted: ScriptedModel, point: str, **decision: Any) -> tuple[RunResult, int]:
    """Return how a run ends, and how often it asked."""
    person = Stubborn({"decision": "reject", "feedback": "no", **decision})
    config = RunConfig(approve=[point], durability="off")
    result = Orchestrator(scripted, config=config, approver=person, journal=tmp_path / "r.jsonl").run(TASK)
    assert replay(tmp_path / "r.jsonl").difference is None
    assert result.ttl.remaining > 0
    return result, len(person.asked)


@pytest.mark.parametrize("point", ["plan", "pass"])
def test_a_question_after_a_rejection_reports_that_nothing_changed(tmp_path: Path, point: str) -> None:
    idle = model(refine={"actions": [], "follow_up_questions": []})
    person = Person({"decision": "reject", "feedback": "shorter"}, {"decision": "abort"})
    config = RunConfig(approve=[point], durability="off")
    Orchestrator(idle, config=config, approver=person, journal=tmp_path / "r.jsonl").run(TASK)
    assert [request.subject.get("unchanged", False) for request in person.asked] == [False, True]


def test_a_question_after_an_effective_rejection_does_not_report_that(tmp_path: Path) -> None:
    person = Person({"decision": "reject", "feedback": "shorter"}, {"decision": "abort"})
    config, scripted = RunConfig(approve=["plan"], durability="off"), model(plan=plan(), refine=MENDED)
    Orchestrator(scripted, config=config, approver=person, journal=tmp_path / "r.jsonl").run(TASK)
    assert [request.subject.get("unchanged", False) for request in person.asked] == [False, False]


def test_endless_rejection_of_passes_ends_with_the_refinements(tmp_path: Path) -> None:
    result, asked = rejected_for_ever(tmp_path, model(), "pass")
    assert (result.status, result.error, asked) == ("not_converged", None, 6)
    assert result.convergence is not None
    assert result.convergence["reason_codes"] == ["no_progress"]


def test_an_endlessly_rejected_plan_never_runs(tmp_path: Path) -> None:
    ids = [f"s{number}" for number in range(11)]
    many = {"goal": TASK, "steps": [{"step_id": each, "description": each, "agent": "llm"} for each in ids]}
    actions = [
        {"type": "step_modify", "target": each, "changes": {"description": f"do {each}"}, "reason": "a person says so"}
        for each in ids
    ]
    scripted = model(plan=many, refine={"actions": actions, "follow_up_questions": []})
    result, asked = rejected_for_ever(tmp_path, scripted, "plan")
    assert (result.status, asked) == ("aborted", 3)
    assert result.error is not None
    assert "the plan was rejected, and can no longer be refined" in result.error["message"]
    assert {step.status for step in result.steps} == {"pending"}


@pytest.mark.parametrize(
    ("point", "edited", "why"),
    [("plan", {"goal": ""}, "not a valid plan: goal"), ("pass", plan(), "it changes nothing; change a step, or")],
)
def test_endless_useless_edits_end_the_run(tmp_path: Path, point: str, edited: dict[str, Any], why: str) -> None:
    result, asked = rejected_for_ever(tmp_path, model(plan=plan()), point, decision="edit", edited=edited)
    assert (result.status, asked) == ("aborted", MAX_EDITS)
    assert result.error is not None
    assert f"the last one because: {why}" in result.error["message"]


def test_an_edit_without_effect_that_an_earlier_version_took_replays_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person({"decision": "edit", "edited": plan()}, {"decision": "abort"})
    config, path = RunConfig(approve=["pass"], durability="off"), tmp_path / "r.jsonl"
    monkeypatch.setattr(approvals, "dump_plan", lambda _: object())
    Orchestrator(model(plan=plan()), config=config, approver=person, journal=path).run(TASK)
    monkeypatch.undo()
    assert person.points == [("pass", 1), ("pass", 2)]
    assert replay(path).difference is None
    assert resume(path, model(), approver=Person({"decision": "accept"})).status == "accepted"
    assert replay(path).difference is None


def single_pass(tmp_path: Path, person: Person | None, *approve: str) -> tuple[RunResult, ScriptedModel]:
    """Return how a single pass ends, having made sure that a replay asks in the same places."""
    scripted = model(reason="done")
    config = RunConfig(approve=list(approve), single_pass=True, durability="off")
    result = Orchestrator(scripted, config=config, approver=person, journal=tmp_path / "r.jsonl").run(TASK)
    assert replay(tmp_path / "r.jsonl").difference is None
    return result, scripted


def test_the_plan_of_a_single_pass_is_shown_before_it_runs(tmp_path: Path) -> None:
    person = Person()
    result, _ = single_pass(tmp_path, person, "plan", "pass")
    assert (result.status, person.points) == ("completed", [("plan", 1)])
    assert person.asked[0].subject["single_pass"] is True
    assert {step["status"] for step in person.asked[0].subject["plan"]["steps"]} == {"pending"}
    assert not of(records(tmp_path), "validation")


def test_an_edited_plan_and_requirements_apply_to_a_single_pass(tmp_path: Path) -> None:
    steps = [{"step_id": each, "description": each, "agent": "llm"} for each in ("own", "two")]
    own = {"requirements": ["it is blue"], "goal": "g", "steps": steps}
    result, scripted = single_pass(tmp_path, Person({"decision": "edit", "edited": own}), "plan")
    assert (result.status, [step.step_id for step in result.steps]) == ("completed", ["own", "two"])
    assert "it is blue" in next(request for request in scripted.requests if request.purpose == "answer").prompt


def test_a_rejected_plan_ends_a_single_pass_which_asks_again_when_resumed(tmp_path: Path) -> None:
    result, scripted = single_pass(tmp_path, Person({"decision": "reject", "feedback": "in French"}), "plan")
    assert result.error is not None
    assert "the plan was rejected, and a single-pass run cannot refine it" in result.error["message"]
    assert [request.purpose for request in scripted.requests] == ["plan"]
    person, again = Person(), model()
    assert resume(tmp_path / "r.jsonl", again, approver=person).status == "completed"
    assert person.points == [("plan", 1)]
    assert "plan" not in [request.purpose for request in again.requests]


def test_a_single_pass_recorded_before_its_plan_was_asked_about_replays(tmp_path: Path) -> None:
    single_pass(tmp_path, None, "none")
    path = tmp_path / "r.jsonl"
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first.replace(b'"approve":["none"]', b'"approve":["plan"]') + b"\n" + rest)
    assert replay(path).difference is None


def test_requirements_given_to_a_single_pass_are_in_its_prompts(tmp_path: Path) -> None:
    scripted = model()
    (tmp_path / "wanted.txt").write_text("it is red")
    config = RunConfig(single_pass=True, durability="off", requirements=tmp_path / "wanted.txt")
    orchestrator = Orchestrator(scripted, config=config, requirements=["it is blue"], journal=tmp_path / "r.jsonl")
    assert orchestrator.run(TASK).status == "completed"
    assert {request.purpose for request in scripted.requests if "it is blue" in request.prompt} >= {"plan", "answer"}
    assert not [request for request in scripted.requests if "it is red" in request.prompt]
    assert replay(tmp_path / "r.jsonl").difference is None


def test_a_plan_that_nobody_could_approve_is_not_made_again(tmp_path: Path) -> None:
    run(tmp_path, two_passes(), None, "plan")
    again = two_passes()
    resume(tmp_path / "r.jsonl", again, approver=Person())
    assert {"profile", "plan"}.isdisjoint(request.purpose for request in again.requests)
