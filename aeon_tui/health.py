"""The checks of `doctor`: whether each provider and extra is usable, or the one step that would make it so."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from aeon_core.config.schema import RunConfig
from aeon_core.errors import ModelUnavailableError
from aeon_core.installation import extras, install_command
from aeon_core.llm import PROVIDERS
from aeon_core.llm.connect import PLACEHOLDER_KEY, find_key

EXTRAS = {
    "dask": "batches on a Dask cluster",
    "serve": "the app in a browser",
    "acp": "Aeon as an agent in an editor",
}
"""The purpose of each extra that has no other check."""


@dataclass(frozen=True)
class HealthCheck:
    """One line of the report. `step` would make it usable, None if it is; `code` is the exit code without it."""

    name: str
    text: str
    step: str | None = None
    code: int = 0


def providers(config: RunConfig) -> list[HealthCheck]:
    """Return the checks of model providers."""
    own = {"bedrock": lambda: _bedrock(config), "llama-cpp": _llama_cpp, "simulated": _simulated}
    return [own[name]() if name in own else _provider(name, config.base_url) for name in PROVIDERS]


def optional(config: RunConfig) -> list[HealthCheck]:
    """Return the checks of external programs, then of the other extras."""
    files = HealthCheck("files", "usable: --tools files")
    return [files, _shell(config), _mcp(config), *_installed_tools(), _otel(config), *_extras()]


def _extras() -> list[HealthCheck]:
    width, found = max(map(len, EXTRAS)), extras()
    return [
        HealthCheck("extra", f"{name:<{width}}  {'installed: ' if there else 'not installed: '}{EXTRAS[name]}", step)
        for name, there in found.items()
        if name in EXTRAS
        for step in [None if there else install_command(name)]
    ]


def _provider(name: str, base_url: str | None) -> HealthCheck:
    provider = PROVIDERS[name]
    if provider.package and find_spec(provider.package) is None:
        step = install_command(name) if name in extras() else "reinstall aeon-tui with its dependencies"
        return HealthCheck(name, "its package is missing", step)
    if not provider.keys:
        return HealthCheck(name, f"usable: --model {name}:NAME")
    try:
        variable, key = find_key(f"{name}:NAME", provider.keys, needed=False)
    except ModelUnavailableError as error:
        return HealthCheck(name, "not usable", error.message)
    if key != PLACEHOLDER_KEY:
        return HealthCheck(name, f"usable: {variable} is set")
    if name == "openai" and (base_url or os.environ.get("OPENAI_BASE_URL")):
        return HealthCheck(name, "usable: a base URL is set, and a local server needs no key")
    local = ", or --base-url for a local server" if name == "openai" else ""
    return HealthCheck(name, "no key", f"set {variable}{local}")


def _bedrock(config: RunConfig) -> HealthCheck:
    from aeon_core.llm.bedrock import BedrockClient

    missing = BedrockClient(**config.bedrock.model_dump()).missing()
    if missing is None:
        return HealthCheck("bedrock", "usable: region and credentials found")
    return HealthCheck("bedrock", "not usable", missing)


def _llama_cpp() -> HealthCheck:
    if find_spec("xllamacpp") is None:
        return HealthCheck("llama-cpp", "its package is missing", install_command("local"))
    return HealthCheck("llama-cpp", "usable: --model llama-cpp:FILE.gguf")


def _simulated() -> HealthCheck:
    from aeon_core.llm.simulated import SIMULATED_MODELS

    return HealthCheck("simulated", f"usable: built in, no key, no network ({', '.join(SIMULATED_MODELS)})")


def _shell(config: RunConfig) -> HealthCheck:
    from aeon_core.tools.shell.isolation import probe

    isolation = probe(config.project_root or Path.cwd(), config.shell)
    text = f"usable: --tools shell; {isolation.describe()}"
    if isolation.name == "none":
        return HealthCheck("shell", text, "install bubblewrap to isolate commands")
    return HealthCheck("shell", text)


def _mcp(config: RunConfig) -> HealthCheck:
    asked = "mcp" in config.tools
    if find_spec("mcp") is None:
        return HealthCheck("mcp", "its package is missing", install_command("mcp"), 3 if asked else 0)
    if not config.mcp_servers:
        step = "add one under `mcp_servers:` in a config file"
        return HealthCheck("mcp", "installed; no server is configured", step, 2 if asked else 0)
    named = (f"{name} (sandboxed)" if server.sandbox else name for name, server in config.mcp_servers.items())
    return HealthCheck("mcp", f"usable: --tools mcp starts {', '.join(named)}")


def _installed_tools() -> list[HealthCheck]:
    from aeon_core.tools.loader import GROUP

    names = sorted(f"{point.name} ({point.value})" for point in entry_points(group=GROUP))
    return [HealthCheck("packages", f"provide tools: {', '.join(names)}")] if names else []


def _otel(config: RunConfig) -> HealthCheck:
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return HealthCheck("otel", "its packages are missing", install_command("otel"), 3 if config.otel else 0)
    if not config.otel:
        return HealthCheck("otel", "installed; off", "turn it on with `otel: true` in a config file, or AEON_OTEL=true")
    content = "with" if config.otel_content else "without"
    return HealthCheck("otel", f"on, {content} requests and replies")
