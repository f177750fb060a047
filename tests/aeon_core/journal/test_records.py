"""The types of records: which say where a run is, and which the kernel emits."""

from __future__ import annotations

import system2.entries
from aeon_core.journal.reader import STATE_TYPES
from aeon_core.journal.records import EMITTED, TYPES, Record


def test_every_type_says_where_a_run_is_or_may_be_added_to_it_later() -> None:
    added = {"journal_recovered", "text", "label"}
    entries = {
        each.tag for each in vars(system2.entries).values() if isinstance(each, type) and issubclass(each, Record)
    }
    assert added.isdisjoint(STATE_TYPES)
    assert STATE_TYPES | added == TYPES | (entries - {""})
    assert {"journal_recovered", "text", "run_resumed"} == TYPES - EMITTED
