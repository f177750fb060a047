"""What a workflow costs: prices, sums and summaries (REQ-130…133)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from msgspec import Meta

from aeon_core.budget import PriceEntry
from aeon_core.llm.catalogue import price_of
from aeon_core.units import money

DEFAULT_PRICE = PriceEntry(input=3.0, output=15.0)
"""US dollars per million tokens, assumed for models without a known price: that of the Claude Sonnet models."""
_CENT = 0.01
_MOST = 10**12
"""The largest cost, duration or token count accepted from a file, so that sums stay finite."""
Count = Annotated[int, Meta(ge=0, le=_MOST)]
Amount = Annotated[float, Meta(ge=0, le=_MOST)]
_SUMMED = ("input_tokens", "output_tokens", "api_calls", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True)
class CostRecord:
    """The cost of one call, of an agent's round or of a whole workflow."""

    agent_name: str
    model_id: str
    input_tokens: Count
    output_tokens: Count
    cost_usd: Amount
    api_calls: Count
    tool_turns: Count
    cache_read_tokens: Count = 0
    """Input tokens read from the provider's prompt cache, followed by those written to it."""
    cache_write_tokens: Count = 0

    @classmethod
    def of_call(cls, agent: str | None, model: str, usage: Mapping[str, int], cost_usd: float | None) -> CostRecord:
        read, written = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
        cached = usage.get("cache_read_tokens", 0), usage.get("cache_write_tokens", 0)
        return cls(agent or "", model, read, written, cost_usd or 0.0, 1, 0, *cached)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON; `CostRecord(**data)` restores it."""
        return asdict(self)


def total_cost(records: Iterable[CostRecord], model_id: str, agent: str = "", tool_turns: int = 0) -> CostRecord:
    """Return the sum of records; its model is that of an `agent`'s first call, or `model_id` for a workflow."""
    summed = list(records)
    amounts = {name: sum(getattr(each, name) for each in summed) for name in _SUMMED} | {"tool_turns": tool_turns}
    cost = round(sum(each.cost_usd for each in summed), 9)
    return CostRecord(agent, summed[0].model_id if agent and summed else model_id, cost_usd=cost, **amounts)


def prices_of(models: Iterable[str], given: Mapping[str, PriceEntry]) -> tuple[dict[str, PriceEntry], list[str]]:
    """Return the given prices with the default one for models without a known price, and the names of those models."""
    assumed = [model for model in dict.fromkeys(models) if price_of(model, given) is None]
    return {**dict.fromkeys(assumed, DEFAULT_PRICE), **given}, assumed


def agent_summary(record: Mapping[str, Any], cumulative: float, assumed: Sequence[str] = ()) -> str:
    """Return the summary of an agent's cost that is shown when it ends (REQ-120)."""
    cost = CostRecord(**record)
    lines = [
        f"--- {cost.agent_name} complete ---",
        f"Model:        {cost.model_id.removeprefix('bedrock:')}",
        f"API calls:    {cost.api_calls:,}",
        f"Input tokens: {cost.input_tokens:,}{_cache_note(cost)}",
        f"Output tokens: {cost.output_tokens:,}",
        f"Tool turns:   {cost.tool_turns:,}",
        f"Est. cost:    {dollars(cost.cost_usd)}{_assumed_note(cost.model_id in assumed)}",
        f"Cumulative:   {dollars(cumulative)}",
    ]
    return "\n".join(lines)


def workflow_summary(
    total: CostRecord, agents: Sequence[str], seconds: float, transcript: str | None, assumed: Sequence[str] = ()
) -> str:
    """Return the summary of a workflow that is shown when it ends (REQ-121)."""
    cached = _cache_note(total)
    tokens = total.input_tokens + total.output_tokens
    names = f" ({', '.join(agents)})" if agents else ""
    lines = [
        "=== Workflow Summary ===",
        f"Agents invoked: {len(agents)}{names}",
        f"Total API calls: {total.api_calls:,}",
        f"Total tokens:    {tokens:,} (in: {total.input_tokens:,}{cached}, out: {total.output_tokens:,})",
        f"Total est. cost: {dollars(total.cost_usd)}{_assumed_note(bool(assumed))}",
        f"Wall-clock time: {clock(seconds)}",
        f"Transcript:      {transcript or 'none: it could not be written'}",
    ]
    return "\n".join(lines)


def _assumed_note(assumed: bool) -> str:
    if not assumed:
        return ""
    return f" (price unknown: ${DEFAULT_PRICE.input:g} in, ${DEFAULT_PRICE.output:g} out per million tokens assumed)"


def _cache_note(record: CostRecord) -> str:
    """Return how many tokens the prompt cache gave and took, in parentheses, or "" if none."""
    if not (record.cache_read_tokens or record.cache_write_tokens):
        return ""
    return f" ({record.cache_read_tokens:,} read from the cache, {record.cache_write_tokens:,} written to it)"


def dollars(usd: float) -> str:
    """Format US dollars: "$0.33", "$1,204.50"; below a cent "$0.0042"."""
    return money(usd) if 0 < usd < _CENT else f"${usd:,.2f}"


def clock(seconds: float) -> str:
    """Format a duration: "34s", "12m 34s", "1h 2m 34s"."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minute}m {second}s"
    return f"{minute}m {second}s" if minute else f"{second}s"
