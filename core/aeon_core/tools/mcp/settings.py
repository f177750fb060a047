"""The settings under `mcp_servers`; this loads nothing of MCP itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, ValidationError, field_serializer

from aeon_core.errors import UsageError
from aeon_core.redaction import REDACTED
from aeon_core.secret_forms import HEADERS, argument_secrets, header_spans, is_place, is_word, url_secrets
from aeon_core.suggest import is_server_url, nearest, shown

_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_MAX_NAME = 32
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"\$?\$\{([^}]*)(\}?)")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"(?:[A-Za-z]{1,10} )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")

_EXPECTED = {
    "command": "the program to start, as text",
    "args": "a list of text values",
    "env": "a mapping of variables to text",
    "cwd": "the path of a folder",
    "url": "the address of a server, http://HOST:PORT/mcp or https://…",
    "headers": "a mapping of HTTP headers to text",
    "sandbox": "true or false",
    "network": "true or false",
    "timeout": "a number of seconds above 0",
    "start_timeout": "a number of seconds above 0",
    "tools": "a list of tool names, * and ? allowed, at least one",
    "enabled": "true or false",
    "trust_annotations": "true or false",
}
_PROCESS_KEYS = ("args", "env", "cwd", "sandbox")
_SECRET_KEYS = ("env", "headers")

_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Text = Annotated[str, Field(min_length=1)]


class McpServer(BaseModel):
    """One MCP server: a program that is started (`command`), or an address (`url`).

    Values of `env` and `headers` may be keys: a dump shows none except those that only refer to the environment.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, coerce_numbers_to_str=True
    )

    command: _Text | None = None
    """The program to start."""
    args: list[str] = Field(default_factory=list)
    """Its arguments."""
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    """Environment variables of the program; `${NAME}` in a value is taken from Aeon's own environment."""
    cwd: Annotated[Path, PlainSerializer(str)] | None = None
    """The working directory of the program, relative to the project root, which is also the default."""
    sandbox: bool = False
    """Whether the program runs in the isolation that Bash commands have: it writes only in the project and reads no
    folders with keys. Where no isolation works, it is not started."""
    network: bool = False
    """Whether a program in the sandbox reaches the network; without the sandbox it always does."""
    url: str | None = None
    """The address of a server that is running."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """HTTP headers of every request, `${NAME}` as in `env`."""
    timeout: _Seconds = 60.0
    """Seconds that a call may take."""
    start_timeout: _Seconds = 30.0
    """Seconds within which the server must have listed its tools."""
    tools: Annotated[list[str], Field(min_length=1)] | None = None
    """The server's tools to use, with `*` and `?` as wildcards; None for all."""
    enabled: bool = True
    """Whether it is enabled."""
    trust_annotations: bool = False
    """Whether to trust the server's hints about its tools' effects; otherwise all are unsafe and need approval."""

    @field_serializer("env", "headers")
    def _masked(self, values: dict[str, str]) -> dict[str, str]:
        return {key: value if _REFERENCE.fullmatch(value) else REDACTED for key, value in values.items()}


def servers_from(value: Any) -> dict[str, McpServer]:
    """Return the checked settings of a mapping of names to settings, which are mappings too or an McpServer.

    Raises UsageError, one line that names the server and the key; values that may be keys are never shown.
    """
    if not isinstance(value, Mapping):
        raise UsageError(f"'mcp_servers' must be a mapping of names to settings; got {shown(value)}")
    return {_name(name): _server(name, settings) for name, settings in value.items()}


def resolved(
    name: str, key: str, values: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return a server's `env` or `headers` with every `${NAME}` replaced; `$${` means `${`.

    Raises UsageError that names the server, the key and a variable that is not set.
    """
    known = os.environ if environ is None else environ
    found = {}
    for entry, text in values.items():
        where = f"{key!r} of {name!r} in 'mcp_servers': {entry!r}"
        found[entry] = _VARIABLE.sub(partial(_replacement, where, known), text)
        _check_entry(where, key, entry, found[entry])
    return found


def server_secrets(name: str, server: McpServer) -> Iterator[str]:
    """Yield what may be a key in a server's settings: passwords and values of options, `env` and `headers`, and the
    variables named in these. A path or a plain web address is none, nor is a word in `env`, unless its name says so.
    """
    yield from url_secrets(server.url or "")
    yield from argument_secrets(server.args)
    for entry, text in server.env.items():
        yield from (value for value in _secrets_in(name, "env", entry, text) if not is_word(entry, value))
    for entry, text in server.headers.items():
        for value in _secrets_in(name, "headers", entry, text):
            yield from (value, value.partition(" ")[2])
            if (header := entry.lower()) in HEADERS:
                yield from (value[start:end] for start, end in header_spans(header, value))


def _secrets_in(name: str, key: str, entry: str, text: str) -> Iterator[str]:
    # If a variable is missing, the server cannot be started, which reports it.
    with contextlib.suppress(UsageError):
        value = resolved(name, key, {entry: text})[entry]
        yield from url_secrets(value)
        named = ((found[1], os.environ.get(found[1], "")) for found in _VARIABLE.finditer(text))
        yield from (each for variable, each in [(entry, value), *named] if not is_place(variable, each))


def _replacement(where: str, known: Mapping[str, str], match: re.Match[str]) -> str:
    if match.group().startswith("$$"):
        return match.group()[1:]
    variable = match.group(1)
    if not match.group(2) or not _VARIABLE_NAME.fullmatch(variable):
        raise UsageError(f"{where} holds a '${{' that names no variable; write ${{NAME}}, or $${{ for a plain ${{")
    if variable not in known:
        raise UsageError(f"{where} needs the environment variable {variable!r}, which is not set")
    return known[variable]


def _check_entry(where: str, key: str, entry: str, text: str) -> None:
    """Refuse what no program's environment and no HTTP request can contain, before it fails there."""
    if key == "headers":
        fits = bool(_HEADER.fullmatch(entry)) and text.isascii() and (text.isprintable() or not text)
        expected = "a header's name and printable ASCII text"
    else:
        fits = bool(entry) and not {"=", "\0"} & set(entry) and "\0" not in text
        expected = "a name without '=' and text without NUL"
    if not fits:
        raise UsageError(f"{where} is not valid; expected {expected}")


def _name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise UsageError(
            f"'mcp_servers' has a server named {shown(name)}; "
            f"use letters, digits, - and single _, at most {_MAX_NAME} characters"
        )
    return name


def _server(name: str, settings: Any) -> McpServer:
    if isinstance(settings, McpServer):
        return _consistent(name, settings)
    if not isinstance(settings, Mapping):
        raise UsageError(f"{name!r} in 'mcp_servers' must be a mapping with 'command' or 'url'; got {shown(settings)}")
    try:
        server = McpServer.model_validate(dict(settings))
    except ValidationError as error:
        key = str(error.errors(include_url=False, include_context=False)[0]["loc"][0])
    else:
        return _consistent(name, server)
    if key not in _EXPECTED:
        raise UsageError(f"{name!r} in 'mcp_servers' has an unknown key, {key!r}{nearest(key, tuple(_EXPECTED))}")
    got = "" if key in _SECRET_KEYS else f"; got {shown(settings[key])}"
    raise UsageError(f"{key!r} of {name!r} in 'mcp_servers' must be {_EXPECTED[key]}{got}")


def _consistent(name: str, server: McpServer) -> McpServer:
    where = f"{name!r} in 'mcp_servers'"
    if (server.command is None) == (server.url is None):
        found = "neither" if server.url is None else "both"
        raise UsageError(f"{where} has {found} of 'command' and 'url'; set one: a program to start, or an address")
    if server.url is not None and not is_server_url(server.url):
        raise UsageError(f"'url' of {where} must be {_EXPECTED['url']}; got {shown(server.url)}")
    wrong = _PROCESS_KEYS if server.command is None else ("headers",)
    for key in wrong:
        if getattr(server, key):
            other = "command" if server.command is None else "url"
            raise UsageError(f"{key!r} of {where} needs {other!r}, which is not set; remove it")
    if server.network and not server.sandbox:
        raise UsageError(f"'network' of {where} needs 'sandbox: true'; add that, or remove it")
    return server
