"""What a workflow costs, when it warns and pauses, and how it is told (REQ-120, REQ-121, REQ-130…133)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.budget import PriceEntry
from aeon_core.llm.base import Usage
from system2.cost import CostRecord, CostTracker, clock, dollars

SONNET = "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0"


def tracker(model: str = SONNET, warning: float = 2.0, ceiling: float = 5.0, **options: object) -> CostTracker:
    return CostTracker(model, warning_usd=warning, ceiling_usd=ceiling, **options)  # type: ignore[arg-type]


def spend(costs: CostTracker, usd: float, agent: str = "executor") -> CostRecord:
    """Spend an amount on input tokens of three dollars a million."""
    return costs.add(agent, {"input_tokens": round(usd / 3 * 1_000_000), "output_tokens": 0})


def test_costs_add_up_over_calls_and_agents() -> None:
    costs = tracker()
    first = costs.add("spec-coordinator", {"input_tokens": 45_230, "output_tokens": 12_891}, api_calls=7, tool_turns=6)
    assert first == CostRecord("spec-coordinator", SONNET, 45_230, 12_891, pytest.approx(0.329055), 7, 6)
    costs.add("executor", {"input_tokens": 1_000_000, "output_tokens": 0})
    assert costs.cumulative == pytest.approx(3.329055)
    assert costs.total() == CostRecord("", SONNET, 1_045_230, 12_891, pytest.approx(3.329055), 8, 6)


def test_the_warning_is_given_once() -> None:
    costs = tracker()
    spend(costs, 1.5)
    assert costs.check_thresholds() is None
    spend(costs, 0.5)
    assert costs.check_thresholds() == "warning"
    spend(costs, 0.5)
    assert costs.check_thresholds() is None


def test_the_ceiling_stands_until_it_is_lifted_and_is_reached_again() -> None:
    costs = tracker()
    spend(costs, 5)
    assert [costs.check_thresholds(), costs.check_thresholds()] == ["ceiling", "ceiling"]
    costs.lift()
    assert (costs.ceiling_usd, costs.check_thresholds()) == (10, None)
    spend(costs, 5)
    assert costs.is_at_ceiling


def test_thresholds_are_reached_exactly() -> None:
    costs = tracker(warning=0.9, ceiling=1.8)
    for expected in (None, None, "warning", None, None, "ceiling"):
        spend(costs, 0.3)
        assert costs.check_thresholds() == expected


def test_a_ceiling_of_nothing_pauses_before_the_first_call_that_costs() -> None:
    costs = tracker(warning=0, ceiling=0)
    assert costs.is_at_ceiling
    costs.lift()
    spend(costs, 0.1)
    assert not costs.is_at_ceiling
    assert not tracker("simulated:default", ceiling=0).is_at_ceiling


def test_what_an_earlier_process_spent_counts_and_is_not_warned_of_again() -> None:
    costs = tracker()
    spent = [spend(tracker(), 2.4), spend(tracker(), 3)]
    costs.restore(spent, lifted=1)
    assert (costs.cumulative, costs.ceiling_usd) == (5.4, 10)
    assert costs.check_thresholds() is None


def test_a_ceiling_that_nobody_lifted_still_stands_for_a_later_process() -> None:
    costs = tracker()
    costs.restore([spend(tracker(), 5.4)])
    assert costs.is_at_ceiling


def test_an_unknown_model_has_the_default_price_and_says_so() -> None:
    costs = tracker("bedrock:someone.else-1")
    record = costs.add("executor", {"input_tokens": 1_000_000, "output_tokens": 100_000})
    assert record.cost_usd == pytest.approx(4.5)
    note = "$4.50 (price unknown: $3 in, $15 out per million tokens assumed)"
    assert f"Est. cost:    {note}" in costs.agent_summary(record)
    assert f"Total est. cost: {note}" in costs.workflow_summary(["executor"], 1, None)


def test_a_price_of_ones_own_and_a_model_that_costs_nothing() -> None:
    own = tracker("bedrock:mine", prices={"mine": PriceEntry(input=1, output=2)})
    assert own.add("a", {"input_tokens": 1_000_000, "output_tokens": 1_000_000}).cost_usd == 3
    assert tracker("simulated:default").add("a", {"input_tokens": 9, "output_tokens": 9}).cost_usd == 0


def test_an_agents_summary_has_the_form_of_the_specification() -> None:
    costs = tracker()
    record = costs.add("spec-coordinator", {"input_tokens": 45_230, "output_tokens": 12_891}, api_calls=7, tool_turns=6)
    assert costs.agent_summary(record) == (
        "--- spec-coordinator complete ---\n"
        "Model:        us.anthropic.claude-sonnet-4-20250514-v1:0\n"
        "API calls:    7\n"
        "Input tokens: 45,230\n"
        "Output tokens: 12,891\n"
        "Tool turns:   6\n"
        "Est. cost:    $0.33\n"
        "Cumulative:   $0.33"
    )


def test_the_workflows_summary_has_the_form_of_the_specification() -> None:
    costs = tracker()
    costs.add("spec-coordinator", {"input_tokens": 178_432, "output_tokens": 56_135}, api_calls=28)
    agents = ["spec-coordinator", "requirements-engineer", "design-architect", "task-planner"]
    assert costs.workflow_summary(agents, 754.4, ".system2/runs/20260201-143022.jsonl") == (
        "=== Workflow Summary ===\n"
        "Agents invoked: 4 (spec-coordinator, requirements-engineer, design-architect, task-planner)\n"
        "Total API calls: 28\n"
        "Total tokens:    234,567 (in: 178,432, out: 56,135)\n"
        "Total est. cost: $1.38\n"
        "Wall-clock time: 12m 34s\n"
        "Transcript:      .system2/runs/20260201-143022.jsonl"
    )


@pytest.mark.parametrize(("usd", "shown"), [(0, "$0.00"), (0.0042, "$0.0042"), (0.329, "$0.33"), (1204.5, "$1,204.50")])
def test_amounts_are_told_to_the_cent_or_finer(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(34.9, "34s"), (754, "12m 34s"), (3754, "1h 2m 34s")])
def test_times_are_told_in_hours_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@given(st.lists(st.integers(0, 400_000), max_size=30))
def test_the_warning_comes_at_most_once_and_the_sum_is_exact(tokens: list[int]) -> None:
    costs = tracker()
    said = []
    for count in tokens:
        costs.add("executor", {"input_tokens": count, "output_tokens": 0})
        said.append(costs.check_thresholds())
    assert said.count("warning") <= 1
    assert costs.cumulative == pytest.approx(sum(tokens) * 3 / 1_000_000, abs=1e-9)


def test_what_the_prompt_cache_held_is_cheaper_and_told() -> None:
    costs = tracker()
    usage: Usage = {
        "input_tokens": 1_000_000,
        "output_tokens": 0,
        "cache_read_tokens": 900_000,
        "cache_write_tokens": 50_000,
    }
    record = costs.add("executor", usage)
    assert record.cost_usd == pytest.approx(0.05 * 3 + 0.9 * 0.3 + 0.05 * 3.75)
    told = "1,000,000 (900,000 read from the cache, 50,000 written to it)"
    assert f"Input tokens: {told}\n" in costs.agent_summary(record)
    assert f"(in: {told}, out: 0)" in costs.workflow_summary([], 1, None)
