"""Which call a run waits for, for how long, and how fast its reply comes."""

from __future__ import annotations

from aeon_core.journal.view.reducer import fold
from aeon_widgets.call_rows import SPINNER, Activity, running_call
from tests.aeon_tui.passes import Passes, first_pass, second_pass, step
from tests.aeon_tui.recordings import live_run


def test_the_pending_call_is_shown_with_its_seconds_and_speed() -> None:
    run = first_pass()
    run.ask("refine")
    view = fold(run.records)
    found = running_call(view, view.loose_calls[-1].started, 12.3)
    assert found == Activity(None, "refine", 0.0, 12.3)
    assert Activity(None, "refine", 4.9, 12.3).words() == "refine · 12 tokens/s"
    assert (Activity(None, "refine", 4.9).words(), Activity(None, "refine", 4.9).time) == ("refine", "4 s")
    again = Activity(None, "refine", 4.9, 12.3, attempt=2)
    assert (again.words(), again.words(named=False)) == ("refine attempt 2 · 12 tokens/s", "attempt 2 · 12 tokens/s")
    assert Activity(None, "refine", 4.9).words(named=False) == "", (
        "what is beside it names it, and nothing else is known"
    )
    assert Activity(None, "x", 0.0).spinner == SPINNER[0] != Activity(None, "x", 0.3).spinner


def test_a_step_waits_only_for_its_own_call() -> None:
    found = running_call(fold(second_pass().records), "2026-11-20T09:40:00Z", None)
    assert found is not None
    assert (found.step_id, found.name, found.tokens_per_second) == ("s3.1", "reason", None)
    assert found.seconds > 60
    assert running_call(fold(first_pass().records), "2026-11-20T09:40:00Z", None) is None


def test_a_tool_call_comes_before_the_model() -> None:
    run = Passes()
    run.plan(step("s1", "Run it"))
    run.step("s1", "running")
    started = {
        "state": "started",
        "pass": 1,
        "step_id": "s1",
        "tool_name": "shell",
        "arguments": {},
        "effect": "unsafe",
    }
    run.add("tool", call_id="t1", **started)
    found = running_call(fold(run.records), run.records[-1]["ts"], 5.0)
    assert found == Activity("s1", "shell", 0.0)
    assert running_call(fold(live_run().records), "no stamp", None) is not None
