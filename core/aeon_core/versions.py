"""The versions a run is recorded with."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

FORM = "tokens"
"""How a secret is written: as a token of its own. Journals of versions that wrote one text for all do not say."""


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name, distribution in (("aeon", "aeon-tui"), ("pydantic", "pydantic")):
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def versions() -> dict[str, str]:
    """Return the versions of Aeon and what its records depend on, by name; `redaction` is the form of its records."""
    return {**_versions(), "redaction": FORM}
