"""A list with a filter line above it: Escape clears the filter, then goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input
from typing_extensions import override

from aeon_core.escape import escape_controls
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_widgets.tally import HeadLine
from aeon_widgets.text_fields import FilterLine
from aeon_widgets.virtual_list import RowsView

Row = TypeVar("Row")


class ListFilter(FilterLine):
    """A FilterLine, hidden at first, from which Enter moves to the list, since there is nothing else to search."""

    DEFAULT_CSS = "ListFilter { display: none; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "submit", "To the list", id="filter.submit")]

    def open(self) -> None:
        """Show the line and focus it."""
        self.display = True
        self.screen.set_focus(self)  # immediately, because the next key is a letter

    def close(self) -> bool:
        """Clear and hide the line; return False if it was hidden already."""
        was_open = bool(self.display)
        self.value, self.display = "", False
        return was_open


class KeptRows(RowsView, Generic[Row]):
    """Rows that keep the selection when the rows change, as long as the selected one is among them.

    `reading` is shown until there are rows, `nothing` if none pass the filter.
    """

    reading = "reading …"
    nothing = ""

    def __init__(self) -> None:
        super().__init__()
        self.where_empty = (self.reading,)
        self.rows: Sequence[Row] = ()

    def name_of(self, row: Row) -> object:
        """Return the identity of a row; by default the row itself."""
        return row

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def update_rows(self, rows: Sequence[Row]) -> None:
        """Show these."""
        before = self.selected
        self.rows = rows
        self.where_empty = (self.nothing,)
        self.set_line_count(len(rows))
        names = [self.name_of(row) for row in rows]
        was = self.name_of(before) if before is not None else None
        self.cursor = names.index(was) if was in names else 0


class TextRow(Protocol):
    """A row that the filter can find by its words."""

    @property
    def text(self) -> str:
        """The text that the filter searches."""


TextRows = TypeVar("TextRows", bound=TextRow)


def matching(rows: Sequence[TextRows], text: str) -> list[TextRows]:
    """Return the rows that contain all words of a text."""
    words = text.lower().split()
    return [row for row in rows if all(word in row.text.lower() for word in words)]


class FilterableListScreen(SelectableScreen[None], Generic[TextRows]):
    """A screen with a HeadLine, a FilterLine that `/` opens, and a list of rows. Subclasses add keys."""

    DEFAULT_CSS = """
    FilterableListScreen {
        background: $background;
        KeptRows { height: 1fr; padding: 1 0 0 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.all_rows: Sequence[TextRows] = ()

    def on_mount(self) -> None:
        self.query(KeptRows).focus()

    def update_rows(self, rows: Sequence[TextRows], title: str) -> None:
        """Show the rows that pass the filter."""
        self.all_rows = rows
        self.query_one(HeadLine).title = escape_controls(title)
        self.show_rows()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self.show_rows()

    def show_rows(self) -> None:
        """Show the rows that pass the filter."""
        self.query_one(KeptRows).update_rows(matching(self.all_rows, self.query_one(FilterLine).value))
        self.refresh_bindings()

    @on(Input.Submitted)
    def _to_list(self) -> None:
        self.query_one(KeptRows).focus()

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "filter" or not isinstance(self.focused, FilterLine)

    def action_filter(self) -> None:
        self.query_one(ListFilter).open()

    def action_back(self) -> None:
        """Clear the filter, or go back."""
        if self.query_one(ListFilter).close():
            self.query_one(KeptRows).focus()
        else:
            self.dismiss()
