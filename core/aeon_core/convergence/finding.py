"""One thing that a check found, and what it weighs."""

from __future__ import annotations

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
