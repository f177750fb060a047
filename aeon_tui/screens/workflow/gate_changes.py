"""The files that changed before a gate, for its panel and its row: a heading each, and the diff in colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aeon_widgets.text_view import Block
from aeon_widgets.workflow_conversation import ConversationItem
from system2.changes import FileChange

_STYLES = {"+": "complete", "-": "failed", "@": "muted"}


def summary_blocks(text: str, style: str = "bold") -> Iterator[Block]:
    """Yield a gate's summary; what a person should look at stands out."""
    for line in text.split("\n"):
        yield ("high" if line.startswith("⚠") else style), line


def change_blocks(changes: Iterable[FileChange], artifact: str) -> Iterator[Block]:
    """Yield every diff with a heading; a new artifact is shown as a whole, so its diff is left out."""
    for change in changes:
        if change.diff and not (change.path == artifact and change.status == "created"):
            yield "muted", f"── {change.status} {change.path} ──"
            yield from diff_blocks(change.diff)
            yield "", ""


def diff_blocks(diff: str) -> Iterator[Block]:
    """Yield the lines of a unified diff without its two headings."""
    for line in diff.split("\n")[2:]:
        yield _STYLES.get(line[:1], ""), line


def detail_blocks(text: str) -> Iterator[Block]:
    """Yield what a question is about: a diff in colours, or a reason."""
    if text.startswith("--- "):
        yield from diff_blocks(text)
    else:
        yield "muted", text


def change_item(change: Mapping[str, Any]) -> ConversationItem:
    """Return a gate's changed file as its record has it; it opens to the diff."""
    known = FileChange(**change)
    icon, style = ("⚠", "high") if known.flag else ("✎", "text")
    return ConversationItem(icon, style, known.summary, tuple(diff_blocks(known.diff)))
