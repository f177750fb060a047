from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from aeon_themes import (
    AEON_COLOUR_BLIND,
    AEON_DARK,
    AEON_HIGH_CONTRAST,
    PALETTES,
    Palette,
    fallback_variables,
    readable_variables,
)
from aeon_themes.palette import BACKGROUNDS, TEXT_COLOURS, readable
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
def test_statuses_differ_for_colour_blind_users(group: tuple[str, ...], vision: str) -> None:
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


NAMES = set(AEON_DARK.variables())
THEMES = [theme for theme in BUILTIN_THEMES.values() if not theme.ansi]
TERMINAL = [theme for theme in BUILTIN_THEMES.values() if theme.ansi]
COLOUR = st.from_regex(r"#[0-9a-f]{6}", fullmatch=True)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_our_colours_can_be_read_on_the_backgrounds_of_a_foreign_theme(theme: Theme) -> None:
    made = theme.to_color_system().generate()
    ours = fallback_variables(theme)
    backgrounds = [made["background"], made["panel"], ours["aeon-cursor"], ours["aeon-cursor-blurred"]]
    texts = [name for name in NAMES if not name.startswith(("aeon-cursor", "aeon-border"))]
    assert min(contrast(ours[text], background) for text in texts for background in backgrounds) >= 4.5


@pytest.mark.parametrize("theme", [*THEMES, *TERMINAL], ids=lambda theme: theme.name)
def test_a_foreign_theme_gets_every_variable_and_each_is_a_colour(theme: Theme) -> None:
    variables = fallback_variables(theme)
    assert set(variables) == NAMES
    assert all(Color.parse(color) for color in variables.values())


def test_colours_of_the_foreign_theme_are_kept_if_readable() -> None:
    assert fallback_variables(BUILTIN_THEMES["dracula"])["aeon-text"] == "#f8f8f2"
    assert fallback_variables(BUILTIN_THEMES["rose-pine"])["aeon-accent"] == "#c4a7e7"
    assert fallback_variables(BUILTIN_THEMES["rose-pine"])["severity-high"] == AEON_DARK.high


def test_the_terminal_s_colours_stay_the_terminal_s() -> None:
    for theme in TERMINAL:
        assert all(color.startswith("ansi_") for color in fallback_variables(theme).values())
        assert readable_variables(theme) == {}
        own = "ansi_black" if theme.dark else "ansi_bright_white"  # the usual background of such a terminal
        assert own not in (fallback_variables(theme)["aeon-cursor"], fallback_variables(theme)["aeon-cursor-blurred"])


def test_our_themes_define_every_variable() -> None:
    for palette in PALETTES:
        assert (fallback_variables(palette.theme()), readable_variables(palette.theme())) == ({}, {})


@given(COLOUR, COLOUR, st.booleans())
def test_a_colour_is_changed_as_little_as_it_takes(color: str, background: str, dark: bool) -> None:
    changed = readable(color, [background], dark)
    if contrast(color, background) >= 4.5:
        assert changed == color
    elif changed not in ("#ffffff", "#000000"):
        assert contrast(changed, background) >= 4.49
