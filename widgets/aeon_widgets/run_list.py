"""Runs, one a line; where their texts were searched, what was found under each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from typing_extensions import override

from aeon_core.timing import local_time
from aeon_widgets.excerpt import excerpt
from aeon_widgets.lines import Piece, RowsView
from aeon_widgets.marks import run_style
from aeon_widgets.run_tree import RunLine, RunRow
from aeon_widgets.text import fit, one_line

NARROW = 70
"""Below this width the year is left out."""


class RunList(RowsView):
    """Runs in the order given: status, whether simulated, when, task and, where there is room, model and run id."""

    HELP_TITLE = "List"

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[RunLine] = []
        self._wanted = ""

    @property
    def selected(self) -> RunRow | None:
        """The selected run."""
        return self._lines[self.cursor].run if self.cursor < len(self._lines) else None

    def update_lines(
        self, lines: Sequence[RunLine], wanted: str = "", *, where_empty: str = "", keep: bool = True
    ) -> None:
        """Show these lines, `wanted` marked in what was found; the selection stays on its run, or goes to the first."""
        said = (where_empty,)
        if lines == self._lines and wanted == self._wanted and (lines or said == self.where_empty):
            return
        self.where_empty = said
        chosen = self._lines[self.cursor] if self.cursor < len(self._lines) else None
        self._lines, self._wanted = lines, wanted
        self.set_line_count(len(lines))
        self.cursor = self._place_of(chosen) if keep and chosen is not None else 0

    def _place_of(self, chosen: RunLine) -> int:
        """Return where a line stands now: at its place where it is still there, else where its run is."""
        if self.cursor < len(self._lines) and _same(self._lines[self.cursor], chosen):
            return self.cursor
        run_id = chosen.run.run_id
        found = [place for place, line in enumerate(self._lines) if line.run.run_id == run_id]
        kept = [place for place in found if _same(self._lines[place], chosen)]
        return next(iter(kept or found), min(self.cursor, max(0, len(self._lines) - 1)))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        line = self._lines[index]
        if line.found is not None:
            kind = f"     {fit(one_line(line.found_in, 30), 13):<13} "
            return [(kind, "muted"), *excerpt(line.found, self._wanted, width - len(kind))]
        run = line.run
        icon, style = run_style(run.status)
        pattern, cells = ("%Y-%m-%d %H:%M", 16) if width >= NARROW else ("%m-%d %H:%M", 11)
        started = fit(local_time(run.started, pattern), cells)
        parts: list[Piece] = [
            (f" {icon} {fit(one_line(run.status, 30).replace('_', ' '), 13):<13} ", style),
            ("sim " if (run.model or "").startswith("simulated:") else "    ", "medium"),
            (f"{started:<{cells}}  ", "muted"),
        ]
        left = width - 24 - cells
        right: list[Piece] = []
        if width >= 90:
            right.append((f"  {fit(one_line(run.model or '–', 60), 24):<24} ", "muted"))
            left -= 27
        if width >= 130:
            right.append((f" {fit(one_line(run.run_id, 40), 24):<24} ", "muted"))
            left -= 26
        lead = _lead(line)
        task = fit(one_line(run.task, 500), left - cell_len(lead))
        return [*parts, (fit(lead, left), "muted"), (_pad(task, left - cell_len(lead)), ""), *right]


def _lead(line: RunLine) -> str:
    """Return what stands before the task of a fork: where it comes from."""
    if line.run.parent is None:
        return ""
    # A fork that stands for itself is one whose parent is gone, or not shown.
    begins = f"pass {line.run.forked_at} · " if line.run.forked_at is not None else ""
    return f"{line.guide or '↳ '}{begins}"


def _same(one: RunLine, other: RunLine) -> bool:
    return one.run.run_id == other.run.run_id and (one.found is None) is (other.found is None)


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cell_len(text))
