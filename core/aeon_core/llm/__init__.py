"""Models of all providers behind one port, a file each.

`base.LLMAdapter` is the port, `connect.connect` returns the adapter of a `PROVIDER:NAME`.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Provider(NamedTuple):
    """One provider: the class of its adapter, where it is, and which options of `connect` it takes.

    With a `base_url` among them it asks a server, else it is in this process and costs nothing.
    """

    module: str
    adapter: str
    options: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Environment variables that may hold its key; none if it needs no key, or finds its credentials otherwise."""
    package: str = ""
    """What it imports when it is used; its extra has the provider's name, if it is no dependency."""
    priced_as: str = ""
    """Its name in the data of prices and context windows."""


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
    "llama-cpp": Provider("aeon_core.llm.llama_cpp", "LlamaCppModel", ("timeout",), package="xllamacpp"),
    "simulated": Provider("aeon_core.llm.simulated", "SimulatedModel"),
}
"""What a model's name may begin with. Here, where reading it loads no adapter."""


def asks_a_server(provider: str) -> bool:
    """Return whether a provider is elsewhere, rather than in this process."""
    known = PROVIDERS.get(provider)
    return known is not None and "base_url" in known.options
