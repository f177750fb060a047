"""The theme `aeon-high-contrast`: 7:1 for text, and borders that stand out."""

from __future__ import annotations

from aeon_themes.palette import Palette

AEON_HIGH_CONTRAST = Palette(
    name="aeon-high-contrast",
    dark=True,
    background="#000000",
    surface="#000000",
    panel="#1a1a1a",
    cursor="#002b54",
    cursor_blurred="#2b2b2b",
    border="#8f8f8f",
    text="#ffffff",
    muted="#d6d6d6",
    accent="#ffd84d",
    pending="#d6d6d6",
    running="#7fe0ff",
    complete="#7dfc7d",
    failed="#ffb3ab",
    invalid="#eec2ff",
    high="#ffb3ab",
    medium="#ffd84d",
    low="#7fe0ff",
    score_good="#7dfc7d",
    score_fair="#ffd84d",
    score_poor="#ffb3ab",
)
