"""Which models a new run can have, and what makes the others usable. Nothing is sent anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aeon_core.errors import AeonError
from aeon_tui.health import providers

if TYPE_CHECKING:
    from aeon_core.config.schema import RunConfig


@dataclass(frozen=True)
class ModelChoice:
    """A model, or a provider whose models are named by a person. `step` is what makes it usable, empty where it is."""

    name: str
    about: str
    step: str = ""

    @property
    def usable(self) -> bool:
        """Whether a run could have it."""
        return not self.step


def model_choices(config: RunConfig) -> list[ModelChoice]:
    """Return the configured models, then what else there is: the likely ones first. It looks at files: for a thread."""
    configured = [_configured(model, config) for model in config.models]
    offered = [choice for choice in _offered(config) if choice.name not in config.models]
    return [*configured, *sorted(offered, key=_unlikely)]


def _configured(model: str, config: RunConfig) -> ModelChoice:
    from aeon_core.runs.factory import connect_model

    try:
        connect_model(config.model_copy(update={"model": model})).close()
    except AeonError as error:
        return ModelChoice(model, "configured", error.message)
    return ModelChoice(model, "configured")


def _offered(config: RunConfig) -> Iterator[ModelChoice]:
    from aeon_core.llm.simulated import SIMULATED_MODELS

    for finding in providers(config):
        if finding.name == "simulated":
            for name, what in SIMULATED_MODELS.items():
                yield ModelChoice(f"simulated:{name}", f"no key, no network: {what}")
        elif finding.step is None:
            usable = finding.text.removeprefix("usable: ")
            example = usable.partition("--model ")[2]
            how = f"type {example}" if example else f"type a name; {usable}"
            yield ModelChoice(f"{finding.name}:", how)
        else:
            yield ModelChoice(f"{finding.name}:", finding.text, finding.step)


def _unlikely(choice: ModelChoice) -> int:
    if choice.step:
        return 3
    order = {"simulated:default": 1, "llama-cpp:": 2}
    return order.get(choice.name, 4 if choice.name.startswith("simulated:") else 0)
