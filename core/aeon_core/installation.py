"""What is installed: the optional packages, the command that adds one, and the versions that a run is recorded with."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from aeon_core.errors import AeonError

DISTRIBUTION = "aeon-tui"
_NEEDED = re.compile(r"\s*([\w.-]+)[^;]*;.*\bextra\s*==\s*['\"]([\w-]+)['\"].*")


class MissingExtraError(AeonError):
    """An optional package is not installed; the message has the command that installs it."""

    exit_code = 3


def missing_extra(what: str, extra: str) -> MissingExtraError:
    """Return the error for `what`, which needs an extra that is not installed."""
    return MissingExtraError(f"{what} needs the extra {extra!r}, which is not installed; run: {install_command(extra)}")


def extras() -> dict[str, bool]:
    """Return whether every package of an extra is installed, by extra."""
    found: dict[str, bool] = {}
    own = _distribution(DISTRIBUTION)
    for requirement in (own.requires if own is not None else None) or ():
        if (match := _NEEDED.fullmatch(requirement)) is not None:
            package, extra = match.groups()
            found[extra] = found.get(extra, True) and _distribution(package) is not None
    return found


def install_command(extra: str) -> str:
    """Return the shell command that adds an extra to this installation: with uv, pipx or pip, as it was made."""
    prefix, own = Path(sys.prefix), _distribution(DISTRIBUTION)
    wanted = shlex.quote(f"{DISTRIBUTION}[{extra}]")
    if (prefix / "uv-receipt.toml").is_file():
        # uv recreates the tool's environment: name what is installed already, too.
        known = sorted({extra, *(name for name, there in extras().items() if there)})
        wanted = shlex.quote(f"{DISTRIBUTION}[{','.join(known)}]")
        return f"uv tool install --with {wanted} {shlex.quote(_source(own))}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {DISTRIBUTION} {wanted}"
    pip = "pip"
    if own is not None and (own.read_text("INSTALLER") or "").strip() == "uv" and find_spec("pip") is None:
        pip = "uv pip"
    elif sys.prefix not in (sys.base_prefix, os.environ.get("VIRTUAL_ENV")):
        # The `pip` of the shell is another environment's.
        pip = f"{shlex.quote(sys.executable)} -m pip"
    return f"{pip} install {wanted}"


def _source(own: Distribution | None) -> str:
    """Return where the distribution was installed from: its name for an index, else a path or an address."""
    recorded = own.read_text("direct_url.json") if own is not None else None
    if not recorded:
        return DISTRIBUTION
    found = json.loads(recorded)
    vcs = found.get("vcs_info", {}).get("vcs")
    return f"{vcs}+{found['url']}" if vcs else unquote(found["url"].removeprefix("file://"))


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


FORM = "tokens"
"""The form of a redacted secret: its own token. Journals of versions that wrote one text for all secrets lack this."""


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name, package in (("aeon", DISTRIBUTION), ("pydantic", "pydantic")):
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def versions() -> dict[str, str]:
    """Return the versions of Aeon and what its records depend on, by name; `redaction` is the form of its records."""
    return {**_versions(), "redaction": FORM}
