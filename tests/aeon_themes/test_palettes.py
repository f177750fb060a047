from __future__ import annotations

import pytest
from textual.color import Color

from aeon_themes import PALETTES, Palette, fallback_variables
from aeon_themes.palette import BACKGROUNDS, TEXT_COLOURS

PAIRS = [
    pytest.param(palette, text, background, id=f"{palette.name}-{text}-on-{background}")
    for palette in PALETTES
    for text in TEXT_COLOURS
    for background in BACKGROUNDS
]


def contrast(one: Color, other: Color) -> float:
    """WCAG 2: the ratio of the relative luminances, written out here so that no library marks its own work."""

    def luminance(color: Color) -> float:
        parts = [part / 255 for part in (color.r, color.g, color.b)]
        red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("palette", "text", "background"), PAIRS)
def test_every_text_colour_is_readable_on_every_background(palette: Palette, text: str, background: str) -> None:
    assert contrast(Color.parse(getattr(palette, text)), Color.parse(getattr(palette, background))) >= 4.5


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_statuses_differ_from_one_another(palette: Palette) -> None:
    statuses = [palette.pending, palette.running, palette.complete, palette.failed, palette.invalid]
    assert len(set(statuses)) == 5


def test_the_dark_palette_comes_first_and_names_are_the_contract() -> None:
    assert [(palette.name, palette.dark) for palette in PALETTES] == [("aeon-dark", True), ("aeon-light", False)]


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_a_theme_defines_every_variable_that_widgets_use(palette: Palette) -> None:
    theme = palette.theme()
    assert theme.variables.items() >= palette.variables().items()
    assert (theme.name, theme.dark, theme.background) == (palette.name, palette.dark, palette.background)


def test_foreign_themes_get_the_variables_that_fit_their_brightness() -> None:
    assert fallback_variables(dark=True)["status-failed"] == PALETTES[0].failed
    assert fallback_variables(dark=False)["status-failed"] == PALETTES[1].failed
