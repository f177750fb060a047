"""What a pane has under its cursor, or shows, as text of its own: to be copied, or opened in another program."""

from __future__ import annotations

from dataclasses import dataclass

from textual.dom import DOMNode


@dataclass(frozen=True)
class Item:
    """A text with what it is called, such as `the answer`, and the ending of a file that holds it."""

    name: str
    text: str
    suffix: str = ".txt"


def item_of(node: DOMNode | None) -> Item | None:
    """Return the item of the first of a node and its ancestors that has one; None where none has any text."""
    while node is not None:
        item = getattr(node, "item", None)
        if isinstance(item, Item) and item.text:
            return item
        node = node.parent
    return None
