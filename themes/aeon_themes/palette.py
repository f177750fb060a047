"""Palettes of named colours, the Textual themes made from them, and the colours of Aeon's widgets in any other theme.

Widgets use the variables that `Palette.variables` returns: one for each status, severity and level of a score, for
muted text, and for the row under the cursor. Every text colour has a contrast of at least 4.5:1 on each background of
its palette, the cursor's included.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

if TYPE_CHECKING:
    from textual.theme import Theme

READABLE = 4.5
"""The contrast that WCAG 2 requires of text (AA)."""
_STEPS = 50
"""The shades to try between a colour and white or black until one is readable."""
_CURSOR, _CURSOR_BLURRED, _BORDER, _MUTED = 0.22, 0.1, 0.4, 0.25
"""The position of each colour between two of the theme's colours, from 0 to 1."""
_FOCUSED = 0.06
"""The share of the text colour that Textual mixes into the background of a focused field."""
_DEFAULT = "ansi_default"
_KNOWN = "aeon-text"
"""A variable that only our themes have."""


class Palette(Struct, frozen=True):
    """The colours of one theme, each `#rrggbb` (or a colour of the terminal, such as `ansi_red`)."""

    name: str
    dark: bool
    background: str
    surface: str
    panel: str
    cursor: str
    """Background of the selected row in the focused pane."""
    cursor_blurred: str
    """Background of the selected row elsewhere."""
    border: str
    text: str
    muted: str
    accent: str
    pending: str
    running: str
    complete: str
    invalid: str
    high: str
    medium: str
    failed: str = ""
    low: str = ""
    score_good: str = ""
    """A score that reaches the required one."""
    score_fair: str = ""
    """A score near the required one."""
    score_poor: str = ""

    def __post_init__(self) -> None:
        for name, same in _SAME.items():
            if not getattr(self, name):
                force_setattr(self, name, getattr(self, same))

    def variables(self) -> dict[str, str]:
        """Return the CSS variables that Aeon's widgets use, by name without the dollar sign."""
        return {
            "status-pending": self.pending,
            "status-running": self.running,
            "status-complete": self.complete,
            "status-failed": self.failed,
            "status-invalid": self.invalid,
            "severity-high": self.high,
            "severity-medium": self.medium,
            "severity-low": self.low,
            "score-good": self.score_good,
            "score-fair": self.score_fair,
            "score-poor": self.score_poor,
            "aeon-text": self.text,
            "aeon-muted": self.muted,
            "aeon-accent": self.accent,
            "aeon-cursor": self.cursor,
            "aeon-cursor-blurred": self.cursor_blurred,
            "aeon-border": self.border,
        }

    def textual_variables(self) -> dict[str, str]:
        """Return the variables of Textual's own widgets that Textual should not derive itself, by name."""
        return {
            "foreground": self.text,
            "panel-lighten-1": self.panel,
            "text-error": self.high,
            "text-warning": self.medium,
            "text-success": self.complete,
            "text-muted": self.muted,
            "text-disabled": self.muted,
            "footer-background": self.panel,
            "footer-foreground": self.text,
            "footer-description-foreground": self.muted,
            "footer-key-foreground": self.accent,
            "block-cursor-background": self.cursor,
            "block-cursor-foreground": self.text,
            "block-cursor-blurred-background": self.cursor_blurred,
            "block-cursor-blurred-foreground": self.text,
            "input-selection-background": self.accent,
            "input-selection-foreground": self.background,
            "screen-selection-background": self.accent,
            "screen-selection-foreground": self.background,
            "border": self.accent,
            "border-blurred": self.border,
            "scrollbar": self.border,
            "scrollbar-hover": self.muted,
            "scrollbar-active": self.accent,
            "scrollbar-background": self.background,
            "scrollbar-background-hover": self.background,
            "scrollbar-background-active": self.background,
            "scrollbar-corner-color": self.background,
        }

    def theme(self) -> Theme:
        """Return the theme, for an app to register."""
        from textual.theme import Theme

        return Theme(
            name=self.name,
            dark=self.dark,
            primary=self.accent,
            secondary=self.muted,
            accent=self.accent,
            warning=self.medium,
            error=self.high,
            success=self.complete,
            foreground=self.text,
            background=self.background,
            surface=self.surface,
            panel=self.panel,
            variables={**self.variables(), **self.textual_variables()},
        )


_SAME = {"failed": "high", "low": "running", "score_good": "complete", "score_fair": "medium", "score_poor": "high"}
"""The colour that another one has unless it is given."""
COLOURS = Palette.__struct_fields__[2:]
"""The names of all colours of a palette."""
BACKGROUNDS = ("background", "surface", "panel", "cursor", "cursor_blurred")
TEXT_COLOURS = tuple(name for name in COLOURS if name not in (*BACKGROUNDS, "border"))

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
    invalid="#d3a3f0",
    high="#ff8b96",
    medium="#ecc06a",
)


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
    invalid="#7330a8",
    high="#ad1128",
    medium="#7a4b00",
)


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
    invalid="#eec2ff",
    high="#ffb3ab",
    medium="#ffd84d",
)


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
    invalid="#f7c3ee",
    high="#e97b2e",
    medium="#fdf24a",
)


RGB = tuple[int, int, int]


def rgb(color: str) -> RGB:
    """Return red, green and blue of `#rrggbb`, each from 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as defined by WCAG 2, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def blend(color: str, towards: str, share: float) -> str:
    """Return a mix of two colours; `share` is that of the second, from 0 to 1."""
    mixed = (round(a + (b - a) * share) for a, b in zip(rgb(color), rgb(towards), strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def readable(color: str, backgrounds: Iterable[str], dark: bool) -> str:
    """Return the colour, made lighter (on dark) or darker until it is readable on every background.

    If no shade of it is, return white or black.
    """
    on = tuple(backgrounds)
    end = "#ffffff" if dark else "#000000"
    shades = (blend(color, end, step / _STEPS) for step in range(_STEPS))
    return next((shade for shade in shades if all(contrast(shade, each) >= READABLE for each in on)), end)


def _luminance(color: str) -> float:
    parts = (part / 255 for part in rgb(color))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def fallback_variables(theme: Theme) -> dict[str, str]:
    """Return the variables of our widgets for a theme that lacks them, by name without the dollar sign.

    They are derived from the theme's colours; each text colour is readable on all of its backgrounds. The terminal's
    own colours are not known, so for these the variables are colours that terminals usually show well.
    """
    if _KNOWN in theme.variables:
        return {}
    return _terminal_variables(theme.dark) if theme.ansi else _palette(theme).variables()


def readable_variables(theme: Theme) -> dict[str, str]:
    """Return the variables of Textual's widgets that a foreign theme needs: some of its mixed ones are unreadable."""
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
        cursor_blurred="ansi_bright_black" if dark else "ansi_white",
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
