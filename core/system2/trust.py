"""What a project asks of a workflow beyond harmless settings, and whether a person has consented (Decision 6).

`.system2/config.yml` applies by itself only where it restricts; the rest, and agents of the project that may run
commands, need consent to exactly that. A log or a transcript never goes out of the project on the word of the project.
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
    TrustItem,
    TrustMode,
    clean_text,
    consented,
    is_inside,
    plain_value,
    refusal,
    refuse_foreign_folders,
    shown_value,
)
from aeon_core.errors import UsageError
from system2.agents.library import SHIPPED, AgentDefinition, AgentLibrary, parse_agent
from system2.agents.tools import allow
from system2.settings import CONFIG_FILE, WorkflowSettings, load_settings

_FOLDER = ".system2"
Warn = Callable[[str], None]


def assess_workflow(root: Path) -> ProjectTrust:
    """Return what the project's `.system2/config.yml` and agents ask for, and whether it is trusted. Executes nothing.

    Raises UsageError for a folder that belongs to another user.
    """
    root = root.absolute()
    refuse_foreign_folders(root, os.environ)
    settings = load_settings(root)
    gated = gated_settings(settings, root)
    agents = [agent for agent in AgentLibrary(root, lambda _: None).own() if needs_consent(agent)]
    items = [TrustItem(key, clean_text(_sentence(key, value))) for key, value in gated.items()]
    items += [
        TrustItem(
            str(agent.source_path.relative_to(root)),
            clean_text(f"let the project's agent {agent.name} run commands ({', '.join(agent.tools)})"),
            (agent.source_path,),
        )
        for agent in agents
    ]
    if not items:
        return ProjectTrust(root, part="workflow")
    asked = {key: plain_value(value, root) for key, value in gated.items()}
    asked["agents"] = sorted(agent_digest(agent) for agent in agents)
    shown = {key: shown_value(value) for key, value in gated.items()}
    return consented(ProjectTrust(root, tuple(items), part="workflow"), asked, shown, os.environ)


def settings_given(config: Path | None, model: object) -> set[str]:
    """Return the settings that the caller gives itself: of a file that is named all, with a model that."""
    return (
        {*WorkflowSettings.model_fields} if config is not None else {"model", "agents"} if model is not None else set()
    )


def applied_settings(
    root: Path, config: Path | None, model: object, mode: TrustMode, warn: Warn
) -> tuple[WorkflowSettings, ProjectTrust]:
    """Return the settings that apply, and what the project asks for.

    Of a file that the user named all apply, of the project's what is harmless or trusted; `warn` gets one line
    about what does not apply. Raises TrustRequired with `require`.
    """
    trust = assess_workflow(root)
    if mode == "require" and (error := refusal(trust, settings_given(config, model))) is not None:
        raise error
    settings = load_settings(root, config, warn)
    if config is not None:
        return settings, trust
    dropped = [] if mode == "apply" or trust.state == "trusted" else list(gated_settings(settings, root))
    if dropped:
        warn(f"this project is not trusted, so its {', '.join(dropped)} in {CONFIG_FILE} are ignored")
    for key, option in (("log_destination", "--log-file"), ("transcript_dir", "--config")):
        place = getattr(settings, key)
        if place != "stderr" and not is_inside(_place(place, root), root):
            dropped.append(key)
            warn(f"the project's {key} is outside the project, at {place!r}, and is ignored; set it with {option}")
    defaults = WorkflowSettings()
    return settings.model_copy(update={key: getattr(defaults, key) for key in dropped}), trust


def trusted_agents(root: Path, mode: TrustMode, trust: ProjectTrust) -> Callable[[AgentDefinition], bool]:
    """Return which agents of the project may be used: those that run no commands, and those that are trusted."""
    if mode == "apply":
        return lambda _: True
    known = set()
    if trust.state == "trusted":
        known = {agent_digest(agent) for agent in AgentLibrary(root, lambda _: None).own()}
    return lambda agent: not needs_consent(agent) or agent_digest(agent) in known


def started_by(first: Mapping[str, Any]) -> list[Any]:
    """Return what is remembered of a workflow that this user has started, from its first record."""
    workflow = first.get("workflow")
    root = workflow.get("project_root") if isinstance(workflow, dict) else None
    return ["workflow", first.get("run"), first.get("ts"), first.get("model"), root]


def check_recorded_model(first: Mapping[str, Any], root: Path) -> None:
    """Raise UsageError if a model costs money or gets the project's text because a journal says so, and nobody else."""
    model = str(first.get("model"))
    if not model.startswith(("simulated:", "bedrock:")) and not remembers(root, started_by(first)):
        raise UsageError(f"the journal names the model {model!r}, but you did not start it here; confirm with --model")


def gated_settings(settings: WorkflowSettings, root: Path) -> dict[str, Any]:
    """Return those settings of a project's file that need consent."""
    values = {key: getattr(settings, key) for key in WorkflowSettings.model_fields}
    return {key: value for key, value in values.items() if not _is_harmless(key, value, root)}


def needs_consent(agent: AgentDefinition) -> bool:
    """Return whether an agent may run commands and is not exactly one of ours."""
    if "Bash" not in allow(agent.tools).names:
        return False
    ours = SHIPPED / f"{agent.name}.md"
    return not (ours.is_file() and agent_digest(parse_agent(ours)) == agent_digest(agent))


def agent_digest(agent: AgentDefinition) -> str:
    """Return the SHA-256 of what an agent is: name, description, tools and prompt."""
    told = json.dumps([agent.name, agent.description, agent.tools, agent.raw_system_prompt])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


_DEFAULTS = WorkflowSettings()


def _place(value: str, root: Path) -> Path:
    # What begins with the home folder of whomever is none of the project's.
    return Path(value) if value.startswith("~") else root / value


_FREE = frozenset({"log_format", "bash_blocklist", "file_changes", "temperature"})
"""Any value of these applies by itself."""
_LIMITS = frozenset(
    {"cost_ceiling_usd", "cost_warning_usd", "max_tool_turns", "context_window_tokens", "max_output_tokens"}
)
"""These apply by themselves where they are at most the default; the other settings where they are the default."""


def _is_harmless(key: str, value: Any, root: Path) -> bool:
    if key == "log_destination":
        return value == "stderr" or is_inside(_place(value, root), root / _FOLDER)
    if key == "transcript_dir":
        return is_inside(_place(value, root), root)
    if key == "agents":
        return all(override.model is None for override in value.values())
    default = getattr(_DEFAULTS, key)
    return bool(key in _FREE or value == default or (key in _LIMITS and value < default))


def _sentence(key: str, value: Any) -> str:
    shown = json.dumps(shown_value(value), ensure_ascii=False)
    sentences = {
        "cost_ceiling_usd": f"spend up to ${value}",
        "cost_warning_usd": f"warn you about the cost later, at ${value}",
        "log_destination": f"append the log to {value!r}",
        "safety_mode": f"ask about blocklisted commands instead of refusing them: safety_mode {value}",
        "bash_network": "let commands use the network",
        "prices": "set the prices for costs and the ceiling",
        "transcript_dir": f"write transcripts to {value!r}",
        "model": f"use another model: {value}",
        "agents": f"use other models for some agents: {shown}",
        "bedrock": f"use Bedrock as {shown}",
    }
    return sentences.get(key, f"set {key} to {shown}")
