from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_widgets.compare_rows import ComparedRun, CompareRow, RunComparison, compare, relation
from aeon_widgets.icons import VARIABLES
from tests.aeon_tui.passes import Passes, converged_run, first_pass, given_up_run, hostile_passes, second_pass
from tests.aeon_tui.recordings import Recording, failed_run, finished_run, hostile_run, live_run
from tests.sampling import examples
from tools.widget_demos.app import recorded

RUNS = [
    converged_run,
    first_pass,
    second_pass,
    given_up_run,
    hostile_passes,
    finished_run,
    failed_run,
    live_run,
    hostile_run,
    Recording,
]
recordings = st.sampled_from(RUNS)


@cache
def read(make: Callable[[], Recording]) -> ComparedRun:
    return run(make())


def run(recording: Recording, **changed: Any) -> ComparedRun:
    return ComparedRun("a-name", _changed(fold(recording.records), changed))


def _changed(view: RunView, changed: dict[str, Any]) -> RunView:
    for name, value in changed.items():
        setattr(view, name, value)
    return view


def of(comparison: RunComparison, section: str) -> list[tuple[str, str, str]]:
    """Return mark and texts of the rows below a heading."""
    rows = comparison.rows
    at = next(place for place, row in enumerate(rows) if row.left.partition(" · ")[0] == section)
    end = next((place for place in range(at + 1, len(rows)) if not rows[place].left and rows[place].mark == "#"), None)
    return [(row.mark, row.left, row.right) for row in rows[at + 1 : end]]


def headings(comparison: RunComparison) -> list[str]:
    return [row.left for row in comparison.rows if row.style == "accent bold"]


def test_a_converged_run_compared_with_an_abandoned_one() -> None:
    found = compare(run(converged_run()), run(given_up_run()))
    assert headings(found) == [
        "Scores · 2 differences",
        "Overview · different: status, passes, steps, TTL, tokens, time",
        "Answer · 1 difference",
        "Plan · 4 differences",
        "Issues · the same",
        "Options",
    ]
    assert found.differences == 8
    overview = of(found, "Overview")
    assert (" ", "task      design a REST API for invoices", "task      design a REST API for invoices") in overview
    assert ("≠", "status    ✔ converged", "status    ✖ not converged") in overview
    assert ("≠", "passes    2", "passes    1") in overview


def test_scores_are_reported_pass_by_pass_with_the_verdict() -> None:
    found = of(compare(run(first_pass()), run(converged_run())), "Scores")
    first = "pass 1    complete ▃ 0.40  coherent ▅ 0.60"
    assert found[0] == (" ", first, first)
    assert found[1][1].startswith("          ✖ not converged: the goal is not covered; the parts are inconsistent")
    assert found[2:] == [
        ("B", "", "pass 2    complete █ 1.00  coherent ▇ 0.95"),
        ("B", "", "          ✔ converged: complete, coherent, consistent"),
    ]


def test_passes_with_equal_scores_and_different_verdicts_are_reported() -> None:
    found = of(compare(run(converged_run()), run(given_up_run())), "Scores")
    assert [(mark, left[:10].rstrip()) for mark, left, _ in found[:2]] == [("≠", "pass 1"), ("≠", "")]
    assert found[0][1] == found[0][2]


def test_the_outcome_of_a_step_is_shown_below_it() -> None:
    one, other = run(finished_run()), run(failed_run())
    found = of(compare(one, other), "Plan")
    assert found[0][0] == found[1][0] == " "
    assert found[2] == (
        "≠",
        "✔ s3 say it nicely, in one friendly sentence that everybody understands",
        "✖ s3 say it nicely, in one friendly sentence that everybody understands",
    )
    assert ("≠", "    status     ✔ complete", "    status     ✖ failed") in found
    assert not [row for row in found if "done by" in row[1]]
    assert ("≠", "    output     Five and ten make fifteen!", "    output     –") in found


def test_long_outputs_show_only_lines_around_a_difference() -> None:
    lines = [f"line {number}" for number in range(30)]
    one, other = run(finished_run()), run(finished_run())
    for each, text in ((one, lines), (other, [*lines[:20], "another", *lines[21:]])):
        assert each.view is not None
        each.view.steps["s3"].output = {"text": "\n".join(text)}
    found = of(compare(one, other), "Plan")
    at = next(place for place, row in enumerate(found) if row[1] == "    output")
    assert [(mark, left.strip(), right.strip()) for mark, left, right in found[at + 1 : at + 6]] == [
        (" ", "⋯ 19 lines the same", "⋯ 19 lines the same"),
        (" ", "line 19", "line 19"),
        ("≠", "line 20", "another"),
        (" ", "line 21", "line 21"),
        (" ", "⋯ 8 lines the same", "⋯ 8 lines the same"),
    ]


def test_issues_of_one_run_alone_are_reported_first() -> None:
    found = of(compare(run(first_pass()), run(Passes())), "Issues")
    assert {mark for mark, _, _ in found} == {"A"}
    assert ("A", "✖ high s3 specificity: the result of s3 says nothing of its own", "") in found


def test_options_that_differ_are_shown_by_their_whole_name() -> None:
    config = {"ttl": 50, "shell": {"timeout": 120.0, "env": ["A"]}, "approve": ["plan"]}
    other = {"ttl": 20, "shell": {"timeout": 120.0, "env": ["A", "B"]}, "approve": [], "wait": 5.0}
    found = of(compare(run(live_run(), config=config), run(live_run(), config=other)), "Options")
    assert [(mark, left.split(), right.split()) for mark, left, right in found] == [
        ("≠", ["approve", "plan"], ["approve", "none"]),
        ("≠", ["shell.env", "A"], ["shell.env", "A,", "B"]),
        ("≠", ["ttl", "50"], ["ttl", "20"]),
        ("B", [], ["wait", "5.0"]),
        (" ", ["3", "options", "the", "same"], ["3", "options", "the", "same"]),
    ]


def test_records_before_a_fork_do_not_differ() -> None:
    parent, fork = run(converged_run(), run_id="p"), run(converged_run(), run_id="f", parent="p", parent_pass=2)
    assert fork.view is not None
    fork.view.reports = [each for each in fork.view.reports if each.pass_number == 2]
    for step in fork.view.steps.values():
        step.mode = step.mode if step.step_id.startswith("s3") else None
    found = compare(parent, fork)
    assert found.relation == "B is a fork of A at pass 2"
    assert found.differences == 0
    assert "Issues from pass 2 on" in headings(found)
    fork.view.parent_pass = 3
    assert of(compare(parent, fork), "Scores")[0][1].startswith("pass 2")


def test_an_unfinished_run_is_compared_by_its_latest_answer() -> None:
    waiting, fork = second_pass(), Passes()
    waiting.called("answer", "It is 15.")
    assert of(compare(run(first_pass()), run(waiting)), "Answer")[0] == ("≠", "Not finished.", "It is 15.")
    fork.ask("answer")
    assert of(compare(run(waiting), run(fork)), "Answer")[0] == ("A", "It is 15.", "")
    assert of(compare(run(fork), run(fork)), "Answer") == [
        ("#", "Neither has an answer yet.", "Neither has an answer yet.")
    ]


def test_an_answer_that_differs_past_its_shown_part_differs() -> None:
    one, other = run(finished_run()), run(finished_run())
    for each, end in ((one, "x"), (other, "y")):
        assert each.view is not None
        assert each.view.result is not None
        each.view.result.answer = "a" * 300_000 + end
    assert of(compare(one, other), "Answer")[-1] == ("≠", "the rest differs", "the rest differs")


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ({}, {"parent": "a", "parent_pass": 2, "run_id": "b"}, "B is a fork of A at pass 2"),
        ({"parent": "b", "parent_pass": 3}, {"run_id": "b"}, "A is a fork of B at pass 3"),
        ({"parent": "p"}, {"parent": "p", "run_id": "b"}, "both are forks of p"),
        ({}, {}, "the same run twice"),
        ({}, {"run_id": "b"}, ""),
        ({"run_id": ""}, {"run_id": ""}, ""),
    ],
)
def test_how_runs_descend_from_each_other_is_shown(left: dict[str, Any], right: dict[str, Any], words: str) -> None:
    assert relation(RunView(**{"run_id": "a", **left}), RunView(**{"run_id": "a", **right})) == words


def test_an_unreadable_run_is_reported_on_its_side() -> None:
    found = compare(ComparedRun("gone", problem="no journal 'gone.jsonl'"), run(finished_run()))
    assert found.rows[0] == CompareRow("#", "✖ no journal 'gone.jsonl'", "", style="high")
    assert ("#", "", "status    ✔ completed") in [(row.mark, row.left, row.right) for row in found.rows]
    assert found.differences == 0
    both = compare(ComparedRun("a", problem="no"), ComparedRun("b", problem="neither"))
    assert [(row.left, row.right) for row in both.rows if row.left] == [("✖ no", "✖ neither")]


def test_damage_and_what_a_view_leaves_out_are_reported_on_their_side() -> None:
    damaged = run(finished_run(), damage=["line 3 is not JSON", "line 9 is not JSON"])
    found = compare(damaged, ComparedRun("b", fold(finished_run().records), note="from its end alone"))
    assert [(row.left, row.right) for row in found.rows[:2]] == [
        ("⚠ 2 parts of the journal cannot be read: line 3 is not JSON", ""),
        ("", "from its end alone"),
    ]


@given(recordings)
def test_a_run_does_not_differ_from_itself(recording: Any) -> None:
    found = compare(read(recording), ComparedRun("b", fold(recording().records)))
    assert found.differences == 0
    assert not any(row.differs for row in found.rows)


@settings(max_examples=examples(40))
@given(recordings, recordings)
def test_foreign_text_is_made_visible_and_every_style_is_one_of_the_theme(left: Any, right: Any) -> None:
    for row in compare(read(left), read(right)).rows:
        assert "\x1b" not in row.left + row.right
        assert "\n" not in row.left + row.right
        assert {*row.style.split()} <= {*VARIABLES, "bold"}


@given(st.integers(0, 168), st.integers(0, 168))
def test_any_two_moments_of_a_run_compare(one: int, other: int) -> None:
    records = recorded()
    found = compare(ComparedRun("a", fold(records[:one])), ComparedRun("b", fold(records[:other])))
    assert found.differences == 0 or one != other


def test_current_activity_is_compared_only_if_a_run_is_live() -> None:
    def named_now(one: ComparedRun, other: ComparedRun) -> list[CompareRow]:
        return [row for row in compare(one, other).rows if row.left.startswith("now")]

    ended, live = read(converged_run), read(first_pass)
    assert named_now(ended, read(given_up_run)) == []
    assert [row.right for row in named_now(ended, live)] != []
    assert named_now(ended, ComparedRun("gone", problem="gone")) == []
