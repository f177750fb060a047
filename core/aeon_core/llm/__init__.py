"""Models of all providers behind one port, one file per provider.

`base.LLMAdapter` is the port, `connect.connect` returns the adapter of a `PROVIDER:NAME`.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Provider(NamedTuple):
    """One provider: the module and class of its adapter, and the options of `connect` that it takes.

    A provider with the option `base_url` is a server; others run in this process and cost nothing.
    """

    module: str
    adapter: str
    options: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Environment variables that may hold its key; empty if it needs no key or gets credentials in another way."""
    package: str = ""
    """The package it imports when used; if that is optional, its extra has the provider's name."""
    priced_as: str = ""
    """The provider's name in the data of prices and context windows."""


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        "aeon_core.llm.anthropic",
        "AnthropicModel",
        ("base_url", "timeout"),
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        package="anthropic",
        priced_as="anthropic",
    ),
    "openai": Provider(
        "aeon_core.llm.openai",
        "OpenAIModel",
        ("base_url", "timeout"),
        keys=("OPENAI_API_KEY",),
        package="openai",
        priced_as="openai",
    ),
    "bedrock": Provider(
        "aeon_core.llm.bedrock",
        "BedrockModel",
        ("base_url", "timeout", "region", "profile", "role_arn"),
        package="boto3",
        priced_as="aws",
    ),
    "llama-cpp": Provider(
        "aeon_core.llm.llama_cpp", "LlamaCppModel", ("timeout", "context_window"), package="xllamacpp"
    ),
    "simulated": Provider("aeon_core.llm.simulated", "SimulatedModel"),
}
"""The prefixes of model names. The table is here so that reading it loads no adapter."""


def asks_a_server(provider: str) -> bool:
    """Return whether a provider is a server rather than in this process."""
    known = PROVIDERS.get(provider)
    return known is not None and "base_url" in known.options
