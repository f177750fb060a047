"""Values of the configuration, parsed and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from aeon_core.config.keys import CONFIG_KEYS, PATH_KEYS, listed, wrong
from aeon_core.errors import UsageError
from aeon_core.paths import expanded
from aeon_core.suggest import is_server_url


def checked_texts(named: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return checked values by key, of texts (or values) by the name they go under in a message.

    A relative path is one from the working directory. Raises UsageError.
    """
    values: dict[str, Any] = {}
    for where, (key, value) in named.items():
        if value is None:
            continue
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{where} is empty, expected {CONFIG_KEYS[key].expected}")
        if key in ("tools", "approve"):
            value = listed(value)
        elif key in ("ttl", "judge_votes", "max_tokens", "context_window") and isinstance(value, str):
            value = _whole_number(value)
        checked = checked_value(key, value, where)
        values[key] = Path.cwd() / expanded(checked, where) if key in PATH_KEYS else checked
    return values


def checked_text(key: str, text: str, where: str) -> Any:
    """Return the value of a text that a person has typed, as the environment's are read. Raises UsageError."""
    return checked_texts({where: (key, text)})[key]


def _whole_number(text: str) -> int | str:
    try:
        return int(text) if text.strip().isascii() and "_" not in text else text
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
"""Which values RunConfig takes as they are: a list of runs opens without loading pydantic to be told so."""


def checked_value(key: str, value: Any, where: str) -> Any:
    """Return a value as RunConfig takes it. Raises UsageError, in one line that begins with `where`."""
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
