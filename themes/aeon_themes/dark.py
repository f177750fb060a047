"""The theme `aeon-dark`."""

from __future__ import annotations

from aeon_themes.palette import Palette

AEON_DARK = Palette(
    name="aeon-dark",
    dark=True,
    background="#0e1117",
    surface="#131822",
    panel="#1b2230",
    cursor="#26314a",
    cursor_blurred="#1b2230",
    border="#3a4560",
    text="#e3e8f1",
    muted="#9fabbf",
    accent="#7fb0ff",
    pending="#a3aec2",
    running="#6cc7f2",
    complete="#8fd07a",
    failed="#ff8b96",
    invalid="#d3a3f0",
    high="#ff8b96",
    medium="#ecc06a",
    low="#6cc7f2",
    score_good="#8fd07a",
    score_fair="#ecc06a",
    score_poor="#ff8b96",
)
