"""The titles of the columns of a list of runs; a click on one orders the list by it."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from aeon_widgets.run_columns import titles

SCROLLBAR = 1


class RunListHeader(Widget):
    """One line above a RunList of the same width."""

    DEFAULT_CSS = """
    RunListHeader { height: 1; color: $aeon-muted; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._order = ""

    @dataclass
    class Ordered(Message):
        """The person wants another order."""

        order: str

    def update_order(self, order: str) -> None:
        """Say what the list is ordered by."""
        if order != self._order:
            self._order = order
            self.refresh()

    def render(self) -> Content:
        shown = [(text, "bold" if order and order == self._order else "") for order, text in self._titles()]
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
        return titles(self.size.width - SCROLLBAR, self._order)
