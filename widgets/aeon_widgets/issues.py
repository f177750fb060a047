"""What semantic validation found last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual.message import Message
from typing_extensions import override

from aeon_core.journal.view import IssueView, RunView
from aeon_widgets.lines import Piece, RowsView
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import one_line

SEVERITY_ICONS = {"high": "✖", "medium": "⚠", "low": "·"}
"""Each with a shape of its own; a severity's name is the name of its style, too."""
_ROWS = 2
"""Rows of an issue: what it is, and the repair that is proposed."""


class IssuesPane(RowsView, Pane):
    """Two rows an issue, the highest severity first. Enter leads to the step that the issue is about."""

    HELP_TITLE = "Issues"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"validation"})

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
        self._issues: list[IssueView] = []
        self.pane_title = "Issues"

    def update_view(self, view: RunView) -> None:
        """Show the issues of the last report."""
        self._issues = view.issues
        self.set_line_count(_ROWS * len(self._issues))
        self.cursor = min(self.cursor, max(0, self.line_count - 1))
        place = f" · pass {view.reports[-1].pass_number}" if view.reports else ""
        self.pane_title = f"Issues {len(self._issues)}{place}"

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        issue = self._issues[index // _ROWS]
        if index % _ROWS:
            return [("     → ", "muted"), (one_line(issue.repair) or "no repair is proposed", "muted")]
        style = issue.severity if issue.severity in SEVERITY_ICONS else "muted"
        kind = one_line(issue.type, 30).replace("_", " ")
        place = f"{one_line(issue.step_id, 30)} " if issue.step_id else ""
        return [
            (f" {SEVERITY_ICONS.get(issue.severity, '?')} {one_line(issue.severity, 10)} ", style),
            (place, "bold"),
            (f"{kind}: ", "muted"),
            (one_line(issue.description), ""),
        ]

    def on_rows_view_chosen(self, event: RowsView.Chosen) -> None:
        if event.rows is not self:
            return
        event.stop()
        issue = self._issues[event.index // _ROWS]
        if issue.step_id is not None:
            self.post_message(self.Opened(self, issue))
