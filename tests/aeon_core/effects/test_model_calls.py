"""What a run's model calls cost, what happens at the ceiling, which model answers, and whether a request fits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core import ApprovalDecision, LLMError, LLMResponse, Orchestrator, RunConfig, RunResult
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMAdapter, ModelChain
from tests.fakes import ScriptedModel, add, steps

Records = list[dict[str, Any]]
PRICES = {"scripted:test": {"input": 1_000, "output": 2_000}}
"""A tenth of a cent for a token in, two for one out: sums that can be done in the head."""
PLAN = steps({"agent": "llm"}, {"agent": "llm"})


def reply(text: str, input_tokens: int = 10, output_tokens: int = 5) -> LLMResponse:
    return LLMResponse(text=text, usage={"input_tokens": input_tokens, "output_tokens": output_tokens})


def run(model: LLMAdapter, *, approver: Any = None, plan: Any = PLAN, **config: Any) -> tuple[RunResult, Records]:
    records: Records = []
    given: dict[str, Any] = {"single_pass": True, "durability": "off", "prices": PRICES, **config}
    orchestrator = Orchestrator(
        model, config=RunConfig(**given), journal=False, on_record=records.append, approver=approver
    )
    return orchestrator.run("a task", json.loads(json.dumps(plan))), records


def replayed(records: Records, **config: Any) -> RunResult:
    cursor = ReplayCursor(records)
    given: dict[str, Any] = {"single_pass": True, "durability": "off", "prices": PRICES, **config}
    result = Orchestrator(None, config=RunConfig(**given), recorded=cursor).run("a task", json.loads(json.dumps(PLAN)))
    assert cursor.exhausted
    return result


def of(records: Records, kind: str, **fields: Any) -> Records:
    return [r for r in records if r["type"] == kind and all(r.get(key) == value for key, value in fields.items())]


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.effects.record_stream.RecordStream.wait", lambda self, seconds: None)


def test_every_call_is_priced_including_failures_and_repairs(no_wait: None) -> None:
    broken = LLMError("cut", True, usage={"input_tokens": 3, "output_tokens": 1})
    model = ScriptedModel(reason=[broken, reply("one"), reply("two")], answer=reply("done", 100, 1))
    result, records = run(model)
    costs = [record["cost_usd"] for record in of(records, "llm", state="finished")]
    assert costs == pytest.approx([0.005, 0.02, 0.02, 0.102])
    assert result.cost_usd == pytest.approx(0.147)
    assert result.usage.model_dump() == {"input_tokens": 123, "output_tokens": 12}
    assert of(records, "ttl")[-1]["cost_usd"] == pytest.approx(0.147)


def test_cache_tokens_count_as_input() -> None:
    told = LLMResponse(text="x", usage={"input_tokens": 100, "output_tokens": 7, "cache_read_tokens": 60})
    result, _ = run(ScriptedModel(reason=told, answer=reply("y", 0, 0)))
    assert result.usage.model_dump() == {"input_tokens": 200, "output_tokens": 14}


def test_the_journal_records_the_prices_and_their_date() -> None:
    _, records = run(ScriptedModel(reason=reply("x"), answer=reply("y")))
    assert records[0]["models"] == [
        {
            "model": "scripted:test",
            "simulated": False,
            "price": {"input": 1_000.0, "output": 2_000.0},
            "context_window": None,
        }
    ]
    assert records[0]["prices"].startswith("genai-prices ")


def test_without_a_known_price_the_cost_is_null() -> None:
    result, records = run(ScriptedModel(reason=reply("x"), answer=reply("y")), prices={})
    assert result.cost_usd is None
    assert {record["cost_usd"] for record in of(records, "llm", state="finished")} == {None}


def test_without_token_counts_the_cost_is_null_unless_the_model_is_free() -> None:
    uncounted = LLMResponse(text="x", usage=None)
    result, records = run(ScriptedModel(reason=uncounted, answer=reply("y")))
    assert result.cost_usd is None, "what is known of it would be too little"
    assert [record["cost_usd"] is None for record in of(records, "llm", state="finished")][-2:] == [True, False]
    result, _ = run(
        ScriptedModel(reason=uncounted, answer=reply("y")), prices={"scripted:test": {"input": 0, "output": 0}}
    )
    assert result.cost_usd == 0.0


def test_a_budget_without_a_known_price_is_refused_before_any_call() -> None:
    model = ScriptedModel(reason=reply("x"), answer=reply("y"))
    with pytest.raises(UsageError, match="the price of the model 'scripted:test' is unknown"):
        run(model, prices={}, budget=1.0)
    with pytest.raises(UsageError, match="'other:m'"):
        run(ModelChain([model, other()]), budget=1.0)
    assert model.requests == []


def other(**scripts: Any) -> ScriptedModel:
    model = ScriptedModel(**scripts)
    model.model = "other:m"
    return model


def test_the_worst_case_of_a_call_is_reserved_before_it_is_made() -> None:
    _, records = run(ScriptedModel(reason=reply("x"), answer=reply("y")), budget=1_000.0, max_tokens=100)
    for started, finished in zip(
        of(records, "llm", state="started"), of(records, "llm", state="finished"), strict=True
    ):
        sent = len(started["request"]["system"].encode()) + len(started["request"]["messages"][0]["content"].encode())
        assert started["reserved_usd"] >= sent * 0.001 + 100 * 0.002
        assert started["reserved_usd"] > finished["cost_usd"]


def test_at_the_ceiling_the_run_stops_cleanly_before_the_call() -> None:
    model = ScriptedModel(reason=[reply("one", 1_000, 1_000), reply("never")], answer=reply("never"))
    result, records = run(model, budget=4.0, max_tokens=100)
    assert (result.status, result.exit_code) == ("cost_ceiling", 4)
    assert result.error is not None
    assert "$3.00 of the budget of $4.00 spent" in result.error["message"]
    assert len(model.requests) == 1
    asked, decided = of(records, "approval")
    assert (asked["point"], asked["subject"]["spent_usd"], decided["decision"]) == ("budget", 3.0, "reject")
    assert [step.status for step in result.steps] == ["complete", "running"]
    assert records[-1]["type"] == "run_finished"
    assert replayed(records, budget=4.0, max_tokens=100).model_dump() == result.model_dump()


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        (ApprovalDecision(decision="approve"), "completed"),
        (ApprovalDecision(decision="edit", edited={"limit_usd": 100.0}), "completed"),
        (ApprovalDecision(decision="edit", edited={"limit_usd": 3.5}), "cost_ceiling"),
        (ApprovalDecision(decision="edit", edited={"limit_usd": "much"}), "cost_ceiling"),
        (ApprovalDecision(decision="edit", edited={"limit_usd": 10**400}), "cost_ceiling"),
        (ApprovalDecision(decision="reject"), "cost_ceiling"),
        (ApprovalDecision(decision="abort"), "aborted"),
    ],
    ids=["approve", "edit", "lower", "no amount", "no float", "reject", "abort"],
)
def test_a_person_may_lift_the_ceiling(decision: ApprovalDecision, status: str) -> None:
    model = ScriptedModel(reason=[reply("one", 1_000, 1_000), reply("two")], answer=reply("done"))
    result, records = run(model, budget=4.0, max_tokens=100, approver=lambda _: decision)
    assert result.status == status
    assert replayed(records, budget=4.0, max_tokens=100).model_dump() == result.model_dump()


def test_a_user_is_warned_once_when_the_budget_is_nearly_spent() -> None:
    model = ScriptedModel(reason=[reply("one", 500, 0), reply("two", 500, 0)], answer=reply("done"))
    _, records = run(model, budget=1_000.0, budget_warning=0.4)
    assert [record["message"] for record in of(records, "notice")] == ["$0.50 of the budget of $1,000.00 spent"]


def test_a_user_is_warned_at_the_warning_amount_without_a_budget_too() -> None:
    model = ScriptedModel(reason=[reply("one", 500, 0), reply("two", 500, 0)], answer=reply("done"))
    _, records = run(model, budget_warning=0.4)
    assert [record["message"] for record in of(records, "notice")] == ["$0.50 spent"]


def test_tokens_of_a_failed_call_without_a_price_leave_no_total(no_wait: None) -> None:
    failed = LLMError("cut", usage={"input_tokens": 3, "output_tokens": 1})
    result, _ = run(ModelChain([ScriptedModel(reason=LLMError("down")), other(reason=failed)]))
    assert (result.status, result.cost_usd) == ("failed", None)


def test_a_call_of_unknown_cost_stays_reserved(no_wait: None) -> None:
    # Each attempt may cost some 2 dollars; two that vanish leave no room for a third.
    model = ScriptedModel(reason=LLMError("no answer in time", True), answer="x")
    result, records = run(model, budget=5.0, max_tokens=100)
    assert result.status == "cost_ceiling"
    assert len(model.requests) == 2
    assert of(records, "approval")[0]["subject"]["held_usd"] > 3


def test_a_refused_call_costs_nothing(no_wait: None) -> None:
    model = ScriptedModel(reason=LLMError("overloaded", True, status_code=529), answer="x")
    result, _ = run(model, budget=3.0, max_tokens=100)
    assert (result.status, len(model.requests)) == ("failed", 3)


def test_the_next_model_takes_over_after_a_final_failure(no_wait: None) -> None:
    first = ScriptedModel(reason=LLMError("busy", True, status_code=529))
    second = other(reason=reply("from the second"), answer=reply("done"))
    prices = {**PRICES, "m": {"input": 1, "output": 1}}
    result, records = run(ModelChain([first, second]), prices=prices)
    assert (result.status, result.model) == ("completed", "other:m")
    assert (len(first.requests), len(second.requests)) == (3, 3)
    attempts = [(r["attempt"], r["model"], "error" in r) for r in records if r["type"] == "llm" and "model" in r][:4]
    assert attempts == [(n, "scripted:test", False) for n in (1, 2, 3)] + [(4, "other:m", False)]
    notice = of(records, "notice")[0]
    assert notice["kind"] == "model_fallback"
    assert notice["message"] == "scripted:test failed: busy; falling back to other:m"
    assert replayed(records, prices=prices).model_dump() == result.model_dump()


def test_when_every_model_failed_the_run_fails_with_the_last_ones_error() -> None:
    chain = ModelChain([ScriptedModel(reason=LLMError("one", False)), other(reason=LLMError("two", False))])
    result, _ = run(chain)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["message"] == "two"


def test_a_result_is_simulated_if_any_model_was() -> None:
    simulated = other(reason=reply("x"), answer=reply("y"))
    simulated.simulated = True
    result, _ = run(ModelChain([ScriptedModel(reason=LLMError("down")), simulated]))
    assert result.simulated
    assert run(ModelChain([ScriptedModel(reason=reply("x"), answer=reply("y")), simulated]))[0].simulated is False


def test_a_notice_of_the_provider_reaches_the_journal() -> None:
    told = LLMResponse(text="x", notices=["the server does not support response_format"])
    _, records = run(ScriptedModel(reason=[told, reply("y")], answer=reply("z")))
    assert [(r["kind"], r["message"]) for r in of(records, "notice")] == [
        ("provider", "the server does not support response_format")
    ]


def test_a_reply_that_was_cut_off_says_so_and_what_may_help() -> None:
    cut, less = (reply("x", 10, tokens).model_copy(update={"stop_reason": "max_tokens"}) for tokens in (50, 9))
    model = ScriptedModel(reason=[cut, less], answer=LLMResponse(text="half of", stop_reason="max_tokens"))
    result, records = run(model, max_tokens=50)
    limit = "was cut off at 50 tokens, thinking included; raise max_tokens"
    room = "cut off after 9 of at most 50 tokens: the context window is full, or thinking used the rest"
    assert [(r.get("step_id"), r["kind"], r["message"]) for r in of(records, "notice")] == [
        ("s1", "provider", f"the reason reply {limit}"),
        ("s2", "provider", f"the reason reply was {room}"),
        (None, "provider", f"the answer reply {limit}"),
    ]
    assert result.answer == "half of"
    assert replayed(records, max_tokens=50) == result
    assert cut.notices == []


def test_a_request_beyond_the_context_window_is_refused_before_it_is_sent() -> None:
    model = ScriptedModel(reason=reply("x" * 50_000, 300, 10_000), answer=reply("never"))
    result, _ = run(model, context_window=1_300)
    assert (result.status, len(model.requests)) == ("failed", 1)
    assert result.error is not None
    assert "the model's context window has 1,300" in result.error["message"]
    assert result.error["context_too_long"] is True


def test_the_reply_limit_fits_the_window_and_80_percent_warns() -> None:
    model = ScriptedModel(reason=[reply("x" * 9_000, 300, 10), reply("y", 1_562, 10)], answer=reply("z", 1_562, 10))
    _, records = run(model, context_window=1_900, max_tokens=1_500)
    asked = [request.max_tokens for request in model.requests]
    assert asked[0] == 1_500
    assert all(256 <= tokens < 400 for tokens in asked[1:])
    assert [record["kind"] for record in of(records, "notice")] == ["context_window"]


def test_tool_steps_call_no_model_and_cost_nothing() -> None:
    result, _ = run(ScriptedModel(answer=reply("2", 0, 0)), plan=steps(add(1, 1)), budget=100.0)
    assert result.cost_usd == 0.0
