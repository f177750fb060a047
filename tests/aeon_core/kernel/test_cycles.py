"""The cycle log: exactly LogEntry, one a cycle, its size independent of the plan's (core FR-037 to FR-039)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.entities import LogEntry
from aeon_core.kernel.state import FULL_PLAN_STEPS
from tests.aeon_core.kernel.test_execution import of, run
from tests.fakes import ScriptedModel, add, steps

ENVELOPE = ["v", "seq", "ts", "run", "type"]


def test_a_cycle_is_exactly_a_log_entry_without_nulls() -> None:
    scripted = ScriptedModel(plan=steps(add(1, 1), {"tool": "nope"}), repair="no", fallback="so be it", answer="2")
    _, records = run(scripted)
    cycles = of(records, "cycle")
    assert [cycle["step_number"] for cycle in cycles] == [1, 2, 3, 4]
    for cycle in cycles:
        assert list(cycle)[:5] == ENVELOPE
        body = {key: value for key, value in cycle.items() if key not in ENVELOPE}
        assert set(body) == set(LogEntry.model_fields)
        assert all(value is not None for value in body.values())
        LogEntry.model_validate(body)
    assert cycles[2]["supervisor_actions"][1]["attempt_number"] == 2
    assert cycles[1]["llm_output"] == {}
    assert cycles[2]["llm_output"]["text"] == "so be it"


def test_each_cycle_holds_the_plan_at_its_start() -> None:
    _, records = run(ScriptedModel(plan=steps(add(1, 1), add(2, 2)), answer="x"))
    states = [[step["status"] for step in cycle["plan_state"]["steps"]] for cycle in of(records, "cycle")]
    assert states == [["pending"] * 2, ["pending"] * 2, ["complete", "pending"], ["complete"] * 2]


def test_a_cycle_that_fails_before_the_plan_is_recorded() -> None:
    _, records = run(ScriptedModel(plan="prose", repair="more prose"))
    [cycle] = of(records, "cycle")
    assert cycle["plan_state"] == {}
    assert cycle["errors"][0]["error_type"] == "SupervisorError"
    assert cycle["errors"][0]["unrecoverable"] is True


def resolve(cycles: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Fold the deltas to each cycle's statuses, as an outsider would."""
    resolved: list[dict[str, str]] = []
    by_seq: dict[int, dict[str, str]] = {}
    for cycle in cycles:
        state = cycle["plan_state"]
        if "since" in state:
            statuses = dict(by_seq[state["since"]])
            for step_id, fields in state["steps"].items():
                statuses[step_id] = fields.get("status", statuses[step_id])
        else:
            statuses = {step["step_id"]: step["status"] for step in state["steps"]}
        by_seq[cycle["seq"]] = statuses
        resolved.append(statuses)
    return resolved


@pytest.mark.parametrize("count", [FULL_PLAN_STEPS, FULL_PLAN_STEPS + 1, 100])
def test_deltas_add_up_to_the_plan_at_each_cycles_start(count: int) -> None:
    _, records = run(ScriptedModel(answer="x"), steps(*[add(n, n) for n in range(count)]))
    cycles = of(records, "cycle")
    whole = [index for index, cycle in enumerate(cycles) if "since" not in cycle["plan_state"]]
    assert whole == (list(range(count + 1)) if count <= FULL_PLAN_STEPS else [0, count])
    for index, statuses in enumerate(resolve(cycles)):
        assert list(statuses.values()) == ["complete"] * index + ["pending"] * (count - index)


def test_after_a_structural_change_a_long_plan_is_written_in_full() -> None:
    described = [add(n, n) for n in range(40)]
    described[5] = {"tool": "adder", "arguments": {"operation": "add", "a": 1, "b": 1}}
    repaired = {"step_id": "s6", "description": "do part 6", **add(1, 1)}
    _, records = run(ScriptedModel(answer="x", repair=repaired), steps(*described))
    cycles = of(records, "cycle")
    assert [index for index, cycle in enumerate(cycles) if "since" not in cycle["plan_state"]] == [0, 6]
    assert cycles[6]["plan_state"]["steps"][5]["tool"] == "calculator"


@pytest.mark.exhaustive
def test_a_record_costs_the_same_however_long_the_plan() -> None:
    def bytes_a_step(count: int) -> float:
        lines: list[bytes] = []
        run(ScriptedModel(answer="x"), steps(*[add(1, 1)] * count), on_line=lines.append)
        body = [line for line in lines if b'"type":"plan"' not in line and b'"type":"pass"' not in line]
        body = [line for line in body if b'"type":"llm"' not in line and b'"type":"run_finished"' not in line]
        return sum(map(len, body)) / count

    assert bytes_a_step(800) < 1.2 * bytes_a_step(100)
