"""Runs and their forks as a tree: a family is sorted by its newest run, live ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

LIVE = "running"
WORKFLOW = "workflow"
"""The kind of a row that has agents and gates instead of passes."""
DEEPEST = 6
"""The deepest level of indent; deeper forks share it."""


class RunLine(NamedTuple):
    """A line of a list of runs."""

    run: RunSummary
    guide: str = ""
    """The tree lines that connect a fork to its parent."""
    found: str | None = None
    """The text of the match, if the line shows one in the run's journal instead of the run."""
    found_in: str = ""
    """The part that the match is in: `task`, `answer`, `prompt`."""
    seq: int | None = None
    """The match's record; None if it has no number."""


def as_tree(runs: Sequence[RunSummary]) -> list[RunLine]:
    """Return a line for each run, with forks under their parents if these are among the runs.

    Runs and forks keep the given order, live families first. Runs that are each other's parents are listed once.
    """
    places = {run.run_id: place for place, run in enumerate(runs)}
    forks: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.parent is not None and run.parent in places:
            forks.setdefault(run.parent, []).append(run)
    shown: set[str] = set()
    families: list[tuple[bool, int, list[RunLine]]] = []
    for place, run in enumerate(runs):
        if run.parent is None or run.parent not in places:
            families.append(_placed(run, place, places, forks, shown))
    if len(shown) < len(runs):  # the others are in cycles of parents
        for place, run in enumerate(runs):
            if run.run_id not in shown:
                families.append(_placed(run, place, places, forks, shown))
    families.sort(key=itemgetter(0, 1))
    return [line for _, _, lines in families for line in lines]


def start_words(pass_number: int) -> str:
    """Return where a fork starts whose first own pass is `pass_number`."""
    return f"the end of pass {pass_number - 1}" if pass_number > 1 else "the beginning"


def family_of(runs: Sequence[RunSummary], run_id: str) -> list[RunSummary]:
    """Return a run's whole family: its oldest known ancestor and all descendants of that, ancestors first."""
    known = {run.run_id: run for run in runs}
    root = known.get(run_id)
    seen = {run_id}
    while root is not None and root.parent in known and root.parent not in seen:
        seen.add(root.parent)
        root = known[root.parent]
    family = [root] if root is not None else []
    members = {root.run_id} if root is not None else set()
    forks: dict[str | None, list[RunSummary]] = {}
    for run in runs:
        forks.setdefault(run.parent, []).append(run)
    for member in family:
        new = [run for run in forks.get(member.run_id, ()) if run.run_id not in members]
        members |= {run.run_id for run in new}
        family += new
    return family


def _placed(
    root: RunSummary, place: int, places: dict[str, int], forks: dict[str, list[RunSummary]], shown: set[str]
) -> tuple[bool, int, list[RunLine]]:
    """Return a family's sort key, whether none of it is live and the place of its newest run, and its lines."""
    if root.run_id not in forks:
        shown.add(root.run_id)
        return root.status != LIVE, place, [RunLine(root)]
    lines = list(_family(root, forks, shown))
    is_over = all(line.run.status != LIVE for line in lines)
    return is_over, min(places[line.run.run_id] for line in lines), lines


def _family(root: RunSummary, forks: dict[str, list[RunSummary]], shown: set[str]) -> Iterator[RunLine]:
    """Yield a run and its descendants that were not shown yet."""
    stack = [(root, "", "")]
    while stack:
        run, guide, below = stack.pop()
        shown.add(run.run_id)
        yield RunLine(run, guide)
        children = [fork for fork in forks.get(run.run_id, ()) if fork.run_id not in shown]
        for fork in reversed(children):
            last = fork is children[-1]
            deeper = below + ("  " if last else "│ ") if len(below) < 2 * (DEEPEST - 1) else below
            stack.append((fork, below + ("└ " if last else "├ "), deeper))
