"""One provider's wish to wait holds for every worker of a batch."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.effects.model_calls import adapters_of
from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, LLMResponse, ModelChain
from aeon_core.llm.connect import connect
from aeon_core.llm.errors import attempts
from aeon_core.runs.batch import Batch, ProcessPool
from aeon_core.runs.batch_tasks import read_tasks
from aeon_core.runs.rate_limit import DEFAULT_WAIT, RateGate, RateLimitedModel, rate_limited
from tests.fakes import ScriptedModel
from tests.waiting import PATIENCE, wait_until

REQUEST = LLMRequest(purpose="reason", system="Aeon reason", messages=[{"role": "user", "content": "think"}])


def gate(tmp_path: Path, model: str = "openai:m", url: str | None = None) -> RateGate:
    return RateGate(tmp_path, model, url)


def written_before(gate: RateGate, seconds: float) -> None:
    now = gate.path.stat().st_mtime
    os.utime(gate.path, (now, now - seconds))


def test_a_wait_applies_to_all_users_of_the_model_at_that_server(tmp_path: Path) -> None:
    gate(tmp_path).hold(30)
    assert 25 < gate(tmp_path).remaining() <= 30
    assert gate(tmp_path, "openai:other").remaining() == 0
    assert gate(tmp_path, url="http://127.0.0.1:1/v1").remaining() == 0


def test_a_wait_ends_by_the_clock_of_the_file_system(tmp_path: Path) -> None:
    gate(tmp_path).hold(30)
    written_before(gate(tmp_path), 20)
    assert 0 < gate(tmp_path).remaining() <= 10
    written_before(gate(tmp_path), 31)
    assert gate(tmp_path).remaining() == 0


def test_a_clock_that_was_set_back_makes_no_wait_longer(tmp_path: Path) -> None:
    gate(tmp_path).hold(30)
    written_before(gate(tmp_path), -10_000)
    assert gate(tmp_path).remaining() == 30


def test_the_longer_wait_is_kept_and_none_is_longer_than_a_minute(tmp_path: Path) -> None:
    gate(tmp_path).hold(30)
    gate(tmp_path).hold(3)
    assert gate(tmp_path).remaining() > 3
    gate(tmp_path).hold(7200)
    assert 30 < gate(tmp_path).remaining() <= 60


def test_a_waiter_sees_the_next_wait(tmp_path: Path) -> None:
    one = gate(tmp_path)
    one.hold(30)
    written_before(one, 31)
    assert one.remaining() == 0
    gate(tmp_path).hold(30)
    assert one.remaining() > 0


@pytest.mark.parametrize("content", [b"", b"soon", b"nan", b"\xff"])
def test_an_unreadable_file_makes_nobody_wait(tmp_path: Path, content: bytes) -> None:
    gate(tmp_path).path.write_bytes(content)
    assert gate(tmp_path).remaining() == 0


def test_an_unwritable_folder_is_not_a_failure(tmp_path: Path) -> None:
    lost = gate(tmp_path / "missing")
    lost.hold(30)
    assert lost.remaining() == 0


@pytest.mark.parametrize(
    ("error", "held"),
    [
        (LLMError("slow down", True, 20.0, status_code=429), 20.0),
        (LLMError("busy", True, 20.0, status_code=503), 20.0),
        (LLMError("slow down", True, status_code=429), DEFAULT_WAIT),
        (LLMError("broken", True, status_code=500), 0.0),
        (LLMError("slow down", True, float("nan"), status_code=500), 0.0),
    ],
)
def test_a_requested_wait_holds_the_others_back(tmp_path: Path, error: LLMError, held: float) -> None:
    model = RateLimitedModel(ScriptedModel(reason=error), gate(tmp_path))
    with pytest.raises(LLMError) as raised:
        model.complete(REQUEST)
    assert raised.value is error
    assert bool(error.context.get("unavailable")) is (held > 0)
    assert held - DEFAULT_WAIT < gate(tmp_path).remaining() <= held or held == gate(tmp_path).remaining() == 0


def test_a_run_outlasts_more_refusals_than_its_attempts(tmp_path: Path) -> None:
    refused = LLMError("slow down", True, 8.0, status_code=429)
    inner, waits = ScriptedModel(reason=[*[refused] * 4, "thought"]), list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        written_before(gate(tmp_path), 60)

    model = RateLimitedModel(inner, gate(tmp_path))
    reply = attempts(lambda: model.complete(REQUEST), on_retry=lambda *_: None, sleep=sleep)
    assert (reply.text, waits) == ("thought", [8.0] * 4)


def test_closing_cuts_a_wait_without_a_request(tmp_path: Path) -> None:
    gate(tmp_path).hold(60)
    inner = ScriptedModel(reason="thought")
    model, looked = RateLimitedModel(inner, one := gate(tmp_path)), threading.Event()
    one.remaining = lambda: looked.set() or 60.0  # type: ignore[method-assign, func-returns-value]
    failures: list[LLMError] = []

    def ask() -> None:
        try:
            model.complete(REQUEST)
        except LLMError as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert looked.wait(PATIENCE)
    model.close()
    asking.join(PATIENCE)
    assert [error.message for error in failures] == [
        "scripted:test: the call was interrupted because the adapter was closed"
    ]
    assert inner.requests == []


def test_a_reply_reports_the_time_waited(tmp_path: Path) -> None:
    inner = ScriptedModel(reason=LLMResponse(text="thought", notices=["an option was refused"]))
    model = RateLimitedModel(inner, gate(tmp_path))
    assert model.complete(REQUEST).notices == ["an option was refused"]
    gate(tmp_path).hold(0.05)
    first, *rest = model.complete(REQUEST).notices
    assert first.startswith("scripted:test: waited 0.")
    assert rest == ["an option was refused"]


def test_each_model_of_a_chain_has_its_own_gate_and_a_simulated_one_none(tmp_path: Path) -> None:
    chain = ModelChain([ScriptedModel(), connect("simulated:default")])
    first, second = adapters_of(rate_limited(chain, tmp_path, None))
    assert (type(first), first.model) == (RateLimitedModel, "scripted:test")
    assert (second.model, second.simulated) == ("simulated:default", True)
    assert not isinstance(second, RateLimitedModel)


WAIT = 2
PLAN = {"goal": "think", "steps": [{"step_id": f"s{n}", "description": f"think {n}", "agent": "llm"} for n in (1, 2)]}


class LimitingServer(ThreadingHTTPServer):
    """Two runs meet at it. The first has to wait; the other gets its plan as soon as that is known."""

    daemon_threads = True

    def __init__(self, runs_dir: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.runs_dir = runs_dir
        self.both = threading.Barrier(2)
        self.seen: list[str] = []
        self.refused: str | None = None
        self.held: list[float] = []
        """Seconds that the gate still held for, at each request after the refusal."""
        self.lock = threading.Lock()

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        text = json.dumps(body["messages"])
        task = "first task" if "first task" in text else "second task"
        with self.lock:
            begins = task not in self.seen
            self.seen.append(task)
            if not begins:
                self.held.append(self.gate().remaining())
        if begins and self.both.wait(PATIENCE) == 0:
            self.refused = task
            return 429, {"Retry-After": str(WAIT)}, {"error": {"message": "too many requests"}}
        if begins:
            self.wait_for_gate()
        return 200, {}, PLAN if body["messages"][0]["content"].startswith("Aeon plan") else "thought"

    def gate(self) -> RateGate:
        return RateGate(self.runs_dir, "openai:m", f"http://127.0.0.1:{self.server_port}/v1")

    def wait_for_gate(self) -> None:
        wait_until(self.gate().path.exists)


class Handler(BaseHTTPRequestHandler):
    server: LimitingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, headers, said = self.server.reply(body)
        if status == 200:
            text = said if isinstance(said, str) else json.dumps(said)
            message = {"role": "assistant", "content": text}
            said = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        raw = json.dumps(said).encode()
        self.send_response(status)
        for name, value in {**headers, "content-type": "application/json", "content-length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LimitingServer]:
    made = LimitingServer(tmp_path)
    serving = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield made
    made.shutdown()
    serving.join()
    made.server_close()


@pytest.mark.exhaustive
def test_a_wait_imposed_on_one_worker_holds_back_the_other(server: LimitingServer, tmp_path: Path) -> None:
    config = RunConfig(
        model="openai:m", base_url=f"http://127.0.0.1:{server.server_port}/v1", single_pass=True, project_root=tmp_path
    )
    lines = [json.dumps({"id": name, "task": f"the {name} task"}).encode() for name in ("first", "second")]
    tasks = read_tasks(lines, name="b", config=config, where="lines")
    results = Batch(tasks, ProcessPool(2), tmp_path).run()
    assert [(result["status"], result["error"]) for result in results] == [("completed", None)] * 2
    assert server.refused is not None
    assert {task for task in server.seen if server.seen.count(task) > 1} == {"first task", "second task"}
    assert set(server.held) == {0.0}
    other = next(path for path in tmp_path.glob("*.jsonl") if path.stem != f"b.{server.refused.split()[0]}")
    assert "s because the provider limits the rate of this batch's requests" in other.read_text()
