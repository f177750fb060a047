"""Runs, one per line, in columns, forks under their parents; after a search, the matches under each.

A family is sorted by its newest run, live ones first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from typing_extensions import override

from aeon_core.journal.view.formatting import score, words
from aeon_core.units import money, seconds_after
from aeon_widgets.icons import ROW_ICONS, WAITING, run_style
from aeon_widgets.match_list import excerpt
from aeon_widgets.pane import message
from aeon_widgets.text import Piece, duration, fit, one_line
from aeon_widgets.virtual_list import RowsView

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
    # Roots first: runs that are not shown after them are in cycles of parents.
    for place, run in sorted(enumerate(runs), key=lambda each: each[1].parent in places):
        if run.run_id not in shown:
            families.append(_family_lines(run, place, places, forks, shown))
    families.sort(key=itemgetter(0, 1))
    return [line for _, _, lines in families for line in lines]


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


def _family_lines(
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


SIMULATED = "simulated:"
MARKED, DAMAGED, ORDERED = "◆", "⚠", "▾"
STATUS_CELLS = 20
"""A mark, the icon and the word, separated by spaces."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_YEAR = 365 * _DAY


@dataclass(frozen=True)
class Column:
    """One column to the right of the task: its name, title and width, and when it is shown."""

    name: str
    title: str
    cells: int
    """Its width, including the space before it."""
    least_task: int
    """The least cells that the column must leave for the task; 0 for a column that is always shown."""
    order: str = ""
    """The order that a click on its title selects; empty if there is none."""
    to_left: bool = False


SIM, PASSES, SCORES, MODEL, COST, RUN, AGE = COLUMNS = (
    Column("sim", "", 4, 0),
    Column("passes", "pass", 6, 24),
    Column("scores", "scores", 11, 24, "scores"),
    Column("model", " model", 18, 24, to_left=True),
    Column("cost", "cost", 8, 24, "cost"),
    Column("run", " run", 24, 60, to_left=True),
    Column("age", "age", 9, 0, "age"),
)
_BY_IMPORTANCE = (SIM, AGE, PASSES, SCORES, COST, MODEL, RUN)


@cache
def columns(width: int) -> list[Column]:
    """Return the columns that fit, in order; the task gets the rest of the width."""
    room = width - STATUS_CELLS
    shown = set()
    for column in _BY_IMPORTANCE:
        if column.least_task and room - column.cells < column.least_task:
            break
        room -= column.cells
        shown.add(column)
    return [column for column in COLUMNS if column in shown]


def task_cells(width: int) -> int:
    """Return the cells that are left for the task."""
    return max(0, width - STATUS_CELLS - sum(column.cells for column in columns(width)))


def titles(width: int, order: str = "") -> list[tuple[str, str]]:
    """Return the header's parts, each fitted to its column and preceded by the order that a click on it selects.

    An arrow marks the column that the list is ordered by.
    """
    head = f"    {'status':<{STATUS_CELLS - 4}}"
    parts = [("", head), ("", f"{'task':<{task_cells(width)}}"[: task_cells(width)])]
    return parts + [
        (column.order, _placed(f"{column.title}{ORDERED if order and order == column.order else ''}", column))
        for column in columns(width)
    ]


def cell(column: Column, run: RunSummary, now: datetime) -> str:
    """Return a run's text in a column, fitted to its width."""
    return _placed(_text(column.name, run, now), column)


def status_cell(run: RunSummary, mark: str) -> tuple[str, str]:
    """Return a run's status as icon and word, padded, and its style; `mark`, one cell wide, precedes it."""
    waits = is_waiting(run)
    icon, style = (ROW_ICONS[WAITING], "medium") if waits else run_style(run.status)
    word = f"waits: {run.waits_for}" if waits else words(run.status)
    return set_cell_size(f"{mark or ' '} {icon} {fit(one_line(word, 30), STATUS_CELLS - 5)}", STATUS_CELLS), style


def is_waiting(run: RunSummary) -> bool:
    """Return whether a process waits for a person's decision."""
    return run.status == LIVE and bool(run.waits_for)


def age(started: str, now: datetime) -> str:
    """Return how long ago a timestamp was, as `42 s`, `3 min`, `5 h`, `2 d` or `1.5 y`; `?` if it is invalid."""
    try:
        seconds = int((now - datetime.fromisoformat(started)).total_seconds())
    except (TypeError, ValueError):
        return "?"
    if seconds < _HOUR:
        return f"{max(0, seconds)} s" if seconds < _MINUTE else f"{seconds // _MINUTE} min"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h"
    return f"{seconds // _DAY} d" if seconds < _YEAR else f"{seconds / _YEAR:.1f} y"


def cost(dollars: float | None) -> str:
    """Return a cost, or a dash if it is not known."""
    return "–" if dollars is None else money(dollars)


def _text(name: str, run: RunSummary, now: datetime) -> str:
    live = run.status == LIVE
    texts = {
        "sim": "sim" if run.model.startswith(SIMULATED) else "",
        "passes": "–" if run.kind == WORKFLOW else f"{run.passes + (not run.ended) or '–'}",
        "scores": f"{score(run.completeness):>4} {score(run.coherence):>4}",
        "model": f" {one_line((run.model or '–').removeprefix(SIMULATED), 60)}",
        "cost": cost(run.cost_usd),
        "run": f" {one_line(run.run_id, 40)}",
        "age": duration(seconds_after(run.started, now.isoformat())) if live else age(run.started, now),
    }
    return texts[name]


def _placed(text: str, column: Column) -> str:
    shown = fit(text, column.cells - 1)
    blanks = " " * max(0, column.cells - 1 - cell_len(shown))
    return f" {shown}{blanks}" if column.to_left or column.name == "sim" else f" {blanks}{shown}"


def ordered(runs: Sequence[RunSummary], order: str) -> list[RunSummary]:
    """Return runs by `cost` or `scores`, the highest first and unknown ones last, with live runs before all others."""

    def key(run: RunSummary) -> tuple[bool, float]:
        if order == "cost":
            return run.status != LIVE, -(run.cost_usd if run.cost_usd is not None else -1.0)
        scores = [value for value in (run.completeness, run.coherence) if value is not None]
        return run.status != LIVE, -min(scores, default=-1.0)

    return sorted(runs, key=key)


QUIET_SECONDS = 10
"""Seconds between updates of the ages if no run is live."""
_KIND_CELLS = STATUS_CELLS - 5
"""The label of a match is below the status, and the match below the task."""
_STYLES = {"sim": "medium", "passes": "", "scores": "", "cost": ""}
"""The styles of columns that are not muted."""


class RunList(RowsView):
    """Runs in the order given: status, task, age and, where there is room, passes, scores, model, cost and run id."""

    HELP_TITLE = "List"

    DEFAULT_CSS = """
    RunList { scrollbar-gutter: stable; }
    """

    item = None
    """None, so that the screen's item is copied: the run's id."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[RunLine] = []
        self._wanted = ""
        self._now = datetime.now(UTC)
        self._marked: Set[str] = frozenset()
        self._damaged: Set[str] = frozenset()

    @property
    def selected(self) -> RunSummary | None:
        """The selected run."""
        return self.selected_line.run if self.selected_line is not None else None

    @property
    def selected_line(self) -> RunLine | None:
        """The selected line: a run, or a match in one."""
        return self._lines[self.cursor] if self.cursor < len(self._lines) else None

    def update_lines(
        self, lines: Sequence[RunLine], wanted: str = "", *, where_empty: str = "", keep: bool = True
    ) -> None:
        """Show these lines, with `wanted` marked in matches; the selection stays, or without `keep` goes to the top."""
        empty_lines = (where_empty,)
        if lines == self._lines and wanted == self._wanted and (lines or empty_lines == self.where_empty):
            return
        self.where_empty = empty_lines
        chosen = self.selected_line if keep else None
        self._lines, self._wanted = lines, wanted
        self.set_line_count(len(lines))
        if chosen is None:
            self.cursor = 0
        elif (there := self.selected_line) is None or not _same(there, chosen):
            found = [place for place, line in enumerate(lines) if line.run.run_id == chosen.run.run_id]
            kept = [place for place in found if _same(lines[place], chosen)]
            self.cursor = next(iter(kept or found), min(self.cursor, max(0, len(lines) - 1)))

    def tick(self, now: datetime) -> None:
        """Update ages: on every call while the first run is live, else every QUIET_SECONDS."""
        first = self._lines[0].run if self._lines else None
        is_live = first is not None and first.status == LIVE
        if is_live or abs((now - self._now).total_seconds()) >= QUIET_SECONDS:
            self._now = now
            self.refresh()

    def update_marks(self, marked: Set[str], damaged: Set[str]) -> None:
        """Mark the runs with these ids: `marked`, and `damaged` in addition to rows that are damaged."""
        if (marked, damaged) != (self._marked, self._damaged):
            self._marked, self._damaged = marked, damaged
            self.refresh()

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        line = self._lines[index]
        if line.found is not None:
            kind = f"{'':4}{fit(one_line(line.found_in, 30), _KIND_CELLS):<{_KIND_CELLS}} "
            return [(kind, "muted"), *excerpt(line.found, self._wanted, width - len(kind))]
        run = line.run
        room = task_cells(width)
        lead = fit(_lead(line), room)
        room -= cell_len(lead)
        task = set_cell_size(fit(one_line(run.task, 500), room), room)
        right = [(cell(each, run, self._now), _STYLES.get(each.name, "muted")) for each in columns(width)]
        mark = MARKED if run.run_id in self._marked else ""
        if not mark and (run.damaged or run.run_id in self._damaged):
            mark = DAMAGED
        return [status_cell(run, mark), (lead, "muted"), (task, ""), *right]


def _lead(line: RunLine) -> str:
    """Return the prefix of the task, for a fork its origin, and for a workflow that word."""
    kind = "workflow · " if line.run.kind == WORKFLOW else ""
    if line.run.parent is None:
        return kind
    # A fork at the top level is one whose parent is gone, or not shown.
    begins = f"pass {line.run.forked_at} · " if line.run.forked_at is not None else ""
    return f"{line.guide or '↳ '}{begins}{kind}"


def _same(one: RunLine, other: RunLine) -> bool:
    return one.run.run_id == other.run.run_id and (one.found is None) is (other.found is None)


SCROLLBAR = 1


class RunListHeader(Widget):
    """The titles above a RunList of the same width."""

    DEFAULT_CSS = """
    RunListHeader { height: 1; color: $aeon-muted; background: $background; }
    """

    order: reactive[str] = reactive("")
    """What the list is ordered by."""

    @message
    class Ordered(Message):
        """The person selected an order."""

        order: str

    def render(self) -> Content:
        shown = [(text, "bold" if order and order == self.order else "") for order, text in self._titles()]
        return Content.assemble(*shown)

    def on_click(self, event: events.Click) -> None:
        right = 0
        for order, text in self._titles():
            right += len(text)
            if event.x < right:
                if order:
                    self.post_message(self.Ordered(order))
                return

    def _titles(self) -> list[tuple[str, str]]:
        return titles(self.size.width - SCROLLBAR, self.order)
