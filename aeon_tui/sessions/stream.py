"""The reply that a model is writing, for the screen."""

from __future__ import annotations

import time
from collections.abc import Callable

CHARACTERS_PER_TOKEN = 4
MEASURED_SECONDS = 0.3
"""Seconds after its first piece from which the rate of a reply is shown."""
STREAM_LIMIT = 20_000
"""The most characters of a reply in progress kept for the screen."""


class Stream:
    """The reply in progress. The call's thread fills it, the screen reads it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.purpose = ""
        self.step_id: str | None = None
        self.version = 0
        self._now = now
        self._parts: list[str] = []
        self._calls: list[tuple[str, list[str]]] = []
        self._kept = 0
        self._arrived = 0
        self._since = 0.0

    def add(self, purpose: str, step_id: str | None, text: str) -> None:
        """Append what has arrived."""
        self.purpose, self.step_id = purpose, step_id
        self._append(self._parts, text)

    def add_call(self, tool_name: str, step_id: str | None, text: str) -> None:
        """Append a piece of a tool call's arguments; an empty piece starts the call."""
        self.step_id = step_id
        if not text:
            self._calls.append((tool_name, []))
        self._append(next(parts for name, parts in reversed(self._calls) if name == tool_name), text)

    def _append(self, parts: list[str], text: str) -> None:
        if not self._arrived:
            self._since = self._now()
        self._arrived += len(text)
        if self._kept < STREAM_LIMIT:
            parts.append(text)
            self._kept += len(text)
            self.version += 1

    def clear(self) -> None:
        """Clear the reply: the call has ended, or another one starts."""
        if self._arrived or self._calls:
            self._parts, self._calls = [], []
            self._kept = self._arrived = 0
            self.version += 1

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second, at the usual four characters per token; None until it can be measured."""
        seconds = self._now() - self._since
        return self._arrived / CHARACTERS_PER_TOKEN / seconds if self._arrived and seconds >= MEASURED_SECONDS else None

    @property
    def text(self) -> str:
        """What has arrived so far."""
        return "".join(self._parts)

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The tool calls started so far: the tool's name, and the arguments' JSON so far."""
        return [(tool_name, "".join(parts)) for tool_name, parts in self._calls]
