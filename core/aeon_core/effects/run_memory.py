"""The memory of a run: a store behind the port, and what the run knows of it (core FR-018, Decision 2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aeon_core.effects.outcomes import describe, in_one_line
from aeon_core.effects.record_stream import RecordStream
from aeon_core.effects.secret_recovery import LostSecretError, RunSecrets
from aeon_core.journal.records import MemoryRecord, NoticeRecord
from aeon_core.json_safe import NotJsonSafeError, clean_text, json_safe
from aeon_core.memory import InMemoryStore, Memory

logger: logging.Logger = logging.getLogger("aeon")


class RunMemory:
    """Reads and writes the store and journals both; without a store, the run remembers for itself.

    `recorded` is the memory at the start of a run that is resumed or replayed, which has no store if it `replays`;
    `unstored` are entries that the run knows although the store refused them.
    """

    def __init__(
        self,
        store: Memory | None,
        stream: RecordStream,
        secrets: RunSecrets,
        *,
        replays: bool,
        recorded: Mapping[str, Any] | None,
        unstored: Mapping[str, Any],
    ) -> None:
        self._store, self._stream, self._secrets, self._replays = store, stream, secrets, replays
        self._known: dict[str, Any] = dict(unstored)
        self._unstored: set[str] = set(unstored)
        self._unread: str | None = None
        """Why the store could not be read last time."""
        self._noted_unread: str | None = None
        self._stored: set[str] = set()
        """The keys that the run has written since it was last restored."""
        # A store that belongs to the run lost what the earlier process stored.
        self._restores = store if recorded is not None and isinstance(store, InMemoryStore) else None
        if recorded is not None:
            self.restore(recorded)
        else:
            self._known = self.read_store()

    @property
    def known(self) -> dict[str, Any]:
        """What the run knows by key; the returned object does not change with it."""
        return dict(self._known)

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Restore what was recorded, also to a store that belongs to the run."""
        if self._restores is not None:
            for key, value in memory.items():
                self._restore_entry(key, value)
        self._known = dict(memory)

    def _restore_entry(self, key: str, value: Any) -> None:
        """Restore a recorded entry to the store; one with a lost secret is known but not stored."""
        assert self._restores is not None
        try:
            name, secret = self._secrets.reveal([key, value])
        except LostSecretError:
            self._unstored.add(key)
        else:
            self._restores.write(name, json_safe(secret))

    def remember(self, key: str, value: Any) -> str | None:
        """Write to memory; return the store's message if it refused, which never stops a run."""
        error = self._write(key, value)
        self._known[key] = value
        self._stream.emit(MemoryRecord(key=key, value=value, error=error))
        return error

    def _write(self, key: str, value: Any) -> str | None:
        if self._store is None:
            return None
        recorded = self._stream.outcome("memory", {"key": key})
        if recorded is not None:
            # A lost secret is recovered when it is needed; a replay never does.
            lost = not self._replays and any(self._secrets.lost_in([key, value]))
            if self._restores is not None and recorded.get("error") is None and not lost:
                self._restore_entry(key, value)
            return recorded.get("error")
        try:
            name, secret = self._secrets.reveal([key, value])
            self._stream.perform(partial(self._store.write, name, json_safe(secret)))
        except Exception as error:
            why = error.message if isinstance(error, LostSecretError) else self._secrets.conceal(describe(error))
            logger.warning("memory refused to store %r: %s", key, why)
            self._unstored.add(key)
            return str(why)
        self._stored.add(key)
        return None

    def recall(self, pass_number: int, step_id: str | None = None) -> dict[str, Any]:
        """Return the memory's content by key. What others wrote in the meantime is journaled first, and once why a
        store cannot be read: the run continues with what it knows.
        """
        if self._stream.recording:
            while (line := self._stream.ahead()).get("type") == "memory" and line["source"] == "external":
                self._learn(line["key"], line["value"])
            if line.get("type") == "notice" and line["kind"] == "memory":
                self._noted_unread = line["message"]
                self._note(line["message"], line["pass"], line.get("step_id"))
        elif (found := self.read_store()) is not self._known:
            changed = [key for key in {**found, **self._known} if self._known.get(key) != found.get(key)]
            for key in changed:
                self._learn(key, found.get(key))
            if overwritten := sorted(self._stored.intersection(changed)):
                self._stored.clear()
                why = "runs at the same time need a store each, since they use the same keys"
                message = f"something else changed {overwritten[0]!r} in memory, which this run had written; {why}"
                self._note(message, pass_number, step_id)
        elif self._unread not in (None, self._noted_unread):
            self._noted_unread = self._unread
            self._note(self._unread, pass_number, step_id)
        return self._known

    def _note(self, message: str, pass_number: int, step_id: str | None) -> None:
        self._stream.emit(NoticeRecord(kind="memory", pass_number=pass_number, step_id=step_id, message=message))

    def _learn(self, key: str, value: Any) -> None:
        """Journal what others wrote; null means that the entry is gone."""
        self._known[key] = value
        if self._restores is not None and self._stream.recording:
            self._restore_entry(key, value)
        if value is None:
            del self._known[key]
        self._stream.emit(MemoryRecord(key=key, value=value, source="external"))

    def read_store(self) -> dict[str, Any]:
        """Return everything in the store that is JSON; what is known if there is none or it cannot be read."""
        if (store := self._store) is None:
            return self._known
        found: dict[str, Any] = {}
        try:
            for key, value in self._stream.perform(lambda: list(store.search(""))):
                try:
                    name = self._secrets.conceal(clean_text(key))
                    found[name] = self._conceal_entry(name, json_safe(value))
                except NotJsonSafeError as error:
                    logger.warning("memory holds under %r what is not JSON: %s", name, error)
        except Exception as error:
            self._unread = self._secrets.conceal(f"memory cannot be read: {in_one_line(error)}")
            logger.warning("%s", self._unread)
            return self._known
        self._unread = None
        # Entries that the store refused are still known.
        return {**{key: value for key, value in self._known.items() if key in self._unstored}, **found}

    def _conceal_entry(self, name: str, value: Any) -> Any:
        """Return a store's content as the kernel knows it, keeping objects that still mean the same."""
        known = self._known.get(name)
        return known if known is not None and self._secrets.shown(known) == value else self._secrets.conceal(value)


@dataclass
class StepMemory(Memory):
    """The memory of a run as steps see it. `place` gives (pass, step_id) of an access; a search leaves out what is
    under `hidden` keys.
    """

    memory: RunMemory
    place: Callable[[], tuple[int, str | None]]
    hidden: Callable[[], Collection[str]] = tuple

    def write(self, key: str, value: Any) -> None:
        self.memory.remember(key, value)

    def read(self, key: str) -> Any | None:
        return self.memory.recall(*self.place()).get(key)

    def search(self, prefix: str) -> list[tuple[str, Any]]:
        hidden = self.hidden()
        found = self.memory.recall(*self.place()).items()
        return sorted((key, value) for key, value in found if key.startswith(prefix) and key not in hidden)
