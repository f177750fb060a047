"""The secrets of a workflow that is resumed: its transcript holds tokens, and an agent must get what they stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.values import dict_of
from aeon_core.redaction import REDACTED, SecretVault, tokens_in
from aeon_core.secret_forms import secret_values
from aeon_core.versions import FORM

UNKNOWN = (
    "The outcome of this call is unknown: it held a secret, which is not recorded. Make the call again if it is safe "
    "to repeat and you need its outcome."
)
"""The result of a tool use for the agent, where a resume has the token of a secret alone."""
_NOT_USED = frozenset({"tool_exec", "notice", "gate_asked", "question", "workflow_end", "text"})
"""Entries of which a resume uses no text."""


def restore_secrets(path: Path, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a transcript with the secrets that the environment holds.

    A tool's result with any other secret becomes UNKNOWN. Raises UsageError where anything else holds one.
    """
    vault = SecretVault(secret_values(os.environ))
    found, earlier = [], False
    for record in records:
        if record["type"] == "workflow_start":
            earlier = (dict_of(record.get("versions")) or {}).get("redaction") != FORM
        revealed = _without_lost_results(vault.reveal(record), earlier)
        if record["type"] not in _NOT_USED and _is_lost(revealed, earlier):
            raise UsageError(
                f"the workflow {str(path)!r} cannot be resumed: record {record['seq']} ({record['type']}) holds a "
                "secret that is not recorded; set the environment variable that held it, or start a new workflow"
            )
        found.append(revealed)
    return found


def _without_lost_results(value: Any, earlier: bool) -> Any:
    if isinstance(value, list):
        return [_without_lost_results(item, earlier) for item in value]
    if not isinstance(value, dict):
        return value
    result = value.get("toolResult")
    if isinstance(result, dict) and _is_lost(result, earlier):
        return {**value, "toolResult": {**result, "content": [{"text": UNKNOWN}], "status": "error"}}
    return {key: _without_lost_results(item, earlier) for key, item in value.items()}


def _is_lost(value: Any, earlier: bool) -> bool:
    return any(tokens_in(value)) or (earlier and REDACTED in str(value))
