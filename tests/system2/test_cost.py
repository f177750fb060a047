"""What a workflow costs, and how it is told (REQ-120, REQ-121, REQ-130)."""

from __future__ import annotations

import pytest

from aeon_core.budget import PriceEntry
from aeon_core.llm.catalogue import price_of
from system2.cost import (
    DEFAULT_PRICE,
    CostRecord,
    agent_summary,
    clock,
    dollars,
    prices_of,
    total_cost,
    workflow_summary,
)

SONNET = "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0"


def costs_of(*calls: tuple[str, int, int, float]) -> list[CostRecord]:
    """What calls cost, each an agent, its tokens and US dollars."""
    return [
        CostRecord.of_call(agent, SONNET, {"input_tokens": read, "output_tokens": written}, usd)
        for agent, read, written, usd in calls
    ]


def test_costs_are_summed_over_calls_and_agents() -> None:
    costs = costs_of(("spec-coordinator", 45_230, 12_891, 0.329055), ("executor", 1_000_000, 0, 3.0))
    assert total_cost(costs, SONNET) == CostRecord("", SONNET, 1_045_230, 12_891, pytest.approx(3.329055), 2, 0)
    first = total_cost(costs[:1], SONNET, "spec-coordinator", 6)
    assert (first.agent_name, first.api_calls, first.tool_turns) == ("spec-coordinator", 1, 6)


def test_an_unknown_model_has_the_default_price_and_a_note() -> None:
    own = {"mine": PriceEntry(input=1, output=2)}
    prices, assumed = prices_of(["bedrock:someone.else-1", "bedrock:mine", SONNET], own)
    assert assumed == ["bedrock:someone.else-1"]
    assert prices == {"bedrock:someone.else-1": DEFAULT_PRICE, **own}
    known = price_of("bedrock:someone.else-1", prices)
    assert known is not None
    assert known.cost({"input_tokens": 1_000_000, "output_tokens": 100_000}) == pytest.approx(4.5)
    record = CostRecord("executor", assumed[0], 1_000_000, 100_000, 4.5, 1, 0)
    note = "$4.50 (price unknown: $3 in, $15 out per million tokens assumed)"
    assert f"Est. cost:    {note}" in agent_summary(record.as_dict(), 4.5, assumed)
    assert f"Total est. cost: {note}" in workflow_summary(record, ["executor"], 1, None, assumed)
    priced = CostRecord("executor", SONNET, 1_000_000, 100_000, 4.5, 1, 0)
    assert "Est. cost:    $4.50\n" in agent_summary(priced.as_dict(), 9.0, assumed)


def test_an_agents_summary_matches_the_specification() -> None:
    record = CostRecord("spec-coordinator", SONNET, 45_230, 12_891, 0.329055, 7, 6)
    assert agent_summary(record.as_dict(), 0.329055) == (
        "--- spec-coordinator complete ---\n"
        "Model:        us.anthropic.claude-sonnet-4-20250514-v1:0\n"
        "API calls:    7\n"
        "Input tokens: 45,230\n"
        "Output tokens: 12,891\n"
        "Tool turns:   6\n"
        "Est. cost:    $0.33\n"
        "Cumulative:   $0.33"
    )


def test_the_workflows_summary_matches_the_specification() -> None:
    agents = ["spec-coordinator", "requirements-engineer", "design-architect", "task-planner"]
    total = CostRecord("", SONNET, 178_432, 56_135, 1.377321, 28, 0)
    assert workflow_summary(total, agents, 754.4, ".system2/runs/20260201-143022.jsonl") == (
        "=== Workflow Summary ===\n"
        "Agents invoked: 4 (spec-coordinator, requirements-engineer, design-architect, task-planner)\n"
        "Total API calls: 28\n"
        "Total tokens:    234,567 (in: 178,432, out: 56,135)\n"
        "Total est. cost: $1.38\n"
        "Wall-clock time: 12m 34s\n"
        "Transcript:      .system2/runs/20260201-143022.jsonl"
    )


def test_tokens_from_the_prompt_cache_are_reported() -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "cache_read_tokens": 900_000, "cache_write_tokens": 50_000}
    record = CostRecord.of_call("executor", SONNET, usage, 0.6)
    told = "1,000,000 (900,000 read from the cache, 50,000 written to it)"
    assert f"Input tokens: {told}\n" in agent_summary(record.as_dict(), 0.6)
    assert f"(in: {told}, out: 0)" in workflow_summary(record, [], 1, None)


@pytest.mark.parametrize(("usd", "shown"), [(0, "$0.00"), (0.0042, "$0.0042"), (0.329, "$0.33"), (1204.5, "$1,204.50")])
def test_amounts_are_reported_to_the_cent_or_finer(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(34.9, "34s"), (754, "12m 34s"), (3754, "1h 2m 34s")])
def test_times_are_reported_in_hours_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
