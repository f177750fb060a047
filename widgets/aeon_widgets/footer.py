"""The keys at the foot of a screen, on one line, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from aeon_widgets.keys import shown_key

ROOMY = 72
"""The width from which there may be space around the keys, and the palette's key is shown."""
_GIVE_WAY = ("app.focus_next", "follow", "zoom")
"""Actions whose keys are left out first if not all fit; the help lists every key."""
_STAY = ("quit", "keys", "app.keys")
"""Actions whose keys are never left out; Escape is among the last of the others to go."""
_DECIDE = ("next_decision", "app.next_decision", "focus_question")
"""Actions that lead to what waits for the user; their keys are left out last."""
_PALETTE = ("app.command_palette", "command_palette")


class FooterKey(NamedTuple):
    """A key, as shown: `start` is the column of its first cell, `width` how many cells it takes."""

    key: str
    """Textual's name for it, by which it can be pressed."""
    label: str
    description: str
    action: str
    enabled: bool = True
    tooltip: str | None = None
    start: int = 0
    width: int = 0

    @property
    def end(self) -> int:
        return self.start + self.width

    @property
    def needed(self) -> int:
        """Cells without the space around it."""
        return cell_len(f"{self.label} {self.description}")


class KeyFooter(Widget):
    """The keys that do something now; a click presses one. The keys for help and quitting are always shown.

    One widget draws all keys: Textual's own footer mounts a widget per key, which costs more than all panes together
    each time the focus moves.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "footer--key",
        "footer--description",
        "footer--hover",
    }
    DEFAULT_CSS = """
    KeyFooter {
        dock: bottom;
        height: 1;
        color: $footer-foreground;
        background: $footer-background;
        .footer--key { color: $footer-key-foreground; background: $footer-key-background; text-style: bold; }
        .footer--description { color: $footer-description-foreground; background: $footer-description-background; }
        .footer--hover { background: $block-hover-background; }
    }
    """

    keys: reactive[tuple[FooterKey, ...]] = reactive(tuple)
    """The keys that are shown, from left to right."""
    hovered: reactive[FooterKey | None] = reactive(None)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._fit)

    def on_resize(self) -> None:
        self._fit(self.screen)

    def _fit(self, screen: Screen[Any]) -> None:
        if screen is self.screen and self.size.width:
            self.keys, self.hovered = fit_keys(*_active_keys(screen), self.size.width), None

    def render(self) -> Text:
        styles = {part: self.get_component_rich_style(f"footer--{part}") for part in ("key", "description")}
        line = Text(no_wrap=True, end="")
        for key in self.keys:
            line.pad_right(key.start - line.cell_len)
            begins = len(line)
            roomy = key.width > key.needed
            line.append(f" {key.label} " if roomy else key.label, styles["key"])
            line.append(f"{key.description} " if roomy else f" {key.description}", styles["description"])
            if not key.enabled:
                line.stylize("dim", begins)
            if key == self.hovered:
                line.stylize(self.get_component_rich_style("footer--hover"), begins)
        return line

    def key_at(self, column: int) -> FooterKey | None:
        """Return the key that is drawn in a column."""
        return next((key for key in self.keys if key.start <= column < key.end), None)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.hovered = self.key_at(event.x)
        self.tooltip = self.hovered.tooltip if self.hovered is not None else None

    def on_leave(self) -> None:
        self.hovered = None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if (key := self.key_at(event.x)) is None:
            return
        if key.enabled:
            self.app.simulate_key(key.key)
        else:
            self.app.bell()


def fit_keys(keys: Sequence[FooterKey], palette: FooterKey | None, width: int) -> tuple[FooterKey, ...]:
    """Return the keys placed in `width` cells: all of them with space around them, or as many as fit without it.

    The palette's key is shown at the right if all keys have space around them.
    """
    roomy = [key.needed + 2 for key in keys]
    last = palette.needed + 2 if palette is not None else 0
    if width >= ROOMY and sum(roomy) + last <= width:
        shown = _placed(keys, roomy, gap=0)
        return (*shown, palette._replace(start=width - last, width=last)) if palette is not None else shown
    kept = _kept(keys, width)
    free = width - _compact_width(kept)
    return _placed(kept, [key.needed for key in kept], gap=1, start=min(1, max(0, free)))


def _compact_width(keys: Sequence[FooterKey]) -> int:
    return sum(key.needed + 1 for key in keys) - 1


def _placed(keys: Sequence[FooterKey], widths: Sequence[int], gap: int, start: int = 0) -> tuple[FooterKey, ...]:
    starts = accumulate((width + gap for width in widths), initial=start)
    places = zip(keys, starts, widths, strict=False)
    return tuple(key._replace(start=start, width=width) for key, start, width in places)


def _kept(keys: Sequence[FooterKey], width: int) -> list[FooterKey]:
    """Return the keys that fit with one cell between them."""
    first = [key for action in _GIVE_WAY for key in keys if key.action == action]
    others = [key for key in reversed(keys) if key.action not in (*_GIVE_WAY, *_STAY)]
    kept = list(keys)
    for key in (*first, *sorted(others, key=lambda key: (key.action in _DECIDE, key.key == "escape"))):
        if _compact_width(kept) <= width:
            break
        kept.remove(key)
    return kept


def _active_keys(screen: Screen[Any]) -> tuple[list[FooterKey], FooterKey | None]:
    """Return a key for each action of a screen, in the order of its bindings, and the palette's key separately."""
    keys: dict[str, FooterKey] = {}
    palette = None
    for active in screen.active_bindings.values():
        binding = active.binding
        label = binding.key_display or shown_key(binding.key)
        key = FooterKey(binding.key, label, binding.description, binding.action, active.enabled, active.tooltip or None)
        if binding.action in _PALETTE:
            palette = key
        elif binding.show:
            keys.setdefault(binding.action, key)
    return list(keys.values()), palette
