"""The reply that is being written, as what it becomes: read at most once a frame, whatever comes in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeon_core.journal.view.draft import STRUCTURED, Draft, read_draft
from aeon_core.journal.view.model import RunView
from aeon_widgets.call_rows import RowKey
from aeon_widgets.draft_text import draft_blocks
from aeon_widgets.text_view import Block

if TYPE_CHECKING:
    from aeon_tui.sessions.runner import Stream


class ReplyStream:
    """What has arrived of a reply; of a run that another process writes nothing ever does."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream
        self._version = 0
        self._text = ""
        self.draft: Draft | None = None
        """What a structured reply holds so far; None where none is written or nothing of it can be read."""

    @property
    def is_new(self) -> bool:
        """Whether something has come since it was read."""
        return self._stream is not None and self._stream.version != self._version

    @property
    def tokens_per_second(self) -> float | None:
        """How fast it comes; None where that is not known."""
        return self._stream.tokens_per_second if self._stream is not None else None

    def read(self) -> None:
        """Take in what has come. A part that cannot be read leaves what was read before."""
        if self._stream is None:
            return
        self._version = self._stream.version
        text, before = self._stream.text, self._text
        self._text = text
        last = self.draft if text.startswith(before) and before else None
        structured = text and self._stream.purpose in STRUCTURED
        self.draft = (read_draft(self._stream.purpose, text) or last) if structured else None

    def blocks(self, key: RowKey | None, view: RunView) -> list[Block]:
        """Return what has arrived for the step or the calls of a row; nothing where it is for others."""
        stream = self._stream
        if stream is None or key is None or not self._text:
            return []
        if stream.step_id != (key.name if key.kind == "step" else None):
            return []
        if stream.purpose in STRUCTURED:
            return draft_blocks(stream.purpose, self.draft, view.requirements or [view.task])
        return [("", f"{self._text}▌")]
