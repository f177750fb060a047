"""Views that have parts in common: what is folded into one is not seen in the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView, StepView
from aeon_core.journal.view.reducer import fold
from aeon_core.journal.view.snapshots import branch, detached, own, weight
from tests.aeon_tui.passes import converged_run, first_pass, given_up_run, many_passes
from tests.aeon_tui.recordings import Recording, failed_run, finished_run, hostile_run
from tests.sampling import examples

RUNS = [converged_run, first_pass, given_up_run, many_passes, finished_run, failed_run, hostile_run]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_no_record_changes_a_view_that_was_branched_off_before(run: Callable[[], Recording]) -> None:
    records = run().records
    view, branches = RunView(), []
    for record in records:
        own(view, record)
        reducer.apply(view, record)
        branches.append(branch(view))
    for number, seen in enumerate(branches, 1):
        assert seen == fold(records[:number])
    assert view == fold(records)


@settings(max_examples=examples(40), deadline=None)
@given(at=st.integers(0, 60), run=st.sampled_from(RUNS))
def test_two_branches_go_different_ways(at: int, run: Callable[[], Recording]) -> None:
    records = run().records
    base = fold(records[:at])
    one, other = branch(base), branch(base)
    kept, owned = fold(records[:at]), set[tuple[str, str]]()
    for record in records[at:]:
        own(one, record, owned)
        reducer.apply(one, record)
    assert (one, other, base) == (fold(records), kept, kept)
    alone = detached(other)
    for record in records[at:]:
        reducer.apply(alone, record)
    assert (alone, other, base) == (fold(records), kept, kept)


def test_a_call_is_one_and_the_same_wherever_it_is() -> None:
    records = finished_run().records
    view = RunView()
    for record in records:
        own(view, record)
        reducer.apply(view, record)
    calls = {id(call) for attempts in view.calls.values() for call in attempts}
    assert {id(call) for call in view.loose_calls} <= calls
    assert {id(call) for step in view.steps.values() for call in step.calls} <= calls
    tools = {id(call) for call in view.tool_calls.values()}
    assert {id(call) for step in view.steps.values() for call in step.tool_calls} <= tools


def test_the_weight_of_a_view_counts_the_calls_of_its_steps() -> None:
    light, heavy = RunView(), RunView()
    light.steps["s1"], heavy.steps["s1"] = StepView("s1", ""), StepView("s1", "")
    heavy.steps["s1"].tool_calls = [None] * 1_000  # type: ignore[list-item]  # what they are weighs nothing
    assert weight(heavy) - weight(light) >= 8_000
