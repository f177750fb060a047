"""The field for one line of text."""

from __future__ import annotations

from textual import events
from textual.widgets import Input


class LineInput(Input):
    """An Input that takes all of a pasted text: lines are joined with spaces, where Textual keeps only the first."""

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        lines = (line.strip() for line in event.text.splitlines())
        self.replace(" ".join(filter(None, lines)), *sorted(self.selection))
