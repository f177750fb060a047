"""Runs and records made into spans and metrics, kept in memory."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aeon_core import Orchestrator, RunConfig
from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMResponse
from aeon_core.telemetry import otel_listener
from tests.fakes import ScriptedModel, add

TASK = "keep the zebra a secret"
ANSWER = "the zebra is hidden"
RUN = {"v": 1, "run": "r1"}


def stamp(second: int) -> str:
    return f"2026-11-20T09:30:{second:02d}.000250Z"


def nanoseconds(ts: str) -> int:
    return round(datetime.fromisoformat(ts).timestamp() * 1e6) * 1000


def reply(text: str, **more: Any) -> LLMResponse:
    usage = {"input_tokens": 100, "output_tokens": 7}
    return LLMResponse.model_validate(
        {"text": text, "usage": usage, "stop_reason": "end", "model": "test-2026", **more}
    )


def scripted() -> ScriptedModel:
    return ScriptedModel(
        reason=[LLMError("no room for a zebra", True, 0.0, status_code=429), reply("a zebra")],
        answer=reply(ANSWER, stop_reason="max_tokens"),
    )


class Collected:
    """A run's records beside the spans and metrics made of them."""

    def __init__(self, *, content: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.records: list[dict[str, Any]] = []
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.listener = otel_listener(content=content, tracer_provider=provider, meter_provider=meters)

    def take(self, *records: dict[str, Any]) -> Collected:
        for record in records:
            self.records.append(record)
            self.listener(record)
        return self

    def of_a_run(self, model: ScriptedModel | None = None, **config: Any) -> Collected:
        plan = {"goal": "g", "steps": [{"step_id": "s1", "description": "add", **add(31337, 2)}]}
        plan["steps"].append({"step_id": "s2", "description": "hide the zebra", "agent": "llm"})
        Orchestrator(
            model or scripted(),
            journal=False,
            config=RunConfig(single_pass=True, **config),
            on_record=lambda record: self.take(record),
        ).run(TASK, plan=plan if model is None else None)
        return self

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str, index: int = 0) -> ReadableSpan:
        return [span for span in self.spans if span.name == name][index]

    def found(self, **fields: Any) -> list[dict[str, Any]]:
        return [record for record in self.records if fields.items() <= record.items()]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = data.resource_metrics[0].scope_metrics[0].metrics
        return next(list(metric.data.data_points) for metric in metrics if metric.name == name)


def attributes(span: Any) -> dict[str, Any]:
    return {name: value for name, value in dict(span.attributes).items() if name != "gen_ai.conversation.id"}


def exported(collected: Collected) -> str:
    """All that would leave the machine, as text."""
    data = collected.reader.get_metrics_data()
    return "".join(span.to_json() for span in collected.spans) + (data.to_json() if data is not None else "")


def begun(second: int = 0, **more: Any) -> dict[str, Any]:
    return {**RUN, "type": "run_started", "ts": stamp(second), "model": "custom", "task": TASK, "config": {}, **more}


def finished(second: int = 59, **result: Any) -> dict[str, Any]:
    return {**RUN, "type": "run_finished", "ts": stamp(second), "result": {"status": "completed", **result}}


def called(state: str, second: int, **more: Any) -> dict[str, Any]:
    told = {"call_id": "c1", "attempt": 1, "purpose": "reason", "state": state, "pass": 2, "ts": stamp(second)}
    return {**RUN, "type": "llm", **told, **more}
