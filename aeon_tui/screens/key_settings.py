"""All actions with their keys: Enter and a key rebind an action, Backspace restores its default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker
from typing_extensions import override

from aeon_tui.screens.context import context_of
from aeon_tui.screens.dialogs import Box, ConfirmDialog, Dialog
from aeon_tui.screens.filterable_list import FilterableListScreen, KeptRows, ListFilter
from aeon_tui.screens.keys import label_of
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import shown_key
from aeon_widgets.line_input import FilterLine
from aeon_widgets.tally import HeadLine
from aeon_widgets.text import Piece, fit
from aeon_widgets.virtual_list import RowsView

_PLACE, _WHAT, _KEYS = 18, 26, 15


@dataclass(frozen=True)
class KeyRow:
    """An action with its current keys."""

    id: str
    place: str
    what: str
    keys: tuple[str, ...]
    changed: bool

    @property
    def shown(self) -> str:
        """The keys as labelled on a keyboard."""
        return "  ".join(dict.fromkeys(map(shown_key, self.keys)))

    @property
    def text(self) -> str:
        """The text that the filter searches."""
        return f"{self.place} {self.what} {self.shown} {self.id}"


class KeyList(KeptRows[KeyRow]):
    """Actions, one per line, grouped by part of the app."""

    HELP_TITLE = "Actions"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Change", key_display="⏎", id="lines.choose")]

    reading = "loading actions …"
    nothing = "no action matches"

    @override
    def name_of(self, row: KeyRow) -> str:
        return row.id

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        row = self.rows[index]
        first = index == 0 or self.rows[index - 1].place != row.place
        place = _PLACE if width >= 76 else 0
        return [
            (" ● " if row.changed else "   ", "accent"),
            (_pad(row.place if first else "", place), "accent"),
            (_pad(row.what, _WHAT), ""),
            (_pad(row.shown, _KEYS), "bold"),
            (row.id, "muted"),
        ]


def _pad(text: str, width: int) -> str:
    shown = fit(text, max(0, width - 1))
    return shown + " " * (width - cell_len(shown))


class PressDialog(Dialog[str | None]):
    """Waits for one key and returns Textual's name for it; None for Escape."""

    DEFAULT_CSS = "PressDialog > Vertical { width: 50; padding: 1 2; color: $aeon-text; }"

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def compose(self) -> ComposeResult:
        with Box(self._what, ""):
            yield Static("Press the new key.\nEscape or a click cancels.", markup=False)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss(None if event.key == "escape" else event.key)

    def on_click(self) -> None:
        self.dismiss(None)


class KeySettingsScreen(FilterableListScreen[KeyRow]):
    """Shows what every key does and changes keys. Changes are saved in the user's own configuration file."""

    HELP_TITLE = "Change keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "reset", "Default key", id="keys.reset"),
        Binding("slash", "filter", "Filter", key_display="/", id="keys.filter"),
        Binding("escape", "back", "Back", id="keys.back"),
    ]

    def compose(self) -> ComposeResult:
        yield HeadLine("Keys")
        yield ListFilter("what it does, where, a key, an id")
        yield KeyList()
        yield KeyFooter()

    def on_mount(self) -> None:
        self._read()

    @work(thread=True, exclusive=True, group="keys", exit_on_error=False)
    def _read(self) -> None:
        """Collect all actions, which loads every screen."""
        worker, rows = get_current_worker(), key_rows(context_of(self).user_settings.keymap)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._apply, rows)

    def _apply(self, rows: Sequence[KeyRow]) -> None:
        if self.is_attached:
            changed = sum(row.changed for row in rows)
            self.update_rows(rows, f"Keys  {len(rows)} actions · {changed} changed")

    @on(RowsView.Chosen)
    def action_change(self) -> None:
        row = self.query_one(KeyList).selected
        if row is not None:
            self.app.push_screen(PressDialog(f"{row.place}: {row.what}"), partial(self._pressed, row))

    def _pressed(self, row: KeyRow, key: str | None) -> None:
        from aeon_tui.keymap import checked_keys, clash, why_no_key

        if key is None or (key,) == row.keys:
            return
        if (why := why_no_key(key, row.id)) is not None:
            self.notify(why, severity="warning", markup=False)
            return
        conflict = clash(row.id, key, {each.id: ",".join(each.keys) for each in self.all_rows})
        if conflict is None:
            self._give({row.id: key})
            return
        other = next(each for each in self.all_rows if each.id == conflict[1])
        taken = f"{shown_key(key)} is {other.place}: {other.what}."
        kept = [each for each in other.keys if each != key] or row.keys
        swapped = {other.id: ",".join(kept), row.id: key}
        if checked_keys({**context_of(self).user_settings.keymap, **swapped}).problems:
            self.notify(f"{taken} Give that one another key first.", severity="warning", markup=False)
            return
        lines = [taken, f"After a swap, that is {'  '.join(map(shown_key, kept))}."]
        ask = ConfirmDialog("The key is taken", lines, "Swap", "Keep them")
        self.app.push_screen(ask, lambda yes: self._give(swapped) if yes else None)

    def _give(self, changes: Mapping[str, str | None]) -> None:
        context_of(self).user_settings.keep_keys(changes)
        self._read()

    def action_reset(self) -> None:
        """Restore the default keys of the selected action, and those of the actions that have them now."""
        from aeon_tui.keymap import clash, own_keys

        row = self.query_one(KeyList).selected
        if row is None or not row.changed:
            return
        # The defaults of other actions do not conflict with it.
        given = {each.id: ",".join(each.keys) if each.changed else "" for each in self.all_rows}
        restored = [row.id]
        for action in restored:
            while (conflict := clash(action, own_keys()[action], given)) is not None:
                given[conflict[1]] = ""
                restored.append(conflict[1])
        self._give(dict.fromkeys(restored))

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "reset":
            return not isinstance(self.focused, FilterLine)
        return super().check_action(action, parameters)


def key_rows(keymap: dict[str, str]) -> list[KeyRow]:
    """Return all actions; a keymap's keys take precedence over their defaults."""
    from aeon_tui.keymap import known_keys

    return [
        KeyRow(
            each.id,
            each.title,
            label_of(each.action, each.description),
            tuple(keymap[each.id].split(",")) if each.id in keymap else each.keys,
            each.id in keymap,
        )
        for each in known_keys().values()
    ]
