"""The files that a workflow's agents have written, as they are now."""

from __future__ import annotations

from pathlib import Path

from aeon_tui.sessions.workflow_broker import read_artifact
from aeon_tui.sources.workflow_state import WORKFLOW, WorkflowState, gate_of
from system2.constants import GATES

SPEC = "spec/"


def artifacts_of(state: WorkflowState, key: str) -> list[str]:
    """Return the files that belong to a row of the pipeline, documents first, as they were named."""
    view = state.view
    if (number := gate_of(key)) is not None:
        return [view.gates[number].artifact]
    if key == WORKFLOW:
        found = [path for agent in view.agents.values() for path in agent.files_changed]
        return [path for path in dict.fromkeys(found) if path.startswith(SPEC)]
    agent = view.agents.get(key)
    if agent is None:
        return []
    own = [gate.artifact for gate in GATES if gate.agent == key and gate.artifact in agent.files_changed]
    return list(dict.fromkeys([*own, *sorted(agent.files_changed, key=lambda path: not path.startswith(SPEC))]))


def artifact_text(root: Path, name: str) -> str:
    """Return what stands in a file of the project, or in brackets why that is not shown. Reads: for a thread."""
    path = root / name
    try:
        inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    return read_artifact(path) if inside else "(not in the project)"
