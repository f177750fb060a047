"""The guided run on the simulated model, as a newcomer starts it: no key, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeon_tui.sessions.approval_points import approval_points
from aeon_tui.sessions.run_jobs import GUIDE, NewRunJob

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig

DEMO_MODEL = "simulated:missing-tool"
DEMO_TASK = "design a REST API for invoices"


def demo_job(today: LoadedConfig) -> NewRunJob:
    """Return what `aeon-tui demo` starts in the app. Raises UsageError for tools that cannot be loaded."""
    from aeon_core.config.schema import RunConfig
    from aeon_core.runs.factory import build_tools

    # A demonstration runs nothing of the project, trusted or not.
    left_out = {item.key.partition(".")[0] for item in today.trust.items} & today.sources.keys()
    plain = {key: RunConfig.model_fields[key].get_default(call_default_factory=True) for key in left_out}
    changed = {"model": DEMO_MODEL, "approve": approval_points(today, in_app=True)}
    config = today.config.model_copy(update={**plain, **changed})
    return NewRunJob(DEMO_TASK, config, None, True, GUIDE, build_tools(config))
