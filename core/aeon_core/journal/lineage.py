"""Where a run comes from, and what was forked from it: from the first records of the journals in its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.summary import RunSummary, summarise


@dataclass(frozen=True)
class Lineage:
    """The next of kin of a run. Of a run that is no fork, `parent` is None."""

    parent: str | None = None
    """The id of the run that it was forked from."""
    forked_at: int | None = None
    """The pass that it began with; None where that is not told."""
    parent_is_there: bool = False
    """Whether the parent's journal is in the same folder."""
    forks: list[RunSummary] = field(default_factory=list)
    """What was forked from it, the oldest first."""


def lineage_of(path: Path, *, cache: bool = True) -> Lineage:
    """Return the family of a journal's run among the runs of the same directory; `cache` as for `list_runs`."""
    run = summarise(path)
    if run is None:
        return Lineage()
    try:
        others = [other for other in list_runs(path.parent, cache=cache) if other.run_id != run.run_id]
    except UsageError:  # a directory may refuse to be listed, and a file in it be read all the same
        others = []
    return Lineage(
        parent=run.parent,
        forked_at=run.forked_at,
        parent_is_there=any(other.run_id == run.parent for other in others),
        forks=[other for other in reversed(others) if other.parent == run.run_id],
    )


def at_pass(number: int | None) -> str:
    """Return for example ` at pass 2`; empty where the pass of a fork is not told."""
    return f" at pass {number}" if number is not None else ""
