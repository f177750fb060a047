"""Values of settings as files, the environment, options and forms give them, checked against RunConfig."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from aeon_core.config.keys import APP_KEYS, CONFIG_KEYS, PATH_KEYS, listed, wrong
from aeon_core.errors import UsageError
from aeon_core.paths import expanded, working_directory
from aeon_core.suggest import is_server_url, shown


def _theme(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() and value.isprintable() else None


def _keys(value: Any, where: str) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    found = {}
    for action, keys in value.items():
        # YAML reads a digit key as a number.
        keys = str(keys) if type(keys) is int and 0 <= keys <= 9 else keys
        if not (isinstance(action, str) and isinstance(keys, str) and keys.strip() and keys.isprintable()):
            raise UsageError(f"{where} gives {shown(action)} the key {shown(keys)}; write it as Z, f5 or ctrl+d")
        found[action] = ",".join(key.strip() for key in keys.split(",") if key.strip()) or "comma"
    return found


def checked_texts(named: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return checked values by key; `named` has each key and its text (or value) by its name in messages.

    Relative paths are relative to the working directory. Raises UsageError.
    """
    values: dict[str, Any] = {}
    for where, (key, value) in named.items():
        if value is None:
            continue
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{where} is empty, expected {CONFIG_KEYS[key].expected}")
        if CONFIG_KEYS[key].is_list:
            value = [part for text in value for part in listed(text)] if isinstance(value, list) else listed(value)
        elif CONFIG_KEYS[key].is_whole and isinstance(value, str):
            value = _whole_number(value)
        checked = checked_value(key, value, where)
        values[key] = working_directory() / expanded(checked, where) if key in PATH_KEYS else checked
    return values


def checked_text(key: str, text: str, where: str) -> Any:
    """Return the value of a text that a person typed, parsed as in the environment. Raises UsageError."""
    return checked_texts({where: (key, text)})[key]


def _whole_number(text: str) -> int | str:
    try:
        return int(text) if text.strip().isascii() and not {"_", "-"} & set(text) else text
    except ValueError:
        return text


def _is_text(value: Any) -> bool:
    return type(value) is str


PLAINLY_RIGHT: Mapping[str, Callable[[Any], bool]] = {
    "model": _is_text,
    "otel": lambda value: type(value) is bool,
    "otel_content": lambda value: type(value) is bool,
    "base_url": is_server_url,
    "ttl": lambda value: type(value) is int and value >= 0,
    "single_pass": lambda value: type(value) is bool,
    "tools": lambda value: type(value) is list and all(map(_is_text, value)),
    "max_tokens": lambda value: type(value) is int and value >= 1,
}
"""Tests for values that RunConfig accepts unchanged, so that the list of runs opens without loading pydantic."""


def checked_value(key: str, value: Any, where: str) -> Any:
    """Return a value in the form of RunConfig or the app. Raises UsageError in one line that begins with `where`."""
    if key in APP_KEYS:
        if (checked := _theme(value) if key == "theme" else _keys(value, where)) is None:
            raise UsageError(f"{where} must be {CONFIG_KEYS[key].expected}; got {shown(value)}")
        return checked
    if isinstance(value, str) and key in PATH_KEYS:
        return Path(value)
    if key in PLAINLY_RIGHT and PLAINLY_RIGHT[key](value):
        return value
    from pydantic import TypeAdapter, ValidationError

    from aeon_core.config.schema import RunConfig

    info = RunConfig.model_fields[key]
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", Annotated[info.annotation, info]))
        return adapter.validate_python(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}") from None
    except (ValidationError, RecursionError) as error:
        raise UsageError(wrong(key, where, value, error)) from None
