"""How the keys at the foot of a screen fit its width."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Footer

ROOMY = 72
"""From this width on there is room around the keys, and for the palette's."""


def fit_footer(screen: Screen[None]) -> None:
    """Leave out the palette's key where it would lie on the others, and the space around them."""
    for footer in screen.query(Footer):
        footer.show_command_palette = screen.size.width >= ROOMY
        footer.compact = screen.size.width < ROOMY
