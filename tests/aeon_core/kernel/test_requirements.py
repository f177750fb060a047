"""The requirements of a run: a person changes them with the first plan, and from then on they are settled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult
from aeon_core.journal.history import open_history, open_run
from aeon_core.journal.reader import read_records
from aeon_core.plan.files import PlanEdit, parse_plan_edit
from aeon_core.runs.fork import Fork, starting_edit
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from tests.aeon_core.kernel.test_passes import MENDED, PROFILE, TASK, model, plan
from tests.fakes import ScriptedModel, section

WANTED = ["The sum is given.", "The quotient is given as a fraction."]


class Person:
    """Decides one question after the other as told, approves the rest, and keeps what was asked."""

    def __init__(self, *decisions: dict[str, Any]) -> None:
        self.asked: list[ApprovalRequest] = []
        self._decisions: Iterator[dict[str, Any]] = iter(decisions)

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        return ApprovalDecision(**next(self._decisions, {"decision": "approve"}))


def edited(**edit: Any) -> dict[str, Any]:
    return {"decision": "edit", "edited": edit}


def run(path: Path, person: Person, scripted: ScriptedModel | None = None) -> tuple[RunResult, ScriptedModel]:
    scripted = scripted or model()
    config = RunConfig(durability="off", approve=["plan", "pass"])
    return Orchestrator(scripted, config=config, approver=person, journal=path).run(TASK), scripted


def wanted_of(scripted: ScriptedModel, purpose: str) -> list[str]:
    return [section(request, "requirements") for request in scripted.asked(purpose)]


@pytest.mark.parametrize("with_plan", [False, True])
def test_answer_and_judge_use_edited_requirements(tmp_path: Path, with_plan: bool) -> None:
    person = Person(edited(requirements=[*WANTED, " The  sum is\ngiven. "], **(plan() if with_plan else {})))
    result, scripted = run(tmp_path / "r.jsonl", person)
    assert person.asked[0].subject["requirements"] != WANTED
    for purpose in ("answer", "judge"):
        assert all(each in wanted_of(scripted, purpose)[0] for each in WANTED), purpose
    assert [each["text"] for each in result.convergence["requirements"]] == WANTED  # type: ignore[index]
    records = list(read_records(tmp_path / "r.jsonl"))
    assert [each["requirements"] for each in records if each["type"] == "profile"][-1] == WANTED
    assert next(each["edited"] for each in records if each.get("edited"))["requirements"][:2] == WANTED
    assert "edited" not in [each["cause"] for each in records if each["type"] == "plan"], "the plan is as it was"
    view, history = open_run(tmp_path / "r.jsonl")
    assert view.requirements == WANTED
    edits = ["a person edited the requirements" in each.reason for each in view.profiles]
    assert (bool(edits), any(edits)) == (True, False), "the profile is as it was"
    assert history.configuration["requirements"] == WANTED
    told = [each.adjustment_reason for each in history.overall_statistics.patterns.depth_adjustments]
    assert "a person edited the requirements" not in told


def test_replay_resume_and_fork_have_the_edited_requirements(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    whole, _ = run(path, Person(edited(requirements=WANTED)), model(plan=plan(by=0), refine=MENDED))
    assert whole.passes == 2
    assert replay(path).difference is None
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(n for n, each in enumerate(read_records(path)) if each["type"] == "phase" and each["phase"] == "execute")
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[: at + 1]))
    assert (
        resume(tmp_path / "cut.jsonl", model(plan=plan(by=0), refine=MENDED), approver=Person()).status == "converged"
    )
    assert open_run(tmp_path / "cut.jsonl")[0].requirements == WANTED
    for number in (1, 2):
        assert starting_edit(path, number).requirements == WANTED
        scripted = model(plan=plan(by=0), refine=MENDED)
        forked = Fork(path, number, scripted, approver=Person(), journal=tmp_path / f"f{number}.jsonl").run()
        assert [each["text"] for each in forked.convergence["requirements"]] == WANTED  # type: ignore[index]
        assert open_history(tmp_path / f"f{number}.jsonl").configuration["requirements"] == WANTED
        assert replay(tmp_path / f"f{number}.jsonl").difference is None


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("how", ["argument", "plan", "file"])
def test_a_fork_changes_the_requirements(tmp_path: Path, number: int, how: str) -> None:
    path = tmp_path / "r.jsonl"
    run(path, Person(), model(plan=plan(by=0), refine=MENDED))
    (tmp_path / "wanted.txt").write_text("\n".join(WANTED))
    given: dict[str, Any] = {"requirements": WANTED} if how == "argument" else {"plan": {"requirements": WANTED}}
    if how == "file":
        given = {"config": RunConfig(durability="off", requirements=tmp_path / "wanted.txt")}
    scripted = model(plan=plan(by=0), refine=MENDED)
    result = Fork(path, number, scripted, journal=tmp_path / "f.jsonl", approver=Person(), **given).run()
    assert [each["text"] for each in result.convergence["requirements"]] == WANTED  # type: ignore[index]
    assert scripted.asked("judge"), "what was found of the pass before does not hold for other requirements"
    assert replay(tmp_path / "f.jsonl").difference is None
    assert open_run(tmp_path / "f.jsonl")[0].requirements == WANTED


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ({"requirements": []}, "requirements: expected a list of one sentence or more, got an empty array"),
        ({"requirements": "x"}, 'requirements: expected a list of one sentence or more, got "x"'),
        ({"requirements": ["a", " "]}, 'requirements[1]: expected a sentence, got " "'),
        ({"requirements": ["a", 3]}, "requirements[1]: expected a sentence, got 3"),
        ({"requirements": ["a"], "goal": "g"}, "steps: missing"),
    ],
)
def test_bad_requirements_are_asked_about_again_and_change_nothing(
    tmp_path: Path, edit: dict[str, Any], problem: str
) -> None:
    person = Person(edited(**edit))
    result, _ = run(tmp_path / "r.jsonl", person)
    assert problem in person.asked[1].subject["problem"]
    assert person.asked[1].subject["requirements"] == person.asked[0].subject["requirements"]
    assert result.status == "converged"
    assert "\n" not in person.asked[1].subject["problem"]


def test_requirements_are_fixed_after_the_first_plan(tmp_path: Path) -> None:
    scripted = model(plan=plan(by=0), refine=MENDED)
    approve = {"decision": "approve"}
    person = Person(approve, edited(requirements=WANTED), approve, edited(requirements=WANTED))
    result, _ = run(tmp_path / "r.jsonl", person, scripted)
    assert [(each.point, each.pass_number) for each in person.asked] == [
        ("plan", 1), ("pass", 1), ("pass", 1), ("plan", 2), ("plan", 2), ("pass", 2)
    ]  # fmt: skip
    for place in (2, 4):
        assert "the requirements are final since the first plan" in person.asked[place].subject["problem"]
    assert [each["text"] for each in result.convergence["requirements"]] != WANTED  # type: ignore[index]


def test_repeating_fixed_requirements_is_allowed(tmp_path: Path) -> None:
    scripted = model(plan=plan(by=0), refine=MENDED, profile={**PROFILE, "requirements": WANTED})
    person = Person({"decision": "approve"}, edited(requirements=WANTED))
    result, _ = run(tmp_path / "r.jsonl", person, scripted)
    assert result.status == "converged"
    assert [each.subject for each in person.asked if "problem" in each.subject] == []


def test_edited_requirements_are_read_verbatim() -> None:
    both = PlanEdit(parse_plan_edit(plan()).plan, WANTED)
    for edit in (both, PlanEdit(both.plan), PlanEdit(None, WANTED)):
        assert parse_plan_edit(edit.as_dict()) == edit
        assert parse_plan_edit(edit.whole()) == edit
    assert parse_plan_edit({"plan": plan(), "requirements": None, "issues": []}) == PlanEdit(both.plan)
    assert parse_plan_edit({"plan": plan(), "requirements": WANTED, "questions": []}) == both


def test_feedback_on_an_unjudged_answer_leads_to_another_pass(tmp_path: Path) -> None:
    replies: list[Any] = ["Gladly!", "Gladly!", "Gladly!", {"issues": []}]
    scripted = model(plan=plan(by=3), judge=replies, refine=MENDED, repair="Gladly!")
    person = Person({"decision": "approve"}, {"decision": "reject", "feedback": "divide by two"})
    result, _ = run(tmp_path / "r.jsonl", person, scripted)
    first = person.asked[1]
    assert first.subject["convergence"]["reason_codes"] == ["not_judged"]
    assert (result.passes, result.steps[-1].output) == (2, {"result": 0.5})
    notice = next(each for each in read_records(tmp_path / "r.jsonl") if each.get("kind") == "not_judged")
    assert "; the answer is available: check it yourself and accept it when asked" in notice["message"]
    assert replay(tmp_path / "r.jsonl").difference is None
