"""From `PROVIDER:NAME` to an adapter (contract: Models)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMAdapter

PROVIDERS = ("anthropic", "openai", "bedrock", "llama-cpp", "simulated")


def connect(
    model: str | Sequence[str],
    *,
    base_url: str | None = None,
    timeout: float = 120.0,
    bedrock: Mapping[str, str] | None = None,
) -> LLMAdapter:
    """Return the adapter for `PROVIDER:NAME`; NAME may hold colons and slashes. Nothing is sent, no SDK is loaded.

    Several models make a chain: the next is used when the one before has failed for good. `base_url` stands in for the
    provider's address (for `openai` any server that speaks Chat Completions, and then no key is needed; `llama-cpp` and
    `simulated` have none); `timeout` is the silence to bear in seconds; `bedrock` holds `region`, `profile` and
    `role_arn`. Raises UsageError (exit 2) for another form or an unknown provider, ModelUnavailableError (exit 3) that
    names a missing key, package or file.
    """
    if not isinstance(model, str) and isinstance(model, Sequence):
        from aeon_core.llm.chain import ModelChain

        return ModelChain([connect(one, base_url=base_url, timeout=timeout, bedrock=bedrock) for one in model])
    provider, name = _parts(model)
    if provider == "simulated":
        from aeon_core.llm.simulated import SimulatedModel

        return SimulatedModel(name)
    if provider == "anthropic":
        from aeon_core.llm.anthropic import AnthropicModel

        return AnthropicModel(name, base_url=base_url, timeout=timeout)
    if provider == "bedrock":
        from aeon_core.llm.bedrock import BedrockModel

        given = bedrock or {}
        return BedrockModel(
            name,
            base_url=base_url,
            timeout=timeout,
            region=given.get("region"),
            profile=given.get("profile"),
            role_arn=given.get("role_arn"),
        )
    if provider == "llama-cpp":
        from aeon_core.llm.llama_cpp import LlamaCppModel

        return LlamaCppModel(name, timeout=timeout)
    from aeon_core.llm.openai import OpenAIModel

    return OpenAIModel(name, base_url=base_url, timeout=timeout)


def _parts(model: object) -> tuple[str, str]:
    """Return provider and name. Raises UsageError."""
    form = f"expected PROVIDER:NAME with a provider of {', '.join(PROVIDERS)}"
    if not isinstance(model, str):
        raise UsageError(f"the model must be text, got {type(model).__name__}; {form}")
    provider, colon, name = (part.strip() for part in model.partition(":"))
    shown = repr(model if len(model) <= 80 else model[:79] + "…")
    if provider not in PROVIDERS:
        near = difflib.get_close_matches(provider[:40].lower(), PROVIDERS, n=1, cutoff=0.5)
        hint = f"; did you mean '{near[0]}:{name or 'NAME'}'?" if near else ""
        what = "has an unknown provider" if colon else "has no provider"
        raise UsageError(f"the model {shown} {what}; {form}{hint}")
    if not name:
        raise UsageError(f"the model {shown} has no name; expected '{provider}:NAME'")
    if not name.isprintable():
        raise UsageError(f"the model name {shown} contains control characters; {form}")
    return provider, name
