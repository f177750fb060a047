"""A run as OpenTelemetry spans and metrics, built from the journal's records as they are written.

One span for the run, one for each attempt of a model call and one for each tool call, with the times in the records. A
failure here never affects the run.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aeon_core.errors import UsageError
from aeon_core.installation import missing_extra
from aeon_core.llm import asks_a_server

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider
    from opentelemetry.sdk.trace import TracerProvider as SDKTracerProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider

AGENT = "aeon"
SERVICE = "aeon-tui"
FLUSH_SECONDS = 2.0
"""The longest that the end of a run waits for a collector."""

Record = Mapping[str, Any]
Fields = dict[str, Any]

logger: logging.Logger = logging.getLogger("aeon")

_SCOPE = "aeon"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOKEN_BUCKETS = [4.0**power for power in range(14)]
_SECOND_BUCKETS = [0.01 * 2.0**power for power in range(14)]
_PROVIDERS = {"bedrock": "aws.bedrock", "llama-cpp": "llama_cpp"}
_FINISH_REASONS = {"end": "stop", "max_tokens": "length", "tool_use": "tool_call", "refusal": "content_filter"}

# Attributes by the place in a record that they come from.
_USAGE = {
    "gen_ai.usage.input_tokens": "usage.input_tokens",
    "gen_ai.usage.output_tokens": "usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "usage.cache_read_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "usage.cache_write_tokens",
}
_PLACE = {"aeon.pass": "pass", "aeon.step_id": "step_id"}
_RUN = {
    "gen_ai.agent.version": "versions.aeon",
    "gen_ai.conversation.id": "run",
    "aeon.simulated": "simulated",
}
_RESULT = {
    "aeon.status": "status",
    "aeon.converged": "converged",
    "aeon.passes": "passes",
    "aeon.cost_usd": "cost_usd",
    "aeon.ttl.spent": "ttl.spent",
    "aeon.ttl.remaining": "ttl.remaining",
    **_USAGE,
}
_REQUEST = {
    "gen_ai.conversation.id": "run",
    "gen_ai.request.max_tokens": "request.max_tokens",
    "aeon.purpose": "purpose",
    "aeon.call_id": "call_id",
    "aeon.attempt": "attempt",
    "aeon.reserved_usd": "reserved_usd",
    **_PLACE,
}
_REPLY = {
    "gen_ai.response.model": "response.model",
    "aeon.cost_usd": "cost_usd",
    "aeon.retry_in_s": "retry_in_s",
    **_USAGE,
}
_TOOL = {
    "gen_ai.conversation.id": "run",
    "gen_ai.tool.name": "tool_name",
    "gen_ai.tool.call.id": "call_id",
    "aeon.effect": "effect",
    **_PLACE,
}
_EVENT = ("action_type", "method", "attempt_number", "kind", "point", "state", "decision")
_OF_METRICS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
    "error.type",
)


def _known(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def _fields(record: Record, places: Mapping[str, str], **more: Any) -> Fields:
    """Return the attributes that the record has values for, including the error's type."""
    found: Fields = {**places}
    for name, place in places.items():
        value: Any = record
        for key in place.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        found[name] = value
    if (error := record.get("error")) is not None:
        # The HTTP status where there was one, else the class; the message is content.
        found["error.type"] = str(error.get("status_code") or error.get("error_type") or "_OTHER")
    return _known({**found, **more})


def model_fields(label: str | None, base_url: str | None = None) -> Fields:
    """Return the attributes of the model: its provider, its name, and the server's address if the run was given one."""
    provider, _, name = (label or "").partition(":")
    fields: Fields = {
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider) or None,
        "gen_ai.request.model": name or provider or None,
    }
    if base_url is not None and asks_a_server(provider):
        parts = urlsplit(base_url)
        fields |= {"server.address": parts.hostname, "server.port": parts.port}
    return _known(fields)


def request_content(request: Mapping[str, Any]) -> Fields:
    """Return the content of a model request."""
    system = [{"type": "text", "content": request.get("system", "")}]
    messages = [_message(turn) for turn in request.get("messages", ())]
    return {"gen_ai.system_instructions": _json(system), "gen_ai.input.messages": _json(messages)}


def reply_fields(record: Record, *, content: bool) -> Fields:
    """Return the attributes of a model's reply: its tokens and cost, and with `content` the reply itself."""
    fields, response = _fields(record, _REPLY), record.get("response")
    if response is None:
        return fields
    stop = response.get("stop_reason")
    reason = None if stop is None else _FINISH_REASONS.get(stop, str(stop))
    if reason is not None:
        fields["gen_ai.response.finish_reasons"] = [reason]
    if content:
        reply = {"role": "assistant", "content": response.get("text"), "tool_calls": response.get("tool_calls", ())}
        fields["gen_ai.output.messages"] = _json([{**_message(reply), "finish_reason": reason or "stop"}])
    return fields


def evaluations(record: Record) -> Iterator[Fields]:
    """Yield an assessment's events: one for each score, one for consistency, one for the verdict with its reasons."""

    def evaluation(name: str, **fields: Any) -> Fields:
        named = {f"gen_ai.evaluation.{kind}": value for kind, value in fields.items()}
        return _fields(record, _PLACE, **{"gen_ai.evaluation.name": name, **named})

    scores = {name.removesuffix("_score"): value for name, value in record.items() if name.endswith("_score")}
    for name, value in record.items():
        if name.endswith("_scores") and isinstance(value, Mapping):
            scores |= value
    for name, value in scores.items():
        if isinstance(value, int | float):
            yield evaluation(name, **{"score.value": float(value)})
    if isinstance(flags := record.get("consistency_status"), Mapping):
        label = "consistent" if all(flags.values()) else "inconsistent"
        yield evaluation("consistency", **{"score.label": label})
    if "converged" in record:
        label = "converged" if record["converged"] else "not_converged"
        reasons = ", ".join(map(str, record.get("reason_codes") or ())) or None
        yield evaluation("convergence", **{"score.label": label, "explanation": reasons})


def _text_message(role: str, text: str) -> str:
    return _json([_message({"role": role, "content": text})])


def _message(turn: Mapping[str, Any]) -> Fields:
    """Return one turn of a conversation in the form of the conventions."""
    text = turn.get("content")
    if turn["role"] == "tool":
        answer = {"type": "tool_call_response", "id": turn.get("tool_call_id"), "response": text}
        return {"role": "tool", "parts": [answer]}
    parts: list[Fields] = [{"type": "text", "content": text}] if text else []
    for call in turn.get("tool_calls") or ():
        called = {"type": "tool_call", "id": call.get("id"), "name": call["name"], "arguments": call["arguments"]}
        parts.append(called)
    return {"role": turn["role"], "parts": parts}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def otel_listener(
    *,
    content: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> OtelListener:
    """Return a listener that turns records into spans and metrics; `close` it after the last run.

    Without a tracer provider it exports by OTLP over HTTP, as configured by the standard OTEL_* variables, at the end
    of each run. `content` includes requests, replies, tool arguments and error messages. Raises MissingExtraError, and
    UsageError if the variables cannot be used.
    """
    try:
        from opentelemetry.trace import NoOpTracerProvider

        own = _own_providers() if tracer_provider is None else _Own()
    except ImportError:
        raise missing_extra("`otel: true`", "otel") from None
    except ValueError as error:
        raise UsageError(f"cannot set up telemetry: {error}; check the OTEL_* variables") from None
    traces = tracer_provider or own.traces or NoOpTracerProvider()
    return OtelListener(traces, meter_provider or own.metrics, content=content, deliver=own.deliver)


@dataclass
class _Call:
    """A model or tool call in flight."""

    span: Span
    fields: Fields
    began: int


@dataclass
class _Run:
    """A run in flight: its span and what is known about it."""

    span: Span
    context: Context
    model: str | None
    base_url: str | None
    last: int
    remaining: int | None = None
    calls: dict[tuple[str, str, Any], _Call] = field(default_factory=dict)


class OtelListener:
    """Receives every record of a run as a dict, in order, on one thread. Its own errors are logged once."""

    def __init__(
        self,
        tracer_provider: TracerProvider,
        meter_provider: MeterProvider | None = None,
        *,
        content: bool = False,
        deliver: Callable[[bool], None] | None = None,
    ) -> None:
        self._tracer = tracer_provider.get_tracer(_SCOPE)
        self._meters = _Meters(meter_provider) if meter_provider is not None else None
        self._content = content
        self._deliver = deliver
        self._run: _Run | None = None
        self._failed = False
        self._on: dict[str, Callable[[_Run, Mapping[str, Any]], None]] = {
            "llm": self._llm,
            "tool": self._tool,
            "ttl": self._ttl,
            "convergence": self._convergence,
            "supervisor": self._event,
            "notice": self._event,
            "approval": self._event,
            "run_finished": self._run_finished,
        }

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Process one record. Never raises."""
        self._guarded(lambda: self._apply(record))

    def close(self) -> None:
        """End the spans of an interrupted run, and export what is left. Never raises."""
        self._guarded(self._end_cut_run)
        if self._deliver is not None:
            deliver, self._deliver = self._deliver, None
            self._guarded(lambda: deliver(True))

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            if not self._failed:
                logger.exception("telemetry failed; the run continues, and further failures are not reported")
            self._failed = True

    def _apply(self, record: Mapping[str, Any]) -> None:
        kind = record["type"]
        now = (datetime.fromisoformat(record["ts"]) - _EPOCH) // timedelta(microseconds=1) * 1000  # in nanoseconds
        if kind in ("run_started", "run_resumed"):
            self._end_cut_run()
            self._run = self._begin(record, now)
        elif self._run is not None:
            self._run.last = now
            if (handle := self._on.get(kind)) is not None:
                handle(self._run, record)

    def _begin(self, record: Mapping[str, Any], now: int) -> _Run:
        from opentelemetry import trace

        config = record.get("config") or record.get("options") or {}
        named, base_url = record.get("model") or config.get("model"), config.get("base_url")
        model = named[0] if isinstance(named, list) else named
        names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT}
        fields = {**_fields(record, _RUN), **names, **model_fields(model, base_url)}
        if record["type"] == "run_resumed":
            fields["aeon.resumed"] = True
        if self._content and "task" in record:
            fields["gen_ai.input.messages"] = _text_message("user", record["task"])
        span = self._tracer.start_span(f"invoke_agent {AGENT}", attributes=fields, start_time=now)
        return _Run(span, trace.set_span_in_context(span), model, base_url, now)

    def _llm(self, run: _Run, record: Mapping[str, Any]) -> None:
        from opentelemetry.trace import SpanKind

        key = ("llm", record["call_id"], record.get("attempt"))
        if record["state"] == "started":
            fields = _fields(record, _REQUEST) | model_fields(record.get("model") or run.model, run.base_url)
            request = record.get("request") or {}
            fields["gen_ai.operation.name"] = "chat"
            fields["gen_ai.output.type"] = "json" if request.get("schema") is not None else "text"
            fields |= request_content(request) if self._content else {}
            self._start(run, key, f"chat {fields.get('gen_ai.request.model', '')}".rstrip(), SpanKind.CLIENT, fields)
        elif (call := run.calls.pop(key, None)) is not None:
            call.fields |= reply_fields(record, content=self._content)
            self._end(call, run.last, record.get("error"))
            if self._meters is not None:
                took = record.get("latency_ms")
                self._meters.record(call.fields, (run.last - call.began) / 1e9 if took is None else took / 1e3)

    def _tool(self, run: _Run, record: Mapping[str, Any]) -> None:
        from opentelemetry.trace import SpanKind

        key = ("tool", record["call_id"], None)
        if record["state"] == "started":
            fields = _fields(record, _TOOL)
            fields |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function"}
            if self._content:
                fields["gen_ai.tool.call.arguments"] = _json(record.get("arguments") or {})
            self._start(run, key, f"execute_tool {record['tool_name']}", SpanKind.INTERNAL, fields)
        elif (call := run.calls.pop(key, None)) is not None:
            call.fields |= _fields(record, {})
            if self._content and record.get("result") is not None:
                call.fields["gen_ai.tool.call.result"] = _json(record["result"])
            self._end(call, run.last, record.get("error"))

    def _start(self, run: _Run, key: tuple[str, str, Any], name: str, kind: SpanKind, fields: Fields) -> None:
        if run.remaining is not None:
            fields["aeon.ttl.remaining"] = run.remaining
        span = self._tracer.start_span(name, context=run.context, kind=kind, attributes=fields, start_time=run.last)
        run.calls[key] = _Call(span, fields, run.last)

    def _end(self, call: _Call, now: int, error: Mapping[str, Any] | None) -> None:
        call.span.set_attributes(call.fields)
        self._fail(call.span, error)
        call.span.end(now)

    def _fail(self, span: Span, error: Mapping[str, Any] | None) -> None:
        from opentelemetry.trace import Status, StatusCode

        if error is not None:
            span.set_status(Status(StatusCode.ERROR, error.get("message") if self._content else None))

    def _ttl(self, run: _Run, record: Mapping[str, Any]) -> None:
        run.remaining = record.get("remaining")

    def _convergence(self, run: _Run, record: Mapping[str, Any]) -> None:
        for fields in evaluations(record):
            run.span.add_event("gen_ai.evaluation.result", fields, run.last)

    def _event(self, run: _Run, record: Mapping[str, Any]) -> None:
        kind = record["type"]
        fields = _fields(record, {**{f"aeon.{kind}.{name}": name for name in _EVENT}, **_PLACE})
        if kind == "supervisor":
            fields["aeon.supervisor.repaired"] = record.get("repaired_output") is not None
        if self._content and (message := record.get("message") or record.get("feedback")):
            fields["aeon.message"] = message
        run.span.add_event(f"aeon.{kind}", fields, run.last)

    def _run_finished(self, run: _Run, record: Mapping[str, Any]) -> None:
        result = record["result"]
        run.span.set_attributes(_fields(result, _RESULT))
        if self._content and result.get("answer") is not None:
            run.span.set_attribute("gen_ai.output.messages", _text_message("assistant", result["answer"]))
        self._finish(run, result.get("error"))
        if self._deliver is not None:
            self._deliver(False)

    def _end_cut_run(self) -> None:
        if self._run is not None:
            self._run.span.set_attribute("aeon.unfinished", True)
            self._finish(self._run, {"message": "the run did not finish"})

    def _finish(self, run: _Run, error: Mapping[str, Any] | None) -> None:
        """End the run's span, after those of calls whose outcome is unknown."""
        self._run = None
        for call in run.calls.values():
            call.fields["aeon.unfinished"] = True
            self._end(call, run.last, {"message": "the call did not finish"})
        self._fail(run.span, error)
        run.span.end(run.last)


class _Meters:
    """The client metrics of the conventions: tokens by kind, and the duration of calls."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(_SCOPE)
        self._tokens: Histogram = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._seconds: Histogram = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        )

    def record(self, fields: Fields, seconds: float) -> None:
        """Count one attempt of a model call."""
        kept = {name: fields[name] for name in _OF_METRICS if name in fields}
        self._seconds.record(seconds, kept)
        for kind in ("input", "output"):
            tokens = fields.get(f"gen_ai.usage.{kind}_tokens")
            if tokens is not None:
                self._tokens.record(tokens, {**kept, "gen_ai.token.type": kind})


@dataclass
class _Own:
    """The providers that the listener set up because the caller gave none."""

    traces: SDKTracerProvider | None = None
    metrics: SDKMeterProvider | None = None
    _unreachable: bool = False

    def deliver(self, last: bool) -> None:
        """Export what is pending. Waits at most FLUSH_SECONDS, and only once for a silent collector."""
        providers = [provider for provider in (self.traces, self.metrics) if provider is not None]
        works = [provider.shutdown if last else provider.force_flush for provider in providers]
        threads = [threading.Thread(target=_quietly, args=(work,), daemon=True) for work in works]
        deadline = time.monotonic() + (0.0 if self._unreachable else FLUSH_SECONDS)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads) and not self._unreachable:
            self._unreachable = True
            # No warning: without a handler Python would print it.
            logger.info("telemetry: the collector did not answer in %s s; not waiting again", FLUSH_SECONDS)


def _own_providers() -> _Own:
    """Return providers that export by OTLP over HTTP, configured by the environment. Raises ImportError, ValueError."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    _check_environment()
    # Without a handler, Python would print the exporters' warnings.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    named = "service.name" in OTELResourceDetector().detect().attributes
    resource = Resource.create({} if named else {"service.name": SERVICE})
    own = _Own()
    # The SDK's own shutdown at the interpreter's exit would wait for a collector that is not there.
    if _is_wanted("OTEL_TRACES_EXPORTER"):
        own.traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        own.traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if _is_wanted("OTEL_METRICS_EXPORTER"):
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        own.metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    return own


def _check_environment() -> None:
    """Raise ValueError for settings that would silently lose everything."""
    for signal in ("", "TRACES_", "METRICS_"):
        variable = f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT"
        address = os.environ.get(variable, "").strip()
        if address and not address.startswith(("http://", "https://")):
            raise ValueError(f"{variable} is {address!r}; expected http://HOST:PORT or https://…")
        variable = f"OTEL_EXPORTER_OTLP_{signal}PROTOCOL"
        if os.environ.get(variable, "").strip() not in ("", "http/protobuf"):
            raise ValueError(f"{variable} is {os.environ[variable]!r}; expected http/protobuf")


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        logger.info("telemetry was not delivered", exc_info=True)


def _is_wanted(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() != "none"
