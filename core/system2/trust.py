"""What a project wants beyond harmless settings, and whether a person has consented (Decision 6).

Without consent `.system2/config.yml` can only restrict; its other settings, and agents of the project that may run
commands, need consent to their exact content. A project can never place its log or transcripts outside itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aeon_core.config.journal_trust import remembers
from aeon_core.config.trust import (
    ProjectTrust,
    Rules,
    Test,
    TrustItem,
    TrustMode,
    assess_items,
    clean_text,
    is_harmless,
    is_inside,
    refusal,
    refuse_foreign_folders,
    sentence_of,
)
from aeon_core.errors import UsageError
from system2.agents import SHIPPED, AgentDefinition, AgentLibrary, allow, parse_agent
from system2.settings import CONFIG_FILE, WorkflowSettings, load_settings

_FOLDER = ".system2"
Warn = Callable[[str], None]


def assess_workflow(root: Path) -> ProjectTrust:
    """Return what the project's `.system2/config.yml` and agents ask for, and whether it is trusted. Executes nothing.

    Raises UsageError for a folder that belongs to another user.
    """
    root = root.absolute()
    refuse_foreign_folders(root, os.environ)
    gated = gated_settings(load_settings(root), root)
    agents = [agent for agent in AgentLibrary(root, lambda _: None).own() if needs_consent(agent)]
    items = [TrustItem(key, sentence_of(key, value, root, _RULES)) for key, value in gated.items()]
    items += [
        TrustItem(
            str(agent.source_path.relative_to(root)),
            clean_text(f"let the project's agent {agent.name} run commands ({', '.join(agent.tools)})"),
            (agent.source_path,),
        )
        for agent in agents
    ]
    digests = sorted(agent_digest(agent) for agent in agents)
    return assess_items("workflow", root, items, gated, os.environ, agents=digests)


def settings_given(config: Path | None, model: object) -> set[str]:
    """Return the settings that the caller supplies: all with a `config` file, the model's with a `model`."""
    if config is not None:
        return {*WorkflowSettings.model_fields}
    return {"model", "agents"} if model is not None else set()


def applied_settings(
    root: Path, config: Path | None, model: object, mode: TrustMode, warn: Warn
) -> tuple[WorkflowSettings, ProjectTrust]:
    """Return the settings that apply, and what the project asks for.

    Those in `config`, which the user named, all apply; those of the project only if harmless or trusted. `warn` gets
    one line about those that do not apply. With `require`, raises TrustRequired instead. Raises UsageError if the
    folder that every workflow writes to is outside the project.
    """
    trust = assess_workflow(root)
    if not is_inside(root / _DEFAULTS.transcript_dir, root):
        raise UsageError(
            f"{str(root / _DEFAULTS.transcript_dir)!r} leads out of the project, and a workflow writes there; "
            "put a folder in place of the link"
        )
    if mode == "require" and (error := refusal(trust, settings_given(config, model))) is not None:
        raise error
    settings = load_settings(root, config, warn)
    if config is not None:
        return settings, trust
    dropped = [] if mode == "apply" or trust.state == "trusted" else list(gated_settings(settings, root))
    if dropped:
        warn(f"ignoring this untrusted project's {', '.join(dropped)} in {CONFIG_FILE}")
    for key, option in (("log_destination", "--log-file"), ("transcript_dir", "--config")):
        place = getattr(settings, key)
        if place != "stderr" and not is_inside(_place(place, root), root):
            dropped.append(key)
            warn(f"the project's {key} is outside the project, at {place!r}, and is ignored; set it with {option}")
    return settings.model_copy(update={key: getattr(_DEFAULTS, key) for key in dropped}), trust


def trusted_agents(root: Path, mode: TrustMode, trust: ProjectTrust) -> Callable[[AgentDefinition], bool]:
    """Return a test for the project's agents that may be used: those that run no commands, and trusted ones."""
    if mode == "apply":
        return lambda _: True
    agents = AgentLibrary(root, lambda _: None).own() if trust.state == "trusted" else ()
    known = set(map(agent_digest, agents))
    return lambda agent: not needs_consent(agent) or agent_digest(agent) in known


def started_by(first: Mapping[str, Any]) -> list[Any]:
    """Return what is remembered about a workflow that this user started, from its first record."""
    return ["workflow", *map(first.get, ("run", "ts", "model")), first["workflow"].get("project_root")]


def check_recorded_model(first: Mapping[str, Any], root: Path) -> None:
    """Raise UsageError if only the journal chose a model that may cost money or get the project's text."""
    model = str(first.get("model"))
    if not model.startswith(("simulated:", "bedrock:")) and not remembers(root, started_by(first)):
        raise UsageError(f"the journal names the model {model!r}, but you did not start it here; confirm with --model")


def gated_settings(settings: WorkflowSettings, root: Path) -> dict[str, Any]:
    """Return those settings of a project's file that need consent."""
    values = {key: getattr(settings, key) for key in WorkflowSettings.model_fields}
    return {key: value for key, value in values.items() if not is_harmless(key, value, {}, root, _RULES)}


def needs_consent(agent: AgentDefinition) -> bool:
    """Return whether an agent may run commands and is not identical to a shipped one."""
    if "Bash" not in allow(agent.tools).names:
        return False
    ours = SHIPPED / f"{agent.name}.md"
    return not (ours.is_file() and agent_digest(parse_agent(ours)) == agent_digest(agent))


def agent_digest(agent: AgentDefinition) -> str:
    """Return the SHA-256 of an agent's name, description, tools and prompt."""
    definition_text = json.dumps([agent.name, agent.description, agent.tools, agent.raw_system_prompt])
    return hashlib.sha256(definition_text.encode("utf-8", "surrogatepass")).hexdigest()


_DEFAULTS = WorkflowSettings()


def _place(value: str, root: Path) -> Path:
    # A path that begins with a home folder is not in the project.
    return Path(value) if value.startswith("~") else root / value


def _within_default(key: str) -> Test:
    """Return a test for a value that is the default, or a lower number."""
    default = getattr(_DEFAULTS, key)
    return lambda value, *_: bool(value == default or (type(value) in (int, float) and value < default))


_LIMITED = {
    "cost_ceiling_usd": "spend up to {money}",
    "cost_warning_usd": "warn you about the cost later, at {money}",
    "max_tool_turns": "set {key} to {value}",
    "context_window_tokens": "set {key} to {value}",
    "max_output_tokens": "set {key} to {value}",
    "safety_mode": "ask about blocklisted commands instead of refusing them: safety_mode {value}",
    "bash_network": "let commands use the network",
    "prices": "set the prices for costs and the ceiling",
    "model": "use another model: {value}",
    "bedrock": "use Bedrock as {json}",
}
_RULES: Rules = {
    **dict.fromkeys(("log_format", "bash_blocklist", "file_changes", "temperature"), (lambda *_: True, "")),
    **{key: (_within_default(key), words) for key, words in _LIMITED.items()},
    "log_destination": (
        lambda value, _, root: value == "stderr" or is_inside(_place(value, root), root / _FOLDER),
        "append the log to {value!r}",
    ),
    "transcript_dir": (lambda value, _, root: is_inside(_place(value, root), root), "write transcripts to {value!r}"),
    "agents": (
        lambda value, *_: all(override.model is None for override in value.values()),
        "use other models for some agents: {json}",
    ),
}
