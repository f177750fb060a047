"""What the adaptive engine journals, as the view of a run and of one pass tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.escape import escape_controls
from aeon_core.journal.history import open_run
from aeon_core.journal.records import RunResumed
from aeon_core.journal.view import formatting
from aeon_core.journal.view.model import AssessmentView, RunView
from aeon_core.journal.view.reducer import fold
from tests.aeon_core.journal.build import parsed, started, write
from tests.aeon_core.journal.view.adaptive import (
    QUESTION,
    assessment,
    profile,
    refinement,
    report,
    two_adaptive_passes,
)
from tests.aeon_core.journal.view.test_model import JSON


def whole() -> RunView:
    return fold(parsed(*two_adaptive_passes()))


def test_the_view_holds_profiles_reports_and_assessments_of_every_pass() -> None:
    view = whole()
    assert [(p.version, p.pass_number, p.reasoning_mode, p.allocated_ttl, p.reason) for p in view.profiles] == [
        (1, 1, "balanced", 10, "inferred from the task"),
        (2, 2, "deep", 20, "convergence was not reached"),
    ]
    assert view.profiles[0].dimensions == {"reasoning_depth": "high"}
    assert [(r.pass_number, r.artifact_type, len(r.issues)) for r in view.reports] == [
        (1, "plan", 2),
        (1, "cross_phase", 1),
        (2, "cross_phase", 0),
    ]
    first, second = view.assessments
    assert (first.converged, first.reason_codes) == (False, ["incomplete", "failed_step"])
    assert (first.completeness_score, first.coherence_score) == (0.5, 1.0)
    assert first.consistency == {"plan": True, "step": True, "answer": False, "memory": True}
    assert first.detected_issues == ["the answer is terse", "odd"]
    assert (second.converged, view.assessment, view.issues, view.profile) == (True, second, [], view.profiles[1])
    assert view.damage == []


def test_issues_are_sorted_by_severity_and_name_step_and_repair() -> None:
    worst, other = whole().reports[0].issues
    assert (worst.severity, worst.type, worst.step_id, worst.artifact) == ("high", "specificity", "s1", "plan")
    assert (worst.description, worst.repair) == ("'Do it' says nothing", "name what is done")
    assert (other.severity, other.step_id) == ("low", None)


def test_refinements_show_cause_and_change() -> None:
    view = whole()
    refused, accepted, replaced = view.refinements
    assert [each.accepted for each in view.refinements] == [False, True, True]
    assert (refused.kind, refused.target, refused.explanation) == ("step_modify", "s1", "still vague")
    assert [(issue.severity, issue.step_id) for issue in refused.issues] == [("high", "s1")]
    assert replaced.replaced == {"s1": "s1-r1"}
    assert formatting.refinement_change(accepted) == 'description "Do it" → "Name a prime"'
    assert formatting.refinement_change(refused) == ""
    cause = "it says nothing; high · specificity · s1: 'Do it' says nothing"
    assert formatting.refinement_cause(refused) == cause
    left = view.advisories[0]
    assert left.issue is not None
    assert (left.pass_number, left.step_id, left.issue.repair) == (1, "s1", "name what is done")
    assert [line.type for line in view.log if line.level == "warning"].count("advisory") == 1


def test_a_refinement_that_adds_or_removes_steps_names_them() -> None:
    steps = [{"step_id": "a", "description": "Add"}, {"step_id": "b", "description": "Say"}]
    view = fold(parsed(refinement(1, "s1", accepted=True, after=steps)))
    assert formatting.refinement_change(view.refinements[0]) == "nothing → a Add, b Say"


def test_items_left_to_a_person_are_known_only_after_the_run() -> None:
    records = two_adaptive_passes()
    assert fold(parsed(*records[:-1])).follow_up_questions == []
    view = fold(parsed(*records))
    assert view.follow_up_questions == [QUESTION]
    assert [(each.step_id, each.reason) for each in view.manual_interventions] == [("s1", "refined too often")]
    resumed = fold(parsed(*records, RunResumed(options={}, continues_at=0)))
    assert (resumed.follow_up_questions, resumed.manual_interventions) == ([], [])


def test_repeated_records_at_the_end_of_a_pass_occur_once() -> None:
    again = [report(1, "v"), assessment(1, 0.5, "incomplete"), report(1, "v"), assessment(1, 0.5, "no_progress")]
    view = fold(parsed(*again))
    assert len(view.reports) == 1
    assert [each.reason_codes for each in view.assessments] == [["no_progress"]]


def test_a_profile_for_a_pass_that_never_began_makes_no_pass(tmp_path: Path) -> None:
    records = two_adaptive_passes()
    path = write(tmp_path, *records[:17])
    view, history = open_run(path, None, 1)
    assert [each.version for each in view.profiles] == [1]
    assert [(p.phase, p.pass_number) for p in view.phases] == [("plan", 1), ("evaluate", 1), ("refine", 1)]
    assert len(history.passes) == 1
    assert fold(parsed(*records[:14])).current_pass == 1


def test_one_pass_holds_its_own_findings_and_profile(tmp_path: Path) -> None:
    path = write(tmp_path, *two_adaptive_passes())
    first, _ = open_run(path, None, 1)
    assert ([r.validation_id for r in first.reports], len(first.refinements)) == (["v1", "v2"], 3)
    assert ([a.pass_number for a in first.assessments], len(first.advisories)) == ([1], 1)
    assert ([p.version for p in first.profiles], first.follow_up_questions) == ([1], [])
    second, _ = open_run(path, None, 2)
    assert ([r.validation_id for r in second.reports], second.refinements, second.advisories) == (["v3"], [], [])
    assert ([p.version for p in second.profiles], second.follow_up_questions) == ([2], [QUESTION])


def test_a_pass_without_its_own_profile_uses_the_previous_one(tmp_path: Path) -> None:
    records = [each for each in two_adaptive_passes() if getattr(each, "profile_version", 1) == 1]
    view, _ = open_run(write(tmp_path, *records), None, 2)
    assert [p.version for p in view.profiles] == [1]
    later = [each for each in two_adaptive_passes() if getattr(each, "profile_version", 2) == 2]
    view, history = open_run(write(tmp_path, *later), None, 1)
    assert (view.profiles, history.passes[0].adaptive_depth) == ([], None)


def test_a_change_names_removed_fields_and_added_substeps(tmp_path: Path) -> None:
    before = {"step_id": "s1", "description": "Do it", "tool": "odd", "status": "pending"}
    substeps = [{"step_id": f"s1.{number}", "description": f"part {number}"} for number in range(1, 8)]
    after = {
        **{key: value for key, value in before.items() if key != "tool"},
        "subplan": {"parent_step_id": "s1", "subplan_goal": "Do it", "substeps": substeps},
    }
    (found,) = fold(parsed(started(), refinement(1, "s1", accepted=True, before=[before], after=[after]))).refinements
    assert formatting.refinement_change(found) == (
        'tool "odd" → none, with 7 substeps: '
        "s1.1 part 1; s1.2 part 2; s1.3 part 3; s1.4 part 4; s1.5 part 5; and 2 more"
    )
    (undone,) = fold(parsed(started(), refinement(1, "s1", accepted=True, before=[after], after=[before]))).refinements
    assert formatting.refinement_change(undone) == 'tool "odd", without substeps'


@pytest.mark.parametrize(
    ("value", "told"), [(None, "–"), (0.0, "0.00"), (0.796, "0.79"), (0.999, "0.99"), (0.29, "0.29"), (1.0, "1.00")]
)
def test_a_score_never_looks_better_than_it_is(value: float | None, told: str) -> None:
    assert formatting.score(value) == told


def test_an_invalid_score_is_unknown() -> None:
    records = parsed(assessment(1, 0.5))
    for odd in (7, -1, "1", True, None, 10**400):
        view = fold([{**records[0], "completeness_score": odd}])
        assert view.assessments[0].completeness_score is None
        assert formatting.scores(view.assessments[0]) == "completeness –, coherence 1.00"


def test_lines_make_control_characters_visible_and_are_one_line() -> None:
    hostile = "\x1b[31m\n" * 3
    records = [profile(1, hostile, 3, hostile), assessment(1, 0.5, hostile), refinement(1, hostile, accepted=False)]
    view = fold(parsed(*records))
    assert len(view.log) == 3
    for line in view.log:
        assert line.text.isprintable()
        assert r"\x1b[31m" in line.text
    shown = AssessmentView(0, 1, converged=False, consistency={hostile: False})
    assert formatting.flags(shown)[0][1].isprintable()


KINDS = st.sampled_from(["profile", "validation", "convergence", "refinement", "notice", "run_finished", "pass"])
KEYS = st.sampled_from(
    [
        "pass",
        "adaptive_depth",
        "adjustment_reason",
        "issues",
        "validation_id",
        "reason_codes",
        "completeness_score",
        "consistency_status",
        "action",
        "before",
        "after",
        "replaced",
        "data",
        "kind",
        "result",
        "detected_issues",
        "allocated_ttl",
        "location",
        "step_id",
        "manual_intervention",
        "follow_up_questions",
        "semantic_validation_input",
        "target",
    ]
)
VALUES = st.recursive(
    JSON | st.just("advisory"), lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=2)
)


@given(records=st.lists(st.tuples(KINDS, st.dictionaries(KEYS, VALUES, max_size=6)), max_size=5))
def test_any_records_fold_into_lines(records: list[tuple[str, dict[str, Any]]]) -> None:
    view = fold({"seq": seq, **body, "type": kind} for seq, (kind, body) in enumerate(records))
    assert [line.text for line in view.log if line.text != escape_controls(line.text)] == []
    for each in view.assessments:
        formatting.convergence(each)
    for refined in view.refinements:
        assert "\n" not in formatting.refinement_change(refined) + formatting.refinement_cause(refined)


def test_every_prefix_of_a_run_folds_to_a_prefix_of_what_it_found() -> None:
    records = parsed(*two_adaptive_passes())
    last = fold(records)
    for end in range(len(records)):
        view = fold(json.loads(json.dumps(records[:end])))
        assert view.damage == []
        assert view.refinements == last.refinements[: len(view.refinements)]
        assert view.profiles == last.profiles[: len(view.profiles)]
