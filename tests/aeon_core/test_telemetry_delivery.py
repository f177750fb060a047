"""Telemetry over the wire: to a collector that takes it, and to ones that do not."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from aeon_core import Orchestrator, RunConfig, connect, telemetry
from aeon_core.errors import UsageError
from aeon_core.telemetry import otel_listener
from tests.aeon_core.telemetry_collected import begun, called, finished, nanoseconds, stamp


class Collector:
    """An OTLP collector on loopback that keeps what it is sent."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def traces(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for path, body in self.received if path == "/v1/traces"]

    def metric_names(self) -> set[str]:
        requests = [ExportMetricsServiceRequest.FromString(body) for path, body in self.received if "metrics" in path]
        scopes = [scope for request in requests for part in request.resource_metrics for scope in part.scope_metrics]
        return {metric.name for scope in scopes for metric in scope.metrics}


@pytest.fixture(autouse=True)
def _no_telemetry_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    yield collector
    collector.close()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        yield


def test_a_run_is_delivered_when_it_ends(collector: Collector) -> None:
    listener = otel_listener()
    config = RunConfig(ttl=20)
    Orchestrator(connect("simulated:default"), journal=False, config=config, on_record=listener).run("What is 6 * 7?")
    request = collector.traces()[0]
    listener.close()
    resource = {item.key: item.value.string_value for item in request.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "aeon-tui"
    spans = request.resource_spans[0].scope_spans[0].spans
    root = next(span for span in spans if span.name == "invoke_agent aeon")
    assert {span.trace_id for span in spans} == {root.trace_id}
    assert {span.parent_span_id for span in spans if span != root} == {root.span_id}
    told = {item.key: item.value for item in root.attributes}
    assert told["gen_ai.provider.name"].string_value == "simulated"
    assert told["aeon.simulated"].bool_value is True
    assert any(span.name == "chat default" and span.kind == 3 for span in spans)
    assert b"6 * 7" not in b"".join(body for _, body in collector.received)
    assert collector.metric_names() == {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"}


def test_a_run_that_was_cut_is_delivered_by_close(collector: Collector) -> None:
    listener = otel_listener()
    listener(begun())
    listener(called("started", 2))
    assert collector.traces() == []
    listener.close()
    spans = collector.traces()[0].resource_spans[0].scope_spans[0].spans
    assert [(span.name, span.start_time_unix_nano) for span in spans] == [
        ("chat custom", nanoseconds(stamp(2))),
        ("invoke_agent aeon", nanoseconds(stamp(0))),
    ]


def test_the_environment_sets_the_service_and_disables_signals(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    listener = otel_listener()
    for record in (begun(), called("started", 1), called("finished", 2), finished()):
        listener(record)
    listener.close()
    resource = collector.traces()[0].resource_spans[0].resource
    assert {item.key: item.value.string_value for item in resource.attributes}["service.name"] == "nightly"
    assert collector.metric_names() == set()


def test_metrics_can_be_sent_without_traces(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    listener = otel_listener()
    for record in (begun(), called("started", 1), called("finished", 2), finished()):
        listener(record)
    listener.close()
    assert collector.traces() == []
    assert collector.metric_names() == {"gen_ai.client.operation.duration"}


def test_a_silent_collector_does_not_block(
    silent: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(telemetry, "FLUSH_SECONDS", 0.2)
    caplog.set_level(logging.INFO, "aeon")
    listener = otel_listener()
    for record in (begun(), called("started", 1), called("finished", 2, usage={"input_tokens": 1, "output_tokens": 1})):
        listener(record)
    waited: list[float | None] = []

    class Thread(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            waited.append(timeout)
            super().join(timeout)

    monkeypatch.setattr(telemetry.threading, "Thread", Thread)
    listener(finished())
    listener.close()
    assert len(waited) == 4
    assert all(timeout is not None and timeout <= 0.2 for timeout in waited)
    assert waited[2:] == [0, 0]
    told = [(record.levelname, record.message) for record in caplog.records if record.name == "aeon"]
    assert told == [("INFO", "telemetry: the collector did not answer in 0.2 s; not waiting again")]


def test_a_missing_collector_neither_prints_nor_delays_exit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    script = (
        "import sys; from aeon_core import telemetry; telemetry.FLUSH_SECONDS = 0.2; "
        "listen = telemetry.otel_listener(); "
        f"[listen(record) for record in {[begun(), called('started', 1), called('finished', 2), finished()]!r}]"
    )
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=9)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", r"expected http://HOST:PORT"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector", r"expected http://HOST:PORT"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", r"'grpc'; expected http/protobuf"),
        ("OTEL_BSP_SCHEDULE_DELAY", "-1", r"schedule_delay_millis must be positive"),
    ],
)
def test_settings_that_would_lose_all_data_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=expected) as caught:
        otel_listener()
    assert caught.value.message.startswith("cannot set up telemetry: ")
    assert "\n" not in caught.value.message


def test_importing_the_core_loads_no_telemetry() -> None:
    script = "import sys, aeon_core, aeon_core.telemetry; assert 'opentelemetry' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
