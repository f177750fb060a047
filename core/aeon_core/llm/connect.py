"""From `PROVIDER:NAME` to an adapter (contract: Models)."""

from __future__ import annotations

import difflib

from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMAdapter

PROVIDERS = ("anthropic", "openai", "simulated")
_LATER = ("bedrock", "llama-cpp")


def connect(model: str, *, base_url: str | None = None, timeout: float = 120.0) -> LLMAdapter:
    """Return the adapter for `PROVIDER:NAME`; NAME may hold colons and slashes. Nothing is sent, no SDK is loaded.

    `base_url` stands in for the provider's address (for `openai` any server that speaks Chat Completions, and then no
    key is needed); `timeout` is the silence to bear in seconds. Raises UsageError (exit 2) for another form or an
    unknown provider, ModelUnavailableError (exit 3) that names the variable of a missing key.
    """
    provider, name = _parts(model)
    if provider == "simulated":
        from aeon_core.llm.simulated import SimulatedModel

        return SimulatedModel(name)
    if provider == "anthropic":
        from aeon_core.llm.anthropic import AnthropicModel

        return AnthropicModel(name, base_url=base_url, timeout=timeout)
    from aeon_core.llm.openai import OpenAIModel

    return OpenAIModel(name, base_url=base_url, timeout=timeout)


def _parts(model: object) -> tuple[str, str]:
    """Return provider and name. Raises UsageError."""
    form = f"expected PROVIDER:NAME with a provider of {', '.join(PROVIDERS)}"
    if not isinstance(model, str):
        raise UsageError(f"the model must be text, got {type(model).__name__}; {form}")
    provider, colon, name = (part.strip() for part in model.partition(":"))
    shown = repr(model if len(model) <= 80 else model[:79] + "…")
    if provider in _LATER:
        raise UsageError(f"the provider {provider!r} of the model {shown} is not in this version; {form}")
    if provider not in PROVIDERS:
        near = difflib.get_close_matches(provider[:40].lower(), PROVIDERS, n=1, cutoff=0.5)
        hint = f"; did you mean '{near[0]}:{name or 'NAME'}'?" if near else ""
        what = "is of an unknown provider" if colon else "names no provider"
        raise UsageError(f"the model {shown} {what}; {form}{hint}")
    if not name:
        raise UsageError(f"the model {shown} lacks its name; expected '{provider}:NAME'")
    if not name.isprintable():
        raise UsageError(f"the name of the model {shown} holds control characters; {form}")
    return provider, name
