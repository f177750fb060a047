"""Runs, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.cells import cell_len
from typing_extensions import override

from aeon_core.timing import local_time
from aeon_widgets.lines import Piece, RowsView
from aeon_widgets.marks import run_style
from aeon_widgets.text import fit, one_line


class RunRow(Protocol):
    """What is shown of a run."""

    @property
    def run_id(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def started(self) -> str: ...


class RunList(RowsView):
    """Runs in the order given: status, whether simulated, when, task and, where there is room, model and run id."""

    HELP_TITLE = "List"

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[RunRow] = []

    @property
    def selected(self) -> RunRow | None:
        """The selected run."""
        return self._runs[self.cursor] if self.cursor < len(self._runs) else None

    def update_runs(self, runs: Sequence[RunRow]) -> None:
        """Show these runs; the selection stays on its run."""
        chosen = self.selected
        self._runs = runs
        self.set_line_count(len(runs))
        if chosen is not None:
            ids = [run.run_id for run in runs]
            self.cursor = ids.index(chosen.run_id) if chosen.run_id in ids else min(self.cursor, max(0, len(ids) - 1))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        run = self._runs[index]
        icon, style = run_style(run.status)
        started = local_time(run.started, "%Y-%m-%d %H:%M")
        parts: list[Piece] = [
            (f" {icon} {fit(one_line(run.status, 30).replace('_', ' '), 13):<13} ", style),
            ("sim " if (run.model or "").startswith("simulated:") else "    ", "medium"),
            (f"{started[:16]:<16}  ", "muted"),
        ]
        left = width - 40
        right: list[Piece] = []
        if width >= 90:
            right.append((f"  {fit(one_line(run.model or '–', 60), 24):<24} ", "muted"))
            left -= 27
        if width >= 130:
            right.append((f" {fit(one_line(run.run_id, 40), 24):<24} ", "muted"))
            left -= 26
        task = fit(one_line(run.task, 500), left)
        return [*parts, (_pad(task, left), ""), *right]


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cell_len(text))
