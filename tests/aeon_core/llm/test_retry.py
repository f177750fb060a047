"""The one retry policy: how often, how long, and what is never tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import LLMError, RunAborted
from aeon_core.llm.base import LLMResponse
from aeon_core.llm.errors import attempts

Outcome = LLMResponse | BaseException
DONE = LLMResponse(text="done")


def busy(retry_after: Any = None, name: str = "busy") -> LLMError:
    return LLMError(name, True, retry_after, status_code=429)


class Calls:
    """Runs a script of outcomes under the policy and keeps what happened."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.log: list[Any] = []

    def __call__(self) -> LLMResponse:
        self.log.append(("call", 1 + sum(entry[0] == "call" for entry in self.log)))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def run(self, on_retry: Callable[[LLMError, float], None] | None = None, **options: Any) -> LLMResponse:
        def note(error: LLMError, wait: float) -> None:
            self.log.append(("retry", error.message, wait))

        return attempts(
            self, on_retry=on_retry or note, sleep=lambda seconds: self.log.append(("sleep", seconds)), **options
        )


def test_a_call_that_succeeds_is_made_once() -> None:
    calls = Calls(DONE)
    assert calls.run() is DONE
    assert calls.log == [("call", 1)]


def test_three_attempts_in_all_with_growing_waits_and_the_last_error() -> None:
    last = busy(name="third")
    calls = Calls(busy(name="first"), busy(name="second"), last)
    with pytest.raises(LLMError) as caught:
        calls.run()
    assert caught.value is last
    assert calls.log == [
        ("call", 1),
        ("retry", "first", 1.0),
        ("sleep", 1.0),
        ("call", 2),
        ("retry", "second", 2.0),
        ("sleep", 2.0),
        ("call", 3),
    ]


def test_a_retry_that_succeeds_ends_it() -> None:
    calls = Calls(busy(), DONE)
    assert calls.run() is DONE
    assert [entry[0] for entry in calls.log] == ["call", "retry", "sleep", "call"]


def starting(retry_after: Any = None) -> LLMError:
    return LLMError("starting", True, retry_after, status_code=503, unavailable=True)


def waits(calls: Calls) -> list[float]:
    return [entry[1] for entry in calls.log if entry[0] == "sleep"]


def test_a_starting_server_is_awaited_for_about_thirty_seconds() -> None:
    calls = Calls(*[starting() for _ in range(9)])
    with pytest.raises(LLMError, match="starting"):
        calls.run()
    assert waits(calls) == [1, 2, 4, 8, 16]
    assert calls.log[-1] == ("call", 6)


def test_a_server_that_has_started_answers() -> None:
    calls = Calls(starting(), starting(), starting(), starting(), DONE)
    assert calls.run() is DONE
    assert waits(calls) == [1, 2, 4, 8]


def test_the_wait_requested_by_a_starting_server_counts() -> None:
    calls = Calls(*[starting(20) for _ in range(9)])
    with pytest.raises(LLMError):
        calls.run()
    assert waits(calls) == [20, 20]
    calls = Calls(*[starting(3600) for _ in range(9)])
    with pytest.raises(LLMError):
        calls.run()
    assert waits(calls) == [60, 60]


def test_an_unrelated_failure_has_its_own_three_attempts() -> None:
    calls = Calls(starting(), starting(), busy(), DONE)
    with pytest.raises(LLMError, match="busy"):
        calls.run()
    calls = Calls(starting(), LLMError("the key was refused", status_code=401), DONE)
    with pytest.raises(LLMError, match="the key"):
        calls.run()
    assert waits(calls) == [1]


@pytest.mark.parametrize(
    ("wish", "wait"),
    [(7, 7.0), (0.2, 1.0), (3600, 60.0), (float("inf"), 60.0), (float("nan"), 1.0), (-5, 1.0), ("soon", 1.0)],
)
def test_the_requested_wait_is_a_minimum_up_to_a_minute(wish: Any, wait: float) -> None:
    calls = Calls(busy(wish), DONE)
    calls.run()
    assert calls.log[2] == ("sleep", wait)


def test_a_final_error_is_not_retried() -> None:
    error = LLMError("no", status_code=401)
    calls = Calls(error)
    with pytest.raises(LLMError) as caught:
        calls.run()
    assert caught.value is error
    assert calls.log == [("call", 1)]


@pytest.mark.parametrize("error", [RunAborted("stop"), KeyError("bug"), KeyboardInterrupt()])
def test_other_exceptions_propagate_at_once(error: BaseException) -> None:
    calls = Calls(error)
    with pytest.raises(type(error)):
        calls.run()
    assert calls.log == [("call", 1)]


def test_an_abort_during_the_wait_ends_it() -> None:
    def abort(error: LLMError, wait: float) -> None:
        raise RunAborted("stop")

    calls = Calls(busy())
    with pytest.raises(RunAborted):
        calls.run(on_retry=abort)
    assert calls.log == [("call", 1)]


def test_fewer_than_one_attempt_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Calls(DONE).run(max_attempts=0)


@given(st.lists(st.floats(min_value=-10, max_value=1e6), max_size=8), st.integers(1, 9))
def test_waits_stay_within_the_policy(wishes: list[float], most: int) -> None:
    calls = Calls(*[busy(wish) for wish in wishes], *[DONE] * 10)
    try:
        calls.run(max_attempts=most)
    except LLMError:
        assert len(wishes) >= most
    waits = [entry[1] for entry in calls.log if entry[0] == "sleep"]
    assert len(waits) == min(len(wishes), most - 1)
    for number, (wait, wish) in enumerate(zip(waits, wishes, strict=False)):
        assert wait == min(max(2.0**number, wish), 60.0)
