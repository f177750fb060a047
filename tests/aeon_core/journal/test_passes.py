"""The history of a run of several passes: what each held, and what shows across them (adaptive FR-071 to FR-078)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aeon_core.journal.history import ExecutionHistory, PassesFold, open_history, open_run
from aeon_core.journal.listing import list_runs
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan
from tests.aeon_core.journal.build import cycle, parsed, pass_record, plan_record, started, write
from tests.aeon_core.journal.view.adaptive import (
    assessment,
    profile,
    refined_run,
    refinement,
    report,
    two_adaptive_passes,
)
from tests.aeon_core.kernel.scenarios import JOURNAL, SCENARIOS


def test_the_history_of_a_run_equals_what_the_run_returned(tmp_path: Path) -> None:
    result = refined_run(tmp_path / "r.jsonl")
    history = open_history(tmp_path / "r.jsonl")
    assert history.final_result == result
    assert (result.status, len(history.passes)) == ("converged", 2)
    first, second = history.passes
    assert second.evaluation_results["convergence"] == result.convergence
    assert result.plan is not None
    assert second.final_plan_state == dump_plan(result.plan)
    assert [step["output"] for step in second.execution_results["steps"] if step["status"] == "complete"] == [
        {"result": 15},
        {"result": 0.5},
    ]
    assert [each["phase"] for each in first.phases] == ["plan", "execute", "evaluate", "refine"]
    assert [report["artifact_type"] for report in first.validation_reports] == ["plan", "cross_phase"]
    assert first.validation_reports[-1] == first.evaluation_results["semantic_validation"]


def test_a_pass_holds_the_plan_as_it_began_and_as_it_ended(tmp_path: Path) -> None:
    refined_run(tmp_path / "r.jsonl")
    first, second = open_history(tmp_path / "r.jsonl").passes

    def statuses(state: dict[str, Any] | None) -> list[tuple[str, str]]:
        return [(step.step_id, step.status) for step in Plan.model_validate(state).walk()]

    assert statuses(first.plan_state) == [("s1", "pending"), ("s2", "pending")]
    refined = [("s1", "complete"), ("s2", "invalid"), ("s2-r1", "pending")]
    assert statuses(first.final_plan_state) == statuses(second.plan_state) == refined
    assert statuses(second.final_plan_state) == [*refined[:2], ("s2-r1", "complete")]


def test_a_pass_holds_its_profile_and_each_adjustment(tmp_path: Path) -> None:
    refined_run(tmp_path / "r.jsonl")
    first, second = open_history(tmp_path / "r.jsonl").passes
    for number, each in enumerate((first, second), 1):
        assert each.task_profile is not None
        assert each.task_profile["profile_version"] == number
        assert each.depth_adjustments[-1] == each.adaptive_depth
    reasons = [each["adjustment_reason"] for each in first.depth_adjustments + second.depth_adjustments]
    assert [reason.partition(". ")[0].partition(" (")[0] for reason in reasons] == [
        "inferred from the task",
        "the plan has 2 steps to run",
        "validation found 1 high and 0 medium issues; convergence was not reached",
    ]


def test_later_passes_do_not_change_earlier_snapshots() -> None:
    records = parsed(*two_adaptive_passes())
    fold = PassesFold()
    for record in records[:17]:
        fold.apply(record)
    first = fold.passes[0]
    before = first.model_dump_json()
    for record in records[17:]:
        fold.apply(record)
    assert first.model_dump_json() == before
    for record in records:
        _empty(record)
    assert first.model_dump_json() == before
    second = fold.passes[1]
    assert second.final_plan_state == first.final_plan_state
    assert second.final_plan_state is not None
    second.final_plan_state["steps"].clear()
    assert first.model_dump_json() == before


def _empty(value: Any) -> None:
    """Take everything out of a value, and out of what is in it."""
    if isinstance(value, (dict, list)):
        for inner in list(value.values()) if isinstance(value, dict) else value:
            _empty(inner)
        value.clear()


def test_reports_and_advisories_are_listed_with_their_pass(tmp_path: Path) -> None:
    first, second = open_history(write(tmp_path, *two_adaptive_passes())).passes
    assert [each["validation_id"] for each in first.validation_reports] == ["v1", "v2"]
    assert [each["validation_id"] for each in second.validation_reports] == ["v3"]
    assert [each["issue"]["proposed_repair"] for each in first.advisories] == ["name what is done"]
    assert second.advisories == []


def test_statistics_separate_applied_and_refused_refinements(tmp_path: Path) -> None:
    statistics = open_history(write(tmp_path, *two_adaptive_passes())).overall_statistics
    assert (statistics.total_refinements, statistics.refused_refinements) == (2, 1)
    assert (statistics.total_passes, statistics.convergence_achieved) == (2, True)


def test_refinements_of_a_pass_that_was_cut_short_count(tmp_path: Path) -> None:
    path = write(tmp_path, *two_adaptive_passes()[:12])
    statistics = open_history(path).overall_statistics
    assert (statistics.total_passes, statistics.total_refinements, statistics.refused_refinements) == (0, 1, 1)


def test_patterns_name_often_refined_fragments_with_their_replacements(tmp_path: Path) -> None:
    late = [refinement(2, "s1-r1", accepted=False), refinement(2, "other", accepted=True)]
    history = open_history(write(tmp_path, *two_adaptive_passes()[:-2], *late))
    (fragment,) = history.overall_statistics.patterns.refined_fragments
    assert (fragment.fragment, fragment.attempts, fragment.accepted) == ("s1", 4, 2)
    assert (fragment.passes, fragment.reasons) == ([1, 2], ["it says nothing"])


def test_patterns_name_what_blocked_convergence_the_most_frequent_first(tmp_path: Path) -> None:
    told = [
        assessment(1, 0.2, "incoherent", "incomplete"),
        assessment(2, 0.4, "incomplete", "no_progress"),
        assessment(3, 1.0, "complete"),
    ]
    blockers = open_history(write(tmp_path, started(), *told)).overall_statistics.patterns.convergence_blockers
    assert [(each.reason_code, each.passes) for each in blockers] == [("incomplete", [1, 2]), ("incoherent", [1])]


def test_patterns_show_the_effect_of_a_depth_change(tmp_path: Path) -> None:
    history = open_history(write(tmp_path, *two_adaptive_passes(), profile(3, "deep", 25, "more")))
    first, never = history.overall_statistics.patterns.depth_adjustments
    assert (first.pass_number, first.reasoning_mode_before, first.reasoning_mode) == (2, "balanced", "deep")
    assert (first.allocated_ttl_before, first.allocated_ttl) == (10, 20)
    assert (first.completeness_change, first.coherence_change, first.converged) == (0.5, 0.0, True)
    assert first.adjustment_reason == "convergence was not reached"
    assert (never.pass_number, never.completeness_change, never.converged) == (3, None, None)


def test_a_pass_that_was_not_judged_has_no_scores_to_compare(tmp_path: Path) -> None:
    records = two_adaptive_passes()
    place = next(index for index, record in enumerate(records) if record.tag == "convergence")
    records[place] = assessment(1, 0.0, "not_judged")
    (adjusted,) = open_history(write(tmp_path, *records)).overall_statistics.patterns.depth_adjustments
    assert (adjusted.completeness_change, adjusted.coherence_change, adjusted.converged) == (None, None, True)


def test_a_run_of_one_pass_has_no_patterns(tmp_path: Path) -> None:
    history = open_history(
        write(tmp_path, started(), plan_record({"step_id": "s1", "description": "a"}), pass_record())
    )
    assert history.overall_statistics.patterns.model_dump() == {
        "refined_fragments": [],
        "convergence_blockers": [],
        "depth_adjustments": [],
    }


def test_one_pass_comes_with_the_statistics_of_the_whole(tmp_path: Path) -> None:
    _, history = open_run(write(tmp_path, *two_adaptive_passes()), None, 2)
    assert [each.pass_number for each in history.passes] == [2]
    assert history.overall_statistics.total_passes == 2
    assert len(history.overall_statistics.patterns.depth_adjustments) == 1


def test_one_pass_has_its_own_cycles_and_findings(tmp_path: Path) -> None:
    *records, last_pass, end = two_adaptive_passes()
    place = next(index for index, record in enumerate(records) if record.tag == "pass")
    records[place:place] = [cycle(number, {}) for number in (1, 2, 3)]
    path = write(tmp_path, *records, cycle(4, {}), last_pass, end)
    first, second = (open_run(path, None, number)[0] for number in (1, 2))
    assert (first.cycles, second.cycles) == (3, 1)
    assert ([each.completeness_score for each in first.assessments], len(first.reports)) == ([0.5], 2)
    assert ([each.completeness_score for each in second.assessments], len(second.reports)) == ([1.0], 1)
    assert (len(first.refinements), len(first.advisories), first.profiles[-1].reasoning_mode) == (3, 1, "balanced")
    assert (second.refinements, second.advisories, second.profiles[-1].reasoning_mode) == ([], [], "deep")


def test_every_prefix_of_a_journal_has_a_history_that_reads_back(tmp_path: Path) -> None:
    records = two_adaptive_passes()
    for end in range(1, len(records) + 1):
        history = open_history(write(tmp_path, *records[:end]))
        assert ExecutionHistory.model_validate(json.loads(history.model_dump_json())) == history


def test_findings_of_an_unreadable_pass_move_to_no_other_pass() -> None:
    fold = PassesFold()
    broken = {**parsed(pass_record(1))[0], "pass_number": "one"}
    refined = plan_record({"step_id": "s1", "description": "a"}, cause="refined")
    again = [report(2, "v2"), report(2, "v2"), refined, pass_record(2)]
    for record in [*parsed(report(1, "v1")), broken, *parsed(*again)]:
        fold.apply(record)
    (second,) = fold.passes
    assert [each["validation_id"] for each in second.validation_reports] == ["v2"]
    assert second.final_plan_state == parsed(refined)[0]["plan"]


def test_a_cut_journal_has_only_the_completed_passes(tmp_path: Path) -> None:
    refined_run(tmp_path / "whole.jsonl")
    content = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    folder = tmp_path / "cut"
    folder.mkdir()
    ended = 0
    for number, line in enumerate(content[:-1], 1):
        ended += b'"type":"pass"' in line
        (folder / "r.jsonl").write_bytes(b"".join(content[:number]) + b'{"v":1,"seq":')
        (summary,) = list_runs(folder)
        assert (summary.status, summary.passes) == ("interrupted", ended), line[:200]
        assert len(open_history(folder / "r.jsonl").passes) == ended
    assert ended == 2


def test_a_repeated_pass_holds_only_its_own_depths() -> None:
    records = parsed(*two_adaptive_passes())
    fold = PassesFold()
    for record in [*records, *records, *records]:
        fold.apply(record)
    first, _, again, *_ = fold.passes
    assert again.depth_adjustments == first.depth_adjustments


def test_a_pass_view_has_only_its_own_tool_calls(tmp_path: Path) -> None:
    SCENARIOS["launches"].run(tmp_path)
    whole, first, second = (open_run(tmp_path / JOURNAL, None, number)[0].tool_calls for number in (None, 1, 2))
    assert [call.pass_number for call in first.values()] == [1, 1]
    assert [call.pass_number for call in second.values()] == [2]
    assert {*first, *second} == {*whole}
