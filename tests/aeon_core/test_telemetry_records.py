"""Single records as spans and events, and those of a run that was cut off."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from aeon_core.installation import MissingExtraError
from aeon_core.telemetry import OtelListener, otel_listener
from tests.aeon_core.telemetry_collected import (
    RUN,
    Collected,
    attributes,
    begun,
    called,
    exported,
    finished,
    nanoseconds,
    stamp,
)


def test_the_server_is_named_if_given() -> None:
    started = {**begun(), "model": "openai:gpt-4o", "config": {"base_url": "http://u:p@box.local:8000/v1"}}
    root = Collected().take(started, finished()).spans[-1]
    told = attributes(root)
    assert (told["server.address"], told["server.port"]) == ("box.local", 8000)
    assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == ("openai", "gpt-4o")
    assert "u:p" not in root.to_json()
    on_aws = Collected().take({**begun(), "model": "bedrock:us.amazon.nova-pro-v1:0"}, finished()).spans[-1]
    assert attributes(on_aws)["gen_ai.provider.name"] == "aws.bedrock"
    assert attributes(on_aws)["gen_ai.request.model"] == "us.amazon.nova-pro-v1:0"


def test_costs_caches_and_the_model_that_took_over_are_reported() -> None:
    usage = {"input_tokens": 9, "output_tokens": 2, "cache_read_tokens": 4, "cache_write_tokens": 3}
    spans = (
        Collected()
        .take(
            begun(),
            called("started", 1, model="anthropic:claude-haiku-4-5", reserved_usd=0.25, request={"max_tokens": 9}),
            called("finished", 3, response={"text": "x"}, usage=usage, cost_usd=0.01),
            finished(cost_usd=0.01),
        )
        .spans
    )
    told = attributes(spans[0])
    assert spans[0].name == "chat claude-haiku-4-5"
    assert (told["gen_ai.provider.name"], told["aeon.reserved_usd"], told["aeon.cost_usd"]) == ("anthropic", 0.25, 0.01)
    assert {name: value for name, value in told.items() if ".usage." in name} == {
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_creation.input_tokens": 3,
    }
    assert attributes(spans[1])["aeon.cost_usd"] == 0.01


def test_assessments_are_evaluation_results_of_the_run() -> None:
    assessment = {
        "type": "convergence",
        "pass": 2,
        "converged": False,
        "completeness_score": 0.5,
        "coherence_score": 1,
        "consistency_status": {"plan": True, "answer": False},
        "additional_scores": {"tone": 0.25},
        "reason_codes": ["incomplete", "inconsistent"],
    }
    root = Collected().take(begun(), {**RUN, **assessment, "ts": stamp(5)}, finished()).spans[-1]
    assert {event.name for event in root.events} == {"gen_ai.evaluation.result"}
    assert {event.timestamp for event in root.events} == {nanoseconds(stamp(5))}
    told = [dict(event.attributes or {}) for event in root.events]
    assert {event.pop("aeon.pass") for event in told} == {2}
    name, value, label = (f"gen_ai.evaluation.{key}" for key in ("name", "score.value", "score.label"))
    verdict = {name: "convergence", label: "not_converged", "gen_ai.evaluation.explanation": "incomplete, inconsistent"}
    assert told == [
        {name: "completeness", value: 0.5},
        {name: "coherence", value: 1.0},
        {name: "tone", value: 0.25},
        {name: "consistency", label: "inconsistent"},
        verdict,
    ]


def test_repairs_notices_and_questions_are_events_of_the_run() -> None:
    place = {"pass": 1, "step_id": "s1"}
    repair = {"action_type": "json_repair", "method": "llm", "attempt_number": 1, "repaired_output": {"zebra": 1}}
    notice = {"kind": "budget_warning", "message": "the zebra is nearly spent"}
    asked = {"point": "tool", "state": "asked", "subject": {"zebra": 1}, "digest": "d"}
    records = [
        {**RUN, "ts": stamp(second), "type": kind, **place, **fields}
        for second, (kind, fields) in enumerate([("supervisor", repair), ("notice", notice), ("approval", asked)], 1)
    ]
    collected = Collected().take(begun(), *records, finished())
    root = collected.spans[-1]
    here = {"aeon.pass": 1, "aeon.step_id": "s1"}
    assert [(event.name, dict(event.attributes or {})) for event in root.events] == [
        (
            "aeon.supervisor",
            {
                "aeon.supervisor.action_type": "json_repair",
                "aeon.supervisor.method": "llm",
                "aeon.supervisor.attempt_number": 1,
                "aeon.supervisor.repaired": True,
                **here,
            },
        ),
        ("aeon.notice", {"aeon.notice.kind": "budget_warning", **here}),
        ("aeon.approval", {"aeon.approval.point": "tool", "aeon.approval.state": "asked", **here}),
    ]
    assert "zebra" not in exported(collected)


def test_close_ends_unfinished_spans() -> None:
    collected = Collected().take(begun(), called("started", 3))
    assert collected.spans == []
    collected.listener.close()
    collected.listener.close()
    chat, root = collected.spans
    assert [span.status.status_code for span in (chat, root)] == [StatusCode.ERROR] * 2
    assert [attributes(span)["aeon.unfinished"] for span in (chat, root)] == [True, True]
    assert {chat.end_time, root.end_time} == {nanoseconds(stamp(3))}


def test_a_call_without_an_outcome_ends_with_the_run() -> None:
    collected = Collected().take(begun(), called("started", 3), finished(9, error={"error_type": "RunAborted"}))
    chat, root = collected.spans
    assert (chat.end_time, root.end_time) == (nanoseconds(stamp(9)),) * 2
    assert attributes(root)["error.type"] == "RunAborted"


def test_every_part_of_a_run_is_a_separate_span() -> None:
    resumed = {**RUN, "type": "run_resumed", "ts": stamp(20), "options": {"model": ["openai:m", "openai:n"]}}
    first, second, third = (
        Collected().take(begun(), finished(9), called("started", 10), resumed, begun(25), finished(30)).spans
    )
    assert (second.end_time, third.start_time) == (nanoseconds(stamp(20)), nanoseconds(stamp(25)))
    assert (first.start_time, second.start_time) == (nanoseconds(stamp(0)), nanoseconds(stamp(20)))
    assert "aeon.resumed" not in attributes(first)
    assert (attributes(second)["aeon.resumed"], attributes(second)["gen_ai.request.model"]) == (True, "m")


def test_a_telemetry_failure_is_logged_once_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    collected = Collected()
    with caplog.at_level(logging.ERROR, "aeon"):
        collected.take(begun(), {"type": "llm"}, {}, called("finished", 4), finished())
    said = [record.message.partition(";")[0] for record in caplog.records if record.name == "aeon"]
    assert said == ["telemetry failed"]
    assert [span.name for span in collected.spans] == ["invoke_agent aeon"]


@pytest.mark.parametrize("package", ["opentelemetry.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"])
def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aeon-tui\[otel\]'"):
        otel_listener()


def test_the_listener_can_be_passed_to_a_run() -> None:
    listener: Callable[[dict[str, Any]], None] = Collected().listener
    assert isinstance(listener, OtelListener)
