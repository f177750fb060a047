"""A text is looked for in one run's journal, on a thread of its own."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

from aeon_core.errors import AeonError
from aeon_core.journal.search import Match, place_of, search_journal

MOST = 10_000
"""Records that are listed; a text that is in more of them tells nothing."""
PIECE_SECONDS = 0.004
PAUSE_SECONDS = 0.001
"""How long the thread works before it lets the screen have its turn, and for how long."""


_LINES, _BYTES = 16, 1024 * 1024
"""How far after a long text to look for the record that refers to it, and how much of each line is read."""


class RecordSearch:
    """`found` grows during the search, in the order of the records; in the end `ended` is True."""

    def __init__(self, journal: Path, wanted: str) -> None:
        self.wanted = wanted
        self.found: list[Match] = []
        self.ended = False
        self.cancelled = False
        self.error: AeonError | None = None
        self._worked = time.perf_counter()
        threading.Thread(target=self._work, args=(journal,), name="aeon-search", daemon=True).start()

    @property
    def full(self) -> bool:
        """Whether there may be more records that hold the text than are listed."""
        return len(self.found) >= MOST

    def cancel(self) -> None:
        """End soon; what has been found stays."""
        self.cancelled = not self.ended

    def _work(self, journal: Path) -> None:
        try:
            for match in search_journal(journal, self.wanted, cancelled=self._is_over):
                self.found.append(_placed(journal, match) if match.type == "text" else match)
        except AeonError as error:
            self.error = error
        finally:
            self.ended = True

    def _is_over(self) -> bool:
        if time.perf_counter() - self._worked > PIECE_SECONDS:
            time.sleep(PAUSE_SECONDS)
            self._worked = time.perf_counter()
        return self.cancelled or self.full


def _placed(journal: Path, match: Match) -> Match:
    """Return the match of a long text with the step, pass and part of the record that it was written for."""
    try:
        with journal.open("rb") as file:
            file.seek(match.offset)
            reference = _compact({"$text": json.loads(file.readline())["sha256"]})
            for _ in range(_LINES):
                line = file.readline(_BYTES).decode("utf-8", "replace")
                if '"$text"' not in line or not isinstance(record := json.loads(line), dict):
                    continue
                for field, value in record.items():
                    if reference in _compact(value):
                        step_id, pass_number, part = place_of(record, field)
                        return replace(match, step_id=step_id, pass_number=pass_number, part=part, holder=record["seq"])
    except (OSError, ValueError, LookupError, TypeError):
        pass  # it is listed as a long text of the run
    return match


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
