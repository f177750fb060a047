"""Which model plays the agents: Bedrock, unless another one is named (REQ-160, REQ-161)."""

from __future__ import annotations

from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.connect import connect
from system2.constants import DEFAULT_MODEL
from system2.settings import WorkflowSettings

BEDROCK = "bedrock:"
SILENCE = 600.0
"""Seconds to wait for a reply: it is not streamed, so nothing comes before the whole of it (REQ-N03)."""


def connect_model(
    model: str | LLMAdapter | None, settings: WorkflowSettings, base_url: str | None = None
) -> LLMAdapter:
    """Return the adapter that is meant. Nothing is sent yet.

    Without a model it is that of the settings, else the default, on Bedrock. Raises UsageError for another form than
    `PROVIDER:NAME`, ModelUnavailableError (exit 3) for a missing package, key or region.
    """
    if isinstance(model, LLMAdapter):
        return model
    if model is not None and not isinstance(model, str):
        raise UsageError(f"the model must be text or an LLMAdapter, got {type(model).__name__}")
    name = model or BEDROCK + (settings.model or DEFAULT_MODEL).removeprefix(BEDROCK)
    if name.startswith("simulated:"):
        from system2.simulated import SimulatedAgents

        return SimulatedAgents(name.removeprefix("simulated:"))
    return connect(name, base_url=base_url, timeout=SILENCE, bedrock=settings.bedrock)
