"""The log: a line for every record worth one, as it arrives."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from aeon_core.journal.view.model import LogLine, RunView
from aeon_core.units import count, local_time
from aeon_widgets.icons import LEVELS
from aeon_widgets.pane import Pane, PaneMessage, pane_css
from aeon_widgets.text import Piece, fit, one_line
from aeon_widgets.virtual_list import LinesView

TYPE_WIDTH = 12
_NAMES = {
    "run_started": "run",
    "run_resumed": "run",
    "run_finished": "run",
    "journal_recovered": "journal",
    "llm": "model",
    "manual_intervention": "for a person",
    "pass": "end of pass",
    "ttl": "TTL",
}
"""The label of a record type in its column, if that is not its name."""


class LogPane(LinesView, Pane):
    """Time, level, type and text of each line. It follows the run until the person scrolls; End resumes.

    While it does not follow, its lines stay, and new ones are only counted.
    """

    HELP_TITLE = "Log"
    RECORDS: ClassVar[frozenset[str]] = frozenset()
    """Empty: any record may be worth a line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Expand", tooltip="Show more of the log, or less", id="log.open")
    ]

    class Opened(PaneMessage):
        """The person wants to see more of the log, or less of it again."""

    DEFAULT_CSS = pane_css("LogPane")

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._log: Sequence[LogLine] = []
        self._dropped = 0
        """Lines of the run before the first one here."""
        self._not_read = 0
        """Records of the run that are not in the view yet."""
        self._kept = False
        """Whether the lines here are from a view that has been replaced."""
        self._shown_notice = ""
        self.in_past = False
        """Whether the view is of a past moment, from which End first returns to now."""
        self.following = True
        self.where_empty = ("Nothing logged yet.",)
        self.pane_title = "Log"

    def update_view(self, view: RunView) -> None:
        """Show the lines so far, or, while the person reads, how many are new."""
        replaced, self._view = view is not self._view, view
        if self.following:
            self._copy_log()
        elif replaced:
            # The top line stays on top; if the new view no longer has it, the lines here stay.
            top = min(max(0, self.scroll_offset.y - self._notices), len(self._log) - 1)
            seq = self._log[top].seq if self._log else -1
            self._kept = bool(self._log and view.log) and seq < view.log[0].seq
            if not self._kept:
                self._copy_log_from(seq)
        self._show_whether_paused()

    def watch_following(self, following: bool) -> None:
        """Catch up with the run, or say that following is paused."""
        if following and self.is_attached:
            self._copy_log()
        self._show_whether_paused()

    def action_open(self) -> None:
        """Ask to show more of the log, or less again."""
        self.post_message(self.Opened(self))

    def _copy_log(self) -> None:
        self._log = self._view.log[:]
        self._dropped, self._not_read = self._view.log_count - len(self._log), self._view.whole_from
        self._kept = False
        self.set_line_count(len(self._log) + self._notices)

    def _copy_log_from(self, seq: int) -> None:
        self._copy_log()
        place = bisect_left(self._log, seq, key=lambda line: line.seq) + self._notices if seq >= 0 else 0
        self.scroll_to(y=place, animate=False, immediate=True, force=True)

    @property
    def _notices(self) -> int:
        return 1 if self._dropped or self._not_read else 0

    @property
    def _new(self) -> int:
        return self._view.log_count - self._dropped - len(self._log)

    def _show_whether_paused(self) -> None:
        new = f" · {self._new:,} new" if self._new and not self._kept else ""
        if self._kept:
            new = f" · {count(self._view.last_seq - self._log[-1].seq, 'record')} since"
        end = "End returns to now" if self.in_past else "End follows"
        notice = "" if self.following else f"paused{new} · {end}"
        if notice != self._shown_notice:
            # Only if it differs, since this redraws the whole pane.
            self._shown_notice = self.border_subtitle = notice

    @override
    def _follow_where_at_end(self) -> None:
        at_end = self.scroll_target_y >= self.max_scroll_y
        if self.following or not at_end or not (self._new or self._kept):
            super()._follow_where_at_end()
            return
        if self._kept:
            self._copy_log_from(self._log[-1].seq)
            self._show_whether_paused()
            return
        # The person has read to the end of the kept lines: append those that came since.
        top = self._dropped - self._notices + self.scroll_offset.y
        self._copy_log()
        place = max(0, top - self._dropped + self._notices)
        self.scroll_to(y=place, animate=False, immediate=True, force=True)
        self._show_whether_paused()

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        if index < self._notices:
            if self._not_read:
                return [(f" … {count(self._not_read, 'earlier record')} still loading", "muted")]
            return [(f" … {count(self._dropped, 'earlier line')}, in the journal", "muted")]
        line = self._log[index - self._notices]
        mark, style = LEVELS.get(line.level, LEVELS["info"])
        time = fit(local_time(line.ts, "%H:%M:%S"), 8)
        parts = [(f" {time:<8} ", "muted"), (f"{mark} ", style)]
        text = one_line(line.text)
        if width >= 60:
            name = fit(one_line(_NAMES.get(line.type, line.type), 40), TYPE_WIDTH)
            parts.append((f"{name:<{TYPE_WIDTH}} ", "muted"))
            text = text.removeprefix(f"{name} ")
        return [*parts, (text, style)]
