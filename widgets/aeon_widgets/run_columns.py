"""The columns of a list of runs: which there is room for, and the content of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from rich.cells import cell_len

from aeon_core.journal.view.formatting import score, words
from aeon_core.money import money
from aeon_core.timing import seconds_after
from aeon_widgets.icons import run_style
from aeon_widgets.run_tree import LIVE, WORKFLOW, RunRow
from aeon_widgets.text import duration, fit, one_line

SIMULATED = "simulated:"
WAITING_ICON, MARKED, DAMAGED, ORDERED = "‖", "◆", "⚠", "▾"
STATUS_CELLS = 20
"""A mark, the icon and the word, each behind a blank."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_YEAR = 365 * _DAY


@dataclass(frozen=True)
class Column:
    """One column to the right of the task: its name and title, what it is ordered by, and when it is shown."""

    name: str
    title: str
    cells: int
    """Its width, with the blank before it."""
    least_task: int
    """The cells that must be left for the task; 0 for a column that is always shown."""
    order: str = ""
    """The order that a click on its title asks for; empty where there is none."""
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
    """Return the columns that there is room for, in their order: the task has all the width that they leave."""
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
    """Return the order that each part of the line above the list asks for, and the part, fitted to its column.

    An arrow marks the column that the list is ordered by.
    """
    head = f"    {'status':<{STATUS_CELLS - 4}}"
    parts = [("", head), ("", f"{'task':<{task_cells(width)}}"[: task_cells(width)])]
    return parts + [
        (column.order, _placed(f"{column.title}{ORDERED if order and order == column.order else ''}", column))
        for column in columns(width)
    ]


def cell(column: Column, run: RunRow, now: datetime) -> str:
    """Return the content of a run's column, fitted to its width."""
    return _placed(_text(column.name, run, now), column)


def status_cell(run: RunRow, mark: str) -> tuple[str, str]:
    """Return a run's status as icon and word, fitted, and its style. `mark` precedes it, one cell."""
    waits = is_waiting(run)
    icon, style = (WAITING_ICON, "medium") if waits else run_style(run.status)
    word = f"waits: {run.waits_for}" if waits else words(run.status)
    return pad(f"{mark or ' '} {icon} {fit(one_line(word, 30), STATUS_CELLS - 5)}", STATUS_CELLS), style


def is_waiting(run: RunRow) -> bool:
    """Return whether a process waits for a person's decision."""
    return run.status == LIVE and bool(run.waits_for)


def age(started: str, now: datetime) -> str:
    """Return how long ago a stamp was, in its largest unit: `42 s`, `3 min`, `5 h`, `2 d`, `1.5 y`; else `?`."""
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
    """Return a cost, or a dash where it is not known."""
    return "–" if dollars is None else money(dollars)


def pad(text: str, width: int) -> str:
    """Return the text with blanks up to `width` cells."""
    return text + " " * max(0, width - cell_len(text))


def _text(name: str, run: RunRow, now: datetime) -> str:
    live = run.status == LIVE
    texts = {
        "sim": "sim" if (run.model or "").startswith(SIMULATED) else "",
        "passes": "–" if run.kind == WORKFLOW else f"{run.passes + live}",
        "scores": _scores(run),
        "model": f" {one_line((run.model or '–').removeprefix(SIMULATED), 60)}",
        "cost": cost(run.cost_usd),
        "run": f" {one_line(run.run_id, 40)}",
        "age": duration(seconds_after(run.started, now.isoformat())) if live else age(run.started, now),
    }
    return texts[name]


def _scores(run: RunRow) -> str:
    return f"{score(run.completeness):>4} {score(run.coherence):>4}"


def _placed(text: str, column: Column) -> str:
    shown = fit(text, column.cells - 1)
    blanks = " " * max(0, column.cells - 1 - cell_len(shown))
    return f" {shown}{blanks}" if column.to_left or column.name == "sim" else f" {blanks}{shown}"


def ordered(runs: Sequence[RunRow], order: str) -> list[RunRow]:
    """Return runs by `cost` or `scores`, the highest first, what is not known last; live ones before all others."""

    def key(run: RunRow) -> tuple[bool, float]:
        if order == "cost":
            return run.status != LIVE, -(run.cost_usd if run.cost_usd is not None else -1.0)
        scores = [value for value in (run.completeness, run.coherence) if value is not None]
        return run.status != LIVE, -min(scores, default=-1.0)

    return sorted(runs, key=key)
