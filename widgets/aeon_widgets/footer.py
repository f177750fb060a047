"""How the keys at the foot of a screen fit its width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey
from typing_extensions import override

ROOMY = 72
"""From this width on there may be room around the keys, and for the palette's."""
_PALETTE = 13
"""Cells that the palette's key takes."""
_GIVE_WAY = ("reload", "app.focus_next", "follow", "zoom", "back")
"""What is left out first where not all keys fit: the help has them all."""
_STAY = ("quit", "keys")


class KeyFooter(Footer):
    """The keys that do something now. Where not all fit, the ways to the help and out of the app are there."""

    _fitted_to = 0

    def compose(self) -> ComposeResult:
        made = list(super().compose())
        left_out = _left_out([each for each in made if isinstance(each, FooterKey)], self.screen.size.width)
        yield from (each for each in made if each not in left_out)

    @override
    def bindings_changed(self, screen: Screen[Any]) -> None:
        fit_footer(screen)
        super().bindings_changed(screen)

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._fitted_to:
            self._fitted_to = event.size.width
            self.refresh(recompose=True)


def _left_out(keys: Sequence[FooterKey], width: int) -> list[Widget]:
    """Return the keys that there is no room for, where each has but one cell beside it."""
    keys = [key for key in keys if not key.has_class("-command-palette")]
    others = [key for key in reversed(keys) if key.action not in (*_GIVE_WAY, *_STAY)]
    first = [key for name in _GIVE_WAY for key in keys if key.action == name]
    needed = sum(cell_len(f"{key.key_display} {key.description} ") for key in keys) - 1
    left_out: list[Widget] = []
    for key in (*first, *others):
        if needed <= width:
            break
        left_out.append(key)
        needed -= cell_len(f"{key.key_display} {key.description} ")
    return left_out


def fit_footer(screen: Screen[None]) -> None:
    """Leave out the palette's key where it would lie on the others, and the space around them."""
    width = screen.size.width
    roomy = width >= ROOMY and _needed(screen) + _PALETTE <= width
    for footer in screen.query(Footer):
        footer.show_command_palette = roomy
        footer.compact = not roomy


def _needed(screen: Screen[None]) -> int:
    """Return the cells that the keys take with room around them."""
    shown = {
        active.binding.action: f" {screen.app.get_key_display(active.binding)} {active.binding.description} "
        for active in reversed(list(screen.active_bindings.values()))
        if active.binding.show
    }
    return sum(map(cell_len, shown.values()))
