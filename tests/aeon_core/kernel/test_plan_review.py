"""A model reviews a plan before it acts; a call that it objects to needs a person (Decision 7, contract: `review`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon_core import (
    ApprovalDecision,
    ApprovalRequest,
    LLMError,
    Orchestrator,
    RunConfig,
    RunResult,
    ToolRegistry,
    tool,
)
from aeon_core.llm.base import LLMAdapter
from aeon_core.policy import PolicyRules
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from aeon_core.tools.base import Effect
from tests.aeon_core.kernel.test_passes import NOTHING, PROFILE, Records, of
from tests.fakes import ScriptedModel, call

TASK = "list the old logs, delete nothing"
DELETE = {"step_id": "s1", "description": "Delete old.log", "tool": "delete", "arguments": {"path": "old.log"}}
LIST = {"step_id": "s1", "description": "List the logs", "tool": "list"}
WHY = "it deletes a file although nothing is to be deleted"


def objecting(severity: str = "high", step_id: str | None = "s1") -> dict[str, Any]:
    place = {"artifact": "plan", "step_id": step_id}
    found = {"issue_id": "r1", "type": "do_say_mismatch", "severity": severity, "description": WHY, "location": place}
    return {"issues": [{**found, "proposed_repair": "leave the step out"}]}


FINE: dict[str, Any] = {"issues": []}


def modified(changes: dict[str, Any]) -> dict[str, Any]:
    action = {"type": "step_modify", "target": "s1", "changes": changes, "reason": WHY}
    return {"actions": [action], "follow_up_questions": []}


class Run:
    """One run with a tool that deletes, and what it did."""

    def __init__(self, *, effect: Effect = "unsafe", plan: Any = DELETE, journal: Path | None = None, **told: Any):
        self.deleted: list[str] = []
        self.asked: list[ApprovalRequest] = []
        self.records: Records = []

        @tool(effect=effect)
        def delete(path: str) -> str:
            """Deletes a file for good."""
            self.deleted.append(path)
            return path

        @tool(effect="pure", name="list")
        def names() -> list[str]:
            """Lists the logs."""
            return ["old.log"]

        registry = ToolRegistry()
        registry.register(delete)
        registry.register(names)
        self.tools = registry
        scripts = {"profile": PROFILE, "judge": {"issues": []}, "answer": "old.log", "refine": NOTHING}
        options = {name: told.pop(name) for name in ("approve", "policy", "single_pass") if name in told}
        decision = told.pop("decision", None)
        self.model = ScriptedModel(**{**scripts, "plan": {"goal": TASK, "steps": [plan]}, **told})
        self.result = self._run(self.model, registry, decision, journal, options)

    def _run(
        self, model: LLMAdapter, tools: ToolRegistry, decision: Any, journal: Path | None, options: dict[str, Any]
    ) -> RunResult:
        def approver(request: ApprovalRequest) -> ApprovalDecision:
            self.asked.append(request)
            return ApprovalDecision(decision=decision if request.point == "tool" else "approve")

        return Orchestrator(
            model,
            tools,
            config=RunConfig(durability="off", **options),
            approver=approver if decision is not None else None,
            journal=journal if journal is not None else False,
            on_record=self.records.append,
        ).run(TASK)

    @property
    def reviews(self) -> int:
        return len(self.model.asked("review"))


def test_a_plan_is_reviewed_before_its_first_unsafe_call() -> None:
    done = Run(review=FINE)
    assert done.deleted == ["old.log"]
    purposes = [request.purpose for request in done.model.requests]
    assert purposes == ["profile", "plan", "review", "answer", "judge"]
    assert "old.log" in done.model.asked("review")[0].prompt


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
def test_a_plan_without_unsafe_calls_is_not_reviewed(effect: Effect) -> None:
    assert Run(effect=effect).reviews == 0


def test_a_single_pass_is_not_reviewed() -> None:
    assert Run(single_pass=True).reviews == 0


def test_in_deep_mode_every_plan_is_reviewed() -> None:
    deep = {**PROFILE, "reasoning_depth": "high", "information_sufficiency": "low", "output_breadth": "broad"}
    assert Run(plan=LIST, profile=deep, review=FINE).reviews == 1


def test_review_issues_are_refined_before_the_call() -> None:
    done = Run(review=objecting(), refine=modified({"description": "List the logs", "tool": "list", "arguments": {}}))
    assert done.deleted == []
    assert (done.result.status, done.result.passes) == ("converged", 1)
    assert done.reviews == 1
    assert WHY in done.model.asked("refine")[0].prompt


def test_an_unsafe_call_that_refinement_changes_is_reviewed_again() -> None:
    changed = modified({"description": "Delete new.log", "tool": "delete", "arguments": {"path": "new.log"}})
    done = Run(review=[objecting(), FINE], refine=changed)
    assert (done.reviews, done.deleted) == (2, ["new.log"])
    still = Run(review=objecting(), refine=[changed, NOTHING])
    assert still.deleted == []
    assert still.reviews >= 2


def test_an_unaskable_objected_call_fails_despite_rules() -> None:
    done = Run(review=objecting(), policy=PolicyRules(allow=("delete",)))
    assert done.deleted == []
    [error] = done.result.steps[0].errors
    assert f"the review of the plan objects: {WHY}" in error
    assert "--allow cannot change that" in error


@pytest.mark.parametrize(("decision", "deleted"), [("approve", ["old.log"]), ("reject", [])])
def test_a_person_is_asked_with_the_reason(decision: str, deleted: list[str]) -> None:
    done = Run(review=objecting(), decision=decision, approve=["tool"])
    assert [request.subject["reason"] for request in done.asked] == [f"the review of the plan objects: {WHY}"]
    assert done.deleted == deleted


@pytest.mark.parametrize("review", [objecting("medium"), objecting(step_id=None)], ids=["medium", "no step"])
def test_only_severe_issues_with_the_call_stop_it(review: dict[str, Any]) -> None:
    assert Run(review=review).deleted == ["old.log"]


def test_review_issues_are_shown_with_the_plan_to_approve() -> None:
    done = Run(review=objecting("medium"), decision="approve", approve=["plan"])
    [shown] = [request.subject for request in done.asked if request.point == "plan"]
    assert [issue["description"] for issue in shown["issues"]] == [WHY]


@pytest.mark.parametrize("review", ["no JSON", LLMError("out of order", status_code=400)], ids=["prose", "error"])
def test_a_failed_review_stops_nothing_and_is_noted(review: Any) -> None:
    done = Run(review=review, repair="nor this")
    assert done.deleted == ["old.log"]
    [notice] = of(done.records, "notice")
    assert notice["kind"] == "not_reviewed"
    assert notice["message"].startswith("no model reviewed the plan before it acts: ")


def test_the_objection_replays(tmp_path: Path) -> None:
    journal = tmp_path / "r.jsonl"
    Run(review=objecting(), journal=journal, decision="reject", approve=["tool"])
    assert replay(journal).difference is None


def test_review_objections_persist_in_later_passes(tmp_path: Path) -> None:
    """A refinement that takes the call up again, word for word, does not get past it."""
    again = {
        "actions": [{"type": "step_modify", "target": "s1", "changes": {**DELETE, "step_id": "s1-r1"}, "reason": "x"}],
        "follow_up_questions": [],
    }
    journal = tmp_path / "r.jsonl"
    done = Run(review=objecting(), refine=[NOTHING, again, NOTHING], journal=journal)
    assert (done.deleted, done.result.passes) == ([], 2)
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = next(number for number, line in enumerate(lines) if b'"type":"pass"' in line[:200])
    journal.write_bytes(b"".join(lines[: ended + 1]))
    scripts = {**done.model.scripts, "review": FINE, "refine": NOTHING}
    assert resume(journal, ScriptedModel(**scripts), done.tools).passes == 2
    assert done.deleted == []


def test_a_changed_call_that_nobody_reviews_again_after_an_objection_needs_a_person() -> None:
    changed = modified({"description": "Delete the old log", "tool": "delete", "arguments": {"path": "old.log"}})
    done = Run(review=[objecting(), "no JSON"], repair="nor this", refine=[changed, NOTHING])
    assert done.deleted == []
    assert "changed after an objection" in done.result.steps[0].errors[0]


@pytest.mark.parametrize("severity", ["critical", "**High**"])
def test_an_unknown_severity_is_not_treated_as_milder(severity: str) -> None:
    assert Run(review=objecting(severity)).deleted == []


def test_an_objection_to_a_step_is_one_to_its_parts() -> None:
    part = {**DELETE, "step_id": "s1.1"}
    nested = {"parent_step_id": "s1", "subplan_goal": "clean up", "substeps": [part]}
    done = Run(plan={"step_id": "s1", "description": "Clean up", "subplan": nested}, review=objecting())
    assert done.deleted == []


def test_findings_of_exact_checks_are_not_objections() -> None:
    """The arguments do not fit; that is repaired, and the review has nothing against the call."""
    wrong = {**DELETE, "arguments": {"file": "old.log", "force": 1}}
    done = Run(plan=wrong, review=FINE, repair={"path": "old.log"}, tool_call=call("delete", path="old.log"))
    assert done.deleted == ["old.log"]
