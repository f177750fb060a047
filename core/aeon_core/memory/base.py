"""The memory interface (Decision 5; core FR-014 to FR-018)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Memory(ABC):
    """A key/value store. The kernel reaches it through these three methods only (core FR-018)."""

    @abstractmethod
    def write(self, key: str, value: Any) -> None:
        """Store `value` (plain JSON) under a non-empty key, replacing what was there (core FR-015)."""

    @abstractmethod
    def read(self, key: str) -> Any | None:
        """Return the value stored under `key`, or None where there is none (core FR-016)."""

    @abstractmethod
    def search(self, prefix: str) -> list[tuple[str, Any]]:
        """Return all entries whose key starts with `prefix`, in the order of their keys (core FR-017)."""
