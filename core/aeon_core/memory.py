"""The memory interface (Decision 5; core FR-014 to FR-018)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from aeon_core.entities import MemoryEntry
from aeon_core.errors import MemoryStoreError, UsageError
from aeon_core.json_safe import clean_text, json_safe


@runtime_checkable
class Memory(Protocol):
    """A key/value store: any object with these three methods, which are all that a run uses (core FR-018).

    A run calls them on its own thread. An exception is recorded, and the run continues with what it knows. Runs at the
    same time need a store each.
    """

    @abstractmethod
    def write(self, key: str, value: Any) -> None:
        """Store `value` (plain JSON) under a non-empty key, replacing what was there (core FR-015)."""

    @abstractmethod
    def read(self, key: str) -> Any | None:
        """Return the value stored under `key`, or None if there is none (core FR-016)."""

    @abstractmethod
    def search(self, prefix: str) -> list[tuple[str, Any]]:
        """Return all entries whose key starts with `prefix`, in the order of their keys (core FR-017)."""


def entries_of(memory: Memory | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all entries of a memory. Raises UsageError for something else."""
    if not isinstance(memory, Mapping | None):
        if not callable(getattr(memory, "search", None)):
            raise UsageError(f"the memory is of type {type(memory).__name__}, expected a Memory")
        memory = dict(memory.search(""))
    return dict(memory or {})


_MAX_SHOWN = 80
_LISTS = (list, tuple, set, frozenset)


class InMemoryStore(Memory):
    """A key/value store in memory. Values are copied in and out, so that nobody can change a stored one.

    One thread writes; others may read at the same time. A stored value is never changed, only replaced, and a search
    copies the dict in one step: a reader sees the entries of one moment, and never raises.
    """

    def __init__(self) -> None:
        self._entries: dict[str, MemoryEntry] = {}

    def write(self, key: str, value: Any) -> None:
        """Store a copy of `value` as plain JSON under `key`, replacing what was there (core FR-015).

        Raises MemoryStoreError for a blank key and for a value that has no JSON form, such as NaN.
        """
        name = _key(key)
        try:
            stored = json_safe(value)
            if stored != value:
                _check_finite(value)
        except ValueError as error:
            raise MemoryStoreError(
                f"cannot store the value for key {name[:_MAX_SHOWN]!r}: {error}; use plain JSON", key=name[:_MAX_SHOWN]
            ) from None
        self._entries[name] = MemoryEntry(key=name, value=stored)

    def read(self, key: str, default: Any = None) -> Any | None:
        """Return a copy of the value under `key`, or `default` if there is none (core FR-016).

        `default`, or `key in store`, distinguishes that from a stored None. Raises MemoryStoreError for a blank key.
        """
        name = _key(key)
        return json_safe(self._entries[name].value) if name in self._entries else default

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and clean_text(key) in self._entries

    def search(self, prefix: str) -> list[tuple[str, Any]]:
        """Return copies of all entries whose key starts with `prefix`, sorted by key; all of them for "" (core FR-017).

        Raises MemoryStoreError if `prefix` is not a string.
        """
        if not isinstance(prefix, str):
            raise MemoryStoreError(f"expected a prefix as a string, got {type(prefix).__name__}")
        start = clean_text(prefix)
        entries = self._entries.copy()
        found = sorted(key for key in entries if key.startswith(start))
        return [(key, json_safe(entries[key].value)) for key in found]

    def __len__(self) -> int:
        return len(self._entries)


def _check_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    for item in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, _LISTS) else ():
        _check_finite(item)


def _key(key: str) -> str:
    if not isinstance(key, str) or not key.strip():
        what = "a blank one" if isinstance(key, str) else type(key).__name__
        raise MemoryStoreError(f"expected a non-empty string as key, got {what}")
    return clean_text(key)
