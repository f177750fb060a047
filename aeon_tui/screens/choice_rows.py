"""A few values below each other in a dialog, of which one is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from typing_extensions import override

from aeon_widgets.virtual_list import Piece, RowsView

T = TypeVar("T")


class ChoiceRows(RowsView, Generic[T]):
    """The values with a word or two about each; the one under the cursor is chosen."""

    def __init__(self, choices: Mapping[T, Iterable[Piece]], first: T | None = None) -> None:
        super().__init__()
        self._values, self._pieces = list(choices), list(choices.values())
        self._first = self._values.index(first) if first is not None else 0

    def on_mount(self) -> None:
        self.set_line_count(len(self._values))
        self.cursor = self._first

    @property
    def value(self) -> T:
        """The value that is chosen."""
        return self._values[self.cursor]

    def choose(self, value: T) -> None:
        """Choose a value."""
        self.cursor = self._values.index(value)

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        return [(f" {'◉' if index == self.cursor else '○'} ", ""), *self._pieces[index]]
