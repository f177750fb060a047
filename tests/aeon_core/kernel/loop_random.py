"""Random replies for every purpose, and a run with them: what the properties of the loop are held against."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

from aeon_core import LLMError, LLMResponse, Orchestrator, RunConfig, RunResult, ToolRegistry
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.plan.refinement.actions import RefinementLedger
from aeon_core.task_profile import DIMENSIONS
from aeon_core.tools.registry import default_registry
from tests.fakes import ScriptedModel, add, call

Records = list[dict[str, Any]]
TASK = "calculate the sum of 5 and 10, then describe the result in a sentence"


class Broken:
    """Fails every call."""

    name = "broken"
    description = "Breaks."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    output_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def invoke(self, **_: Any) -> Any:
        raise RuntimeError("out of order")


class Counter:
    """Gives another result at every call; one that is not what it promised every third time."""

    name = "counter"
    description = "Counts its calls."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}
    output_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }

    def __init__(self) -> None:
        self.calls = 0

    def invoke(self) -> Any:
        self.calls += 1
        return {"count": self.calls} if self.calls % 3 else {"count": "many"}


def tools() -> ToolRegistry:
    registry = default_registry()
    registry.register(Broken())
    registry.register(Counter())
    return registry


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab{}\n", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)
errors = st.sampled_from(["refused", "bad request"]).map(lambda text: LLMError(text, status_code=400))
noise = st.one_of(
    st.text(max_size=30),
    json_values.map(json.dumps),
    st.just(LLMResponse(text='{"goal": "cut', stop_reason="max_tokens")),
    errors,
)
ids = st.sampled_from(["s1", "s2", "s1", "s2", "s3", "s1-r1", "s1.1", "plan", "nope"])
descriptions = st.sampled_from([
    "Add 5 and 10", "Describe the result of s1 in a sentence", "Do the things", "Improve it", "Divide 1 by 0",
    "Read the figures, sort them, add them, plot them and send them", "Say what the sum means for the reader",
])  # fmt: skip
works = st.sampled_from([
    add(5, 10), {"tool": "calculator"}, {"tool": "nope"}, {"agent": "llm"}, {"tool": "broken", "arguments": {}},
    {"tool": "counter", "arguments": {}}, {"tool": "calculator", "arguments": {"operation": "add", "a": "five"}}, {},
])  # fmt: skip
profiles = st.fixed_dictionaries({
    **{name: st.sampled_from(tiers) for name, tiers in DIMENSIONS.items()},
    "raw_inference": st.just("said"),
})  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """A plan of one to four steps, some of them with a subplan."""
    made = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        step = {"step_id": f"s{number}", "description": draw(descriptions), **draw(works)}
        if draw(st.integers(0, 4)) == 0:
            below = [{"step_id": f"s{number}.1", "description": draw(descriptions), **draw(works)}]
            step["subplan"] = {"parent_step_id": f"s{number}", "subplan_goal": "a part", "substeps": below}
        made.append(step)
    return {"goal": TASK, "steps": made}


@st.composite
def wire_steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Steps as a refinement asks for them, flat."""
    made = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        work = {"tool": None, "agent": None, "arguments": None, **draw(works)}
        parent = draw(st.none() | ids)
        made.append({"id": f"n{number}", "parent": parent, "description": draw(descriptions), "depends_on": [], **work})
    return made


actions = st.fixed_dictionaries({
    "type": st.sampled_from(
        ["step_modify", "step_add", "step_remove", "subplan_create", "step_mark_invalid", "plan_update", "x"]
    ),
    "target": ids,
    "changes": st.one_of(
        st.fixed_dictionaries({"description": descriptions}),
        st.fixed_dictionaries({"after": st.none() | ids, "goal": st.none() | st.just(TASK), "steps": wire_steps()}),
        st.builds(lambda text, work: {"description": text, **work}, descriptions, works),
        st.builds(lambda text, work: {"description": text, **work}, descriptions, works),
        json_values,
    ),
    "reason": st.text("abc ", max_size=5),
})  # fmt: skip
refinements = st.fixed_dictionaries({
    "actions": st.lists(actions, min_size=1, max_size=4),
    "follow_up_questions": st.lists(st.sampled_from(["Which sum?", "For whom?", ""]), max_size=2),
})  # fmt: skip
issues = st.fixed_dictionaries({
    "issue_id": st.sampled_from(["j1", "j2"]),
    "type": st.sampled_from(["specificity", "relevance", "consistency", "hallucination", "do_say_mismatch", "x"]),
    "severity": st.sampled_from(["high", "medium", "low"]),
    "description": st.sampled_from(["it is wrong", "it says nothing"]),
    "location": st.fixed_dictionaries({"artifact": st.just("results"), "step_id": st.none() | ids}),
    "proposed_repair": st.just("do it properly"),
})  # fmt: skip
reports = st.fixed_dictionaries({"issues": st.lists(issues, max_size=3)})
calls = st.integers(0, 3).map(lambda a: call("calculator", operation="divide", a=1, b=a))
texts = st.sampled_from(["The sum of 5 and 10 is 15.", "It is 16.", "I could not do it.", "15"])


def mostly(valid: st.SearchStrategy[Any], rate: int = 12) -> st.SearchStrategy[list[Any]]:
    """One to four replies: now and then noise or a refusal instead of a valid one."""
    one = st.integers(0, rate).flatmap(lambda number: valid if number else noise)
    return st.lists(one, min_size=1, max_size=4)


scripts = st.fixed_dictionaries({
    "profile": mostly(profiles, 20),
    "plan": mostly(plans(), 40),
    "tool_call": mostly(calls),
    "reason": mostly(texts, 30),
    "fallback": mostly(texts, 30),
    "repair": mostly(plans() | works.map(lambda work: {"step_id": "s1", "description": "Add 5 and 10", **work})),
    "judge": mostly(reports),
    "answer": mostly(texts, 40),
    "refine": mostly(refinements),
})  # fmt: skip


@dataclass
class Ran:
    """A run with random replies."""

    result: RunResult
    records: Records
    model: ScriptedModel
    ledger: RefinementLedger

    def of(self, kind: str) -> Records:
        return [record for record in self.records if record["type"] == kind]


def run(told: dict[str, Any], ttl: int, journal: Any = False) -> Ran:
    model, records = ScriptedModel(**told), Records()
    config = RunConfig(ttl=ttl, durability="off")
    orchestrator = Orchestrator(model, tools(), config=config, journal=journal, on_record=records.append)
    result = orchestrator.run(TASK)
    assert orchestrator.state is not None
    return Ran(result, records, model, orchestrator.state.ledger)


def replay(ran: Ran, ttl: int) -> tuple[RunResult, bool]:
    """Return what the same records give without a model, and whether all of them were gone over."""
    cursor = ReplayCursor(ran.records)
    config = RunConfig(ttl=ttl, durability="off")
    result = Orchestrator(None, tools(), config=config, recorded=cursor).run(TASK)
    return result, cursor.exhausted
