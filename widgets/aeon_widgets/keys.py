"""Keys: their labels, the current key of an action, and which of them a question accepts."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.dom import DOMNode
from textual.events import Key
from textual.keys import format_key


def shown_key(key: str) -> str:
    """Return a key's label, as the footer shows it."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, format_key(last)])


def key_of(node: DOMNode, action: str, of: type[DOMNode] | None = None) -> str:
    """Return the label of an action's first key, which may be one that the person has chosen.

    `action` is the id of a binding of `of`, by default of the class of `node`.
    """
    bindings = (of or type(node))._merged_bindings or ()
    own = next(key for key, binding in bindings if binding.id == action)
    return shown_key(node.app._keymap.get(action, own).split(",")[0])


SILENCE_SECONDS = 0.5
"""How long a question must be on screen, and how long no key may follow a swallowed one, before it is answered."""
REPEAT_SECONDS = 1.0
"""The longest delay before terminals repeat a key that is held down."""
TOO_SOON = "too soon · wait a moment, then try again"
"""The notice about a key that a KeyGuard ignored."""


class KeyGuard:
    """Swallows keys that were meant for something else: those in the first half second of a question, and then all
    until half a second passes without a key.

    A key held down since the previous question was answered does not answer the next one either. Harmless keys (those
    that scroll, leave, or only type text) are never swallowed. Times are seconds of `clock`, the one that Textual's
    events use. If SILENCE_SECONDS is 0, every key is admitted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at = self._swallowed_at = float("-inf")
        self._held = ""
        self._last_key, self._last_at = "", float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether a decision is accepted now."""
        now = self._clock()
        return self._is_shown(now) and self._is_silent(now)

    def arm(self) -> None:
        """Close for half a second, because the question has just come on screen."""
        self._asked_at, self._held = self._clock(), self._last_key

    def admits(self, key: str, at: float, *, harmless: bool = False) -> bool:
        """Return whether a key pressed at the time `at` is admitted; otherwise it is swallowed."""
        is_repeat = key == self._held and at - self._last_at < REPEAT_SECONDS
        self._held, self._last_key, self._last_at = "", key, at
        if not SILENCE_SECONDS:
            return True
        if self._is_shown(at) and self._is_silent(at) and not is_repeat:
            return True
        if not harmless or not self._is_silent(at):
            self.swallow(at)
        return harmless

    def swallow(self, at: float) -> None:
        """Close until half a second passes without a key, because an input at the time `at` was ignored."""
        self._swallowed_at = max(self._swallowed_at, at)

    def _is_shown(self, at: float) -> bool:
        """Return whether the question was on screen long enough by then."""
        return at - self._asked_at >= SILENCE_SECONDS

    def _is_silent(self, at: float) -> bool:
        """Return whether half a second passed without a key by then, after a swallowed one."""
        return at - self._swallowed_at >= SILENCE_SECONDS


def key_after_escape(event: Key) -> str:
    """Return the key pressed right after Escape, which terminals deliver as one event; empty for any other event."""
    return event.key.removeprefix("alt+") if event.key.startswith("alt+") and event.is_printable else ""
