"""What each agent may change: before the tasks are approved its document alone, afterwards what its work is about."""

from __future__ import annotations

from collections.abc import Iterable

from system2.agent_contracts import DOCUMENTS
from system2.constants import GATES, LOG_FILE
from system2.protected_files import is_own_work, is_protected

LIMITS = {gate.agent: frozenset({gate.artifact}) for gate in GATES if gate.agent is not None}
"""What an agent before the executor may write without a person's approval."""
_REPORTS_ONLY = ("security-sentinel", "code-reviewer", "postmortem-scribe")
"""They report what must be repaired, and repair nothing."""
_ALLOWED = LIMITS | {agent: frozenset({DOCUMENTS[agent], LOG_FILE}) for agent in _REPORTS_ONLY}
_APPROVED = frozenset(gate.artifact for gate in GATES if gate.agent is not None)


def flag_of(path: str, agents: Iterable[str]) -> str:
    """Return why a change is flagged, empty where it is not; `agents` are those who may have made it."""
    known = list(agents)
    for agent in known:
        allowed = _ALLOWED.get(agent)
        if allowed is not None and path not in allowed and not is_own_work(agent, path):
            return f"{agent} changed it, outside its document"
    if is_protected(path) and not (known and all(is_own_work(agent, path) for agent in known)):
        return "it controls the workflow or other tools"
    if path in _APPROVED and not any(path in LIMITS.get(agent, ()) for agent in known):
        return "it was approved before"
    return ""
