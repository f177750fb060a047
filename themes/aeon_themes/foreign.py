"""The colours of Aeon's widgets for a theme that does not define them, such as Textual's own."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aeon_themes.palette import AEON_DARK, AEON_LIGHT, BACKGROUNDS, TEXT_COLOURS, Palette, blend, readable

if TYPE_CHECKING:
    from textual.theme import Theme

_CURSOR, _CURSOR_BLURRED, _BORDER, _MUTED = 0.22, 0.1, 0.4, 0.25
"""How far a colour is on its way from one of the theme's colours to another."""
_FOCUSED = 0.06
"""How much of the text's colour Textual mixes into what is behind a field that is typed into."""
_DEFAULT = "ansi_default"
_KNOWN = "aeon-text"
"""A variable that only our themes have."""


def fallback_variables(theme: Theme) -> dict[str, str]:
    """Return the variables of our widgets for a theme that lacks them, by name without the dollar sign.

    They are made of the theme's colours; each text colour can be read on all of its backgrounds. Of the terminal's own
    colours, which are not known, they are the ones that terminals are wont to show well.
    """
    if _KNOWN in theme.variables:
        return {}
    return _terminal_variables(theme.dark) if theme.ansi else _palette(theme).variables()


def readable_variables(theme: Theme) -> dict[str, str]:
    """Return the variables of Textual's widgets that a theme that is not ours is to have: some mix unreadable ones."""
    return {} if _KNOWN in theme.variables or theme.ansi else _palette(theme).textual_variables()


def _palette(theme: Theme) -> Palette:
    made = theme.to_color_system().generate()
    names = ("background", "surface", "panel", "foreground", "primary")
    return _derived(theme.dark, *(made[name].lower()[:7] for name in names))


@lru_cache(maxsize=64)
def _derived(dark: bool, background: str, surface: str, panel: str, text: str, accent: str) -> Palette:
    base = AEON_DARK if dark else AEON_LIGHT
    mixed = replace(
        base,
        background=background,
        surface=surface,
        panel=panel,
        cursor=blend(background, accent, _CURSOR),
        cursor_blurred=blend(background, text, _CURSOR_BLURRED),
        border=blend(background, text, _BORDER),
        text=text,
        muted=blend(text, background, _MUTED),
        accent=accent,
    )
    backgrounds = [blend(panel, text, _FOCUSED), *(getattr(mixed, name) for name in BACKGROUNDS)]
    texts: dict[str, Any] = {name: readable(getattr(mixed, name), backgrounds, dark) for name in TEXT_COLOURS}
    return replace(mixed, **texts)


def _terminal_variables(dark: bool) -> dict[str, str]:
    kind = "bright_" if dark else ""
    red, green, yellow, magenta, cyan = (f"ansi_{kind}{name}" for name in ("red", "green", "yellow", "magenta", "cyan"))
    return replace(
        AEON_DARK,
        cursor="ansi_blue" if dark else "ansi_white",
        cursor_blurred="ansi_black" if dark else "ansi_white",
        border="ansi_bright_black",
        text=_DEFAULT,
        muted=_DEFAULT,
        accent=cyan if dark else "ansi_blue",
        pending=_DEFAULT,
        running=cyan,
        complete=green,
        failed=red,
        invalid=magenta,
        high=red,
        medium=yellow,
        low=cyan,
        score_good=green,
        score_fair=yellow,
        score_poor=red,
    ).variables()
