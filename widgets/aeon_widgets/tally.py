"""The number of runs that are running or wait for the user, at the right of every header's first line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from aeon_widgets.pane import message

ROOMY = 72
"""The width from which all of it is shown; below it, only the more important number."""
_RULE = " │ "


class Tally(NamedTuple):
    """The number of runs that wait for a decision, and of other running ones, in this process or another."""

    running: int = 0
    waiting: int = 0

    def parts(self, width: int) -> list[tuple[str, str]]:
        """Return texts and styles for a header of that width; empty if nothing runs or waits."""
        running = (f"{self.running} running", "$aeon-muted")
        waits = "waits" if self.waiting == 1 else "wait"
        if width < ROOMY:
            return [(f"{self.waiting} {waits}", "bold $severity-medium")] if self.waiting else [running][: self.running]
        waiting = (f"{self.waiting} {waits} for you", "bold $severity-medium")
        if self.running and self.waiting:
            return [running, (" · ", "$aeon-muted"), waiting]
        return [waiting] if self.waiting else [running][: self.running]


class TallyHeader(Widget):
    """A header whose first line ends with the tally."""

    tally: reactive[Tally] = reactive(Tally())

    @message
    class Wanted(Message):
        """The header was mounted and needs the current tally."""

        header: TallyHeader

    def on_mount(self) -> None:
        self.post_message(self.Wanted(self))

    def with_tally(self, draw: Callable[[int], Content]) -> Content:
        """Return the line that `draw` makes for the cells left, with the tally at its right."""
        width = self.size.width
        parts = self.tally.parts(width)
        if not parts:
            return draw(width)
        room = max(0, width - cell_len(_RULE) - sum(cell_len(text) for text, _ in parts))
        line = draw(room).truncate(room, ellipsis=True)
        return Content.assemble(line, " " * (room - line.cell_length), (_RULE, "$aeon-muted"), *parts)


class HeadLine(TallyHeader):
    """The name of a screen, what follows it after two spaces, and the tally."""

    DEFAULT_CSS = """
    HeadLine { height: 1; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    title: reactive[str] = reactive("")

    def __init__(self, title: str) -> None:
        super().__init__()
        self.set_reactive(HeadLine.title, title)

    def render(self) -> Content:
        name, gap, more = self.title.partition("  ")
        line = Content.assemble((name, "bold"), gap, more)
        return self.with_tally(lambda room: line.truncate(room, ellipsis=True))
