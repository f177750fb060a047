"""How well one colour can be read on another, and the nearest colour that can be."""

from __future__ import annotations

from collections.abc import Iterable

READABLE = 4.5
"""The contrast that WCAG 2 asks of text (AA)."""
_STEPS = 50

RGB = tuple[int, int, int]


def rgb(color: str) -> RGB:
    """Return the parts of `#rrggbb`, each from 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 has it, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def blend(color: str, towards: str, share: float) -> str:
    """Return a colour on the way to another one, which is reached with a share of 1."""
    mixed = (round(a + (b - a) * share) for a, b in zip(rgb(color), rgb(towards), strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def readable(color: str, backgrounds: Iterable[str], dark: bool) -> str:
    """Return the colour, as much lighter (on dark) or darker as it takes to be read on every background.

    Where no shade of it can be, white or black is returned.
    """
    on = tuple(backgrounds)
    end = "#ffffff" if dark else "#000000"
    shades = (blend(color, end, step / _STEPS) for step in range(_STEPS))
    return next((shade for shade in shades if all(contrast(shade, each) >= READABLE for each in on)), end)


def _luminance(color: str) -> float:
    parts = (part / 255 for part in rgb(color))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
