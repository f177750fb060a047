from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from aeon_themes import AEON_DARK, PALETTES, fallback_variables, readable_variables
from aeon_themes.palette import readable
from tests.aeon_themes.colours import contrast

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


def test_the_colours_are_the_foreign_theme_s_own_where_they_can_be() -> None:
    assert fallback_variables(BUILTIN_THEMES["dracula"])["aeon-text"] == "#f8f8f2"
    assert fallback_variables(BUILTIN_THEMES["rose-pine"])["aeon-accent"] == "#c4a7e7"
    assert fallback_variables(BUILTIN_THEMES["rose-pine"])["severity-high"] == AEON_DARK.high


def test_the_terminal_s_colours_stay_the_terminal_s() -> None:
    for theme in TERMINAL:
        assert all(color.startswith("ansi_") for color in fallback_variables(theme).values())
        assert readable_variables(theme) == {}


def test_our_themes_need_nothing_more() -> None:
    for palette in PALETTES:
        assert (fallback_variables(palette.theme()), readable_variables(palette.theme())) == ({}, {})


@given(COLOUR, COLOUR, st.booleans())
def test_a_colour_is_changed_as_little_as_it_takes(color: str, background: str, dark: bool) -> None:
    changed = readable(color, [background], dark)
    if contrast(color, background) >= 4.5:
        assert changed == color
    elif changed not in ("#ffffff", "#000000"):
        assert contrast(changed, background) >= 4.49
