"""Aeon's themes for Textual: `PALETTES`, and the variables that other themes need.

`aeon_themes.files` reads a user's own. Importing this loads no Textual.
"""

from __future__ import annotations

from aeon_themes.palette import (
    AEON_COLOUR_BLIND,
    AEON_DARK,
    AEON_HIGH_CONTRAST,
    AEON_LIGHT,
    Palette,
    fallback_variables,
    readable_variables,
)

PALETTES: tuple[Palette, ...] = (AEON_DARK, AEON_LIGHT, AEON_HIGH_CONTRAST, AEON_COLOUR_BLIND)
"""Every palette, the default one first."""

__all__ = [
    "AEON_COLOUR_BLIND",
    "AEON_DARK",
    "AEON_HIGH_CONTRAST",
    "AEON_LIGHT",
    "PALETTES",
    "Palette",
    "fallback_variables",
    "readable_variables",
]
