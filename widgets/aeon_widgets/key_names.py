"""Keys as labelled on a keyboard, and an action's current key."""

from __future__ import annotations

from textual.dom import DOMNode
from textual.keys import format_key

_SHOWN = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "question_mark": "?",
    "escape": "esc",
    "pagedown": "page down",
    "pageup": "page up",
    "enter": "enter",
    "delete": "del",
    "backspace": "backspace",
}


def shown_key(key: str) -> str:
    """Return a key as labelled on a keyboard."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, _SHOWN.get(last) or format_key(last)])


def key_of(node: DOMNode, action: str, of: type[DOMNode] | None = None) -> str:
    """Return the first key that an action has now, as it is shown: the person's own where they gave it one.

    `action` is the id of a binding of `of`: of `node` itself where nothing else is named.
    """
    bindings = (of or type(node))._merged_bindings or ()
    own = next(key for key, binding in bindings if binding.id == action)
    return shown_key(node.app._keymap.get(action, own).split(",")[0])
