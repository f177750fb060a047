"""Settings of the app, which configuration files may hold beside those of a run: its theme, and its keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.suggest import shown

APP_EXPECTED = {
    "theme": "the name of a theme, such as aeon-light",
    "keys": "actions with their keys, such as {run.zoom: Z, browser.delete: 'ctrl+d,delete'}",
}
APP_KEYS = tuple(APP_EXPECTED)
THEME_VARIABLE = "AEON_THEME"


@dataclass(frozen=True)
class AppSettings:
    """What the layers say of the app. Neither a run nor its journal knows of it."""

    theme: str | None = None
    """The theme that the app opens with; None where nothing is said."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys by the id of their action, several of them with commas between."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each of them was said."""


def app_value(key: str, value: Any, where: str) -> Any:
    """Return the checked value of one of APP_KEYS. Raises UsageError, in one line that begins with `where`."""
    checked = _theme(value) if key == "theme" else _keys(value)
    if checked is None:
        raise UsageError(f"{where} must be {APP_EXPECTED[key]}; got {shown(value)}")
    return checked


def _theme(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() and value.isprintable() else None


def _keys(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    found = {}
    for action, keys in value.items():
        # YAML reads the key of a digit as a number.
        keys = str(keys) if type(keys) is int and 0 <= keys <= 9 else keys
        if not (isinstance(action, str) and isinstance(keys, str) and keys.strip() and keys.isprintable()):
            return None
        found[action] = ",".join(key.strip() for key in keys.split(",") if key.strip()) or "comma"
    return found
