"""Circles of dependencies: one for each group, none where there is none, in linear time."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.validation.semantic.circles import circles


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({"a": [], "b": ["a"]}, []),
        ({"a": ["a"]}, [["a"]]),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, [["a", "b", "c"]]),
        ({"a": ["b"], "b": ["b", "c"], "c": []}, [["b"]]),
        ({"a": ["b", "d"], "b": ["a"], "c": ["d"], "d": ["c", "a"]}, [["a", "b"]]),
        ({"a": ["b"], "b": ["a"], "c": ["d", "a"], "d": ["c"]}, [["a", "b"], ["c", "d"]]),
    ],
)
def test_each_group_gives_its_shortest_circle(needs: dict[str, list[str]], expected: list[list[str]]) -> None:
    assert circles(needs) == expected


@given(
    st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=4), min_size=n, max_size=n))
)
def test_a_circle_is_found_where_there_is_one_and_each_leads_back(edges: list[list[int]]) -> None:
    needs = {f"s{n}": [f"s{needed}" for needed in needed_by] for n, needed_by in enumerate(edges)}
    found = circles(needs)
    for circle in found:
        assert len(set(circle)) == len(circle)
        assert all(needed in needs[member] for member, needed in zip(circle, [*circle[1:], circle[0]], strict=True))
    try:
        TopologicalSorter(needs).prepare()
        assert found == []
    except CycleError:
        assert found


def test_a_long_circle_needs_no_recursion() -> None:
    needs = {f"s{n}": [f"s{(n + 1) % 50_000}"] for n in range(50_000)}
    assert [len(circle) for circle in circles(needs)] == [50_000]
