"""Makes what a run needs from its configuration: its model and the tools it may call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from aeon_core.config.journal_trust import check_journal
from aeon_core.config.keys import KEYS
from aeon_core.config.schema import RunConfig, providers_of
from aeon_core.config.trust import check_unchanged, project_modules
from aeon_core.errors import AeonError, ModelUnavailableError, UsageError
from aeon_core.llm import PROVIDERS, asks_a_server
from aeon_core.llm.base import LLMAdapter, ModelChain, as_adapter
from aeon_core.policy import Policy
from aeon_core.prompts import check_prompts
from aeon_core.tools import TOOL_SETS
from aeon_core.tools.base import Tools
from aeon_core.tools.registry import ToolRegistry, default_registry
from aeon_core.tools.schema import describe

if TYPE_CHECKING:
    from aeon_core.telemetry import OtelListener

BUILT_IN_NAMES = tuple(name for each in TOOL_SETS.values() for name in each.names)
"""The tools of all sets: a rule may name one that the run does not have."""
NO_MODEL = (
    "no model is configured; set one with --model PROVIDER:NAME, the environment variable AEON_MODEL or `model:` in "
    "a config file (--model simulated:default needs no key)"
)


def as_config(config: RunConfig | Mapping[str, Any] | None) -> RunConfig:
    """Return the options that a caller gives, a dict as RunConfig. Raises UsageError."""
    if config is None or isinstance(config, RunConfig):
        return config if config is not None else RunConfig()
    if not isinstance(config, Mapping) or not all(isinstance(key, str) for key in config):
        raise UsageError(
            f'config is {describe(config)}; write a dict of options such as {{"ttl": 5}}, or RunConfig(ttl=5)'
        )
    return RunConfig(**config)


def as_model(
    llm: LLMAdapter | str | Sequence[str] | None, config: RunConfig, *, renames: bool = True
) -> tuple[LLMAdapter, RunConfig]:
    """Return the caller's model, and the options with its name and address, so that a fork finds it.

    `PROVIDER:NAME`, or several, is connected as the options say; None means the configured one. Without `renames`, an
    adapter leaves the options unchanged. Raises UsageError, ModelUnavailableError.
    """
    if llm is not None and not is_model_name(llm):
        llm = as_adapter(llm)
        return llm, with_model_name(llm, config) if renames else config
    config = with_model_name(llm, config)
    if config.model is None:
        raise UsageError("no model is given; write Orchestrator('PROVIDER:NAME'), such as 'simulated:default'")
    return connect_model(config), config


def is_model_name(llm: object) -> TypeGuard[str | Sequence[str]]:
    """Return whether this is `PROVIDER:NAME`, or several of them."""
    return isinstance(llm, str) or (isinstance(llm, Sequence) and all(isinstance(each, str) for each in llm))


def consented(
    started: Mapping[str, Any],
    config: RunConfig,
    llm: LLMAdapter | str | Sequence[str] | None,
    tools: Tools | None,
    own: Mapping[str, Any] | None = None,
    rules: Iterable[str] = (),
) -> RunConfig:
    """Return a journal's options for a caller who continues it, and who sets those in `own`; None for a resume, with
    the `rules` that somebody else allowed.

    Raises UsageError if the journal names a model, tools, servers or rules that the caller did not pass, or where or as
    whom to call a model that the caller named, and there is no consent for them. A named model of another provider does
    not get the address.
    """
    passed = {*(own or {})}
    named = llm if is_model_name(llm) else (own or {}).get("model")
    if named and "base_url" not in passed and _providers(named) != _providers(started["config"].get("model")):
        config = config.model_copy(update={"base_url": None})
    if llm is not None and (tools is not None or not config.tools):
        passed |= {*KEYS} - ({"base_url", "judge_model", "bedrock"} if is_model_name(llm) else set())
    resumes = "allow it with trusts_project=True"
    if llm is None or is_model_name(llm) or (tools is None and config.tools):
        resumes = f"pass an adapter as llm, and tools, or {resumes}"
    advice = resumes if own is None else "pass a RunConfig as config"
    return check_journal(started, config, RunConfig(**(own or {})), passed, rules=rules, advice=advice)


def _providers(models: str | Sequence[str] | None) -> set[str]:
    return providers_of(models if isinstance(models, str) else list(models or ()))


def with_model_name(llm: LLMAdapter | str | Sequence[str] | None, config: RunConfig) -> RunConfig:
    """Return the options with the name of the caller's model; None for the configured one.

    An adapter's own name and address are used if `connect` makes the same adapter from them.
    """
    if llm is None:
        return config
    if not isinstance(llm, LLMAdapter):
        return config.model_copy(update={"model": llm if isinstance(llm, str) else list(llm)})
    judge = llm.judge if isinstance(llm, ModelChain) else None
    adapters = llm.models if isinstance(llm, ModelChain) else (llm,)
    names, urls = [each.model for each in adapters], {each.base_url for each in adapters}
    if names == config.models or not providers_of(names) <= {*PROVIDERS} or len(urls) > 1:
        return config
    model = names[0] if len(names) == 1 else names
    judged = {"judge_model": judge.model} if judge is not None else {}
    return config.model_copy(update={"model": model, "base_url": urls.pop() or config.base_url, **judged})


def as_registry(tools: Tools | None, config: RunConfig) -> ToolRegistry:
    """Return the caller's tools as a registry, or those that the options name.

    Raises ToolError for something that is not a tool, UsageError as `build_tools`.
    """
    if tools is None:
        return build_tools(config) if config.tools else default_registry()
    return tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)


def connect_model(config: RunConfig) -> LLMAdapter:
    """Return the configured model.

    Raises ModelUnavailableError if there is none, UsageError for a wrong name or for a budget without a known price.
    """
    from aeon_core.llm.connect import connect

    if config.model is None:
        raise ModelUnavailableError(NO_MODEL)
    options: Any = {"timeout": config.timeout, "context_window": config.context_window}
    options["bedrock"] = config.bedrock.model_dump(exclude_none=True)
    model = connect(config.model, base_url=config.base_url, **options)
    if config.judge_model is not None:
        # One provider's address is not another's; a model without a server leaves it to the judge.
        others = set(filter(asks_a_server, providers_of(config.model)))
        url = config.base_url if others <= providers_of(config.judge_model) else None
        judge = connect(config.judge_model, base_url=url, **options)
        model = ModelChain(model.models if isinstance(model, ModelChain) else [model], judge)
    if config.budget is not None:
        from aeon_core.effects.model_calls import check_budget, model_infos

        check_budget(config, model_infos(model, config))
    return model


def build_tools(config: RunConfig | Mapping[str, Any]) -> ToolRegistry:
    """Return the default tools, those of installed packages, and those that the configuration names.

    The registry's `close()` ends what they hold open, such as MCP servers. Raises UsageError, in one line, for tools
    that cannot be loaded, for invalid policy rules, for a missing prompts folder, and for a project file that
    changed since it was trusted.
    """
    from aeon_core.tools.loader import load_installed_tools, load_tools

    config = as_config(config)
    if config.prompts_dir is not None:
        check_prompts(config.prompts_dir)
    check_unchanged(config.verified)
    root = config.root
    registry, policy = default_registry(), Policy(config.policy)
    try:
        load_installed_tools(registry)
        for spec in dict.fromkeys(config.tools):
            if spec not in TOOL_SETS:
                load_tools(spec, registry, root, config.verified)
                continue
            for tool in _built_in_tools(spec, registry, root, config, policy):
                try:
                    registry.register(tool)
                except AeonError as error:
                    raise UsageError(f"tools {spec!r}: {error.message}") from None
        policy.check([*BUILT_IN_NAMES, *(tool.name for tool in registry)])
    except BaseException:
        registry.close()
        raise
    return registry


def inspect_tools(config: RunConfig, named: Iterable[str]) -> tuple[ToolRegistry, list[str]]:
    """Return the tools for a command that only inspects them, and the specifications that were left out.

    Code of the project is run and MCP servers are started only if they are `named` on the command line. The caller
    closes the registry. Raises UsageError as `build_tools`.
    """
    given = set(named)
    running = dict.fromkeys(("mcp", *project_modules(config.tools, config.root)))
    left_out = [spec for spec in running if spec in config.tools and spec not in given]
    kept = [spec for spec in config.tools if spec not in left_out]
    return build_tools(config.model_copy(update={"tools": kept})), left_out


def telemetry(config: RunConfig) -> OtelListener | None:
    """Return the listener that sends a run to OpenTelemetry, None if that is off. Raises UsageError."""
    if not config.otel:
        return None
    from aeon_core.telemetry import otel_listener

    return otel_listener(content=config.otel_content)


def _built_in_tools(
    spec: str, registry: ToolRegistry, root: Path, config: RunConfig, policy: Policy
) -> Iterable[object]:
    """Return the tools of `files`, `shell` or `mcp`; commands and MCP servers end with the registry."""
    if spec == "files":
        from aeon_core.tools.files import file_tools

        return file_tools(root, policy.hides)
    if spec == "shell":
        from aeon_core.tools.shell.bash import shell_tools

        for bash in (tools := shell_tools(root, config.shell)):
            registry.closes_with(bash.close)
        return tools
    from aeon_core.tools.mcp.servers import McpTools

    servers = McpTools(config.mcp_servers, project_root=root)
    registry.closes_with(servers.close)
    return servers.connect()
