"""A digest of what came from outside: a replayed run must reproduce all of it, used or not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from aeon_core.journal.records import ENVELOPE, PassRecord, Record, RunFinished, RunStarted

_ENDED = {"llm": "finished", "tool": "finished", "approval": "decided"}
_COUNTED = frozenset({*_ENDED, "policy", "memory"})
ENDINGS = frozenset({PassRecord.tag, RunFinished.tag})
"""The types of records that end something, and hold the number."""
_DURATION = re.compile(rb'"\w*_ms":[-+.\deE]+,?')
"""A key with its number; within a text the quotes would be escaped."""


class OutcomeDigest:
    """Folds every outcome into one number: of models, tools, approvals, policy, and of a memory that others write."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def restore(self, outcomes: str) -> None:
        """Go on from the number that the record of a pass holds."""
        self._sha256 = hashlib.sha256(outcomes.encode())

    def on(self, record: Record) -> Record:
        """Return a record that ends something with the number so far, any other as it is."""
        if record.tag not in ENDINGS:
            return record
        outcomes = self._sha256.hexdigest()
        self.restore(outcomes)
        return record.model_copy(update={"outcomes": outcomes})

    def count(self, record: Record, body: bytes) -> None:
        """Fold a record in that was written so."""
        if record.tag == RunStarted.tag:
            self._begin(from_json(body).get("start"))
        elif record.tag in _COUNTED:
            self._fold(record.tag, getattr(record, "state", None), getattr(record, "source", None), body)

    def count_line(self, line: Mapping[str, Any]) -> None:
        """Fold a record in that stands in a journal, long texts in full."""
        tag = line["type"]
        if tag == RunStarted.tag:
            self._begin(line.get("start"))
        elif tag in _COUNTED:
            body = {key: value for key, value in line.items() if key not in ENVELOPE}
            self._fold(tag, line.get("state"), line.get("source"), to_json(body))

    def _begin(self, start: Any) -> None:
        """Fold in where a fork starts: no prompt need show all of it."""
        if start is not None:
            self._sha256.update(to_json(start))

    def _fold(self, tag: str, state: Any, source: Any, body: bytes) -> None:
        if tag == "policy" or (tag == "memory" and source == "external") or (tag in _ENDED and state == _ENDED[tag]):
            self._sha256.update(_DURATION.sub(b"", body) if b'_ms":' in body else body)
