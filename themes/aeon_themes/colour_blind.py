"""The theme `aeon-colour-blind`: statuses, severities and scores differ for people who see fewer colours too.

They differ in lightness and from blue to yellow as well as from red to green, so that they can be told apart with
deuteranopia, protanopia and tritanopia.
"""

from __future__ import annotations

from aeon_themes.palette import Palette

AEON_COLOUR_BLIND = Palette(
    name="aeon-colour-blind",
    dark=True,
    background="#0b0e14",
    surface="#11151d",
    panel="#181e29",
    cursor="#22304a",
    cursor_blurred="#181e29",
    border="#46506a",
    text="#e6eaf2",
    muted="#a6afc0",
    accent="#8fb4ff",
    pending="#9a9c9d",
    running="#7295fa",
    complete="#8cefc4",
    failed="#e97b2e",
    invalid="#f7c3ee",
    high="#e97b2e",
    medium="#fdf24a",
    low="#7295fa",
    score_good="#8cefc4",
    score_fair="#fdf24a",
    score_poor="#e97b2e",
)
