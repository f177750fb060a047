"""Prices and context windows, offline: which names are known, what a call costs, what it may cost at most."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice as Rates
from genai_prices.types import Tier, TieredPrices
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from aeon_core.budget import PriceEntry
from aeon_core.llm.base import Usage
from aeon_core.llm.catalogue import FREE, ModelPrice, context_window_of, price_date, price_of

SONNET = "anthropic.claude-sonnet-4-20250514-v1:0"
ARN = "bedrock:arn:aws:bedrock:us-east-1"
MODELS = [
    f"{ours}:{name}"
    for ours, theirs in (("anthropic", "anthropic"), ("openai", "openai"), ("bedrock", "aws"))
    for provider in get_snapshot().providers
    if provider.id == theirs
    for model in provider.models
    for name in (model.id, model.id.replace("regional.", "us."))
]
RATES = [
    conditional.prices
    for provider in get_snapshot().providers
    for model in provider.models
    for conditional in (model.prices if isinstance(model.prices, list) else [model])
    if conditional.prices.input_mtok is not None
]


def base_rates(label: str) -> tuple[float, float] | None:
    price = price_of(label)
    return None if price is None else (price.input, price.output)


@pytest.mark.parametrize(
    ("label", "rates"),
    [
        ("openai:gpt-4o", (2.5, 10.0)),
        ("openai:gpt-4o-2024-08-06", (2.5, 10.0)),
        ("openai:GPT-4o-mini", (0.15, 0.6)),
        ("openai:gpt-5-nano-2025-08-07", (0.05, 0.4)),
        ("openai:ft:gpt-4o-mini-2024-07-18:acme::b7", (0.3, 1.2)),
        ("anthropic:claude-sonnet-4-5", (3.0, 15.0)),
        ("anthropic:claude-sonnet-4-5-20250929", (3.0, 15.0)),
        ("anthropic:claude-3-5-sonnet-latest", (3.0, 15.0)),
        (f"bedrock:us.{SONNET}", (3.0, 15.0)),
        (f"{ARN}:123456789012:inference-profile/us.{SONNET}", (3.0, 15.0)),
        (f"{ARN}::foundation-model/{SONNET}", (3.0, 15.0)),
        ("bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0", (3.3, 16.5)),
        ("bedrock:amazon.nova-pro-v1:0:300k", (0.8, 3.2)),
        ("bedrock:mistral.mistral-7b-instruct-v0:2", (0.15, 0.2)),
    ],
)
def test_a_model_is_priced_under_the_names_it_is_called_by(label: str, rates: tuple[float, float]) -> None:
    assert base_rates(label) == rates
    price = price_of(label)
    assert price is not None
    assert price.source == "genai-prices"


@pytest.mark.parametrize(
    "label",
    [
        "openai:gpt-4o-my-finetune-foo",
        "openai:gpt-5-nano-foo",
        "openai:llama3.1:8b",
        "anthropic:claude-nonsense",
        "anthropic:claude-sonnet-4-55",
        "anthropic:claude-sonnet-4-5-turbo",
        "anthropic:gpt-4o",
        "bedrock:my-claude-3-haiku-20240307-tuned",
        "bedrock:amazon.nova-pro-custom",
        f"{ARN}:123456789012:application-inference-profile/ab12cd34",
        f"{ARN}:123456789012:provisioned-model/{SONNET}",
        "openai:text-embedding-3-small",
        "openai:",
        "custom",
        "",
        "mistral:mistral-large-latest",
    ],
)
def test_a_name_that_only_resembles_a_known_one_has_no_price(label: str) -> None:
    assert price_of(label) is None


def test_most_of_the_data_is_found_under_its_own_ids() -> None:
    named = [label for label in MODELS if "regional." not in label and not label.startswith("openai:ft:")]
    lost = [label for label in named if context_window_of(label) is None and price_of(label) is None]
    speech = re.compile(r"gpt-live|realtime|transcribe|tts|whisper|moderation|embedding")
    assert len({label for label in MODELS if price_of(label) is not None}) > 200
    assert [label for label in lost if not speech.search(label)] == []


@pytest.mark.parametrize("label", ["simulated:default", "llama-cpp:/models/tiny.gguf"])
def test_local_models_are_free(label: str) -> None:
    assert price_of(label) == FREE == ModelPrice(0.0, 0.0, "built in")
    assert FREE.cost({"input_tokens": 10**9, "output_tokens": 10**9}) == 0.0
    assert FREE.worst_case(10**9, 10**9) == 0.0
    assert context_window_of(label) is None


@pytest.mark.parametrize("key", ["openai:gpt-4o", "gpt-4o"])
def test_the_configuration_wins_by_label_and_by_name(key: str) -> None:
    price = price_of("openai:gpt-4o", {key: PriceEntry(input=1, output=4), "gpt": PriceEntry(input=9, output=9)})
    assert price == ModelPrice(1.0, 4.0, "config")
    assert price.cost({"input_tokens": 1_000_000, "output_tokens": 500_000, "cache_read_tokens": 900_000}) == 3.0
    assert price.worst_case(1_000_000, 500_000) == 3.0


def test_the_label_takes_precedence_over_the_name() -> None:
    prices = {"m": PriceEntry(input=1, output=1), "openai:m": PriceEntry(input=2, output=2)}
    assert base_rates("openai:m") is None
    assert price_of("openai:m", prices) == ModelPrice(2.0, 2.0, "config")
    assert price_of("custom", {"custom": prices["m"]}) == ModelPrice(1.0, 1.0, "config")


def test_a_configured_price_of_zero_is_a_price() -> None:
    assert price_of("openai:gpt-4o", {"gpt-4o": PriceEntry(input=0, output=0)}) == ModelPrice(0.0, 0.0, "config")


@pytest.mark.parametrize(
    "entry",
    [
        {"input": -1, "output": 1},
        {"input": float("nan"), "output": 1},
        {"input": 1, "output": float("inf")},
        {"input": "1", "output": 1},
        {"input": True, "output": 1},
        {"input": 1},
        {"input": 1, "output": 1, "cached": 1},
    ],
)
def test_an_invalid_price_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PriceEntry.model_validate(entry)


def test_cache_tokens_cost_the_providers_rate() -> None:
    price = price_of("anthropic:claude-haiku-4-5")
    assert price is not None
    usage: Usage = {"input_tokens": 3_000, "output_tokens": 0, "cache_read_tokens": 1_000, "cache_write_tokens": 1_000}
    assert price.cost(usage) == pytest.approx((1.0 + 0.1 + 1.25) / 1000)
    assert price.worst_case(3_000, 0) == pytest.approx(3 * 1.25 / 1000)


def test_cache_tokens_without_a_rate_cost_as_input() -> None:
    price = price_of("openai:gpt-4o")
    assert price is not None
    assert price.cost({"input_tokens": 1000, "output_tokens": 0, "cache_write_tokens": 1000}) == pytest.approx(0.0025)


def test_above_a_tier_all_tokens_cost_more() -> None:
    price = price_of("anthropic:claude-sonnet-4-5")
    assert price is not None
    assert price.cost({"input_tokens": 200_000, "output_tokens": 1_000}) == pytest.approx(0.6 + 0.015)
    assert price.cost({"input_tokens": 200_001, "output_tokens": 1_000}) == pytest.approx(1.200006 + 0.0225)


def test_cache_tokens_beyond_the_input_are_left_out() -> None:
    price = price_of("anthropic:claude-haiku-4-5")
    assert price is not None
    usage: Usage = {"input_tokens": 1_000, "output_tokens": 0, "cache_read_tokens": 900, "cache_write_tokens": 5_000}
    assert price.cost(usage) == pytest.approx(1.25 / 1000)


tokens = st.one_of(
    st.integers(0, 2_000_000), st.sampled_from([0, 1, 128_000, 128_001, 200_000, 200_001, 272_000, 272_001])
)


@given(st.data(), tokens, tokens)
def test_no_usage_exceeds_the_worst_case(data: st.DataObject, input_at_most: int, output_at_most: int) -> None:
    rates = data.draw(st.sampled_from(RATES))
    price = ModelPrice(0.0, 0.0, "genai-prices", rates)
    usage: Usage = {
        "input_tokens": data.draw(st.integers(0, input_at_most)),
        "output_tokens": data.draw(st.integers(0, output_at_most)),
        "cache_read_tokens": data.draw(st.integers(0, input_at_most)),
        "cache_write_tokens": data.draw(st.integers(0, input_at_most)),
    }
    assert 0 <= price.cost(usage) <= price.worst_case(input_at_most, output_at_most)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [1, 150_000, 1_000_000])
def test_the_worst_case_holds_for_every_model_of_the_data(size: int) -> None:
    for rates in RATES:
        price = ModelPrice(0.0, 0.0, "genai-prices", rates)
        usages: list[Usage] = [
            {"input_tokens": size, "output_tokens": size, "cache_read_tokens": read, "cache_write_tokens": written}
            for read, written in ((0, 0), (size, 0), (0, size), (size // 2, size // 2))
        ]
        assert max(map(price.cost, usages)) <= price.worst_case(size, size), rates


def test_a_smaller_call_may_cost_more_than_the_largest() -> None:
    falling = TieredPrices(base=Decimal(10), tiers=[Tier(start=1000, price=Decimal(1))])
    price = ModelPrice(10.0, 1.0, "genai-prices", Rates(input_mtok=falling, output_mtok=Decimal(1)))
    assert price.worst_case(1001, 0) == price.cost({"input_tokens": 1000, "output_tokens": 0}) == 0.01


def test_an_unreachable_price_tier_is_not_reserved() -> None:
    price = price_of("anthropic:claude-sonnet-4-5")
    assert price is not None
    assert price.worst_case(200_000, 0) == pytest.approx(200_000 * 3.75 / 1e6)
    assert price.worst_case(200_001, 0) == pytest.approx(200_001 * 7.5 / 1e6)


def test_context_windows_come_from_the_data() -> None:
    assert context_window_of("openai:gpt-4o") == 128_000
    assert context_window_of(f"bedrock:us.{SONNET}") == 200_000
    assert context_window_of("openai:gpt-4o-my-finetune-foo") is None
    assert context_window_of("custom") is None


def test_the_data_has_a_version() -> None:
    assert re.fullmatch(r"genai-prices \d+\.\d+\.\d+, prices of \d{4}-\d\d-\d\d", price_date())
    assert calc_price({"input_tokens": 1}, "gpt-4o", provider_id="openai").auto_update_timestamp is None


def test_importing_the_catalogue_does_not_load_the_data() -> None:
    script = (
        "import sys; from aeon_core.llm.catalogue import price_date, price_of; price_of('simulated:default'); "
        "price_date(); assert 'genai_prices' not in sys.modules; price_of('openai:gpt-4o'); "
        "assert 'genai_prices' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
