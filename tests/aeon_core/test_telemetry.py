"""Real runs as spans and metrics: names, parents, attributes and times, and nothing of what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from aeon_core.errors import LLMError
from tests.aeon_core.telemetry_collected import ANSWER, TASK, Collected, attributes, exported, nanoseconds
from tests.fakes import ScriptedModel


@pytest.fixture(scope="module", autouse=True)
def _no_wait() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aeon_core.effects.record_stream.RecordStream.wait", lambda self, seconds: None)
        yield


@pytest.fixture(scope="module")
def ran(_no_wait: None) -> Collected:
    return Collected().of_a_run()


def test_a_run_is_one_trace_of_calls_under_its_own_span(ran: Collected) -> None:
    assert [(span.name, span.kind) for span in ran.spans] == [
        ("execute_tool calculator", SpanKind.INTERNAL),
        ("chat test", SpanKind.CLIENT),
        ("chat test", SpanKind.CLIENT),
        ("chat test", SpanKind.CLIENT),
        ("invoke_agent aeon", SpanKind.INTERNAL),
    ]
    root = ran.spans[-1]
    assert root.parent is None
    assert {span.parent.span_id for span in ran.spans[:-1] if span.parent} == {root.context.span_id}
    assert len(ran.spans[:-1]) == sum(span.parent is not None for span in ran.spans)
    assert {span.context.trace_id for span in ran.spans} == {root.context.trace_id}
    assert {dict(span.attributes or {})["gen_ai.conversation.id"] for span in ran.spans} == {ran.records[0]["run"]}


def test_spans_have_the_records_own_times(ran: Collected) -> None:
    root, tool = ran.spans[-1], ran.span("execute_tool calculator")
    assert (root.start_time, root.end_time) == tuple(nanoseconds(ran.records[at]["ts"]) for at in (0, -1))
    told = [nanoseconds(record["ts"]) for record in ran.found(type="tool")]
    assert [tool.start_time, tool.end_time] == told
    told = [nanoseconds(record["ts"]) for record in ran.found(type="llm", purpose="answer")]
    assert [ran.span("chat test", 2).start_time, ran.span("chat test", 2).end_time] == told


def test_the_runs_span_has_its_status(ran: Collected) -> None:
    result = ran.records[-1]["result"]
    assert attributes(ran.spans[-1]) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "aeon",
        "gen_ai.agent.version": ran.records[0]["versions"]["aeon"],
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
        "aeon.simulated": False,
        "aeon.status": "completed",
        "aeon.converged": False,
        "aeon.passes": 1,
        "aeon.ttl.spent": result["ttl"]["spent"],
        "aeon.ttl.remaining": result["ttl"]["remaining"],
        "gen_ai.usage.input_tokens": 200,
        "gen_ai.usage.output_tokens": 14,
    }
    assert ran.spans[-1].status.status_code is StatusCode.UNSET


def test_a_reply_has_its_tokens_model_and_reason(ran: Collected) -> None:
    assert attributes(ran.span("chat test", 2)) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
        "gen_ai.request.max_tokens": 4096,
        "gen_ai.output.type": "text",
        "gen_ai.response.model": "test-2026",
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "aeon.purpose": "answer",
        "aeon.call_id": ran.found(type="llm", purpose="answer")[0]["call_id"],
        "aeon.attempt": 1,
        "aeon.pass": 1,
        "aeon.ttl.remaining": ran.found(type="ttl")[-2]["remaining"],
    }


def test_a_failed_attempt_is_a_span_of_its_own(ran: Collected) -> None:
    failed, repeated = ran.span("chat test", 0), ran.span("chat test", 1)
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)
    told = attributes(failed)
    assert (told["error.type"], told["aeon.attempt"], told["aeon.step_id"]) == ("429", 1, "s2")
    assert "aeon.retry_in_s" in told
    assert "gen_ai.usage.input_tokens" not in told
    assert repeated.status.status_code is StatusCode.UNSET
    assert attributes(repeated)["aeon.attempt"] == 2


def test_a_tool_call_has_its_name_id_and_place(ran: Collected) -> None:
    assert attributes(ran.span("execute_tool calculator")) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "calculator",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": ran.found(type="tool")[0]["call_id"],
        "aeon.effect": "pure",
        "aeon.pass": 1,
        "aeon.step_id": "s1",
        "aeon.ttl.remaining": 50,
    }


def test_calls_are_measured(ran: Collected) -> None:
    base = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "test"}
    replied = {**base, "gen_ai.response.model": "test-2026"}
    tokens = {point.attributes["gen_ai.token.type"]: point for point in ran.points("gen_ai.client.token.usage")}
    assert {kind: (point.sum, point.count) for kind, point in tokens.items()} == {"input": (200, 2), "output": (14, 2)}
    assert dict(tokens["input"].attributes) == {**replied, "gen_ai.token.type": "input"}
    assert tokens["input"].explicit_bounds[:4] == (1, 4, 16, 64)
    durations = ran.points("gen_ai.client.operation.duration")
    assert sorted(point.count for point in durations) == [1, 2]
    assert [dict(point.attributes) for point in durations if point.count == 1] == [{**base, "error.type": "429"}]
    took = sum(record["latency_ms"] for record in ran.found(type="llm", state="finished")) / 1000
    assert sum(point.sum for point in durations) == pytest.approx(took)


def test_no_content_is_exported_by_default(ran: Collected) -> None:
    for said in ("zebra", 'operation": "add', "Aeon reason", "do part", "hidden"):
        assert said not in exported(ran)


def test_content_is_exported_on_request() -> None:
    told = Collected(content=True).of_a_run()
    root = attributes(told.spans[-1])
    assert json.loads(root["gen_ai.input.messages"]) == [{"role": "user", "parts": [{"type": "text", "content": TASK}]}]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    assert json.loads(root["gen_ai.output.messages"]) == answered
    chat = attributes(told.span("chat test", 2))
    request = told.found(type="llm", purpose="answer")[0]["request"]
    assert json.loads(chat["gen_ai.system_instructions"]) == [{"type": "text", "content": request["system"]}]
    assert json.loads(chat["gen_ai.input.messages"])[0]["parts"][0]["content"] == request["messages"][0]["content"]
    assert json.loads(chat["gen_ai.output.messages"]) == [{**answered[0], "finish_reason": "length"}]
    tool = attributes(told.span("execute_tool calculator"))
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"operation": "add", "a": 31337, "b": 2}
    assert json.loads(tool["gen_ai.tool.call.result"]) == {"result": 31339}
    assert told.span("chat test", 0).status.description == "no room for a zebra"


def test_a_run_that_failed_is_an_error() -> None:
    refused = Collected().of_a_run(ScriptedModel(plan=LLMError("bad key", status_code=401)))
    root = refused.spans[-1]
    assert root.status.status_code is StatusCode.ERROR
    assert (attributes(root)["aeon.status"], attributes(root)["error.type"]) == ("failed", "401")
