"""What is known about a model offline: its price, context window and options (contract: Models)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

from aeon_core.budget import PriceEntry
from aeon_core.llm import PROVIDERS, asks_a_server
from aeon_core.llm.base import LLMRequest, Usage

Source = Literal["genai-prices", "config", "built in", "recorded"]

_PER_MILLION = Decimal(1_000_000)
_version = cache(version)
"""Reading a package's metadata takes a seventh of a short run."""

_TAIL = re.compile(r"(?:-latest|[-@]\d{8}|[-@]\d{4}-\d{2}-\d{2})?(?:-v\d{1,2})?(?::\d{1,2})?(?::\d{1,4}k)?")
"""Suffixes with which a known name is still that model: a snapshot's date, a version, a context size."""
_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:[^/]*:(?:inference-profile|foundation-model)/(.+)", re.IGNORECASE)
_PLACE_AND_VENDOR = re.compile(
    r"/?(?:(?:us|us-gov|eu|apac|ap|jp|au|ca|in|sa|uk|me|af|il|mx|global|regional)\.)?(?:[a-z0-9]+\.)?"
)


@dataclass(frozen=True)
class ModelPrice:
    """The price of a model's tokens: the base rates in US dollars per million tokens, and their source.

    These are standard prices, without batch discounts or surcharges for service tiers.
    """

    input: float
    output: float
    source: Source
    _rates: Any = field(default=None, repr=False, compare=False)
    """The price object of genai-prices, with caches and tiers; None if one rate applies to all input."""

    def cost(self, usage: Usage) -> float:
        """Return the cost of a call in US dollars. Cache tokens without a rate of their own count as input.

        Cache tokens in excess of the input tokens are ignored.
        """
        total = usage.get("input_tokens", 0)
        written = min(usage.get("cache_write_tokens", 0), total)
        read = min(usage.get("cache_read_tokens", 0), total - written)
        return float(self._priced(total, usage.get("output_tokens", 0), written, read))

    def worst_case(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a call of at most so many tokens can cost, in US dollars.

        That is the dearest case of all input being plain, written to a cache or read from one, at any tier.
        """
        rates = vars(self._rates).values() if self._rates is not None else ()
        tiers = (tier.start for rate in rates for tier in getattr(rate, "tiers", ()))
        sizes = {input_tokens, *(start for start in tiers if start < input_tokens)}
        readings = [(size, *cached) for size in sizes for cached in ((0, 0), (size, 0), (0, size))]
        return float(max(self._priced(size, output_tokens, *cached) for size, *cached in readings))

    def _priced(self, input_tokens: int, output_tokens: int, written: int, read: int) -> Decimal:
        if self._rates is None:
            rates = Decimal(repr(self.input)) * input_tokens + Decimal(repr(self.output)) * output_tokens
            return rates / _PER_MILLION
        from genai_prices import Usage as Counts

        counts = Counts(
            input_tokens=input_tokens, output_tokens=output_tokens, cache_write_tokens=written, cache_read_tokens=read
        )
        price: Decimal = self._rates.calc_price(counts)["total_price"]
        return price


FREE = ModelPrice(0.0, 0.0, "built in")
"""The price of a model that runs in this process."""


def price_of(label: str, overrides: Mapping[str, PriceEntry] | None = None) -> ModelPrice | None:
    """Return the current price of the model `PROVIDER:NAME`; None if it is not known.

    `overrides` are the configuration's `prices`, by label or name, and take precedence. A name that only resembles
    a known one has no price. The server's address does not matter.
    """
    provider, _, name = label.partition(":")
    given = (overrides or {}).get(label) or (overrides or {}).get(name)
    if given is not None:
        return ModelPrice(given.input, given.output, "config")
    if provider in PROVIDERS and not asks_a_server(provider):
        return FREE
    found = _found(label)
    if found is None:
        return None
    rates = found.model_price
    if rates.input_mtok is None or rates.output_mtok is None:
        return None
    return ModelPrice(_base(rates.input_mtok), _base(rates.output_mtok), "genai-prices", rates)


def with_current_rates(
    label: str, recorded: ModelPrice | None, overrides: Mapping[str, PriceEntry] | None = None
) -> ModelPrice | None:
    """Return the model's current price, with its rates for caches and tiers, unless the recorded base rates differ."""
    current = price_of(label, overrides)
    if current is None or recorded is None or (current.input, current.output) != (recorded.input, recorded.output):
        return recorded
    return current


def context_window_of(label: str) -> int | None:
    """Return the context window of the model `PROVIDER:NAME` in tokens; None if it is not known."""
    found = _found(label)
    return None if found is None else found.model.context_window


def price_date() -> str:
    """Return the source of the prices, for people: the package, its version, and the day they are valid for.

    The data never updates itself; a future price in it is used from its day on.
    """
    return f"genai-prices {_version('genai-prices')}, prices of {datetime.now(UTC).date()}"


def _found(label: str) -> Any:
    """Return genai-prices' calculation for zero tokens, which has the model and price; None for an unknown model."""
    provider, _, name = label.partition(":")
    name = name.strip().lower()
    known = PROVIDERS.get(provider)
    if known is None or not known.priced_as or not name:
        return None
    if provider == "bedrock" and (arn := _ARN.fullmatch(name)):
        name = arn[1]
    from genai_prices import Usage as Counts
    from genai_prices import calc_price

    try:
        found = calc_price(Counts(input_tokens=0, output_tokens=0), name, provider_id=known.priced_as)
    except LookupError:
        return None
    return found if _names(found.model, name, on_bedrock=provider == "bedrock") else None


def _names(model: Any, name: str, *, on_bedrock: bool) -> bool:
    """Return whether the name is one of the model's names, apart from a date or version.

    The data matches prefixes and parts of names, so an invented name would get the price of another model.
    """
    bare = _bare if on_bedrock else str
    for kind, text in [("equals", model.id.lower()), *_clauses(model.match)]:
        if kind == "regex":
            named = re.fullmatch(text, name) is not None
        elif text.startswith("ft:"):
            named = name.startswith(text)
        else:
            named = bare(name).startswith(bare(text)) and _TAIL.fullmatch(bare(name), len(bare(text))) is not None
        if named:
            return True
    return False


def _clauses(match: Any) -> Iterator[tuple[str, str]]:
    """Yield each kind of match and the text that a model's name must match."""
    for kind, value in vars(match).items():
        if isinstance(value, list):
            for inner in value:
                yield from _clauses(inner)
        else:
            yield kind, value if kind == "regex" else value.lower()


def _bare(text: str) -> str:
    """Return a Bedrock id without its region prefix and vendor."""
    return _PLACE_AND_VENDOR.sub("", text, count=1)


def _base(rate: Any) -> float:
    return float(getattr(rate, "base", rate))


_LEAST_BUDGET = 1024
"""The smallest thinking budget, in tokens, that the API accepts."""
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?")
_FIRST_THAT_THINKS = (3, 7)
_FIRST_ADAPTIVE = (4, 6)
"""The first version that decides itself how long to think; later ones refuse a budget."""
_FIRST_THAT_CACHES = (3, 5)
_TAKES_REASONING_EFFORT = re.compile(r"(?:^|[/:])(?:o[134](?![\w.])|gpt-[56](?!\d)|gpt-oss(?!\w))")
_TAKES_NONE = re.compile(r"o1-(?:mini|preview)|-chat\b")


def claude_thinking(name: str, request: LLMRequest) -> dict[str, Any] | None:
    """Return the `thinking` parameter for a Claude model at high effort, else None.

    The budget is what `max_tokens` leaves beside the reply. Thinking does not go with a forced tool choice or a
    temperature, nor with earlier tool calls, whose thinking is not kept.
    """
    version = _claude_version(name)
    if request.effort != "high" or version < _FIRST_THAT_THINKS or any(m.get("tool_calls") for m in request.messages):
        return None
    if version >= _FIRST_ADAPTIVE:
        return {"type": "adaptive"}
    budget = request.thinking_tokens
    return {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST_BUDGET else None


def takes_cache_points(name: str) -> bool:
    """Return whether a model on Converse accepts `cachePoint` blocks, up to which prompts are cached."""
    return _claude_version(name) >= _FIRST_THAT_CACHES


def takes_claude_effort(name: str) -> bool:
    """Return whether a Claude model accepts `effort` in its `output_config`."""
    return _claude_version(name) >= _FIRST_ADAPTIVE or "opus-4-5" in name.lower()


def takes_reasoning_effort(name: str) -> bool:
    """Return whether a model on Chat Completions accepts `reasoning_effort`: the o-series, gpt-5, gpt-6, gpt-oss."""
    lowered = name.lower()
    return bool(_TAKES_REASONING_EFFORT.search(lowered)) and not _TAKES_NONE.search(lowered)


def _claude_version(name: str) -> tuple[int, int]:
    """Return the version in a model's name, without dates and revisions; (0, 0) if there is none."""
    found = _CLAUDE.search(name.lower())
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
