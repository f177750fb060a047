"""Models of all providers behind one port, a file each.

`base.LLMAdapter` is the port, `connect.connect` returns the adapter of a `PROVIDER:NAME`.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Provider(NamedTuple):
    """One provider: the class of its adapter, where it is, and which options of `connect` it takes."""

    module: str
    adapter: str
    options: tuple[str, ...] = ()


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("aeon_core.llm.anthropic", "AnthropicModel", ("base_url", "timeout")),
    "openai": Provider("aeon_core.llm.openai", "OpenAIModel", ("base_url", "timeout")),
    "bedrock": Provider(
        "aeon_core.llm.bedrock", "BedrockModel", ("base_url", "timeout", "region", "profile", "role_arn")
    ),
    "llama-cpp": Provider("aeon_core.llm.llama_cpp", "LlamaCppModel", ("timeout",)),
    "simulated": Provider("aeon_core.llm.simulated", "SimulatedModel"),
}
"""What a model's name may begin with. Here, where reading it loads no adapter."""
