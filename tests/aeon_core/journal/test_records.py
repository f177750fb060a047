"""The types of records: which say where a run is, and which the kernel emits."""

from __future__ import annotations

from aeon_core.journal.reader import ASKED, BEGINNINGS, ENDS, STATE_TYPES
from aeon_core.journal.records import EMITTED, RECORDS

TRANSCRIPT = {
    *("workflow_start", "workflow_resumed", "workflow_end", "agent_start", "agent_skipped", "agent_complete"),
    *("api_request", "api_response", "tool_exec", "question", "gate_asked", "gate_decision", "note"),
}
"""The types of a transcript's entries (REQ-125)."""


def test_records_added_later_do_not_mark_the_runs_position() -> None:
    assert STATE_TYPES.isdisjoint({"journal_recovered", "text", "label"})
    assert RECORDS.keys() | TRANSCRIPT >= STATE_TYPES


def test_start_end_and_question_records_mark_the_runs_position() -> None:
    assert {*BEGINNINGS, *ENDS, *ASKED, "run_resumed"} <= STATE_TYPES


def test_records_not_written_by_the_kernel_are_not_compared() -> None:
    assert {"journal_recovered", "text", "run_resumed"} <= RECORDS.keys() - EMITTED
