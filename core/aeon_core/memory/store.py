"""The built-in memory: a dict, for as long as the process lives (core FR-014; Decision 5)."""

from __future__ import annotations

from typing import Any

from aeon_core.errors import MemoryStoreError
from aeon_core.memory.base import Memory
from aeon_core.plain import clean_text, plain

_MAX_SHOWN = 80


class InMemoryStore(Memory):
    """A key/value store in memory. What goes in and what comes out are copies, so nobody changes a stored value.

    One thread writes; others may read meanwhile. A stored value is never changed, only replaced, and a search goes over
    a copy of the dict, which is made in one step: a reader sees the entries of one moment and never raises.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}

    def write(self, key: str, value: Any) -> None:
        """Store a copy of `value` as plain JSON under `key`, replacing what was there (core FR-015).

        Raises MemoryStoreError for a blank key and for a value that has no JSON form.
        """
        name = _key(key)
        try:
            self._entries[name] = plain(value)
        except ValueError as error:
            raise MemoryStoreError(
                f"the value for key {name[:_MAX_SHOWN]!r} cannot be stored: {error}; give plain JSON",
                key=name[:_MAX_SHOWN],
            ) from None

    def read(self, key: str) -> Any | None:
        """Return a copy of the value under `key`, or None where there is none (core FR-016).

        Raises MemoryStoreError for a blank key.
        """
        return plain(self._entries.get(_key(key)))

    def search(self, prefix: str) -> list[tuple[str, Any]]:
        """Return copies of all entries whose key starts with `prefix`, by key; all of them for "" (core FR-017).

        Raises MemoryStoreError where `prefix` is no string.
        """
        if not isinstance(prefix, str):
            raise MemoryStoreError(f"expected a prefix as a string, got {type(prefix).__name__}")
        start = clean_text(prefix)
        entries = self._entries.copy()
        found = sorted(key for key in entries if key.startswith(start))
        return [(key, plain(entries[key])) for key in found]

    def __len__(self) -> int:
        return len(self._entries)


def _key(key: str) -> str:
    if not isinstance(key, str) or not key.strip():
        what = "a blank one" if isinstance(key, str) else type(key).__name__
        raise MemoryStoreError(f"expected a non-empty string as key, got {what}")
    return clean_text(key)
