"""The types of records: which say where a run is, and which the kernel emits."""

from __future__ import annotations

from aeon_core.journal.reader import ASKED, BEGINNINGS, ENDS, STATE_TYPES
from aeon_core.journal.records import EMITTED, RECORDS

TRANSCRIPT = {
    *("workflow_start", "workflow_resumed", "workflow_end", "agent_start", "agent_skipped", "agent_complete"),
    *("api_request", "api_response", "tool_exec", "question", "gate_asked", "gate_decision", "note"),
}
"""The types of a transcript's entries (REQ-125)."""


def test_what_may_be_added_to_a_journal_later_says_nothing_about_where_its_run_is() -> None:
    assert STATE_TYPES.isdisjoint({"journal_recovered", "text", "label"})
    assert RECORDS.keys() | TRANSCRIPT >= STATE_TYPES


def test_what_begins_or_ends_a_run_or_asks_a_person_says_where_it_is() -> None:
    assert {*BEGINNINGS, *ENDS, *ASKED, "run_resumed"} <= STATE_TYPES


def test_what_no_kernel_writes_is_compared_by_no_replay() -> None:
    assert {"journal_recovered", "text", "run_resumed"} <= RECORDS.keys() - EMITTED
