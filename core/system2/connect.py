"""Which models play the agents: those on Bedrock, unless another one is named (REQ-141, REQ-160, REQ-161)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aeon_core.errors import ModelUnavailableError
from aeon_core.journal.values import dict_of, str_of
from aeon_core.llm.base import LLMAdapter, ModelChain
from aeon_core.llm.connect import connect
from system2.constants import DEFAULT_MODEL
from system2.settings import WorkflowSettings
from system2.trust import check_recorded_model

BEDROCK = "bedrock:"
SILENCE = 600.0
"""Seconds to wait for a reply; one that is not streamed arrives all at once (REQ-N03)."""
_BARE_CLAUDE = re.compile(r"claude-[\w-]+-\d{8}")
_SECOND_VERSIONS = frozenset({"claude-3-5-sonnet-20241022"})
_PLACES = {"us-gov": "us-gov.", "us": "us.", "eu": "eu.", "ap": "apac."}
"""The prefix of an inference profile's id, by the prefix of its region."""


def connect_model(
    model: str | LLMAdapter | None, settings: WorkflowSettings, base_url: str | None = None
) -> LLMAdapter:
    """Return the adapter for a model that can be used. Nothing is sent to it yet.

    Without `model` it is the settings' model on Bedrock, else the default one. Raises UsageError if the name is not of
    the form `PROVIDER:NAME`, ModelUnavailableError (exit 3) if a package, key or region is missing.
    """
    if isinstance(model, LLMAdapter):
        model.check()
        return model
    name = model or _named_model(settings)
    if name.startswith("simulated:"):
        from system2.simulated import SimulatedAgents

        return SimulatedAgents(name.removeprefix("simulated:"))
    try:
        signer, window = _signer(settings), _window(settings)
        adapter = connect(name, base_url=base_url, timeout=SILENCE, context_window=window, bedrock=signer)
        adapter.check()
    except ModelUnavailableError as error:
        if model is not None:
            raise
        other = "or choose another model with --model (simulated:default needs no key)"
        raise ModelUnavailableError(f"{error.message}; {other}", **error.context) from None
    if settings.temperature is not None and name == _named_model(settings):
        return _on_bedrock(adapter, temperature=settings.temperature)
    return adapter


def _window(settings: WorkflowSettings) -> int | None:
    """Return the configured context window; None for the default, which would take many GB in this process."""
    window, default = settings.context_window_tokens, WorkflowSettings.model_fields["context_window_tokens"].default
    return None if window == default else window


def given_model(first: Mapping[str, Any], settings: WorkflowSettings, project_root: Path) -> str | None:
    """Return the model that a workflow was started with, or None if it was that of its settings.

    `first` is the first record of its journal. Raises UsageError if only the journal says that this model was chosen.
    """
    recorded, model = dict_of(first["workflow"].get("settings")) or {}, str(first.get("model"))
    then = settings.model_copy(update={"model": str_of(recorded.get("model")) or None})
    if model.startswith(BEDROCK) and model == _named_model(then):
        return None
    check_recorded_model(first, project_root)
    return model


def models_of_agents(main: LLMAdapter, settings: WorkflowSettings) -> LLMAdapter:
    """Return `main` with the models that `agent_overrides` gives to single agents, over the same connection.

    A model named in place of the settings' one plays all agents.
    """
    if not settings.agents or main.model != _named_model(settings):
        return main
    own, region = {}, _region(settings)
    for agent, override in settings.agents.items():
        name = bedrock_id(override.model.removeprefix(BEDROCK), region) if override.model else None
        temperature = override.temperature if override.temperature is not None else settings.temperature
        own[agent] = _on_bedrock(main, name, temperature)
    return ModelChain([main], agents=own)


def bedrock_id(name: str, region: str) -> str:
    """Return a model's id on Bedrock; a name from Anthropic's own API becomes the region's inference profile."""
    if not _BARE_CLAUDE.fullmatch(name):
        return name
    return f"{_place(region)}anthropic.{name}-v{2 if name in _SECOND_VERSIONS else 1}:0"


def _place(region: str) -> str:
    return next((prefix for start, prefix in _PLACES.items() if region.startswith(f"{start}-")), "")


def _named_model(settings: WorkflowSettings) -> str:
    """Return the model that the settings name, else the default one of the region, as `bedrock:NAME`."""
    region = _region(settings)
    default = (_place(region) or "us.") + DEFAULT_MODEL.removeprefix("us.")
    return BEDROCK + bedrock_id((settings.model or default).removeprefix(BEDROCK), region)


def _on_bedrock(model: LLMAdapter, name: str | None = None, temperature: float | None = None) -> LLMAdapter:
    from aeon_core.llm.bedrock import BedrockModel

    # Another adapter with a Bedrock name, such as a caller's own, plays all agents.
    return model.sibling(name, temperature) if isinstance(model, BedrockModel) else model


def _region(settings: WorkflowSettings) -> str:
    """Return the region that requests go to; empty if that is unknown, which `connect` then reports."""
    from aeon_core.llm.bedrock import BedrockClient

    signer = _signer(settings)
    try:
        return BedrockClient(region=signer.get("region"), profile=signer.get("profile")).region or ""
    except Exception:
        return ""


def _signer(settings: WorkflowSettings) -> dict[str, str]:
    """Return `settings.bedrock`, without the profile `default` if the environment has credentials.

    AWS prefers credentials from the environment to the default profile, which then need not exist.
    """
    environ = os.environ.get
    has_credentials = environ("AWS_BEARER_TOKEN_BEDROCK") or (
        environ("AWS_ACCESS_KEY_ID") and environ("AWS_SECRET_ACCESS_KEY")
    )
    return dict(item for item in settings.bedrock.items() if not (has_credentials and item == ("profile", "default")))
