"""Parts of messages about a person's input: the nearest known name, and values that are safe to show."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args

from aeon_core.errors import UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError


NEAR = 0.65
"""The least similarity of a suggested name, 0…1: one wrong letter in three is similar enough."""


def nearest(name: str, known: Collection[str]) -> str:
    """Return the end of a message that names the nearest known name, or all of them if none is near."""
    return did_you_mean(name, known) or f"; the known ones are {', '.join(known)}"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return the end of a message that names the nearest known name; empty if none is near."""
    near = close(name, known, NEAR)
    return f"; did you mean {near!r}?" if near else ""


def unknown_argument(
    argument: str, options: Collection[str], *, takes_task: bool = True, settings: Collection[str] = ()
) -> str:
    """Return the message for an argument that a command line does not take; one with a task may need quotes.

    `settings` are the keys of the configuration for which there is no option.
    """
    if argument.startswith("-"):
        name = argument.partition("=")[0]
        if (key := name.lstrip("-").replace("-", "_")) in settings:
            return f"unknown option {name!r}; it is a setting: use `aeon-tui config set {key} VALUE`"
        near = close(name.lstrip("-"), [option[2:] for option in options if option.startswith("--")], NEAR)
        return f"unknown option {name!r}" + (f"; did you mean '--{near}'?" if near else "")
    return f"unexpected argument {argument!r}" + ("; quote a task of several words" if takes_task else "")


def close(name: str, known: Collection[str], cutoff: float) -> str | None:
    """Return the known name that is nearest, None if none is as near as `cutoff`, 0…1."""
    import difflib

    return next(iter(difflib.get_close_matches(name[:100], known, n=1, cutoff=cutoff)), None)


def shown(value: Any) -> str:
    """Return a value for a message: clipped, and what looks like a key or a password left out."""
    from aeon_core.redaction import redact_text

    text = redact_text(repr(value))
    return text if len(text) <= 80 else f"{text[:80]}…"


def check_type(value: Any, kind: type | UnionType, name: str, advice: str = "") -> None:
    """Raise UsageError, which names what the caller passed, if it does not have the required type, or one of them."""
    if not isinstance(value, kind):
        kinds = " or ".join(each.__name__ for each in get_args(kind) or (kind,) if each is not NoneType)
        article = "an" if kinds[0] in "aeiou" else "a"
        raise UsageError(f"{name} is of type {type(value).__name__}{advice or f', expected {article} {kinds}'}")


def check_texts(values: Any, name: str) -> None:
    """Raise UsageError, which names what the caller passed, if it is not a collection of texts."""
    is_list = isinstance(values, Collection) and not isinstance(values, str | bytes)
    if not is_list or not all(isinstance(each, str) for each in values):
        raise UsageError(f'{name} is {shown(values)}; write a list such as ["…"]')


def check_failures(failures: Any) -> None:
    """Raise UsageError if this is not a mapping of step ids to errors, each of them a text; None is one."""
    check_type(failures or {}, Mapping, "failures")
    for step_id, errors in (failures or {}).items():
        check_texts(errors, f"failures[{step_id!r}]")


def truth_value(value: Any) -> Any:
    """Return the boolean that the text `yes`, `no`, `on` or `off` means; any other value as it is."""
    words = {"yes": True, "on": True, "no": False, "off": False}
    return words.get(value.lower(), value) if isinstance(value, str) else value


def first_problem(error: ValidationError) -> str:
    """Return pydantic's first error on one line: its place and message."""
    found = error.errors(include_url=False, include_input=False)[0]
    what = "must not be blank" if found.get("ctx", {}).get("pattern") == r"\S" else found["msg"]
    return ": ".join(filter(None, (".".join(str(part) for part in found["loc"]), what)))


def is_server_url(value: Any) -> bool:
    """Return whether a value is the URL of an HTTP server."""
    if type(value) is not str or not value.isprintable() or " " in value.strip():
        return False
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value.strip())
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
