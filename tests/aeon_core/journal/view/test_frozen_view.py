"""Views of one run at several of its records: what is folded in later is not seen in those that were frozen before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core.journal.view import reducer
from aeon_core.journal.view.incremental import FrozenView
from aeon_core.journal.view.model import LOG_LINES, RunView
from aeon_core.journal.view.reducer import fold
from tests.aeon_tui.passes import converged_run, first_pass, given_up_run, many_passes
from tests.aeon_tui.recordings import Recording, failed_run, finished_run, hostile_run
from tests.sampling import examples

RUNS = [converged_run, first_pass, given_up_run, many_passes, finished_run, failed_run, hostile_run]


def repeated_run() -> Recording:
    """Return a run whose model call is tried twice, and whose tool call begins again under its id."""
    run = Recording()
    run.plan({"step_id": "s1", "description": "add", "tool": "calculator"})
    run.ask("reason", "s1")
    run.answer("reason", "", "s1", error={"type": "overloaded"}, retry_in_s=1.0)
    run.records.append({**run.records[-2], "seq": len(run.records), "attempt": 2})
    run.records.append({**run.records[-2], "seq": len(run.records), "attempt": 2, "error": None})
    for result in ({"sum": 14}, {"sum": 15}):
        run.tool("s1", "calculator", {"a": 5, "b": 10}, result)
    run.finish("completed")
    return run


def log_run(lines: int) -> Recording:
    """Return a run with a log of so many lines and a few more."""
    run = Recording()
    for number in range(lines):
        run.add("memory", key=f"k{number % 7}", value={"n": number})
    return run


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("run", [*RUNS, repeated_run], ids=lambda run: run.__name__)
def test_no_record_changes_a_view_that_was_frozen_before(run: Callable[[], Recording], packed: bool) -> None:
    records = run().records
    view, frozen = RunView(), list[FrozenView]()
    for record in records:
        reducer.apply(view, record)
        before = frozen[-1] if frozen else None
        frozen.append(FrozenView(view))
        if packed:
            frozen[-1].pack(before)
    for number, seen in enumerate(frozen, 1):
        assert seen.view() == fold(records[:number])
    assert view == fold(records)


@settings(max_examples=examples(40), deadline=None)
@example(at=5, run=repeated_run)
@given(at=st.integers(0, 60), run=st.sampled_from(RUNS))
def test_two_views_diverge_independently(at: int, run: Callable[[], Recording]) -> None:
    records = run().records
    frozen = FrozenView(fold(records[:at]))
    one, other = frozen.view(), frozen.view()
    for record in records[at:]:
        reducer.apply(one, record)
    assert (one, other, frozen.view()) == (fold(records), fold(records[:at]), fold(records[:at]))
    for record in records[at:]:
        reducer.apply(other, record)
    assert (one, other, frozen.view()) == (fold(records), fold(records), fold(records[:at]))


def test_a_call_is_the_same_object_everywhere() -> None:
    records = finished_run().records
    for number in range(len(records)):
        view = FrozenView(fold(records[:number])).view()
        calls = {id(call) for attempts in view.calls.values() for call in attempts}
        assert {id(call) for call in view.loose_calls} <= calls
        assert {id(call) for step in view.steps.values() for call in step.calls} <= calls
        tools = {id(call) for call in view.tool_calls.values()}
        assert {id(call) for step in view.steps.values() for call in step.tool_calls} <= tools


@pytest.mark.parametrize("apart", [100, LOG_LINES - 200, LOG_LINES + 700])
def test_packed_logs_have_all_their_lines_and_hold_each_once(apart: int) -> None:
    records = log_run(3 * LOG_LINES).records
    view, kept = RunView(), list[tuple[int, FrozenView]]()
    for number, record in enumerate(records, 1):
        reducer.apply(view, record)
        if number % apart == 0:
            frozen = FrozenView(view)
            frozen.pack(kept[-1][1] if kept else None)
            kept.append((number, frozen))
    for number, frozen in kept[:: max(1, len(kept) // 5)]:
        assert frozen.view() == fold(records[:number])
    packed = {id(data): count for _, frozen in kept for count, data in frozen._packed}
    assert sum(packed.values()) <= len(records)


def test_a_frozen_view_does_not_grow_with_calls() -> None:
    def weight(calls: int) -> int:
        run = Recording()
        run.plan({"step_id": "s1", "description": "add"})
        for _ in range(calls):
            run.ask("reason", "s1")
            run.answer("reason", "x", "s1")
        frozen = FrozenView(fold(run.records))
        before = FrozenView(fold(run.records[:-10]))
        for each in (before, frozen):
            each.pack(before if each is frozen else None)
        return frozen.weight

    few: Any = weight(10)
    assert weight(1_000) < 1.2 * few
