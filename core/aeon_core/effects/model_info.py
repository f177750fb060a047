"""What is known of a run's models when it starts: prices and context windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.catalogue import FREE, ModelPrice, context_window_of, price_of
from aeon_core.llm.chain import ModelChain


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a model when the run starts; as recorded, where it is recorded."""

    model: str
    simulated: bool
    price: ModelPrice | None
    context_window: int | None
    judges: bool = False
    """Whether it gets the requests to judge and to review, and no other."""

    def described(self) -> dict[str, Any]:
        """Return it as `run_started` holds it."""
        price = None if self.price is None else {"input": self.price.input, "output": self.price.output}
        return {
            "model": self.model,
            "simulated": self.simulated,
            "price": price,
            "context_window": self.context_window,
            **({"judges": True} if self.judges else {}),
        }


def model_infos(llm: LLMAdapter, config: RunConfig) -> list[ModelInfo]:
    """Return what is known of a run's models: by the configuration, by the adapters, by the catalogue."""
    judge = llm.judge if isinstance(llm, ModelChain) else None
    return [_model_info(adapter, config, judges=adapter is judge) for adapter in adapters_of(llm)]


def adapters_of(llm: LLMAdapter) -> list[LLMAdapter]:
    """Return the models of a chain, its judge last, or the one that is no chain."""
    return llm.all if isinstance(llm, ModelChain) else [llm]


def _model_info(adapter: LLMAdapter, config: RunConfig, *, judges: bool) -> ModelInfo:
    price = FREE if adapter.simulated else price_of(adapter.model, config.prices)
    window = config.context_window or adapter.context_window or context_window_of(adapter.model)
    return ModelInfo(adapter.model, adapter.simulated, price, window, judges)


def recorded_model(entry: Mapping[str, Any]) -> ModelInfo:
    """Return what `run_started` says of a model."""
    price, simulated = entry.get("price"), entry.get("simulated") is True
    known = ModelPrice(price["input"], price["output"], "recorded") if price else FREE if simulated else None
    judges = entry.get("judges") is True
    return ModelInfo(entry["model"], simulated, known, entry.get("context_window"), judges)


def check_budget(config: RunConfig, models: Sequence[ModelInfo]) -> None:
    """Raise UsageError where there is a budget and the price of a model is not known: it could not be kept."""
    unpriced = [known.model for known in models if known.price is None]
    if config.budget is not None and unpriced:
        raise UsageError(
            f"no price is known for the model {unpriced[0]!r}, so a budget cannot be kept; leave it out, or give the "
            f"price under `prices:` in a config file, in US dollars for a million tokens: "
            f"'{unpriced[0]}: {{input: 3, output: 15}}'"
        )
