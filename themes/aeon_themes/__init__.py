"""Aeon's themes for Textual: `PALETTES`, and `fallback_variables` for themes that are not ours."""

from __future__ import annotations

from aeon_themes.dark import AEON_DARK
from aeon_themes.light import AEON_LIGHT
from aeon_themes.palette import Palette

PALETTES: tuple[Palette, ...] = (AEON_DARK, AEON_LIGHT)
"""Every palette, the default one first."""


def fallback_variables(dark: bool) -> dict[str, str]:
    """Return the variables that Aeon's widgets need, for a theme that does not define them."""
    return (AEON_DARK if dark else AEON_LIGHT).variables()


__all__ = ["AEON_DARK", "AEON_LIGHT", "PALETTES", "Palette", "fallback_variables"]
