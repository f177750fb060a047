"""Attempts, the ceiling before a call, and what of it is written down (REQ-090, REQ-091, REQ-093, REQ-131, REQ-132)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon_core.budget import CostCeilingReached
from aeon_core.errors import LLMError
from tests.system2.kit import CONTRACT, USAGE, Answers, Bench, done, said, uses

DEAR = {"input_tokens": 1_000_000, "output_tokens": 0}
"""Three dollars at the model's price."""
WIDE: dict[str, Any] = {"context_window_tokens": 10_000_000}


def throttled(after: float | None = None) -> LLMError:
    return LLMError("too many requests (429)", retryable=True, retry_after=after, status_code=429)


def overloaded() -> LLMError:
    return LLMError("the service is overloaded (503)", retryable=True, status_code=503)


def broken() -> LLMError:
    return LLMError("the connection broke", retryable=True)


def test_throttling_is_retried_three_times_with_growing_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path, throttled(), throttled(), throttled(), done())
    assert bench.session().run(CONTRACT).completion is not None
    assert (len(bench.requests), bench.waits) == (4, [1.0, 2.0, 4.0])


def test_throttling_that_does_not_end_is_reported_to_a_person(tmp_path: Path) -> None:
    answers = Answers()
    bench = Bench(tmp_path, throttled(), questions=answers)
    with pytest.raises(LLMError, match="too many requests"):
        bench.session().run(CONTRACT)
    assert (len(bench.requests), bench.waits) == (4, [1.0, 2.0, 4.0])
    assert [(question.kind, question.choices) for question in answers.asked] == [("api_error", ("abort", "retry"))]


@pytest.mark.parametrize("error", [overloaded, broken])
def test_transient_errors_are_retried_twice(tmp_path: Path, error: type[LLMError]) -> None:
    bench = Bench(tmp_path, error())
    with pytest.raises(LLMError):
        bench.session().run(CONTRACT)
    assert (len(bench.requests), bench.waits) == (3, [1.0, 2.0])


def test_a_person_can_retry_the_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path, *[overloaded()] * 3, done(), questions=Answers({"api_error": "retry"}))
    assert bench.session().run(CONTRACT).completion is not None
    assert len(bench.requests) == 4


def test_retry_after_is_honoured_up_to_thirty_seconds(tmp_path: Path) -> None:
    bench = Bench(tmp_path, throttled(12), throttled(300), done())
    bench.session().run(CONTRACT)
    assert bench.waits == [12, 30]


@pytest.mark.parametrize(("status", "exit_code"), [(401, 3), (403, 3), (400, 1)])
def test_permanent_errors_are_neither_retried_nor_asked_about(tmp_path: Path, status: int, exit_code: int) -> None:
    answers = Answers()
    bench = Bench(tmp_path, LLMError("refused", status_code=status), questions=answers)
    with pytest.raises(LLMError) as error:
        bench.session().run(CONTRACT)
    assert error.value.exit_code == exit_code
    assert (len(bench.requests), bench.waits, answers.asked) == (1, [], [])


def test_every_attempt_is_in_the_transcript(tmp_path: Path) -> None:
    bench = Bench(tmp_path, throttled(), done())
    bench.session().run(CONTRACT)
    requests = bench.records("api_request")
    assert [(each["attempt"], each["message_count"], each["tool_count"]) for each in requests] == [(1, 1, 7), (2, 1, 7)]
    assert requests[0]["messages"] == [{"role": "user", "content": [{"text": CONTRACT.to_message()}]}]
    failed, answered = bench.records("api_response")
    assert (failed["error"]["message"], failed["retry_in_s"]) == ("too many requests (429)", 1.0)
    assert answered["usage"] == USAGE
    assert answered["stop_reason"] == "tool_use"
    assert answered["message"]["content"][0]["toolUse"]["name"] == "signal_completion"
    assert answered["cost_usd"] == pytest.approx(0.0045)


def test_each_agent_has_its_own_conversation_in_the_transcript(tmp_path: Path) -> None:
    bench = Bench(tmp_path, done())
    contracts = [replace(CONTRACT, objective=f"part {number}") for number in (1, 2)]
    for contract in contracts:
        bench.session().run(contract)
    first, second = (request["messages"] for request in bench.records("api_request"))
    assert [turn["content"][0]["text"] for turn in first + second] == [contract.to_message() for contract in contracts]


def test_a_request_in_the_transcript_holds_only_new_turns(tmp_path: Path) -> None:
    bench = Bench(tmp_path, uses(("Glob", {"pattern": "*"})), throttled(), done())
    session = bench.session()
    session.run(CONTRACT)
    first, second, again = bench.records("api_request")
    assert (first["message_count"], len(first["messages"]), first.get("since")) == (1, 1, None)
    assert (second["message_count"], second["kept"], second["since"]) == (3, 1, first["seq"])
    assert [turn["role"] for turn in second["messages"]] == ["assistant", "user"]
    assert (again["messages"], again["kept"], again["since"]) == ([], 3, second["seq"])
    assert first["messages"] + second["messages"] == session.history[:3]


def test_a_wait_is_reported_to_a_person(tmp_path: Path) -> None:
    bench = Bench(tmp_path, throttled(), done())
    bench.session().run(CONTRACT)
    assert "WARNING: too many requests (429); retrying in 1 s" in bench.logged


def test_the_cost_warning_comes_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, said("", "max_tokens", usage=DEAR), done(), cost_ceiling_usd=100, **WIDE)
    bench.session().run(CONTRACT)
    warnings = [record["message"] for record in bench.records("note") if record["kind"] == "cost_warning"]
    assert warnings == ["$3.00 of the budget of $100.00 spent"]


def test_at_the_ceiling_no_call_is_made_without_asking(tmp_path: Path) -> None:
    bench = Bench(tmp_path, said("", "max_tokens", usage=DEAR), done(), cost_ceiling_usd=3.1, **WIDE)
    with pytest.raises(
        CostCeilingReached, match=r"has cost \$3.00 and the next .* the ceiling is \$3.10, and it was not raised"
    ) as error:
        bench.session().run(CONTRACT)
    assert error.value.exit_code == 4
    assert len(bench.requests) == 1


def test_a_raised_ceiling_asks_again_when_reached(tmp_path: Path) -> None:
    answers = Answers({"cost_ceiling": ["continue", "continue"]})
    cut = said("", "max_tokens", usage=DEAR)
    bench = Bench(tmp_path, cut, cut, done(), questions=answers, cost_ceiling_usd=3, **WIDE)
    assert bench.session().run(CONTRACT).completion is not None
    texts = [question.text for question in answers.asked]
    assert [text.partition(";")[0] for text in texts] == ["the workflow has cost $3.00", "the workflow has cost $6.00"]
    assert [text.rpartition("; ")[2] for text in texts] == ["continue, up to $6.00?", "continue, up to $12.00?"]


def test_an_answer_that_is_not_a_choice_means_the_safe_one(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        said("", "max_tokens", usage=DEAR),
        done(),
        questions=Answers({"cost_ceiling": "y"}),
        cost_ceiling_usd=1,
        **WIDE,
    )
    with pytest.raises(CostCeilingReached):
        bench.session().run(CONTRACT)
    assert [record["choice"] for record in bench.records("question") if record["state"] == "decided"] == ["stop"]


def test_tokens_of_a_failed_attempt_are_counted(tmp_path: Path) -> None:
    failed = LLMError("the reply broke off", retryable=True, usage=DEAR)
    bench = Bench(tmp_path, failed, done())
    assert bench.session().run(CONTRACT).cost.cost_usd == pytest.approx(3.0045)
