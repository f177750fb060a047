"""A recorded run goes over its own lines again without a model or a tool (Decision 2 of the design)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core import LLMError, Orchestrator, RunConfig, tool
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.errors import ReplayMismatchError
from aeon_core.tools.registry import ToolRegistry, default_registry
from tests.aeon_core.kernel.test_execution import no_wait, of, run
from tests.fakes import ScriptedModel, add, call, steps

RUNS: list[tuple[str, dict[str, Any], Any]] = [
    ("tools", {"answer": "x"}, steps(add(1, 1), add(2, 2))),
    (
        "everything",
        {
            "plan": steps(add(1, 0), {"tool": "calculator"}, {"agent": "llm"}, {"tool": "nope"}),
            "tool_call": call("calculator", operation="divide", a=1, b=0),
            "reason": [LLMError("busy", True), "long " * 500],
            "repair": "no",
            "fallback": "as well as can be \ud800",
            "answer": "x",
        },
        None,
    ),
    ("down", {"plan": LLMError("down", True)}, None),
    ("expired", {"plan": steps({"agent": "llm"}, {"agent": "llm"}), "reason": "r", "answer": "a"}, None),
]


@pytest.mark.parametrize(("name", "scripts", "plan"), RUNS, ids=[name for name, _, _ in RUNS])
def test_a_replay_emits_the_same_records_and_ends_in_the_same_result(
    name: str, scripts: dict[str, Any], plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_wait(monkeypatch)
    ttl = 2 if name == "expired" else 50
    result, records = run(ScriptedModel(**scripts), json.loads(json.dumps(plan)), ttl=ttl)
    again = replay(records, ttl=ttl, plan=json.loads(json.dumps(plan)))
    assert again.model_dump(exclude={"run_id"}) == result.model_dump(exclude={"run_id"})


def replay(records: list[dict[str, Any]], *, ttl: int = 50, plan: Any = None) -> Any:
    cursor = ReplayCursor(records)
    orchestrator = Orchestrator(
        None, config=RunConfig(single_pass=True, ttl=ttl, durability="off"), recorded=cursor, tools=default_registry()
    )
    started = of(records, "run_started")[0]
    result = orchestrator.run(started["task"], plan)
    assert cursor.exhausted
    return result


def test_an_altered_outcome_is_reported_at_its_first_effect() -> None:
    plan = steps(add(1, 1))
    _, records = run(ScriptedModel(answer="x"), dict(plan))
    finished = next(r for r in of(records, "tool") if r["state"] == "finished")
    finished["result"] = {"result": 3}
    with pytest.raises(ReplayMismatchError, match=r"memory · value\.result was 2, is now 3"):
        replay(records, plan=dict(plan))


def test_fields_that_only_another_version_knows_are_ignored() -> None:
    plan = steps(add(1, 1), {"agent": "llm"})
    result, records = run(ScriptedModel(answer="x", reason="r"), json.loads(json.dumps(plan)))
    # What came from outside has a digest in the record of its pass.
    kinds = {record["type"] for record in records} - {"llm", "tool"}
    assert {"phase", "plan", "step", "memory", "cycle", "ttl", "pass"} <= kinds
    again = replay([record | {"zz_new": 1} if record["type"] in kinds else record for record in records], plan=plan)
    assert again.model_dump(exclude={"run_id"}) == result.model_dump(exclude={"run_id"})


def test_nothing_is_invoked_in_a_replay() -> None:
    calls: list[int] = []
    registry = ToolRegistry()

    @tool(effect="unsafe")
    def count() -> int:
        """Counts its calls."""
        calls.append(1)
        return len(calls)

    registry.register(count)
    plan = steps({"tool": "count", "arguments": {}})
    _, records = run(ScriptedModel(answer="x"), dict(plan), tools=registry)
    cursor = ReplayCursor(records)
    config = RunConfig(single_pass=True, durability="off")
    orchestrator = Orchestrator(None, tools=registry, config=config, recorded=cursor)
    result = orchestrator.run("a task", dict(plan))
    assert calls == [1]
    assert result.steps[0].output == {"result": 1}


def test_a_mismatch_names_the_record_and_shows_the_difference() -> None:
    _, records = run(ScriptedModel(plan=steps(add(1, 1)), answer="x"))
    from aeon_core.journal.records import MemoryRecord

    cursor = ReplayCursor(of(records, "memory"))
    with pytest.raises(ReplayMismatchError, match=r"memory · value\.result was 2, is now 7"):
        cursor.expect(MemoryRecord(key="s1", value={"result": 7}))
