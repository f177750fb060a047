from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.journal.history import final_result
from aeon_core.journal.records import MemoryRecord, NoticeRecord, RunResumed
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import (
    LOG_LINES,
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
from tests.aeon_core.journal.build import (
    cycle,
    finished,
    llm,
    parsed,
    plan_record,
    repair,
    started,
    step,
    tool,
    ttl,
    whole_run,
)
from tests.aeon_core.journal.view.adaptive import QUESTION, REMARK, VAGUE, refinement, report, two_adaptive_passes

LEFT = {"step_id": "s1", "cause": "refinement_limit", "reason": "refined too often", "attempts": 2}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def texts(view: RunView) -> list[str]:
    return [line.text for line in view.log]


def test_a_whole_run_folds_into_steps_calls_memory_and_result() -> None:
    view = fold(parsed(*whole_run()))

    assert (view.task, view.model, view.simulated) == ("calculate the sum of 5 and 10", "simulated:default", True)
    assert (view.status, view.goal, view.passes) == ("completed", "the sum of 5 and 10", 1)
    assert (view.ttl_remaining, view.ttl_spent, view.usage) == (47, 3, {"input_tokens": 30, "output_tokens": 3})
    assert view.memory == {"city": "Bonn", "s1": {"result": 15}}
    assert list(view.steps) == ["s1", "s2", "s3"]
    s1, s2, s3 = view.steps.values()
    assert (s1.status, s1.mode, s1.output) == ("complete", "tool", {"result": 15})
    assert [(call.tool_name, call.finished, call.result) for call in s1.tool_calls] == [
        ("calculator", True, {"result": 15})
    ]
    assert (s2.repaired, s2.tool, s2.validator_errors, s2.output) == (True, "calculator", [], {"result": 30})
    assert [repair.repaired_output for repair in s2.repairs] == [{"tool": "calculator"}]
    assert (s3.mode, s3.validator_errors, s3.repaired) == ("fallback", ["Tool 'web' not found"], False)
    assert [call.response for call in s3.calls] == [{"text": "no news"}]
    assert view.result is not None
    assert view.result.answer == "The sum is 15."
    assert view.current_step_id is None
    assert view.damage == []


def test_attempts_of_one_call_are_kept_apart_with_the_wait_between_them() -> None:
    first, second = fold(parsed(*whole_run())).calls["c1"]
    assert (first.attempt, first.finished, first.retry_in_s, first.error) == (
        1,
        True,
        1.0,
        {"message": "503 overloaded"},
    )
    assert (second.attempt, second.response, second.usage) == (
        2,
        {"text": "{}"},
        {"input_tokens": 7, "output_tokens": 3},
    )


def test_every_prefix_of_a_run_folds_without_damage() -> None:
    records = parsed(*whole_run())
    for end in range(len(records)):
        view = fold(records[:end])
        assert view.damage == []
        assert view.status == "running"
        assert view.last_seq == end - 1


def test_a_call_and_a_tool_in_flight_are_unfinished() -> None:
    view = fold(parsed(started(), plan_record({"step_id": "s1", "description": "d"}), llm("started"), tool("started")))
    assert not view.calls["c1"][0].finished
    assert not view.steps["s1"].tool_calls[0].finished


def test_the_log_has_one_readable_line_per_event() -> None:
    lines = texts(fold(parsed(*whole_run())))
    assert 's1 complete · tool calculator → {"result": 15}' in lines
    assert "s2 · Tool 'calc' not found in registry · to be repaired" in lines
    assert 's2 · plan repair (llm, 1/2) succeeded: tool "calc" → "calculator"' in lines
    assert "s2 repaired · tool calculator · double it" in lines
    assert "s3 complete · fallback reasoning → no news" in lines
    assert "plan · the model call failed: 503 overloaded · retrying in 1.0 s" in lines
    assert "TTL 47 of 50 cycles left · fallback for s3" in lines
    assert lines[-1] == "run completed · The sum is 15."


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ({"tool": "x", "status": "running", "errors": ["e"]}, {"tool": "y", "status": "pending"}, 'tool "x" → "y"'),
        (
            {"tool_name": "add", "arguments": {"a": "5", "b": 1}},
            {"tool_name": "add", "arguments": {"a": 5, "b": 1, "c": 2}},
            'a "5" → 5, c 2',
        ),
        ({"text": "{'a'"}, {"goal": "g"}, '{"goal": "g"}'),
        ({"goal": "g"}, {"goal": "g"}, '{"goal": "g"}'),
        ({"tool": "\x1b[1m"}, {"tool": "z" * 500}, 'tool "\\u001b[1m" → "' + "z" * 59 + "…"),
    ],
)
def test_a_repair_is_described_by_its_change(before: dict[str, Any], after: dict[str, Any], shown: str) -> None:
    record = repair("s2", original_output=before, repaired_output=after)
    assert texts(fold(parsed(record)))[-1] == f"s2 · plan repair (llm, 1/2) succeeded: {shown}"


def test_missing_tools_repairs_fallbacks_and_retries_are_warnings_and_failures_errors() -> None:
    failed = step("s1", "failed", mode="tool", errors=["division by zero"])
    records = [
        *whole_run(),
        failed,
        llm("started", call_id="c9"),
        llm("finished", call_id="c9", error={"message": "401"}),
    ]
    levels = {line.text: line.level for line in fold(parsed(*records)).log}
    assert levels["s2 · Tool 'calc' not found in registry · to be repaired"] == "warning"
    assert levels["s2 repaired · tool calculator · double it"] == "warning"
    assert levels["s3 complete · fallback reasoning → no news"] == "warning"
    assert levels["plan · the model call failed: 503 overloaded · retrying in 1.0 s"] == "warning"
    assert levels["s1 failed · division by zero"] == "error"
    assert levels["plan · the model call failed: 401"] == "error"
    assert levels['s1 complete · tool calculator → {"result": 15}'] == "info"


def test_a_validator_warning_is_reported_once() -> None:
    lines = texts(fold(parsed(*whole_run())))
    assert sum("Tool 'web' not found" in line for line in lines) == 1


@pytest.mark.parametrize("hostile", ["\x1b[31m", "[/]", "\x00", "line\nbreak", "x" * 5_000_000])
def test_a_line_of_the_log_is_short_and_without_control_characters(hostile: str) -> None:
    view = fold(parsed(started(task=hostile), plan_record({"step_id": "s1", "description": f"a{hostile}"})))
    for each in texts(fold([*parsed(*whole_run()), *parsed(step("s1", "complete", output={"text": hostile}))])):
        assert each.isprintable()
    assert all(line.isprintable() and len(line) < 1_000 for line in texts(view))


def test_substeps_follow_their_parent_and_hand_the_current_step_back_to_it() -> None:
    substeps = [{"step_id": "s1a", "description": "part"}, {"step_id": "s1b", "description": "part"}]
    parent = {
        "step_id": "s1",
        "description": "whole",
        "subplan": {"parent_step_id": "s1", "subplan_goal": "g", "substeps": substeps},
    }
    records = parsed(
        plan_record(parent, {"step_id": "s2", "description": "next"}), step("s1", "running"), step("s1a", "running")
    )
    view = fold(records)
    assert [(each.step_id, each.depth, each.parent) for each in view.steps.values()] == [
        ("s1", 0, None),
        ("s1a", 1, "s1"),
        ("s1b", 1, "s1"),
        ("s2", 0, None),
    ]
    assert view.current_step_id == "s1a"
    reducer.apply(view, parsed(step("s1a", "complete", output={}))[0])
    assert view.current_step_id == "s1"


def test_a_value_refused_by_memory_becomes_a_warning() -> None:
    view = fold(parsed(started(), MemoryRecord(key="s1", value=1, error="disk full")))
    assert view.memory == {"city": "Bonn"}
    assert (view.log[-1].level, view.log[-1].text) == ("warning", "s1 not stored: disk full")


def test_a_call_that_is_made_again_under_its_old_number_is_an_attempt_of_its_own() -> None:
    view = fold(parsed(llm("started"), llm("finished", response={"text": "first"}), llm("started")))
    assert [(call.finished, call.response) for call in view.calls["c1"]] == [(True, {"text": "first"}), (False, None)]


def test_a_number_that_cannot_be_shown_is_damage_not_an_error() -> None:
    view = RunView()
    reducer.apply(view, {"type": "llm", "seq": 3, "state": "finished", "error": {}, "retry_in_s": 10**400})
    assert view.damage == ["a record after seq 3 cannot be read: OverflowError"]


def test_a_resumed_run_is_running_again_and_has_no_result() -> None:
    view = fold([*parsed(*whole_run()), {"type": "run_resumed", "seq": 99, "options": {}}])
    assert (view.status, view.result) == ("running", None)


def test_a_question_pending_at_a_kill_is_asked_on_resume() -> None:
    """The process that resumes it writes no other record before the decision."""
    asked = {"type": "approval", "seq": 97, "point": "pass", "state": "asked"}
    resumed = {"type": "run_resumed", "seq": 98, "options": {}, "continues_at": 98}
    view = fold([*parsed(*whole_run())[:-1], asked, resumed])
    assert view.asked == "pass"
    reducer.apply(view, {**asked, "seq": 99, "state": "decided", "decision": "approve"})
    assert view.asked == ""


def test_the_log_keeps_at_least_the_last_lines_and_counts_all() -> None:
    view = RunView()
    for number in range(3 * LOG_LINES):
        view.add_line("info", "phase", f"line {number}")
    assert LOG_LINES <= len(view.log) <= LOG_LINES + 500
    assert view.log_count == 3 * LOG_LINES
    assert view.log[-1].text == f"line {3 * LOG_LINES - 1}"
    assert [line.text for line in view.log] == [
        f"line {n}" for n in range(3 * LOG_LINES - len(view.log), 3 * LOG_LINES)
    ]


def test_unknown_types_and_fields_are_ignored() -> None:
    records = parsed(*whole_run())
    view = fold([*records[:-1], {"type": "hologram", "seq": 70, "pass": 2}, {**records[-1], "colour": "red"}])
    assert (view.status, view.damage) == ("completed", [])


def test_a_result_with_fields_of_a_later_version_is_read() -> None:
    record = json.loads(json.dumps(parsed(finished())[0]))
    record["result"]["mood"] = "good"
    view = fold([record])
    assert view.result is not None
    assert view.result.validated().run_id == "20261120-093000-abc123"


def test_an_incomplete_result_is_shown_and_reported() -> None:
    view = fold([{"type": "run_finished", "seq": 4, "result": {"status": "aborted", "answer": "15", "steps": [3]}}])
    assert view.result is not None
    assert (view.status, view.result.answer, view.result.steps, view.damage) == ("aborted", "15", [], [])
    assert final_result(view) is None
    assert view.log[-1].level == "error"
    assert view.damage == ["cannot read the result: run_id: Field required"]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["type", "seq", "pass", "plan", "step_id", "state", "call_id", "result", "output", "usage"]
            ),
            st.sampled_from([record.tag for record in whole_run()]) | JSON,
        ),
        max_size=6,
    )
)
def test_no_record_makes_the_fold_raise(records: list[dict[str, Any]]) -> None:
    view = fold(records)
    assert all(isinstance(each.description, str) for each in view.steps.values())
    assert all(line.text.isprintable() for line in view.log)


@given(st.data())
def test_damaged_records_of_a_real_run_leave_a_usable_view(data: st.DataObject) -> None:
    records = parsed(*whole_run())
    victim = data.draw(st.sampled_from(records))
    field = data.draw(st.sampled_from(sorted(set(victim) - {"type"})))
    victim[field] = data.draw(JSON)
    view = fold(records)
    assert view.status in {"completed", "failed"} or victim["type"] == "run_finished"
    assert isinstance(view.task, str)


def test_five_thousand_nesting_levels_are_folded() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"deep": deep}
    view = fold(
        [*parsed(*whole_run()), {"type": "step", "seq": 90, "step_id": "s1", "status": "complete", "output": deep}]
    )
    # How deep the interpreter's own JSON goes differs between versions: it is shown clipped, or not at all.
    text = view.log[-1].text
    assert text.endswith("→ (cannot be shown)") or (text.endswith("…") and text.count("deep") < 100)


@pytest.mark.parametrize(
    ("purpose", "step_id", "said"),
    [("plan", None, "the plan"), ("answer", None, "the answer"), ("tool_call", "s1", "a tool call for s1")],
)
def test_the_ttl_names_the_use_of_its_last_cycle(purpose: str, step_id: str | None, said: str) -> None:
    call = {"type": "llm", "pass": 1, "attempt": 1, "step_id": step_id}
    records = [
        *parsed(started(), ttl(0)),
        {**call, "seq": 2, "call_id": "c1", "purpose": purpose, "state": "finished"},
        {**call, "seq": 3, "call_id": "c2", "purpose": "repair", "state": "finished"},
        {**call, "seq": 4, "call_id": "c3", "purpose": "reason", "state": "started"},
    ]
    view = fold(records)
    assert view.ttl_last == ""
    reducer.apply(view, {**parsed(ttl(1))[0], "seq": 5})
    assert view.ttl_last == said
    assert view.log[-1].text == f"TTL 49 of 50 cycles left · {said}"


def test_an_unchanged_ttl_adds_no_line() -> None:
    view = fold(parsed(started(), ttl(1), ttl(1), ttl(2)))
    assert [each.type for each in view.log].count("ttl") == 2


def test_cycles_and_ttl_are_counted() -> None:
    view = fold(parsed(started(), ttl(0), cycle(1, {}), cycle(2, {}), ttl(2), repair(None)))
    assert (view.cycles, view.ttl_remaining, len(view.repairs)) == (2, 48, 1)


@pytest.mark.parametrize(
    ("decided", "budget"),
    [
        ({"decision": "approve"}, 1.0),
        ({"decision": "edit", "edited": {"limit_usd": 0.75}}, 0.75),
        ({"decision": "edit", "edited": {"limit_usd": "much"}}, 0.5),
        ({"decision": "reject"}, 0.5),
    ],
    ids=["approve", "edit", "no amount", "reject"],
)
def test_a_raised_budget_is_shown(decided: dict[str, Any], budget: float) -> None:
    view = RunView()
    reducer.apply(view, {"type": "run_started", "config": {"budget": 0.5}})
    reducer.apply(view, {"type": "approval", "point": "budget", "state": "asked", "subject": {"proposed_usd": 1.0}})
    reducer.apply(view, {"type": "approval", "point": "budget", "state": "decided", **decided})
    assert view.config["budget"] == budget


def test_the_log_gives_the_reason_of_a_decision() -> None:
    decided = {"point": "budget", "state": "decided", "decision": "reject"}
    view = fold([{"type": "approval", **decided, "feedback": "it has\ncost enough"}, {"type": "approval", **decided}])
    assert [each.text for each in view.log] == [
        "budget · decided: reject · it has cost enough",
        "budget · decided: reject",
    ]


def notice(kind: Any, data: dict[str, Any]) -> NoticeRecord:
    return NoticeRecord(kind=kind, pass_number=1, message="for a person", data=data)


def test_current_issues_and_all_earlier_ones_are_kept() -> None:
    view = fold(parsed(*two_adaptive_passes()[:10]))
    assert open_issues(view) == {}, "the last report has only an issue of no step"
    assert [(number, issue.issue_id) for number, issue in found_issues(view)] == [(1, "i2"), (1, "i1")]
    assert [issue.issue_id for _, issue in issues_of(view, "s1")] == ["i1"]
    again = fold(parsed(report(1, "v", REMARK, VAGUE), report(3, "w", VAGUE)))
    assert [(number, issue.issue_id) for number, issue in found_issues(again)] == [(3, "i1"), (1, "i2")]
    assert {step_id: len(issues) for step_id, issues in open_issues(again).items()} == {"s1": 1}


def test_a_step_has_the_refinements_that_targeted_or_changed_it() -> None:
    view = fold(parsed(*two_adaptive_passes()))
    assert [each.accepted for each in refinements_of(view, "s1")] == [False, True, True]
    assert [each.seq for each in refinements_of(view, "s1-r1")] == [12]
    assert refinements_of(view, "s9") == []
    assert [each.message for each in advisories_of(view, "s1")] == ["validation also proposed: less"]


def test_refinements_count_for_the_current_step_of_a_fragment() -> None:
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
def test_any_recorded_replacements_leave_every_step_accessible(
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


def test_questions_and_fragments_are_listed_once_when_they_arise() -> None:
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


def test_follow_up_questions_are_the_results_until_the_run_continues() -> None:
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
