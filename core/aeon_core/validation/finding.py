"""What a check finds, before it becomes an issue of a report."""

from __future__ import annotations

from dataclasses import dataclass

from aeon_core.validation.report import IssueType, Severity

_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where (`step_id` None: the artifact as a whole), what, and what would correct it."""

    type: IssueType
    severity: Severity
    step_id: str | None
    description: str
    repair: str
    artifact: str | None = None
    """What it was found in, where that is a part: results, answer, memory."""


def clip(text: str) -> str:
    """Return a text on one line for a message, at most 80 characters and quoted."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…")
