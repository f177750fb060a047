"""Whatever a model replies, a run ends with a result, a whole journal, and a TTL within its bounds."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon_core import LLMError, LLMResponse, Orchestrator, Plan, RunConfig
from aeon_core.entities import LogEntry
from aeon_core.journal.records import RECORD
from tests.aeon_core.kernel.test_execution import of, run
from tests.fakes import ScriptedModel, add, call, steps
from tests.sampling import examples, sample

HOSTILE = [
    "[bold]x[/bold] [/] [@click=app.quit]quit[/]",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "nul \x00 and \ud800 lone \udfff",
    "[" * 5000,
    '{"a":' * 5000,
    '{"goal": NaN, "steps": Infinity}',
    "```json\n{}\n```",
    '"\\ud800"',
    "‮right to left‬",
    "",
    "null",
    "9" * 5000,
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
texts = st.text(max_size=60) | st.sampled_from(HOSTILE) | json_values.map(lambda value: json.dumps(value))
plans = st.lists(
    st.sampled_from([add(1, 1), {"tool": "nope"}, {"agent": "llm"}, {"tool": "calculator"}, {}]), min_size=1, max_size=5
).map(lambda described: json.dumps(steps(*described)))
replies = st.one_of(
    texts,
    texts.map(lambda text: LLMResponse(text=text, stop_reason="max_tokens")),
    st.builds(lambda a: call("calculator", operation="add", a=a, b=1), json_values),
    st.just(LLMError("refused", status_code=401)),
    st.just(LLMError("bad request")),
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(
    plan=plans | replies,
    replies=st.lists(replies, min_size=6, max_size=6),
    ttl=st.integers(0, 8),
)
def test_any_replies_end_in_a_sound_result(plan: Any, replies: list[Any], ttl: int) -> None:
    names = ("tool_call", "reason", "fallback", "repair", "answer")
    scripted = ScriptedModel(plan=plan, **dict(zip(names, replies, strict=False)))
    lines: list[bytes] = []
    orchestrator = Orchestrator(
        scripted, config=RunConfig(single_pass=True, ttl=ttl, durability="off"), journal=False, on_line=lines.append
    )
    result = orchestrator.run("a task")
    assert 0 <= result.ttl.remaining <= ttl
    assert result.ttl.spent + result.ttl.remaining == result.ttl.allocated == ttl
    records = [json.loads(line) for line in lines]
    assert [record["seq"] for record in records] == list(range(len(records)))
    for record in records:
        assert RECORD.validate_python(record).tag == record["type"]
    assert records[-1]["type"] == "run_finished"
    assert records[-1]["result"] == json.loads(result.model_dump_json())
    cycles = of(records, "cycle")
    assert [cycle["step_number"] for cycle in cycles] == list(range(1, len(cycles) + 1))
    for cycle in cycles:
        LogEntry.model_validate({key: cycle[key] for key in LogEntry.model_fields})
    for record in of(records, "plan"):
        Plan.model_validate(record["plan"])
    charged = [record for record in of(records, "llm") if record["state"] == "finished" and "response" in record]
    asked_again = sum(len(cycle["supervisor_actions"]) for cycle in cycles)
    own = sum(1 for record in charged if record["purpose"] != "repair")
    assert own - asked_again <= result.ttl.spent == sum(1 for cycle in cycles if cycle["llm_output"]) <= own


@pytest.mark.parametrize(
    "text", sample([*HOSTILE, "x" * 5_000_000], lambda text: text in HOSTILE[::4]), ids=lambda text: repr(text[:12])
)
def test_hostile_text_everywhere_is_harmless(text: str) -> None:
    class Mirror:
        name = "mirror"
        description = "Gives back."
        input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
        output_schema: ClassVar[dict[str, Any]] = {"type": "object"}

        def invoke(self, **_: Any) -> Any:
            return {"seen": text, text[:100]: [text]}

    from aeon_core.tools.registry import ToolRegistry

    registry = ToolRegistry()
    registry.register(Mirror())
    scripted = ScriptedModel(reason=text or "x", answer=text or "x")
    lines: list[bytes] = []
    result, records = run(
        scripted,
        steps({"tool": "mirror", "arguments": {"a": text.encode("utf-8", "replace").decode()}}, {"agent": "llm"}),
        task=text + "!",
        tools=registry,
        on_line=lines.append,
    )
    assert result.status == "completed"
    for line in lines:
        json.loads(line.decode("utf-8"))
    assert of(records, "run_finished")


def test_a_tool_result_nested_too_deeply_fails_its_step_only() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]

    class Deep:
        name = "deep"
        description = "Digs."
        input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
        output_schema: ClassVar[dict[str, Any]] = {}

        def invoke(self, **_: Any) -> Any:
            return {"value": deep}

    from aeon_core.tools.registry import ToolRegistry

    registry = ToolRegistry()
    registry.register(Deep())
    result, _ = run(ScriptedModel(answer="x"), steps({"tool": "deep", "arguments": {}}), tools=registry)
    assert result.steps[0].status == "failed"
    assert "nested" in result.steps[0].errors[0]
