"""A run as OpenTelemetry's spans and metrics, made from the journal's records as they are written.

A listener of records: a span for the run, one for each attempt of a model call and one for each tool call, with the
records' own times. It cannot harm the run.
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

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider
    from opentelemetry.sdk.trace import TracerProvider as SDKTracerProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider


AGENT = "aeon"

Record = Mapping[str, Any]
Fields = dict[str, Any]

_PROVIDERS = {"bedrock": "aws.bedrock", "llama-cpp": "llama_cpp"}
_REMOTE = ("anthropic", "openai", "bedrock")
_OF_METRICS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
    "error.type",
)
_FINISH_REASONS = {"end": "stop", "max_tokens": "length", "tool_use": "tool_call", "refusal": "content_filter"}


def model_fields(label: str | None, base_url: str | None = None) -> Fields:
    """Return who answers: provider, model, and the server's address where the run was given one."""
    provider, _, name = (label or "").partition(":")
    fields: Fields = {
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider) or None,
        "gen_ai.request.model": name or provider or None,
    }
    if base_url is not None and provider in _REMOTE:
        parts = urlsplit(base_url)
        fields |= {"server.address": parts.hostname, "server.port": parts.port}
    return known(fields)


def place_fields(record: Record) -> Fields:
    """Return where in a run a record belongs."""
    return known({"aeon.pass": record.get("pass"), "aeon.step_id": record.get("step_id")})


def run_fields(record: Record, *, content: bool) -> Fields:
    """Return what is known when a run starts or resumes."""
    version = record.get("versions", {}).get("aeon")
    fields: Fields = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.version": version,
        "gen_ai.conversation.id": record["run"],
        "aeon.simulated": record.get("simulated"),
        "aeon.resumed": True if record["type"] == "run_resumed" else None,
    }
    if content and "task" in record:
        fields["gen_ai.input.messages"] = _json([_text_message("user", record["task"])])
    return known(fields)


def result_fields(result: Mapping[str, Any], *, content: bool) -> Fields:
    """Return how a run ended: status, passes, totals, and of which type its error was."""
    usage, ttl = result.get("usage") or {}, result.get("ttl") or {}
    fields: Fields = {
        "aeon.status": result.get("status"),
        "aeon.converged": result.get("converged"),
        "aeon.passes": result.get("passes"),
        "aeon.cost_usd": result.get("cost_usd"),
        "aeon.ttl.spent": ttl.get("spent"),
        "aeon.ttl.remaining": ttl.get("remaining"),
        **usage_fields(usage),
        **error_fields(result.get("error")),
    }
    if content and result.get("answer") is not None:
        fields["gen_ai.output.messages"] = _json([_text_message("assistant", result["answer"])])
    return known(fields)


def request_fields(record: Record, *, content: bool) -> Fields:
    """Return what a model was asked: limits and purpose; with `content` the messages."""
    request = record.get("request") or {}
    fields: Fields = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": record["run"],
        "gen_ai.request.max_tokens": request.get("max_tokens"),
        "gen_ai.output.type": "json" if request.get("schema") is not None else "text",
        "aeon.purpose": record.get("purpose"),
        "aeon.call_id": record.get("call_id"),
        "aeon.attempt": record.get("attempt"),
        "aeon.reserved_usd": record.get("reserved_usd"),
        **place_fields(record),
    }
    if content:
        fields["gen_ai.system_instructions"] = _json([{"type": "text", "content": request.get("system", "")}])
        fields["gen_ai.input.messages"] = _json([_message(turn) for turn in request.get("messages", ())])
    return known(fields)


def reply_fields(record: Record, *, content: bool) -> Fields:
    """Return what a model answered, what it took and cost; with `content` the reply."""
    response = record.get("response")
    fields: Fields = {
        **usage_fields(record.get("usage") or {}),
        **error_fields(record.get("error")),
        "aeon.cost_usd": record.get("cost_usd"),
        "aeon.retry_in_s": record.get("retry_in_s"),
    }
    if response is not None:
        reason = _finish_reason(response)
        fields |= {
            "gen_ai.response.model": response.get("model"),
            "gen_ai.response.finish_reasons": reason and [reason],
        }
        if content:
            reply = {"role": "assistant", "content": response.get("text"), "tool_calls": response.get("tool_calls", ())}
            fields["gen_ai.output.messages"] = _json([{**_message(reply), "finish_reason": reason or "stop"}])
    return known(fields)


def usage_fields(usage: Mapping[str, Any]) -> Fields:
    """Return tokens by their names in the conventions."""
    return known(
        {
            "gen_ai.usage.input_tokens": usage.get("input_tokens"),
            "gen_ai.usage.output_tokens": usage.get("output_tokens"),
            "gen_ai.usage.cache_read.input_tokens": usage.get("cache_read_tokens"),
            "gen_ai.usage.cache_creation.input_tokens": usage.get("cache_write_tokens"),
        }
    )


def tool_fields(record: Record, *, content: bool) -> Fields:
    """Return which tool is invoked; with `content` its arguments."""
    fields: Fields = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": record["run"],
        "gen_ai.tool.name": record.get("tool_name"),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": record.get("call_id"),
        "aeon.effect": record.get("effect"),
        **place_fields(record),
    }
    if content:
        fields["gen_ai.tool.call.arguments"] = _json(record.get("arguments") or {})
    return known(fields)


def outcome_fields(record: Record, *, content: bool) -> Fields:
    """Return how a tool call ended; with `content` its result."""
    fields = error_fields(record.get("error"))
    if content and record.get("result") is not None:
        fields["gen_ai.tool.call.result"] = _json(record["result"])
    return fields


def error_fields(error: Mapping[str, Any] | None) -> Fields:
    """Return an error's type: the HTTP status where there was one, else its class. Its message is content."""
    if error is None:
        return {}
    return {"error.type": str(error.get("status_code") or error.get("error_type") or "_OTHER")}


def event_fields(record: Record, *, content: bool) -> Fields:
    """Return what happened beside calls: a repair, a notice, a question to a person."""
    told = ("action_type", "method", "attempt_number", "kind", "point", "state", "decision")
    fields: Fields = {f"aeon.{record['type']}.{name}": record.get(name) for name in told}
    if record["type"] == "supervisor":
        fields["aeon.supervisor.repaired"] = record.get("repaired_output") is not None
    if content:
        fields["aeon.message"] = record.get("message") or record.get("feedback")
    return known({**fields, **place_fields(record), **error_fields(record.get("error"))})


def evaluations(record: Record) -> Iterator[Fields]:
    """Yield what an assessment says: one result a score, one of consistency, and the verdict with its reasons."""
    scores = {name.removesuffix("_score"): value for name, value in record.items() if name.endswith("_score")}
    for name, value in record.items():
        if name.endswith("_scores") and isinstance(value, Mapping):
            scores |= value
    for name, value in scores.items():
        if isinstance(value, int | float):
            yield _evaluation(record, name, **{"gen_ai.evaluation.score.value": float(value)})
    flags = record.get("consistency_status")
    if isinstance(flags, Mapping):
        label = "consistent" if all(flags.values()) else "inconsistent"
        yield _evaluation(record, "consistency", **{"gen_ai.evaluation.score.label": label})
    if "converged" in record:
        label = "converged" if record["converged"] else "not_converged"
        reasons = ", ".join(map(str, record.get("reason_codes") or ())) or None
        told = {"gen_ai.evaluation.score.label": label, "gen_ai.evaluation.explanation": reasons}
        yield _evaluation(record, "convergence", **told)


def _evaluation(record: Record, name: str, **fields: Any) -> Fields:
    return known({"gen_ai.evaluation.name": name, **fields, **place_fields(record)})


def metric_fields(fields: Fields) -> Fields:
    """Return those of a call's fields that are attributes of its metrics."""
    return {name: fields[name] for name in _OF_METRICS if name in fields}


def known(fields: Fields) -> Fields:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _finish_reason(response: Mapping[str, Any]) -> str | None:
    reason = response.get("stop_reason")
    return None if reason is None else _FINISH_REASONS.get(reason, str(reason))


def _text_message(role: str, text: str) -> Fields:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _message(turn: Mapping[str, Any]) -> Fields:
    """Return one turn of a conversation in the conventions' form."""
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


logger: logging.Logger = logging.getLogger("aeon")

SERVICE = "aeon-tui"
FLUSH_SECONDS = 2.0
"""The longest that the end of a run waits for a collector."""

_SCOPE = "aeon"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOKEN_BUCKETS = [4.0**power for power in range(14)]
_SECOND_BUCKETS = [0.01 * 2.0**power for power in range(14)]


def otel_listener(
    *,
    content: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> OtelListener:
    """Return a listener that makes spans and metrics of records; `close` it after the last run.

    Without a tracer provider it sends them by OTLP over HTTP, as the standard OTEL_* variables say, and delivers them
    at the end of each run. `content` adds what was asked, answered, handed to tools, and the messages of errors.
    Raises MissingExtraError, and UsageError where the variables ask for what cannot be.
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
    """A run in flight: its span, and what its records have told so far."""

    span: Span
    context: Context
    model: str | None
    base_url: str | None
    last: int
    remaining: int | None = None
    calls: dict[tuple[str, str, Any], _Call] = field(default_factory=dict)


class OtelListener:
    """Called with every record of a run, as a dict, in order, on one thread. An error of its own is logged once."""

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
        """Take one record. Never raises."""
        self._guarded(lambda: self._take(record))

    def close(self) -> None:
        """End the spans of a run that was cut, and deliver what is left. Never raises."""
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

    def _take(self, record: Mapping[str, Any]) -> None:
        kind, now = record["type"], _nanoseconds(record["ts"])
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
        fields = {**run_fields(record, content=self._content), **model_fields(model, base_url)}
        span = self._tracer.start_span(f"invoke_agent {AGENT}", attributes=fields, start_time=now)
        return _Run(span, trace.set_span_in_context(span), model, base_url, now)

    def _llm(self, run: _Run, record: Mapping[str, Any]) -> None:
        from opentelemetry.trace import SpanKind

        key = ("llm", record["call_id"], record.get("attempt"))
        if record["state"] == "started":
            model = model_fields(record.get("model") or run.model, run.base_url)
            name = f"chat {model.get('gen_ai.request.model', '')}".rstrip()
            self._start(run, key, name, SpanKind.CLIENT, {**request_fields(record, content=self._content), **model})
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
            fields = tool_fields(record, content=self._content)
            self._start(run, key, f"execute_tool {record['tool_name']}", SpanKind.INTERNAL, fields)
        elif (call := run.calls.pop(key, None)) is not None:
            call.fields |= outcome_fields(record, content=self._content)
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
        run.span.add_event(f"aeon.{record['type']}", event_fields(record, content=self._content), run.last)

    def _run_finished(self, run: _Run, record: Mapping[str, Any]) -> None:
        result = record["result"]
        run.span.set_attributes(result_fields(result, content=self._content))
        self._finish(run, result.get("error"))
        if self._deliver is not None:
            self._deliver(False)

    def _end_cut_run(self) -> None:
        if self._run is not None:
            self._run.span.set_attribute("aeon.unfinished", True)
            self._finish(self._run, {"message": "the run did not finish"})

    def _finish(self, run: _Run, error: Mapping[str, Any] | None) -> None:
        """End the run's span, and before it those of calls whose outcome was never told."""
        self._run = None
        for call in run.calls.values():
            call.fields["aeon.unfinished"] = True
            self._end(call, run.last, {"message": "the call did not finish"})
        self._fail(run.span, error)
        run.span.end(run.last)


class _Meters:
    """The client metrics of the conventions: tokens by kind, and how long calls took."""

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
        kept = metric_fields(fields)
        self._seconds.record(seconds, kept)
        for kind in ("input", "output"):
            tokens = fields.get(f"gen_ai.usage.{kind}_tokens")
            if tokens is not None:
                self._tokens.record(tokens, {**kept, "gen_ai.token.type": kind})


@dataclass
class _Own:
    """The providers that the listener itself set up, where the caller gave none."""

    traces: SDKTracerProvider | None = None
    metrics: SDKMeterProvider | None = None
    _unreachable: bool = False

    def deliver(self, last: bool) -> None:
        """Send what is held, with `last` for good. Waits at most FLUSH_SECONDS, and once for a silent collector."""
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
    """Return providers that export by OTLP over HTTP as the environment says. Raises ImportError, ValueError."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    _check_environment()
    # Without a handler Python prints what the exporters complain of.
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
    """Raise ValueError for settings under which everything would silently be lost."""
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


def _nanoseconds(stamp: str) -> int:
    """Return an ISO 8601 stamp as nanoseconds since 1970."""
    return (datetime.fromisoformat(stamp) - _EPOCH) // timedelta(microseconds=1) * 1000
