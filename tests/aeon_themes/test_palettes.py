from __future__ import annotations

from itertools import combinations

import pytest

from aeon_themes import AEON_COLOUR_BLIND, AEON_HIGH_CONTRAST, PALETTES, Palette
from aeon_themes.palette import BACKGROUNDS, TEXT_COLOURS
from tests.aeon_themes.colours import VISIONS, contrast, difference
from tests.sampling import each

PAIRS = [(palette, text, background) for palette in PALETTES for text in TEXT_COLOURS for background in BACKGROUNDS]
STATUSES = ("pending", "running", "complete", "failed", "invalid", "medium")
"""What a row of the plan can be; a step that was stopped has the colour of medium severity."""
SEVERITIES = ("high", "medium", "low")
SCORES = ("score_good", "score_fair", "score_poor")
AT_A_GLANCE = 12.0
names = pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)


@each(PAIRS)
def test_every_text_colour_is_readable_on_every_background(palette: Palette, text: str, background: str) -> None:
    least = 7.0 if palette is AEON_HIGH_CONTRAST else 4.5
    assert contrast(getattr(palette, text), getattr(palette, background)) >= least


@names
def test_the_border_of_the_pane_in_focus_is_highlighted(palette: Palette) -> None:
    assert contrast(palette.accent, palette.background) >= 3.0
    assert contrast(AEON_HIGH_CONTRAST.border, AEON_HIGH_CONTRAST.background) >= 4.5


@names
def test_statuses_differ_from_one_another(palette: Palette) -> None:
    assert len({getattr(palette, name) for name in STATUSES}) == len(STATUSES)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("group", [STATUSES, SEVERITIES, SCORES], ids=["statuses", "severities", "scores"])
def test_who_sees_fewer_colours_can_tell_them_apart(group: tuple[str, ...], vision: str) -> None:
    colours = {name: getattr(AEON_COLOUR_BLIND, name) for name in group}
    seen = {pair: difference(colours[pair[0]], colours[pair[1]], vision) for pair in combinations(group, 2)}
    assert {pair: value for pair, value in seen.items() if value < AT_A_GLANCE} == {}


def test_the_measure_of_a_difference_is_the_published_one() -> None:
    assert difference("#ff0000", "#00ff00", "all colours") == pytest.approx(86.61, abs=0.01)
    assert difference("#000000", "#ffffff", "tritanopia") == pytest.approx(100, abs=0.01)
    assert difference("#8fd07a", "#ecc06a", "deuteranopia") < difference("#8fd07a", "#ecc06a", "all colours") / 2


def test_the_dark_palette_comes_first_and_names_are_the_contract() -> None:
    assert [(palette.name, palette.dark) for palette in PALETTES] == [
        ("aeon-dark", True),
        ("aeon-light", False),
        ("aeon-high-contrast", True),
        ("aeon-colour-blind", True),
    ]


@names
def test_a_theme_defines_every_variable_that_widgets_use(palette: Palette) -> None:
    theme = palette.theme()
    assert theme.variables == {**palette.variables(), **palette.textual_variables()}
    assert (theme.name, theme.dark, theme.background) == (palette.name, palette.dark, palette.background)
