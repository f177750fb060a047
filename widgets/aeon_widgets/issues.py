"""What semantic validation found, filtered as the person likes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from typing_extensions import override

from aeon_core.journal.view.formatting import words
from aeon_core.journal.view.model import IssueView, RunView
from aeon_core.journal.view.step_issues import found_issues, refined_since
from aeon_widgets.icons import REFINED, SEVERITY_ICONS
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import one_line
from aeon_widgets.virtual_list import Piece, RowsView

_ROWS = 2
"""Rows of an issue: what it is, and the repair that is proposed; in a narrow pane, what it is and what it says."""
_ROOMY = 60
"""From this width on an issue's description stands beside its type."""

Found = tuple[int, IssueView]
"""An issue and the pass it was found in."""


class IssuesPane(RowsView, Pane):
    """The issues of the last report or of all, the highest severity first. Enter leads to the step of an issue."""

    HELP_TITLE = "Issues"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"validation", "refinement"})

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "severity", "Severity", id="issues.severity"),
        Binding("y", "type", "Type", id="issues.type"),
        Binding("a", "all", "All", id="issues.all"),
    ]

    @dataclass
    class Opened(Message):
        """The person wants to see the step of an issue: `issue.step_id`, which is there."""

        pane: IssuesPane
        issue: IssueView

        @property
        def control(self) -> IssuesPane:
            return self.pane

    DEFAULT_CSS = pane_css("IssuesPane")

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._shown: list[Found] = []
        self._refined: set[str] = set()
        self._severity = self._type = ""
        self._all_passes = False
        self.pane_title = "Issues"

    def update_view(self, view: RunView) -> None:
        """Show the issues there are by now."""
        self._view = view
        ever = found_issues(view)
        found = ever if self._all_passes else self._found()
        self._refined = refined_since(view)
        self._shown = [each for each in found if self._passes(each[1])]
        self.where_empty = self._where_empty(len(found), len(ever))
        self.set_line_count(_ROWS * len(self._shown))
        self.cursor = min(self.cursor, max(0, self.line_count - 1))
        self.pane_title = self._title(len(found), len(ever))

    def _found(self) -> list[Found]:
        if self._all_passes:
            return found_issues(self._view)
        return [(report.pass_number, issue) for report in self._view.reports[-1:] for issue in report.issues]

    def _passes(self, issue: IssueView) -> bool:
        return self._severity in ("", issue.severity) and self._type in ("", issue.type)

    def _title(self, found: int, ever: int) -> str:
        filters = [one_line(self._severity, 10), words(self._type)] if self._severity or self._type else []
        number = f"{len(self._shown)} of {found}" if filters else f"{found}"
        place = "all passes" if self._all_passes else self._last_report(ever)
        return " · ".join(part for part in (f"Issues {number}", *filters, place) if part)

    def _where_empty(self, found: int, ever: int) -> Sequence[str]:
        if found:
            return ["None of that severity and type.", "Press s or y for others."]
        if not self._view.reports:
            return ["Nothing validated yet."]
        earlier = not self._all_passes and ever
        return ["Nothing found.", *(["Press a for earlier ones."] if earlier else [])]

    def _last_report(self, ever: int) -> str:
        if not self._view.reports:
            return ""
        more = f" ({ever} in all)" if ever > len(self._view.issues) else ""
        return f"pass {self._view.reports[-1].pass_number}{more}"

    def action_severity(self) -> None:
        """Show the issues of the next severity there is alone; after the last one, all again."""
        there = [name for name in SEVERITY_ICONS if any(issue.severity == name for _, issue in self._found())]
        self._severity = _next(self._severity, there)
        self._show_anew()

    def action_type(self) -> None:
        """Show the issues of the next type there is alone; after the last one, all again."""
        self._type = _next(self._type, sorted({issue.type for _, issue in self._found()}))
        self._show_anew()

    def action_all(self) -> None:
        """Show the issues of every pass, or of the last report again."""
        self._all_passes = not self._all_passes
        self._show_anew()

    def _show_anew(self) -> None:
        self.cursor = 0
        self.update_view(self._view)

    def go_to(self, step_id: str) -> bool:
        """Select the first issue of a step, with filters taken away that hide it. Returns whether there is one."""
        if all(issue.step_id != step_id for _, issue in found_issues(self._view)):
            return False
        if self._first_of(step_id) is None:
            self._severity = self._type = ""
            self._all_passes = all(issue.step_id != step_id for issue in self._view.issues)
            self._show_anew()
        self.cursor = _ROWS * (self._first_of(step_id) or 0)
        return True

    def _first_of(self, step_id: str) -> int | None:
        return next((number for number, (_, issue) in enumerate(self._shown) if issue.step_id == step_id), None)

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        number, issue = self._shown[index // _ROWS]
        first = not index % _ROWS
        if width < _ROOMY:
            return self._head(number, issue) if first else [("     ", ""), (one_line(issue.description), "")]
        if first:
            return [*self._head(number, issue), (": ", "muted"), (one_line(issue.description), "")]
        return [("     → ", "muted"), (one_line(issue.repair) or "no repair is proposed", "muted")]

    def _head(self, number: int, issue: IssueView) -> Sequence[Piece]:
        style = issue.severity if issue.severity in SEVERITY_ICONS else "muted"
        place = f"{one_line(issue.step_id, 30)} " if issue.step_id else ""
        when = f"{number} · " if self._all_passes else ""
        return [
            (f" {SEVERITY_ICONS.get(issue.severity, '?')} {one_line(issue.severity, 10)} ", style),
            (when and f"pass {when}", "muted"),
            (place, "bold"),
            (words(issue.type), "muted"),
            (f" {REFINED} refined" if self._answered(issue) else "", "accent"),
        ]

    def _answered(self, issue: IssueView) -> bool:
        return issue.step_id in self._refined and any(issue is each for each in self._view.issues)

    def on_rows_view_chosen(self, event: RowsView.Chosen) -> None:
        if event.rows is not self:
            return
        event.stop()
        issue = self._shown[event.index // _ROWS][1]
        if issue.step_id is not None:
            self.post_message(self.Opened(self, issue))


def _next(chosen: str, there: Sequence[str]) -> str:
    """Return what follows in a circle of the names and no name."""
    circle = ["", *there]
    return circle[(circle.index(chosen) + 1) % len(circle)] if chosen in circle else ""
