from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aeon_core.journal.summary import RunSummary
from aeon_core.journal.view.model import RunView
from aeon_widgets.run_list import (
    DEEPEST,
    STATUS_CELLS,
    age,
    as_tree,
    cell,
    columns,
    cost,
    family_of,
    ordered,
    status_cell,
    task_cells,
    titles,
)
from aeon_widgets.run_preview import Kin, preview_blocks

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
        (364 * 86_400, "364 d"),
        (548 * 86_400, "1.5 y"),
    ],
)
def test_an_age_is_shown_in_its_largest_unit(seconds: int, told: str) -> None:
    assert age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == told


def test_an_invalid_timestamp_has_no_age() -> None:
    assert age("yesterday", NOW) == age("2026-11-20T09:30:00", NOW) == "?"


def test_a_small_cost_is_shown_with_more_digits() -> None:
    assert [cost(dollars) for dollars in (None, 0.0, 0.01234, 12.345)] == ["–", "$0.00", "$0.0123", "$12.35"]


SUMMARIES = st.builds(
    RunSummary,
    run_id=st.text(min_size=1),
    task=st.text(),
    status=st.sampled_from(["running", "converged", "not_converged", "odd \x1b[31m"]),
    model=st.text(),
    passes=st.integers(0, 10**9),
    cost_usd=st.none() | st.floats(0, 1e12),
    started=st.sampled_from(["2026-11-20T09:30:00Z", "no stamp", "0001-01-01T00:00:00Z"]),
    path=st.just("x"),
    completeness=st.none() | st.floats(0, 1),
    coherence=st.none() | st.floats(0, 1),
    waits_for=st.sampled_from(["", "pass", "unknown", "w" * 99]),
)


@given(SUMMARIES, st.integers(60, 250))
def test_every_cell_fills_its_column_exactly(run: RunSummary, width: int) -> None:
    shown = columns(width)
    for column in shown:
        assert cell_len(cell(column, run, NOW)) == column.cells
    assert cell_len(status_cell(run, "")[0]) == STATUS_CELLS
    assert STATUS_CELLS + task_cells(width) + sum(column.cells for column in shown) == width
    assert sum(cell_len(text) for _, text in titles(width, "cost")) == width


def test_a_run_that_ended_in_its_first_pass_has_no_pass() -> None:
    aborted = RunSummary("a", "", "aborted", "m", 0, 0.0, "", "x", completeness=0.0, coherence=1.0)
    shown = {each.name: cell(each, aborted, NOW).strip() for each in columns(120)}
    assert (shown["passes"], shown["scores"]) == ("–", "0.00 1.00")
    facts = [text.split() for _, text in preview_blocks(aborted, RunView(), Kin(), NOW)]
    assert ["passes", "–"] in facts


def test_the_task_fills_the_remaining_width() -> None:
    assert [task_cells(width) for width in (79, 101, 139, 199)] == [29, 25, 63, 99]
    assert [{"model", "cost"} <= {each.name for each in columns(width)} for width in (79, 101, 139)] == [
        False,
        True,
        True,
    ]


@given(st.lists(SUMMARIES), st.sampled_from(["cost", "scores"]))
def test_an_order_keeps_all_runs_with_the_live_ones_first(runs: list[RunSummary], order: str) -> None:
    shown = ordered(runs, order)
    assert sorted(map(id, shown)) == sorted(map(id, runs))
    live = [run.status == "running" for run in shown]
    assert live == sorted(live, reverse=True)


def test_sorting_uses_the_cost_and_the_weakest_score() -> None:
    first = RunSummary("a", "", "failed", "m", 1, 1.0, "", "x", completeness=0.9, coherence=0.1)
    second = RunSummary("b", "", "failed", "m", 1, 2.0, "", "x", completeness=0.3, coherence=0.3)
    third = RunSummary("c", "", "failed", "m", 1, None, "", "x")
    assert [run.run_id for run in ordered([third, first, second], "cost")] == ["b", "a", "c"]
    assert [run.run_id for run in ordered([third, first, second], "scores")] == ["b", "a", "c"]


def run(run_id: str, parent: str | None = None, status: str = "completed") -> RunSummary:
    return RunSummary(run_id, "add", status, "m", 1, 0.0, "2026-11-20T09:30:00Z", "x", parent, 1 if parent else None)


def drawn(runs: Sequence[RunSummary]) -> list[str]:
    return [f"{line.guide}{line.run.run_id}" for line in as_tree(runs)]


def test_runs_without_forks_keep_their_order() -> None:
    assert drawn([run("c"), run("b"), run("a")]) == ["c", "b", "a"]
    assert as_tree([]) == []


def test_forks_are_listed_under_their_parent_and_a_family_at_the_place_of_its_newest_run() -> None:
    runs = [run("f", "d"), run("e"), run("d", "a"), run("c", "a"), run("b"), run("a")]
    assert drawn(runs) == ["a", "├ d", "│ └ f", "└ c", "e", "b"]


def test_live_runs_come_first_with_their_family() -> None:
    runs = [run("d"), run("c", status="running"), run("b", "a", status="running"), run("a")]
    assert drawn(runs) == ["c", "a", "└ b", "d"]


def test_a_fork_without_its_parent_is_at_the_top_level() -> None:
    assert drawn([run("b", "gone"), run("a")]) == ["b", "a"]


def test_runs_that_descend_from_themselves_are_listed_once() -> None:
    assert drawn([run("c", "a"), run("b", "a"), run("a", "b")]) == ["c", "b", "└ a"]
    assert drawn([run("a", "a")]) == ["a"]


def test_ten_thousand_generations_are_indented_within_the_width() -> None:
    count = 10_000
    lines = as_tree([run(f"{n}", f"{n - 1}" if n else None) for n in range(count)])
    assert [line.run.run_id for line in lines] == [f"{n}" for n in range(count)]
    assert max(len(line.guide) for line in lines) == 2 * DEEPEST


@given(st.lists(st.integers(-1, 12), max_size=12), st.sets(st.integers(0, 11)))
def test_every_run_is_listed_once_and_after_the_parent_that_it_is_drawn_under(
    parents: list[int], live: set[int]
) -> None:
    runs = [
        run(str(n), str(parent) if parent >= 0 else None, "running" if n in live else "failed")
        for n, parent in enumerate(parents)
    ]
    lines = as_tree(runs)
    assert sorted(line.run.run_id for line in lines) == sorted(each.run_id for each in runs)
    for each in runs:
        family = {member.run_id for member in family_of(runs, each.run_id)}
        known = {member.run_id: member.parent for member in runs}
        assert each.run_id in family
        assert all(parent in family for member, parent in known.items() if member in family and parent in known)
        assert all(member in family for member, parent in known.items() if parent in family)
    seen: set[str | None] = set()
    for line in lines:
        assert bool(line.guide) <= (line.run.parent in seen)
        seen.add(line.run.run_id)
