"""The keys of the configuration and what each expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.suggest import shown

EXPECTED = {
    "model": "text of the form PROVIDER:NAME, or a list of such texts",
    "base_url": "the address of a server, http://HOST:PORT/v1 or https://…",
    "ttl": "a whole number of cycles, 0 or more",
    "single_pass": "true or false",
    "criteria": "text, a file with convergence criteria",
    "requirements": "text, a file with one requirement per line",
    "judge_model": "text of the form PROVIDER:NAME",
    "judge_votes": "1 or 3",
    "tools": "a list of files, shell, mcp or texts of the form module:attribute",
    "project_root": "text, a folder",
    "approve": "some of 'plan', 'pass' and 'tool', or 'none'",
    "wait": "a number of seconds, 0 or more",
    "on_unknown": "one of fail, retry, ask",
    "durability": "one of full, normal, off",
    "runs_dir": "text, a folder",
    "max_tokens": "a whole number of tokens, 1 or more",
    "timeout": "a number of seconds above 0",
    "prompts_dir": "text, a folder",
    "budget": "an amount in US dollars, 0 or more",
    "budget_warning": "an amount in US dollars, 0 or more",
    "prices": "models with their prices, MODEL: {input: …, output: …}, US dollars per million tokens",
    "context_window": "a whole number of tokens, 1 or more",
    "policy": "lists of rules, TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB), under allow, ask and deny",
    "shell": "settings of the Bash tool: safety_mode, blocklist, timeout, network, env, readable",
    "mcp_servers": "names of servers with their settings, a command or a url",
    "bedrock": "any of region, profile and role_arn, each a text",
    "otel": "true or false",
    "otel_content": "true or false",
}
KEYS = tuple(EXPECTED)
"""The fields of RunConfig, in its order."""
MAPPINGS = frozenset({"prices", "policy", "shell", "mcp_servers", "bedrock"})
"""Keys that only files and Python can give."""
PATH_KEYS = frozenset({"project_root", "runs_dir", "prompts_dir", "criteria", "requirements"})


def listed(value: Any) -> Any:
    """Return the parts of a text with commas; any other value as it is."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def wrong(key: str, where: str, value: Any, error: Exception) -> str:
    """Return the message for a value that does not fit; where only a part of it does not, that part is named."""
    from pydantic import ValidationError

    part = ""
    if key in MAPPINGS and isinstance(value, Mapping) and isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        if place := [str(name) for name in first["loc"] if name not in (key, "[key]")]:
            what = "is unknown" if first["type"] == "extra_forbidden" else f"is {shown(first['input'])}"
            part = f", {'.'.join(place)!r} {what}"
    return f"{where} must be {EXPECTED[key]}; got {shown(value)}{part}"


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
