"""One thing that a check found, and what it weighs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aeon_core.convergence.criteria import Flag, ReasonCode

CONTRADICTION = 0.5
SERIOUS = 0.6
DOUBTFUL = 0.75
WARNING = 0.88
REMARK = 0.98


@dataclass(frozen=True, slots=True)
class Finding:
    """One issue: `code` stands in the way of convergence whatever the thresholds; `flag` is the alignment it breaks.

    `weight` is what the coherence score is multiplied by, 0…1.
    """

    description: str
    code: ReasonCode | None = None
    flag: Flag | None = None
    weight: float = 1.0


def first_of(findings: Iterable[Finding], most: int) -> list[Finding]:
    """Return the first findings, each once; no more than these are looked for."""
    found: dict[Finding, None] = {}
    for finding in findings:
        found[finding] = None
        if len(found) == most:
            break
    return list(found)
