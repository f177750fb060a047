"""Makes the adapter for a `PROVIDER:NAME` (contract: Models)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aeon_core.errors import ModelUnavailableError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.llm import PROVIDERS
from aeon_core.suggest import NEAR, check_type, close, is_server_url, nearest, shown

if TYPE_CHECKING:
    from aeon_core.llm.base import LLMAdapter

PLACEHOLDER_KEY = "none"
"""Sent if no key is needed, since the SDK requires one and local servers ignore it."""
_BEDROCK = ("region", "profile", "role_arn")


@dataclass(frozen=True)
class Endpoint:
    """How an adapter reaches a model. `url` is None for the provider's own address; `name` is the model's."""

    provider: str
    name: str
    default_url: str
    url: str | None
    key_variable: str
    key: str = field(repr=False)
    timeout: float = 120.0
    credentials: str = "key"
    """What a message calls the credentials that a server rejects."""
    advice: Mapping[int, str] = field(default_factory=dict, repr=False)
    """What to do about a status of the server, if that differs from the usual advice."""
    unreached: str = "check the network"
    """What to do if the provider's own address cannot be reached."""

    @property
    def model(self) -> str:
        """The label, `PROVIDER:NAME`."""
        return f"{self.provider}:{self.name}"

    @property
    def shown_url(self) -> str:
        """The address for messages: without credentials and query, at most 100 characters."""
        parts = urlsplit(self.url or self.default_url)
        host = parts.netloc.rpartition("@")[2]
        return escape_controls(f"{parts.scheme}://{host}{parts.path}")[:100]


def find_url(base_url: str | None, variable: str = "") -> str | None:
    """Return `base_url`, else the address in an environment variable; None for neither. Raises UsageError."""
    if base_url is not None and not isinstance(base_url, str):
        raise UsageError(f"base_url is {base_url!r}; write an address such as 'http://127.0.0.1:8000/v1'")
    source, url = ("base_url", base_url) if base_url and base_url.strip() else (variable, os.environ.get(variable, ""))
    url = url.strip()
    if not url:
        return None
    if not is_server_url(url):
        raise UsageError(f"{source} {shown(url)} is not a server address; expected http://HOST:PORT/v1 or https://…")
    return url


def find_key(model: str, variables: tuple[str, ...], *, needed: bool = True) -> tuple[str, str]:
    """Return the environment variable with the key, and the key, or a placeholder if none is set or needed.

    Raises ModelUnavailableError (exit 3), which names the variable.
    """
    for variable in variables:
        key = os.environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ModelUnavailableError(f"the key in {variable} has characters that a key cannot have; set it again")
        if key.startswith(("'", '"')):  # as `docker run --env-file` passes it
            raise ModelUnavailableError(f"the key in {variable} begins with a quotation mark; set it without quotes")
        if key:
            return variable, key
    if needed:
        raise ModelUnavailableError(
            f"no key for {shown(model)}: set {variables[0]}, or choose another model (simulated:default needs no key)"
        )
    return variables[0], PLACEHOLDER_KEY


def check_timeout(timeout: float) -> float:
    """Return the timeout in seconds. Raises UsageError unless it is a positive, finite number."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise UsageError(f"timeout {timeout!r} is not a number of seconds above 0, such as 120")
    return float(timeout)


def connect(
    model: str | Sequence[str],
    *,
    base_url: str | None = None,
    timeout: float = 120.0,
    context_window: int | None = None,
    bedrock: Mapping[str, str] | None = None,
) -> LLMAdapter:
    """Return the adapter for `PROVIDER:NAME`; NAME may contain colons and slashes. Sends nothing and loads no SDK.

    Several models make a chain: the next is used when all attempts of the one before have failed. `base_url` replaces
    the provider's address (for `openai` with any server that speaks Chat Completions, without a key; `llama-cpp` and
    `simulated` have none); `timeout` is the longest silence in seconds; `context_window` is how many tokens a model in
    this process gets memory for; `bedrock` holds `region`, `profile` and `role_arn`. Raises UsageError (exit 2) for
    anything else or an unknown provider, and ModelUnavailableError (exit 3), which names a missing key, package or
    file.
    """
    if not isinstance(model, str) and isinstance(model, Sequence):
        from aeon_core.llm.base import ModelChain

        options: Any = {"base_url": base_url, "timeout": timeout, "context_window": context_window, "bedrock": bedrock}
        return ModelChain([connect(one, **options) for one in model])
    provider, name = _parts(model)
    check_type(bedrock or {}, Mapping, "bedrock")
    for key, value in (bedrock or {}).items():
        if key not in _BEDROCK:
            raise UsageError(f"bedrock has an unknown key, {key!r}{nearest(str(key), _BEDROCK)}")
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{key!r} in bedrock must be text; got {shown(value)}")
    given = {"base_url": base_url, "timeout": timeout, "context_window": context_window, **(bedrock or {})}
    known = PROVIDERS[provider]
    make = getattr(import_module(known.module), known.adapter)
    connected: LLMAdapter = make(name, **{option: given[option] for option in known.options if option in given})
    return connected


def _parts(model: object) -> tuple[str, str]:
    """Return the provider and name in `PROVIDER:NAME`. Raises UsageError."""
    form = f"expected PROVIDER:NAME with a provider of {', '.join(PROVIDERS)}"
    if not isinstance(model, str):
        raise UsageError(f"the model must be text, got {type(model).__name__}; {form}")
    provider, colon, name = (part.strip() for part in model.partition(":"))
    given = shown(model)
    if provider not in PROVIDERS:
        near = close(provider.lower(), PROVIDERS, NEAR)
        hint = f"; did you mean '{near}:{name or 'NAME'}'?" if near else ""
        what = "has an unknown provider" if colon else "has no provider"
        raise UsageError(f"the model {given} {what}; {form}{hint}")
    if not name:
        raise UsageError(f"the model {given} has no name; expected '{provider}:NAME'")
    if not name.isprintable():
        raise UsageError(f"the model name {given} contains control characters; {form}")
    return provider, name
