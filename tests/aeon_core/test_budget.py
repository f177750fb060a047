"""Money: upper bounds of requests, and a ceiling that no run passes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.budget import (
    Budget,
    CostCeilingReached,
    estimated_tokens,
    money,
    request_bytes,
    request_tokens_at_most,
)
from aeon_core.errors import AeonError, RunEnding, UsageError

amounts = st.floats(0, 5, allow_nan=False)


def exact(usd: float) -> Decimal:
    return Decimal(repr(usd))


def request(*texts: str, **more: Any) -> dict[str, Any]:
    return {
        "system": "Aeon reason",
        "messages": [{"role": "user", "content": text} for text in texts],
        "max_tokens": 100,
        **more,
    }


def test_a_call_is_reserved_then_settled_with_its_cost() -> None:
    budget = Budget(0.10)
    budget.reserve(0.06)
    assert (budget.spent_usd, budget.held_usd) == (0.0, 0.06)
    budget.settle(0.045)
    assert (budget.spent_usd, budget.held_usd) == (0.045, 0.0)


def test_a_call_that_may_pass_the_ceiling_is_refused_and_holds_nothing() -> None:
    budget = Budget(0.10)
    budget.reserve(0.06)
    budget.settle(0.045)
    with pytest.raises(CostCeilingReached) as caught:
        budget.reserve(0.0612)
    assert caught.value.message == (
        "the next call may cost up to $0.0612, $0.0450 of the budget of $0.10 spent; raise it with --budget"
    )
    assert caught.value.context == {"spent_usd": 0.045, "held_usd": 0.0, "reserved_usd": 0.0612, "limit_usd": 0.1}
    assert caught.value.exit_code == 4
    assert isinstance(caught.value, RunEnding)
    assert isinstance(caught.value, AeonError)
    assert (budget.spent_usd, budget.held_usd) == (0.045, 0.0)


def test_the_whole_budget_may_be_used() -> None:
    budget = Budget(0.3)
    for _ in range(3):
        budget.reserve(0.1)
        budget.settle(0.1)
    assert budget.spent_usd == 0.3
    with pytest.raises(CostCeilingReached):
        budget.reserve(0.000001)


def test_an_unreported_cost_stays_held() -> None:
    budget = Budget(0.10)
    budget.reserve(0.05)
    budget.settle(None)
    budget.reserve(0.04)
    budget.settle(0.01)
    assert (budget.spent_usd, budget.held_usd) == (0.01, 0.05)
    with pytest.raises(CostCeilingReached, match=r"\$0\.01 of the budget of \$0\.10 spent, \$0\.05 reserved for"):
        budget.reserve(0.05)


def test_the_rest_of_a_reserve_stays_held_after_a_partial_report() -> None:
    budget = Budget(0.10)
    budget.reserve(0.05)
    budget.settle(0.01, partly=True)
    assert (budget.spent_usd, budget.held_usd) == (0.01, 0.04)
    budget.reserve(0.02)
    budget.settle(0.03, partly=True)
    assert (budget.spent_usd, budget.held_usd) == (0.04, 0.04)


def test_the_budget_reports_spent_and_held_amounts() -> None:
    budget = Budget(0.10)
    assert budget.summary() == "$0.00 of the budget of $0.10 spent"
    budget.reserve(0.05)
    budget.settle(None)
    assert budget.summary() == ("$0.00 of the budget of $0.10 spent, $0.05 reserved for calls of unknown cost")
    unlimited = Budget(None)
    unlimited.settle(0.03)
    assert unlimited.summary() == "$0.03 spent"


def test_an_open_reserve_stays_held_when_another_call_begins() -> None:
    budget = Budget(1.0)
    budget.reserve(0.5)
    budget.reserve(0.25)
    assert budget.held_usd == 0.75
    budget.settle(0.2)
    assert (budget.spent_usd, budget.held_usd) == (0.2, 0.5)


def test_a_reserve_is_rounded_up_so_that_its_cost_fits() -> None:
    budget = Budget(1.0)
    budget.reserve(1.4e-9)
    assert budget.held_usd == 2e-9
    budget.settle(1.4e-9)
    assert budget.spent_usd == 1e-9


def test_a_call_that_was_not_sent_gives_its_reserve_back() -> None:
    budget = Budget(0.10)
    budget.reserve(0.10)
    budget.settle(0.0)
    budget.reserve(0.10)
    assert (budget.spent_usd, budget.held_usd) == (0.0, 0.10)


def test_a_cost_without_a_reserve_is_counted() -> None:
    budget = Budget(None)
    budget.settle(0.5)
    budget.settle(None)
    assert (budget.spent_usd, budget.held_usd) == (0.5, 0.0)


def test_without_a_limit_nothing_is_refused_and_no_warning_is_due() -> None:
    budget = Budget(None)
    budget.reserve(1e6)
    budget.settle(1e6)
    assert (budget.limit_usd, budget.spent_usd, budget.warning_due()) == (None, 1e6, False)


def test_a_zero_budget_allows_free_calls() -> None:
    budget = Budget(0)
    budget.reserve(0.0)
    budget.settle(0.0)
    assert budget.warning_due() is False
    with pytest.raises(CostCeilingReached, match=r"may cost up to \$0\.0001, \$0\.00 of the budget of \$0\.00"):
        budget.reserve(1e-6)


def test_a_warning_is_due_once_at_80_percent() -> None:
    budget = Budget(1.0)
    budget.settle(0.79)
    assert budget.warning_due() is False
    budget.settle(0.01)
    assert [budget.warning_due(), budget.warning_due()] == [True, False]


def test_a_custom_warning_amount_counts_held_reserves() -> None:
    budget = Budget(1.0, 0.3)
    budget.reserve(0.3)
    budget.settle(None)
    assert budget.warning_due() is True
    unlimited = Budget(None, 0.3)
    unlimited.settle(0.3)
    assert unlimited.warning_due() is True


def test_a_lifted_ceiling_lets_the_call_pass_and_warns_again() -> None:
    budget = Budget(0.10)
    budget.settle(0.09)
    assert budget.warning_due() is True
    budget.limit_usd = 1.0
    budget.reserve(0.75)
    assert (budget.limit_usd, budget.held_usd) == (1.0, 0.75)
    assert [budget.warning_due(), budget.warning_due()] == [True, False]


def test_a_continued_run_counts_earlier_costs() -> None:
    budget = Budget(0.10)
    budget.restore({"limit_usd": 0.10, "spent_usd": 0.06, "held_usd": 0.03, "warned": False})
    with pytest.raises(CostCeilingReached):
        budget.reserve(0.02)
    budget.reserve(0.01)
    assert (budget.spent_usd, budget.held_usd) == (0.06, 0.04)


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf"), "1", True])
def test_an_invalid_limit_is_refused_in_one_line(limit: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Budget(limit)
    expected = f"the budget {limit!r} is not an amount in US dollars; expected a number of at least 0, such as 1.5"
    assert (caught.value.message, caught.value.exit_code) == (expected, 2)
    with pytest.raises(UsageError, match="the amount to warn at"):
        Budget(1.0, limit)


@pytest.mark.parametrize("usd", [-0.1, float("nan"), float("inf")])
def test_reserves_and_costs_are_never_negative(usd: float) -> None:
    budget = Budget(1.0)
    with pytest.raises(ValueError, match="not an amount of money"):
        budget.reserve(usd)
    with pytest.raises(ValueError, match="not an amount of money"):
        budget.settle(usd)


@given(st.floats(0, 20), st.lists(st.tuples(amounts, st.one_of(st.none(), st.floats(0, 1))), max_size=30))
def test_spent_and_held_never_pass_the_limit(limit: float, calls: list[tuple[float, float | None]]) -> None:
    budget = Budget(limit)
    settled = Decimal(0)
    for reserve, share in calls:
        used = exact(budget.spent_usd) + exact(budget.held_usd)
        try:
            budget.reserve(reserve)
        except CostCeilingReached as ceiling:
            refused = exact(ceiling.context["reserved_usd"])
            too_much = used + refused > exact(ceiling.context["limit_usd"])
        else:
            cost = None if share is None else reserve * share
            budget.settle(cost)
            settled += exact(cost or 0.0)
            too_much = True
        assert too_much
        assert exact(budget.spent_usd) + exact(budget.held_usd) <= exact(limit)
    assert abs(exact(budget.spent_usd) - settled) <= len(calls) * Decimal("1e-9")


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (0, "$0.00"),
        (0.0042, "$0.0042"),
        (0.045, "$0.0450"),
        (0.05, "$0.05"),
        (0.99996, "$1.00"),
        (1.38, "$1.38"),
        (1204.5, "$1,204.50"),
        (0.0001, "$0.0001"),
        (0.00009, "<$0.0001"),
        (1e-12, "<$0.0001"),
        (-0.5, "-$0.50"),
        (1e25, "$10,000,000,000,000,000,905,969,664.00"),
    ],
)
def test_amounts_are_formatted(usd: float, shown: str) -> None:
    assert money(usd) == shown


@given(st.floats(min_value=1e-300, max_value=1e12))
def test_a_positive_cost_is_never_shown_as_zero(usd: float) -> None:
    assert money(usd) != money(0)
    assert money(usd).lstrip("<").startswith("$")


def test_nan_is_not_an_amount() -> None:
    with pytest.raises(ValueError, match="nan is not an amount of money"):
        money(float("nan"))


@given(st.lists(st.text(max_size=80), max_size=6), st.booleans(), st.integers(0, 3))
def test_the_bound_covers_every_byte_sent(texts: list[str], schema: bool, tools: int) -> None:
    tool = {"name": "n", "description": "ü", "input_schema": {"type": "object"}}
    more: dict[str, Any] = {"tools": [tool] * tools, "schema": {"type": "object", "title": "ß"} if schema else None}
    described = request(*texts, **{key: value for key, value in more.items() if value})
    sent = "".join(texts) + described["system"]
    sent += "".join(json.dumps(value, ensure_ascii=False) for value in [tool] * tools if value)
    sent += json.dumps(more["schema"], ensure_ascii=False) if schema else ""
    assert request_tokens_at_most(described) > len(sent.encode("utf-8", "surrogatepass")) + 16 * len(texts) + 64 * tools


def test_tool_calls_of_a_conversation_count() -> None:
    turn = {"role": "assistant", "content": "", "tool_calls": [{"id": "t1", "name": "echo", "arguments": {"a": "é"}}]}
    plain_turn = {"role": "assistant", "content": ""}
    grown = request_tokens_at_most({"messages": [turn]}) - request_tokens_at_most({"messages": [plain_turn]})
    assert grown == len(json.dumps(turn, ensure_ascii=False).encode()) - len(json.dumps(plain_turn)) + 16


def test_estimates_follow_measurements() -> None:
    described = request("word " * 720)
    size = request_bytes(described)
    assert estimated_tokens(described, 1.0) == size
    assert estimated_tokens(described, 0.5) == -(-size // 2)
    assert estimated_tokens(described) == pytest.approx(size / 3.6, abs=1)
    assert estimated_tokens(described) < request_tokens_at_most(described)


def test_an_empty_request_still_has_the_providers_overhead() -> None:
    assert request_bytes({}) == 0
    assert request_tokens_at_most({}) == 600
    assert request_bytes({"system": "\ud800"}) == 3
