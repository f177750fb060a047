from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from aeon_core.journal.summary import RunSummary
from aeon_widgets.run_tree import DEEPEST, as_tree, family_of


def run(run_id: str, parent: str | None = None, status: str = "completed") -> RunSummary:
    return RunSummary(run_id, "add", status, "m", 1, 0.0, "2026-11-20T09:30:00Z", "x", parent, 1 if parent else None)


def drawn(runs: Sequence[RunSummary]) -> list[str]:
    return [f"{line.guide}{line.run.run_id}" for line in as_tree(runs)]


def test_runs_without_forks_keep_their_order() -> None:
    assert drawn([run("c"), run("b"), run("a")]) == ["c", "b", "a"]
    assert as_tree([]) == []


def test_forks_stand_under_their_parent_and_a_family_where_its_newest_run_would() -> None:
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


def test_ten_thousand_generations_are_drawn_no_deeper_than_there_is_room_for() -> None:
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
