"""What a workflow costs: added up call by call, warned of once, held at a ceiling, summed up (REQ-130…133)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from aeon_core.budget import Budget, PriceEntry
from aeon_core.llm.base import Usage
from aeon_core.llm.catalogue import ModelPrice, price_of
from aeon_core.money import money

DEFAULT_PRICE = PriceEntry(input=3.0, output=15.0)
"""US dollars per million tokens for a model of which no price is known: those of the Claude Sonnet models."""
_CENT = 0.01


@dataclass(frozen=True)
class CostRecord:
    """What calls cost: one call's, an agent's or a whole workflow's."""

    agent_name: str
    model_id: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    api_calls: int
    tool_turns: int
    cache_read_tokens: int = 0
    """Of the input tokens, those read from the provider's prompt cache, and below those written to it."""
    cache_write_tokens: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON; `CostRecord(**it)` gives it back."""
        return asdict(self)


class CostTracker:
    """The running estimate of one workflow. What is `cumulative` holds every call so far, failed ones included."""

    def __init__(
        self,
        model_id: str,
        *,
        warning_usd: float,
        ceiling_usd: float,
        prices: Mapping[str, PriceEntry] | None = None,
    ) -> None:
        self.model_id = model_id
        self.ceiling_usd = ceiling_usd
        """What may be spent until a person confirms more; `lift` raises it."""
        self._step_usd = ceiling_usd
        self._prices = dict(prices or {})
        self.price_is_known = True
        """Whether that holds for every model so far."""
        self._price_by_model: dict[str, ModelPrice] = {}
        self.price = self._price_of(model_id)
        self._records: list[CostRecord] = []
        self._budget = Budget(None, warning_usd)

    @property
    def records(self) -> list[CostRecord]:
        """What was added, one record after the other."""
        return list(self._records)

    @property
    def is_at_ceiling(self) -> bool:
        """Whether nothing more may be spent before a person confirms it (REQ-132); a free model spends nothing."""
        return self.cumulative >= self.ceiling_usd and not (self.cumulative == 0 and self._is_free)

    @property
    def cumulative(self) -> float:
        """What was spent so far, in US dollars."""
        return self._budget.spent_usd

    def add(
        self, agent_name: str, usage: Usage, *, model_id: str | None = None, api_calls: int = 1, tool_turns: int = 0
    ) -> CostRecord:
        """Add calls of an agent, and return what they cost; `model_id` is its own model, where it has one."""
        model = model_id or self.model_id
        cost = self._price_of(model).cost(usage)
        return self._add(
            CostRecord(
                agent_name=agent_name,
                model_id=model,
                input_tokens=usage["input_tokens"],
                output_tokens=usage["output_tokens"],
                cost_usd=cost,
                api_calls=api_calls,
                tool_turns=tool_turns,
                cache_read_tokens=usage.get("cache_read_tokens", 0),
                cache_write_tokens=usage.get("cache_write_tokens", 0),
            )
        )

    def restore(self, records: Iterable[CostRecord], lifted: int = 0) -> None:
        """Add what an earlier process spent, and lift the ceiling as often as a person did there.

        The warning of it was given there. A ceiling that stopped the workflow is still to be confirmed (REQ-132).
        """
        for record in records:
            self._add(record)
        self._budget.warning_due()
        for _ in range(lifted):
            self.lift()

    def total(self, records: Iterable[CostRecord] | None = None, agent_name: str = "") -> CostRecord:
        """Return the sum of some records, of all where None are given."""
        summed = list(self._records if records is None else records)
        return CostRecord(
            agent_name=agent_name,
            model_id=summed[0].model_id if agent_name and summed else self.model_id,
            input_tokens=sum(record.input_tokens for record in summed),
            output_tokens=sum(record.output_tokens for record in summed),
            cost_usd=round(sum(record.cost_usd for record in summed), 9),
            api_calls=sum(record.api_calls for record in summed),
            tool_turns=sum(record.tool_turns for record in summed),
            cache_read_tokens=sum(record.cache_read_tokens for record in summed),
            cache_write_tokens=sum(record.cache_write_tokens for record in summed),
        )

    def check_thresholds(self) -> Literal["warning", "ceiling"] | None:
        """Return `ceiling` while the ceiling is reached, `warning` once when the warning is, else None."""
        if self.is_at_ceiling:
            return "ceiling"
        return "warning" if self._budget.warning_due() else None

    def lift(self) -> None:
        """Raise the ceiling by as much as it was at first: a person has confirmed that the work goes on (REQ-132)."""
        self._budget.warning_due()
        self.ceiling_usd = self.ceiling_usd + self._step_usd if self._step_usd else float("inf")

    def agent_summary(self, record: CostRecord) -> str:
        """Return what an agent's work cost, as it is shown when it ends (REQ-120)."""
        return "\n".join(
            [
                f"--- {record.agent_name} complete ---",
                f"Model:        {record.model_id.removeprefix('bedrock:')}",
                f"API calls:    {record.api_calls:,}",
                f"Input tokens: {record.input_tokens:,}{_cached(record)}",
                f"Output tokens: {record.output_tokens:,}",
                f"Tool turns:   {record.tool_turns:,}",
                f"Est. cost:    {dollars(record.cost_usd)}{self._default_note()}",
                f"Cumulative:   {dollars(self.cumulative)}",
            ]
        )

    def workflow_summary(self, agents_invoked: list[str], wall_clock_seconds: float, transcript: str | None) -> str:
        """Return what the workflow was and cost, as it is shown at its end (REQ-121)."""
        total = self.total()
        cached = _cached(total)
        tokens = total.input_tokens + total.output_tokens
        names = f" ({', '.join(agents_invoked)})" if agents_invoked else ""
        return "\n".join(
            [
                "=== Workflow Summary ===",
                f"Agents invoked: {len(agents_invoked)}{names}",
                f"Total API calls: {total.api_calls:,}",
                f"Total tokens:    {tokens:,} (in: {total.input_tokens:,}{cached}, out: {total.output_tokens:,})",
                f"Total est. cost: {dollars(self.cumulative)}{self._default_note()}",
                f"Wall-clock time: {clock(wall_clock_seconds)}",
                f"Transcript:      {transcript or 'none: it could not be written'}",
            ]
        )

    def _price_of(self, model_id: str) -> ModelPrice:
        if model_id not in self._price_by_model:
            known = price_of(model_id, self._prices)
            self.price_is_known = self.price_is_known and known is not None
            assumed = ModelPrice(DEFAULT_PRICE.input, DEFAULT_PRICE.output, "built in")
            self._price_by_model[model_id] = known or assumed
        return self._price_by_model[model_id]

    def _add(self, record: CostRecord) -> CostRecord:
        self._records.append(record)
        self._budget.settle(record.cost_usd)
        return record

    @property
    def _is_free(self) -> bool:
        return self.price.input == 0 and self.price.output == 0

    def _default_note(self) -> str:
        if self.price_is_known:
            return ""
        return (
            f" (price unknown: ${DEFAULT_PRICE.input:g} in, ${DEFAULT_PRICE.output:g} out per million tokens assumed)"
        )


def _cached(record: CostRecord) -> str:
    """Return how much of the input the provider's prompt cache held, nothing where it held none."""
    if not (record.cache_read_tokens or record.cache_write_tokens):
        return ""
    return f" ({record.cache_read_tokens:,} read from the cache, {record.cache_write_tokens:,} written to it)"


def dollars(usd: float) -> str:
    """Return an estimate for people: "$0.33", "$1,204.50"; below a cent "$0.0042"."""
    return money(usd) if 0 < usd < _CENT else f"${usd:,.2f}"


def clock(seconds: float) -> str:
    """Return a length of time for people: "34s", "12m 34s", "1h 2m 34s"."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minute}m {second}s"
    return f"{minute}m {second}s" if minute else f"{second}s"
