"""The types of records: which say where a run is, and which the kernel emits."""

from __future__ import annotations

from aeon_core.journal.reader import STATE_TYPES
from aeon_core.journal.records import EMITTED, TYPES

TRANSCRIPT = {
    *("workflow_start", "workflow_resumed", "workflow_end", "agent_start", "agent_skipped", "agent_complete"),
    *("api_request", "api_response", "tool_exec", "question", "gate_asked", "gate_decision", "note"),
}
"""The types of a transcript's entries (REQ-125)."""


def test_every_type_says_where_a_run_is_or_may_be_added_to_it_later() -> None:
    added = {"journal_recovered", "text", "label"}
    assert added.isdisjoint(STATE_TYPES)
    assert STATE_TYPES | added == TYPES | TRANSCRIPT
    assert {"journal_recovered", "text", "run_resumed"} == TYPES - EMITTED
