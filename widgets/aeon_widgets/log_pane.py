"""The log: every record worth a line, as it comes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from typing_extensions import override

from aeon_core.journal.view import LogLine, RunView
from aeon_widgets.lines import LinesView, Piece
from aeon_widgets.marks import LEVELS
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import fit, local_time, one_line

TYPE_WIDTH = 12


class LogPane(LinesView, Pane):
    """Time, level, type and text of each line. It follows the run until the person scrolls; End resumes."""

    HELP_TITLE = "Log"
    RECORDS: ClassVar[frozenset[str]] = frozenset()
    """Empty: any record may be worth a line."""

    DEFAULT_CSS = pane_css("LogPane")

    def __init__(self) -> None:
        super().__init__()
        self._log: Sequence[LogLine] = []
        self._dropped = 0
        self.following = True
        self.pane_title = "Log"

    def update_view(self, view: RunView) -> None:
        """Show the lines there are by now; what the person reads stays in place when old lines are dropped."""
        dropped = view.log_count - len(view.log)
        gone, self._dropped = dropped - self._dropped, dropped
        self._log = view.log
        if gone and not self.following:
            self.scroll_to(y=max(0, self.scroll_offset.y - gone), animate=False, immediate=True, force=True)
        self.set_line_count(len(view.log))

    def watch_following(self, following: bool) -> None:
        """Say in the title that new lines are not scrolled to."""
        self.border_subtitle = "" if following else "paused · End follows"

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        if index >= len(self._log):
            return []
        line = self._log[index]
        mark, style = LEVELS.get(line.level, LEVELS["info"])
        time = fit(local_time(line.ts, "%H:%M:%S"), 8)
        parts = [(f" {time:<8} ", "muted"), (f"{mark} ", style)]
        if width >= 60:
            parts.append((f"{fit(one_line(line.type, 40), TYPE_WIDTH):<{TYPE_WIDTH}} ", "muted"))
        return [*parts, (one_line(line.text), style)]
