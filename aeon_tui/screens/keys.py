"""The key help of a screen, with the meaning of its signs; and all actions with their keys, to rebind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.widgets import Input, Static
from textual.worker import get_current_worker
from typing_extensions import override

from aeon_tui.screens.context import context_of
from aeon_tui.screens.dialogs import Box, ConfirmDialog, Dialog
from aeon_tui.screens.filterable_list import FilterableListScreen, KeptRows, ListFilter
from aeon_tui.screens.item_actions import SelectableModal
from aeon_widgets.footer import KeyFooter
from aeon_widgets.icons import (
    FALLBACK,
    REFINED,
    REPAIRED,
    ROW_ICONS,
    SEVERITY_ICONS,
    STATUS_ICONS,
    STOPPED,
    WAITING,
    WARNED,
)
from aeon_widgets.keys import key_of, shown_key
from aeon_widgets.tally import HeadLine
from aeon_widgets.text import Piece, fit
from aeon_widgets.text_fields import FilterLine
from aeon_widgets.virtual_list import LinesView, RowsView

LABELS = {
    ("app.focus_next", "Focus Next"): "Next pane",
    ("app.focus_next", "Next"): "Next pane",
    ("app.focus_previous", "Focus Previous"): "Previous pane",
    ("command_palette", "Palette"): "Command palette",
    ("screen.copy_text", "Copy selected text"): "Copy selection",
    ("scroll_up", "Scroll Up"): "Scroll up",
    ("scroll_down", "Scroll Down"): "Scroll down",
    ("scroll_home", "Scroll Home"): "Scroll to the top",
    ("scroll_end", "Scroll End"): "Scroll to the end",
    ("page_up", "Page Up"): "Page up",
    ("page_down", "Page Down"): "Page down",
}
"""Our names for Textual's bindings, and full names for what the footer shortens."""
SIDEWAYS = {"scroll_left", "scroll_right", "page_left", "page_right"}
"""Bound by every scrolling widget; none of our panes is wider than the screen."""
COLUMN = 37
"""The least width of a column, in cells."""


class HelpRow(NamedTuple):
    """An action with its keys, or a sign with its meaning."""

    keys: str
    label: str
    style: str = "bold"
    width: int = 15
    """The least cells before the label, including the gap after the keys."""


Groups = Sequence[tuple[str, Sequence[HelpRow]]]
"""Rows, grouped by part of the app."""

SIGNS: Sequence[tuple[str, str, str]] = (
    *((icon, status, status) for status, icon in STATUS_ICONS.items()),
    (ROW_ICONS[STOPPED], f"{STOPPED}: not done at the end", STOPPED),
    (ROW_ICONS[WAITING], f"{WAITING} for a decision", WAITING),
    (REPAIRED, "repaired by the supervisor", "medium"),
    (FALLBACK, "reasoned: no tool found", "medium"),
    (WARNED, "the validator found a problem", "medium"),
    (f"{REFINED}2", "refined twice", "accent"),
    *((f"{icon}2", f"two issues, the worst {name}", name) for name, icon in SEVERITY_ICONS.items()),
    ("1 ✖", "pass 1 did not converge", "medium"),
    ("TTL", "cycles (model replies) left", "bold"),
)
"""The signs of runs: each with its meaning and style."""


class KeyColumns(LinesView):
    """Groups of rows, in as many columns as fit."""

    HELP_TITLE = "Key help"
    DEFAULT_CSS = "KeyColumns { height: auto; padding: 0 1; scrollbar-gutter: stable; }"

    def __init__(self, groups: Groups) -> None:
        super().__init__()
        self._all = self._groups = groups
        self._columns: list[list[HelpRow | str]] = []
        self._width = 0

    @property
    def text(self) -> str:
        """All rows shown, in order."""
        rows = (row for _, group in self._groups for row in group)
        return "\n".join(f"{row.keys} {row.label}" for row in rows)

    def narrow(self, wanted: str) -> None:
        """Show only the rows that contain every word in their keys, action or place."""
        words = wanted.lower().split()
        found = (
            (title, [row for row in rows if all(word in f"{title} {row.keys} {row.label}".lower() for word in words)])
            for title, rows in self._all
        )
        self._groups = [(title, rows) for title, rows in found if rows]
        self.where_empty = ("no key matches",)
        self._lay_out(self._width)

    def _lay_out(self, width: int) -> None:
        self._width = width
        self._columns = columns_of(self._groups, max(1, width // COLUMN))
        self.set_line_count(max(map(len, self._columns), default=0))

    @override
    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width > 0 and width != self._width:
            self._lay_out(width)
        super().on_resize()

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines that the rows need at this width."""
        del container, viewport
        columns = columns_of(self._groups, max(1, (width - self.scrollbar_size_vertical) // COLUMN))
        return max(1, *map(len, columns)) if columns else 1

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        room = width // max(1, len(self._columns))
        for column in self._columns:
            yield from _padded(_pieces(column[index], room - 1) if index < len(column) else [], room)


def _pieces(row: HelpRow | str, width: int) -> Iterator[Piece]:
    if isinstance(row, str):
        yield fit(row, width), "accent bold"
        return
    lead = min(max(row.width, cell_len(row.keys) + 2), width * 3 // 4)
    yield _pad(row.keys, lead), row.style
    yield fit(row.label, width - lead), ""


def _pad(text: str, width: int) -> str:
    return set_cell_size(fit(text, width - 1), width)


def _padded(pieces: Iterable[Piece], width: int) -> Iterator[Piece]:
    used = 0
    for text, style in pieces:
        used += cell_len(text)
        yield text, style
    yield " " * max(0, width - used), ""


def columns_of(groups: Groups, number: int) -> list[list[HelpRow | str]]:
    """Return the rows under the titles of their groups, in at most this many columns of similar length."""
    lines: list[HelpRow | str] = []
    for title, rows in groups:
        lines += [*([""] if lines else []), title, *rows]
    columns: list[list[HelpRow | str]] = []
    while lines:
        left = number - len(columns)
        length = -(-len(lines) // left)
        while 0 < length < len(lines) and isinstance(lines[length - 1], str) and left > 1:
            length += 1  # a title stays with its rows
        columns.append(lines[:length])
        lines = lines[length:]
        if lines and lines[0] == "":
            lines = lines[1:]
    return columns


class KeysScreen(SelectableModal[None]):
    """The key help: what each key does in the focused pane, on the screen, and everywhere. Typing narrows it."""

    HELP_TITLE = "Key help"

    DEFAULT_CSS = """
    KeysScreen {
        align: center middle;
        Vertical {
            width: 100%; max-width: 170; height: auto; max-height: 95%;
            border: round $aeon-accent; background: $background;
            border-title-color: $aeon-accent; border-subtitle-color: $aeon-muted;
        }
        KeyColumns { max-height: 1fr; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark", "close", "Close", show=False, id="keys.close"),
        Binding("slash", "filter", "Filter", show=False, id="help.filter"),
        Binding("K", "edit_keys", "Change keys", show=False, id="app.edit_keys"),
    ]

    def __init__(self, bindings: Mapping[str, ActiveBinding], signs: Sequence[tuple[str, str, str]] = SIGNS) -> None:
        super().__init__()
        rows = [HelpRow(sign, meaning, style, 5) for sign, meaning, style in signs]
        self._groups = [*key_groups(bindings), ("Signs", rows)]

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Keys"
            find, change = key_of(self, "help.filter"), key_of(self, "app.edit_keys")
            box.border_subtitle = f"{find} filters · {change} changes them · {key_of(self, 'keys.close')} closes"
            yield ListFilter("a key, what it does, where")
            yield KeyColumns(self._groups)

    def on_mount(self) -> None:
        self.query(KeyColumns).focus()

    def on_key(self, event: events.Key) -> None:
        """Start filtering with a letter that is not a key here."""
        is_key = isinstance(self.focused, Input) or event.key in self.active_bindings or "+" in event.key
        if event.is_printable and event.character and not is_key:
            event.stop()
            self.action_filter()
            self.query_one(FilterLine).insert_text_at_cursor(event.character)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self.query_one(KeyColumns).narrow(event.value)

    @on(Input.Submitted)
    def _to_list(self) -> None:
        self.query_one(KeyColumns).focus()

    def action_filter(self) -> None:
        self.query_one(ListFilter).open()

    def action_close(self) -> None:
        """Clear the filter, or close."""
        if self.query_one(ListFilter).close():
            self.query_one(KeyColumns).focus()
        else:
            self.dismiss()

    async def action_edit_keys(self) -> None:
        """Open the screen that changes keys."""
        self.dismiss()
        await self.app.run_action("edit_keys")


def label_of(action: str, description: str) -> str:
    """Return the name of an action in the help and the palette."""
    if action.startswith("pane("):
        return f"Go to {description}"
    return LABELS.get((action, description), description)


def key_groups(bindings: Mapping[str, ActiveBinding]) -> Groups:
    """Return the bindings, one row per action, grouped by part of the screen."""
    groups: dict[str, dict[str, list[str]]] = {}
    labels: dict[str, str] = {}
    for key, active in bindings.items():
        action, description = active.binding.action, active.binding.description
        if description and action not in SIDEWAYS:
            title = getattr(active.node, "HELP_TITLE", None) or type(active.node).__name__
            groups.setdefault(title, {}).setdefault(action, []).append(shown_key(key))
            labels.setdefault(f"{title} {action}", label_of(action, description))
    return [
        (title, [HelpRow("  ".join(dict.fromkeys(keys)), labels[f"{title} {each}"]) for each, keys in actions.items()])
        for title, actions in groups.items()
    ]


_PLACE, _WHAT, _KEYS, _MANY_KEYS = 18, 26, 15, 24


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
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Change", id="lines.choose")]

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
        keys = _MANY_KEYS if width >= 100 else _KEYS
        return [
            (" ● " if row.changed else "   ", "accent"),
            (_pad(row.place if first else "", place), "accent"),
            (_pad(row.what, _WHAT), ""),
            (_pad(row.shown, keys), "bold"),
            (row.id, "muted"),
        ]


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
    """Shows what every key does; Enter and a key rebind an action, Backspace restores its default.

    Changes are saved in the user's own configuration file.
    """

    HELP_TITLE = "Change keys"
    OPENED_BY = "edit_keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "reset", "Default key", id="keys.reset"),
        Binding("slash", "filter", "Filter", id="keys.filter"),
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

    @on(RowsView.Moved)
    def _offer_default(self) -> None:
        self.refresh_bindings()

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
            self.notify(f"{taken} Give that action another key first.", severity="warning", markup=False)
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

        if (row := self.query_one(KeyList).selected) is None:
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
            row = next((each.selected for each in self.query(KeyList)), None)
            return row is not None and row.changed and not isinstance(self.focused, FilterLine)
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
