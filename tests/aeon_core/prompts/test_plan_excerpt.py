"""What of a long plan a prompt for one of its steps holds: as much for the thousandth step as for the fortieth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aeon_core import LLMResponse, Orchestrator, Plan, RunConfig
from aeon_core.entities import TTLState
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.prompts import AFTER, BEFORE, WHOLE, plan_excerpt, plan_section, results_section, run_sections

TTL = TTLState(limit=9, allocated=9, spent=0, remaining=9)


def plan(count: int, **changed: dict[str, Any]) -> Plan:
    steps = [{"step_id": f"s{n}", "description": f"do part {n}", "agent": "llm"} for n in range(1, count + 1)]
    for step in steps:
        step.update(changed.get(str(step["step_id"]), {}))
    return Plan.model_validate({"goal": "a goal", "steps": steps})


def lines(section: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in section.split("\n")]


def test_a_plan_of_ordinary_length_is_shown_whole() -> None:
    assert plan_excerpt(plan(WHOLE), "s1") is None
    assert plan_excerpt(plan(WHOLE + 1), None) is None
    assert plan_excerpt(plan(WHOLE + 1), "unknown") is None
    assert len(lines(plan_section(plan(WHOLE)))) == WHOLE + 1


def test_a_long_plan_shows_the_steps_around_the_current_one() -> None:
    around = plan_excerpt(plan(200), "s100")
    assert around == {f"s{number}" for number in range(100 - BEFORE, 100 + AFTER + 1)}


def test_a_long_plan_shows_what_the_step_refers_to() -> None:
    step = {"depends_on": ["s2", "s30"], "description": "Compare s3, s4.", "replaces": "s9"}
    around = plan_excerpt(plan(200, s150=step), "s150")
    assert around is not None
    assert {"s2", "s30", "s3", "s4", "s9"} <= around
    assert len(around) == BEFORE + AFTER + 1 + 5


def test_a_long_plan_shows_parents_and_substeps() -> None:
    def part(number: int, depth: int) -> dict[str, Any]:
        step: dict[str, Any] = {"step_id": f"p{number}", "description": "a part", "agent": "llm"}
        if number < 40:
            return step
        return {**step, "step_id": "deep", "subplan": subplan("deep", [{**step, "step_id": "leaf"}], depth + 1)}

    def subplan(parent: str, substeps: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        return {"parent_step_id": parent, "subplan_goal": "g", "substeps": substeps, "depth_level": depth}

    whole = plan(60, s5={"subplan": subplan("s5", [part(number, 1) for number in range(1, 41)], 1)})
    assert "s5" in (plan_excerpt(whole, "leaf") or ())
    assert {"leaf", "p1", "p39"} <= (plan_excerpt(whole, "s5") or frozenset())
    assert "leaf" not in (plan_excerpt(whole, "s60") or ())


def test_omitted_steps_are_counted() -> None:
    whole = plan(50)
    for step in whole.steps[:10]:
        step.status = "running"
        step.status = "complete" if step.step_id != "s4" else "failed"
    shown = lines(plan_section(whole, only={"s2", "s3", "s50"}))
    assert shown[1:] == [
        {"steps_left_out": {"complete": 1}},
        {"step_id": "s2", "description": "do part 2", "status": "complete", "agent": "llm"},
        {"step_id": "s3", "description": "do part 3", "status": "complete", "agent": "llm"},
        {"steps_left_out": {"failed": 1, "complete": 6, "pending": 39}},
        {"step_id": "s50", "description": "do part 50", "status": "pending", "agent": "llm"},
    ]
    outputs = {f"s{number}": {"text": "x"} for number in range(1, 11) if number != 4}
    told = lines(results_section(whole, outputs, {"s4": ["no"]}, only={"s2", "s3", "s50"}))
    assert told[0] == {"results_left_out": 8}
    assert [line["step_id"] for line in told[1:]] == ["s2", "s3"]


@given(st.integers(1, 120), st.data())
def test_every_step_is_shown_or_counted(count: int, data: st.DataObject) -> None:
    whole = plan(count)
    step = data.draw(st.sampled_from(whole.steps)).step_id
    told = lines(run_sections(whole, {}, {}, TTL, step)["plan"])
    shown = [line["step_id"] for line in told if "step_id" in line]
    assert step in shown
    assert len(shown) <= max(WHOLE, BEFORE + AFTER + 1)
    assert len(shown) + sum(sum(line["steps_left_out"].values()) for line in told if "steps_left_out" in line) == count


class Thinker(LLMAdapter):
    model = "scripted:thinker"

    def complete(self, request: LLMRequest) -> LLMResponse:
        return LLMResponse(text="a thought of some forty characters in all", usage=None)


def test_a_reasoning_prompt_does_not_grow_with_the_plan(tmp_path: Path) -> None:
    def bytes_a_cycle(count: int) -> float:
        path = tmp_path / f"{count}.jsonl"
        config = RunConfig(ttl=1000, single_pass=True, durability="off")
        Orchestrator(Thinker(), config=config, journal=path).run("a task", plan(count))
        reasoned = [line for line in path.read_bytes().splitlines() if b'"purpose":"answer"' not in line[:300]]
        return sum(map(len, reasoned)) / count

    assert bytes_a_cycle(160) < 1.15 * bytes_a_cycle(80)
