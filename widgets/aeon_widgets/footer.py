"""How the keys at the foot of a screen fit its width."""

from __future__ import annotations

from rich.cells import cell_len
from textual.screen import Screen
from textual.widgets import Footer

ROOMY = 72
"""From this width on there may be room around the keys, and for the palette's."""
_PALETTE = 13
"""Cells that the palette's key takes."""


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
