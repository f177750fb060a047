"""A user's own themes, read from YAML files. Imports no Textual."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError
from pydantic_core import ErrorDetails

from aeon_core.errors import UsageError
from aeon_core.suggest import nearest, shown, truth_value
from aeon_core.yaml_file import Bounds, load_yaml
from aeon_themes import PALETTES
from aeon_themes.palette import BACKGROUNDS, COLOURS, READABLE, TEXT_COLOURS, Palette, contrast

MAX_BYTES = 100_000
_OURS = {palette.name: palette for palette in PALETTES}
_EXPECTED = {
    "name": "letters, digits, - and _, other than the name of a built-in theme",
    "extends": f"one of {', '.join(_OURS)}",
    "dark": "true or false",
    "colours": "names of colours with their values, such as failed: '#ff8b96'",
}
_KEYS = tuple(_EXPECTED)
_PAIRS = tuple((text, on) for text in TEXT_COLOURS for on in BACKGROUNDS)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{3}(?:[0-9A-Fa-f]{3})?")


@dataclass(frozen=True)
class LoadedThemes:
    """Loaded themes, the problems of files that could not be loaded, and warnings about hard-to-read themes."""

    palettes: tuple[Palette, ...] = ()
    problems: tuple[str, ...] = ()
    """One line for each file that was left out, which names the file and the key."""
    warnings: tuple[str, ...] = ()
    """One line for each theme with low contrast."""


def load_themes(files: Iterable[Path]) -> LoadedThemes:
    """Return the themes of the files; of two with one name, the later counts. A bad file becomes a problem."""
    found: dict[str, Palette] = {}
    problems, warnings = [], {}
    for path in files:
        try:
            palette = read_theme(path)
        except UsageError as error:
            problems.append(error.message)
            continue
        found[palette.name] = palette
        warnings[palette.name] = hard_to_read(palette)
    return LoadedThemes(tuple(found.values()), tuple(problems), tuple(filter(None, warnings.values())))


def read_theme(path: Path) -> Palette:
    """Return the theme of one file; whatever it leaves out comes from the theme that it extends.

    Raises UsageError in one line, with the file and the key.
    """
    where = f"the theme file {str(path)!r}"
    data = load_yaml(path, where, Bounds(size=MAX_BYTES))
    if not isinstance(data, dict):
        raise UsageError(f"{where} must hold keys and values, such as `name: {path.stem[:40]}`")
    try:
        theme = _ThemeFile.model_validate({"name": path.stem, **data})
    except ValidationError as error:
        raise UsageError(f"{where}: {_problem(error.errors(include_url=False)[0])}") from None
    base = _OURS[theme.extends or ("aeon-light" if theme.dark is False else "aeon-dark")]
    dark = base.dark if theme.dark is None else theme.dark
    return replace(base, name=theme.name, dark=dark, **theme.colours)


def hard_to_read(palette: Palette) -> str | None:
    """Return a line that names the pair of colours with the lowest contrast if it is too low, else None."""
    pairs = [(contrast(getattr(palette, on), getattr(palette, text)), text, on) for text, on in _PAIRS]
    low = sorted(pair for pair in pairs if pair[0] < READABLE)
    if not low:
        return None
    worst, text, on = low[0]
    more = f" (and {len(low) - 1} more such pairs)" if len(low) > 1 else ""
    return (
        f"the theme {palette.name!r} is hard to read: {text!r} on {on!r} has a contrast of {worst:.1f}:1, but text "
        f"needs {READABLE}:1{more}"
    )


def _name(name: str) -> str:
    if not _NAME.fullmatch(name) or name in _OURS:
        raise ValueError("no name")
    return name


def _colour(color: str) -> str:
    if not _COLOUR.fullmatch(color):
        raise ValueError("no colour")
    digits = color[1:].lower()
    return f"#{digits if len(digits) == 6 else ''.join(digit * 2 for digit in digits)}"


class _ThemeFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, AfterValidator(_name)]
    extends: Literal["aeon-dark", "aeon-light", "aeon-high-contrast", "aeon-colour-blind"] | None = None
    dark: Annotated[StrictBool | None, BeforeValidator(truth_value)] = None
    colours: dict[Literal[COLOURS], Annotated[str, AfterValidator(_colour)]] = Field(default_factory=dict)  # type: ignore[valid-type]


def _problem(error: ErrorDetails) -> str:
    (key, *inner), value = [str(part) for part in error["loc"]], error["input"]
    if key not in _EXPECTED:
        return f"{key!r} belongs under 'colours'" if key in COLOURS else f"{key!r} is unknown{nearest(key, _KEYS)}"
    if not inner:
        return f"{key!r} is {_described(value)}, expected {_EXPECTED[key]}"
    if inner[-1] == "[key]":
        return f"unknown colour {inner[0]!r}{nearest(inner[0], COLOURS)}"
    description = "empty (an unquoted # begins a comment)" if value is None else _described(value)
    return f"the colour {inner[0]!r} is {description}; expected a colour in quotes, such as '#1b2230'"


def _described(value: Any) -> str:
    """Return a value for a message; only the type of a nested one, since YAML can make it endless."""
    return f"a {type(value).__name__}" if isinstance(value, (dict, list, set, tuple)) else shown(value)
