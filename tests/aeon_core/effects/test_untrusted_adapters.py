"""What an adapter may put into its replies and errors, and a run that keeps its journal and its totals all the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aeon_core import LLMError, LLMResponse, Orchestrator, RunConfig, tool
from aeon_core.effects.outcomes import call_model
from aeon_core.effects.port import Effects
from aeon_core.errors import RunAborted
from aeon_core.journal.writer import JournalWriter
from aeon_core.llm.base import LLMAdapter, LLMRequest
from tests.aeon_core.effects.test_model_calls import of, replayed, reply, run
from tests.fakes import ScriptedModel, steps
from tests.waiting import PATIENCE

KEY = "sk-" + "ant-" + "q" * 30
HUGE = 10**400
"""More tokens than fit a float as dollars."""


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.effects.record_stream.RecordStream.wait", lambda self, seconds: None)


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": -5, "output_tokens": 1},
        {"input_tokens": "many", "output_tokens": 1},
        {"input_tokens": None, "output_tokens": 1},
        {"input_tokens": float("nan"), "output_tokens": 1},
        {"input_tokens": HUGE, "output_tokens": 1},
        {"output_tokens": 1},
    ],
    ids=["negative", "text", "null", "nan", "huge", "half"],
)
def test_token_counts_of_an_error_that_are_not_numbers_count_as_missing(usage: Any) -> None:
    model = ScriptedModel(reason=[LLMError("cut", True, usage=usage), reply("one"), reply("two")], answer=reply("done"))
    result, records = run(model, budget=1_000.0)
    assert (result.status, result.cost_usd) == ("completed", pytest.approx(0.06))
    failed = of(records, "llm", state="finished")[0]
    assert (failed["usage"], failed["cost_usd"]) == (None, None)
    assert replayed(records, budget=1_000.0).model_dump() == result.model_dump()


def test_a_reply_with_invalid_token_counts_stays_reserved() -> None:
    model = ScriptedModel(reason=[reply("one", HUGE, 1), reply("two")], answer=reply("done"))
    result, records = run(model, budget=15.0)
    assert (result.status, result.usage.input_tokens) == ("cost_ceiling", 0)
    assert of(records, "approval")[0]["subject"]["held_usd"] > 8
    assert replayed(records, budget=15.0).model_dump() == result.model_dump()


def test_errors_are_journaled_without_keys_or_non_json_values() -> None:
    told = {"sent": {"authorization": KEY}, "cause": ValueError("x"), "text": "a\ud800"}
    result, records = run(ScriptedModel(reason=LLMError(f"refused {KEY}", **told)))
    assert result.error is not None
    assert result.error["message"] == f"refused {KEY}"
    assert result.error["sent"] == {"authorization": KEY}
    assert "cause" not in result.error
    assert KEY not in str(records)
    assert replayed(records).model_dump() == of(records, "run_finished")[-1]["result"]


@pytest.mark.parametrize("wish", [float("inf"), float("nan")])
def test_an_invalid_wait_is_ignored(wish: float) -> None:
    model = ScriptedModel(reason=[LLMError("busy", True, wish), reply("one"), reply("two")], answer=reply("done"))
    result, records = run(model)
    assert result.status == "completed"
    assert of(records, "llm", state="finished")[0]["retry_in_s"] == 1.0
    assert replayed(records).model_dump() == result.model_dump()


def test_an_adapter_may_change_its_request_without_changing_the_next_attempt_or_the_journal() -> None:
    seen: list[list[str]] = []

    class SystemFirst(ScriptedModel):
        def complete(self, request: LLMRequest) -> LLMResponse:
            seen.append([message["role"] for message in request.messages])
            request.messages[0]["content"] += " Think."
            request.messages.insert(0, {"role": "user", "content": request.system})
            return super().complete(request)

    model = SystemFirst(reason=[LLMError("busy", True), reply("one"), reply("two")], answer=reply("done"))
    result, records = run(model)
    assert result.status == "completed"
    assert seen == [["user"]] * 4
    assert "Think." not in str(records)
    assert replayed(records).model_dump() == result.model_dump()


def test_texts_of_a_subclass_of_str_in_a_request_are_sent_as_plain_text() -> None:
    class Text(str):
        __slots__ = ()

    model = ScriptedModel(reason=reply("one"))
    effects = Effects(JournalWriter(None, "r"), llm=model, config=RunConfig())
    request = LLMRequest("reason", "", [{"role": "user", "content": "hi"}], schema={Text("type"): Text("object")})
    effects.complete(request, pass_number=1, step_id=None)
    assert [type(each) for pair in (model.requests[0].schema or {}).items() for each in pair] == [str, str]


class SlowToClose(LLMAdapter):
    """Is busy with something that closing must wait for, such as loading its SDK."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.closed = threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.done.wait(PATIENCE)
        return LLMResponse(text="late")

    def close(self) -> None:
        self.done.wait(PATIENCE)
        self.closed.set()


def test_an_adapter_that_is_slow_to_close_does_not_hold_up_an_abort() -> None:
    model, abort = SlowToClose(), threading.Event()
    abort.set()
    with pytest.raises(RunAborted):
        call_model(model, LLMRequest("reason", "", []), abort)
    assert not model.closed.is_set()
    model.done.set()
    assert model.closed.wait(PATIENCE)


class Shared(LLMAdapter):
    """Fails the calls in flight when it is closed, as a provider's client does."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self.ended = threading.Event()
        self.closed = threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.arrived.release()
        self.ended.wait(PATIENCE)
        if self.closed.is_set():
            raise LLMError("the adapter was closed")
        return LLMResponse(text="done")

    def close(self) -> None:
        self.closed.set()
        self.ended.set()


def test_aborting_a_run_does_not_cut_off_another_run_on_the_same_adapter() -> None:
    model = Shared()
    plan = {"goal": "greet", "steps": [{"step_id": "s1", "description": "say hello", "agent": "llm"}]}
    aborted, other = (Orchestrator(model, journal=False, config={"single_pass": True}) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(aborted.run, "greet", plan), pool.submit(other.run, "greet", plan)
        for _ in range(2):
            assert model.arrived.acquire(timeout=PATIENCE)
        aborted.abort()
        assert first.result(PATIENCE).status == "aborted"
        model.ended.set()
        assert second.result(PATIENCE).status == "completed"
    assert not model.closed.is_set()


def test_aborting_a_run_leaves_the_adapter_open_for_another_run_between_two_calls() -> None:
    model, paused, going = Shared(), threading.Event(), threading.Event()

    @tool
    def pause() -> str:
        """Pause between two model calls."""
        paused.set()
        going.wait(PATIENCE)
        return "done"

    greet = {"step_id": "s1", "description": "say hello", "agent": "llm"}
    first_pause = {"step_id": "s0", "description": "pause", "tool": "pause", "arguments": {}}
    config = {"single_pass": True}
    aborted = Orchestrator(model, journal=False, config=config)
    other = Orchestrator(model, [pause], journal=False, config=config)
    with ThreadPoolExecutor(2) as pool:
        second = pool.submit(other.run, "greet", {"goal": "greet", "steps": [first_pause, greet]})
        assert paused.wait(PATIENCE)
        first = pool.submit(aborted.run, "greet", {"goal": "greet", "steps": [greet]})
        assert model.arrived.acquire(timeout=PATIENCE)
        aborted.abort()
        assert first.result(PATIENCE).status == "aborted"
        model.ended.set()
        going.set()
        assert second.result(PATIENCE).status == "completed"
    assert not model.closed.is_set()


def test_closing_an_orchestrator_leaves_the_adapter_open_for_another_run_and_its_own_run_is_cut_off() -> None:
    model = Shared()
    plan = {"goal": "greet", "steps": [{"step_id": "s1", "description": "say hello", "agent": "llm"}]}
    idle, busy = (Orchestrator(model, journal=False, config={"single_pass": True}) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(busy.run, "greet", plan)
        assert model.arrived.acquire(timeout=PATIENCE)
        idle.close()
        assert not model.closed.is_set()
        busy.close()
        assert running.result(PATIENCE).status == "failed"
    assert model.closed.is_set()


def test_aborting_all_runs_on_an_adapter_at_once_closes_it() -> None:
    model = Shared()
    runs = [Orchestrator(model, journal=False) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        ending = [pool.submit(run.run, "greet") for run in runs]
        for _ in runs:
            assert model.arrived.acquire(timeout=PATIENCE)
        for run in runs:
            run.abort()
        assert [each.result(PATIENCE).status for each in ending] == ["aborted", "aborted"]
    assert model.closed.is_set()


class Late(LLMAdapter):
    """Streams and replies when its run has ended."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.ended = threading.Event()
        self.streamed = threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.arrived.set()
        self.ended.wait(PATIENCE)
        if request.on_delta is not None:
            request.on_delta("late")
        self.streamed.set()
        return LLMResponse(text="late")


def test_nothing_that_arrives_after_an_abort_is_passed_on() -> None:
    model, deltas = Late(), []
    run = Orchestrator(model, journal=False, on_delta=lambda *delta: deltas.append(delta))
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(run.run, "greet")
        assert model.arrived.wait(PATIENCE)
        run.abort()
        assert ending.result(PATIENCE).status == "aborted"
    model.ended.set()
    assert model.streamed.wait(PATIENCE)
    assert deltas == []


class Streaming(LLMAdapter):
    """Lets some text arrive, then fails as told."""

    model = "scripted:test"

    def __init__(self, text: str, error: LLMError) -> None:
        self.text = text
        self.error = error
        self.calls = 0

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.calls += 1
        if request.on_delta is not None and self.text:
            request.on_delta(self.text)
        raise self.error


@pytest.mark.parametrize(
    ("text", "error", "calls"),
    [
        ("so", LLMError("reset", True, usage={"input_tokens": 100, "output_tokens": 1}), 2),
        ("", LLMError("reset", True, usage={"input_tokens": 100, "output_tokens": 1}), 2),
        ("so", LLMError("overloaded", True, status_code=529), 2),
        ("", LLMError("overloaded", True, status_code=529), 3),
        ("", LLMError("refused", True, unsent=True), 3),
        ("", LLMError("no credentials", True, exit_code=3), 3),
    ],
    ids=["cut", "cut before text", "overloaded midway", "overloaded", "unsent", "no model"],
)
def test_a_reply_that_broke_midway_stays_reserved_since_more_may_be_charged_than_was_reported(
    text: str, error: LLMError, calls: int
) -> None:
    # Each attempt may cost some 2 dollars; two that broke leave no room for a third.
    prices = {"scripted:test": {"input": 1_000, "output": 2_000}}
    given: dict[str, Any] = {
        "durability": "off",
        "prices": prices,
        "budget": 5.0,
        "max_tokens": 100,
        "single_pass": True,
    }
    records: list[dict[str, Any]] = []
    model = Streaming(text, error)
    result = Orchestrator(
        model,
        config=RunConfig(**given),
        journal=False,
        on_record=records.append,
        on_delta=lambda purpose, step_id, delta: None,
    ).run("a task", steps({"agent": "llm"}, {"agent": "llm"}))
    assert model.calls == calls
    assert result.status == ("cost_ceiling" if calls == 2 else "failed")
    assert replayed(records, budget=5.0, max_tokens=100).model_dump() == result.model_dump()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("two\nlines"), "the model adapter failed: ValueError: two lines"),
        (KeyboardInterrupt(), "the model adapter failed: KeyboardInterrupt"),
        (LLMError("two\n  lines"), "two lines"),
    ],
    ids=["lines", "nothing", "LLMError"],
)
def test_any_adapter_error_is_one_line(error: BaseException, said: str) -> None:
    class Failing(ScriptedModel):
        def complete(self, request: LLMRequest) -> LLMResponse:
            raise error

    result, _ = run(Failing())
    assert (result.status, (result.error or {}).get("message")) == ("failed", said)
