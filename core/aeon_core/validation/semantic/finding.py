"""What a rule finds, before it becomes an issue of a report."""

from __future__ import annotations

from dataclasses import dataclass

from aeon_core.validation.report import IssueType, Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where (None: the artifact as a whole), what, and what would put it right."""

    type: IssueType
    severity: Severity
    step_id: str | None
    description: str
    repair: str
    structural: bool = False
    """Whether structural validation finds the same by itself."""
    artifact: str | None = None
    """What it was found in, where that is a part: results, answer, memory."""


_MAX_SHOWN = 80


def clip(text: str) -> str:
    """Return a text on one line for a message, at most 80 characters and quoted."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…")
