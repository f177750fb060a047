"""What the view says of one step across passes, and of what is left to the user during the run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aeon_core.journal.records import NoticeRecord, RunResumed
from aeon_core.journal.view.model import (
    IssueView,
    RefinementView,
    ReportView,
    RunView,
    StepView,
    advisories_of,
    found_issues,
    issues_of,
    open_issues,
    refinements_of,
    replacements,
    times_refined,
)
from aeon_core.journal.view.reducer import fold
from tests.aeon_core.journal.build import finished, parsed, plan_record, started
from tests.aeon_core.journal.view.adaptive import QUESTION, REMARK, VAGUE, refinement, report, two_adaptive_passes

LEFT = {"step_id": "s1", "cause": "refinement_limit", "reason": "refined too often", "attempts": 2}


def notice(kind: Any, data: dict[str, Any]) -> NoticeRecord:
    return NoticeRecord(kind=kind, pass_number=1, message="for a person", data=data)


def test_issues_are_those_of_the_last_report_and_all_that_were_ever_found() -> None:
    view = fold(parsed(*two_adaptive_passes()[:10]))
    assert open_issues(view) == {}, "the last report has only an issue of no step"
    assert [(number, issue.issue_id) for number, issue in found_issues(view)] == [(1, "i2"), (1, "i1")]
    assert [issue.issue_id for _, issue in issues_of(view, "s1")] == ["i1"]
    again = fold(parsed(report(1, "v", REMARK, VAGUE), report(3, "w", VAGUE)))
    assert [(number, issue.issue_id) for number, issue in found_issues(again)] == [(3, "i1"), (1, "i2")]
    assert {step_id: len(issues) for step_id, issues in open_issues(again).items()} == {"s1": 1}


def test_a_step_has_the_refinements_that_were_aimed_at_it_or_changed_it() -> None:
    view = fold(parsed(*two_adaptive_passes()))
    assert [each.accepted for each in refinements_of(view, "s1")] == [False, True, True]
    assert [each.seq for each in refinements_of(view, "s1-r1")] == [12]
    assert refinements_of(view, "s9") == []
    assert [each.message for each in advisories_of(view, "s1")] == ["validation also proposed: less"]


def test_a_fragment_is_counted_at_the_step_that_it_is_now_and_refused_attempts_are_not() -> None:
    steps = [{"step_id": "s1", "status": "invalid"}, {"step_id": "s1-r1", "replaces": "s1"}, {"step_id": "s2"}]
    plan = plan_record(*({"description": "d", "agent": "llm", **step} for step in steps))
    view = fold(
        parsed(
            plan,
            refinement(1, "s1", accepted=True),
            refinement(1, "s1-r1", accepted=True),
            refinement(1, "s2", accepted=False),
        )
    )
    assert replacements(view) == {"s1": "s1-r1"}
    assert times_refined(view) == {"s1-r1": 2}


IDS = st.sampled_from(["s1", "s2", "s3", "s4"])


@given(
    st.dictionaries(IDS, st.none() | IDS),
    st.lists(st.tuples(IDS, st.booleans())),
    st.lists(st.lists(st.none() | IDS)),
)
def test_whatever_a_journal_says_of_replacements_each_step_can_be_asked_for(
    replaced: dict[str, str | None], refined: list[tuple[str, bool]], issues: list[list[str | None]]
) -> None:
    view = RunView(steps={name: StepView(name, "d", replaces=other) for name, other in replaced.items()})
    view.refinements = [RefinementView(1, 1, "step_modify", name, "", done, "") for name, done in refined]
    view.reports = [
        ReportView(1, 1, "v", "plan", [IssueView("i", "relevance", "low", "d", "plan", name, "") for name in names])
        for names in issues
    ]
    counts = times_refined(view)
    assert counts.keys() <= view.steps.keys()
    assert not counts.keys() & replacements(view).keys()
    assert all(1 <= number <= len(refined) for number in counts.values())
    for step_id in view.steps:
        assert [name for name, _ in refined if name == step_id] == [
            each.target for each in refinements_of(view, step_id)
        ]
    assert len(found_issues(view)) == len({name for names in issues for name in names})


def test_questions_and_fragments_are_known_when_they_arise_once_each() -> None:
    view = fold(
        parsed(
            started(),
            notice("questions", {"questions": [QUESTION]}),
            notice("questions", {"questions": [QUESTION, "Who reads it?"]}),
            notice("manual_intervention", LEFT),
            notice("manual_intervention", {**LEFT, "reason": "refined again"}),
            notice("budget_warning", {"questions": ["none"]}),
        )
    )
    assert view.follow_up_questions == [QUESTION, "Who reads it?"]
    assert [(each.step_id, each.reason) for each in view.manual_interventions] == [("s1", "refined again")]


def test_a_result_has_the_last_word_until_the_run_continues() -> None:
    asked = notice("questions", {"questions": [QUESTION, "Who reads it?"]})
    ended = [started(), asked, finished("not_converged", follow_up_questions=[QUESTION])]
    assert fold(parsed(*ended)).follow_up_questions == [QUESTION]
    assert fold(parsed(*ended, RunResumed(options={}, continues_at=0))).follow_up_questions == [
        QUESTION,
        "Who reads it?",
    ]


def test_a_run_is_adaptive_by_its_options_or_by_what_it_journals() -> None:
    assert not fold(parsed(started())).adaptive
    assert not fold(parsed(started(config={"single_pass": True}))).adaptive
    assert fold(parsed(started(config={"single_pass": False}))).adaptive
    assert fold(parsed(*two_adaptive_passes()[:2])).adaptive
