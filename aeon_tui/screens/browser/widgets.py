"""The widgets around the list of runs: its title, the hint under the filter, and its empty state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget
from typing_extensions import override

from aeon_core.escape import escape_controls
from aeon_widgets.tally import TallyHeader
from aeon_widgets.text import fit, one_line
from aeon_widgets.text_view import TextView

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

ListRuns = Callable[[Path], "Sequence[RunSummary]"]


class BrowserTitle(TallyHeader):
    """What the list is of, how many there are, and what they are ordered by."""

    DEFAULT_CSS = """
    BrowserTitle { height: 1; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    def __init__(self, runs_dir: Path) -> None:
        super().__init__()
        self._runs_dir = runs_dir
        self._count, self._order, self._marked = "", "", ""

    def update_count(self, count: str) -> None:
        """Say how many runs there are."""
        if count != self._count:
            self._count = count
            self.refresh()

    def update_order(self, order: str, marked: str) -> None:
        """Say what the runs are ordered by, empty for their age, and which of them is marked."""
        if (order, marked) != (self._order, self._marked):
            self._order, self._marked = order, marked
            self.refresh()

    @override
    def render(self) -> Content:
        return self.with_tally(self._title)

    def _title(self, room: int) -> Content:
        where = escape_controls(str(self._runs_dir))
        order = f" · by {self._order}" if self._order else ""
        marked = f" · ◆ {fit(one_line(self._marked), 26)} marked" if self._marked else ""
        return Content.assemble(
            ("aeon", "bold $aeon-accent"),
            ("  Runs", "bold"),
            f"  {self._count}{order}{marked}",
            (f"  {where}", "$aeon-muted"),
        ).truncate(room, ellipsis=True)


class FilterHint(Widget):
    """One line under the filter: what it knows, or what of it does not count."""

    DEFAULT_CSS = """
    FilterHint { height: 1; background: $panel; color: $aeon-muted; padding: 0 1; }
    FilterHint.-problem { color: $severity-high; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def update_hint(self, text: str, *, problem: bool) -> None:
        """Show a line."""
        self.set_class(problem, "-problem")
        if text != self._text:
            self._text = text
            self.refresh()

    @override
    def render(self) -> Content:
        text = escape_controls(self._text)
        while cell_len(text) > self.size.width and " · " in text and not self.has_class("-problem"):
            text = text.rpartition(" · ")[0]
        return Content(text).truncate(self.size.width, ellipsis=True)


class RunsText(TextView):
    """Shown instead of a list that cannot be read: why."""

    HELP_TITLE = "Runs"
