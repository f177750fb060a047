"""The theme `aeon-light`."""

from __future__ import annotations

from aeon_themes.palette import Palette

AEON_LIGHT = Palette(
    name="aeon-light",
    dark=False,
    background="#fbfbf8",
    surface="#ffffff",
    panel="#eff1f5",
    cursor="#d9e4f7",
    cursor_blurred="#eff1f5",
    border="#a9b3c4",
    text="#1c2230",
    muted="#525c6e",
    accent="#1450b4",
    pending="#545e70",
    running="#005f93",
    complete="#1d6a22",
    failed="#ad1128",
    invalid="#7330a8",
    high="#ad1128",
    medium="#7a4b00",
    low="#005f93",
    score_good="#1d6a22",
    score_fair="#7a4b00",
    score_poor="#ad1128",
)
