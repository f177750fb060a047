"""The records that hold a text, one a line, and one of them opened with the text marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from typing_extensions import override

from aeon_core.journal.search import Match
from aeon_widgets.excerpt import excerpt
from aeon_widgets.text import one_line, pretty
from aeon_widgets.text_view import Block, TextView
from aeon_widgets.virtual_list import Piece, RowsView

_ENVELOPE = ("v", "seq", "ts", "run", "type")
_SHORT = 60
"""Characters of a value that stands beside its name."""
_SEQ_WIDTH, _TYPE_WIDTH = 9, 13


class MatchList(RowsView):
    """Matches in their order: seq, type, and the place with what stands around it."""

    HELP_TITLE = "Found"

    def __init__(self) -> None:
        super().__init__()
        self._matches: Sequence[Match] = ()
        self._wanted = ""

    @property
    def selected(self) -> Match | None:
        """The selected match."""
        return self._matches[self.cursor] if self.cursor < len(self._matches) else None

    def update_matches(self, matches: Sequence[Match], wanted: str, where_empty: str = "") -> None:
        """Show the matches there are by now; `where_empty` is said where there are none."""
        self._matches, self._wanted, self.where_empty = matches, wanted, (where_empty,)
        self.set_line_count(len(matches))
        self.cursor = min(self.cursor, max(0, len(matches) - 1))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        match = self._matches[index]
        seq = f"{match.seq:,}" if match.seq is not None else "damaged"
        head = f" {seq:>{_SEQ_WIDTH}} "
        kind = f"{one_line(match.type or '?', _TYPE_WIDTH):<{_TYPE_WIDTH}} "
        return [(head, "muted"), (kind, ""), *excerpt(match.excerpt, self._wanted, width - len(head) - len(kind) - 1)]


class RecordText(TextView):
    """One record, with the text that was looked for marked and in sight."""

    HELP_TITLE = "Record"

    def __init__(self) -> None:
        super().__init__()
        self._pattern: re.Pattern[str] | None = None

    def open(self, blocks: Sequence[Block], wanted: str) -> None:
        """Show a record from where the text first stands."""
        self._pattern = re.compile(re.escape(one_line(wanted)), re.IGNORECASE) if wanted.strip() else None
        self.start(blocks, follow=False)
        first = next((place for place, line in enumerate(self._lines) if self._is_marked(line.text)), 0)
        self.scroll_to(y=max(0, first - 2), animate=False, immediate=True, force=True)

    def _is_marked(self, line: str) -> bool:
        return self._pattern is not None and self._pattern.search(line) is not None

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        style, line = self._lines[index][:2]
        at = 0
        for found in self._pattern.finditer(line) if self._pattern is not None else ():
            yield line[at : found.start()], style
            yield found.group(), "accent bold"
            at = found.end()
        yield line[at:], style


def record_blocks(record: dict[str, object]) -> list[Block]:
    """Return a record's fields: texts as they are, all else as JSON."""
    known = [one_line(str(record[name]), 80) for name in ("ts", "run") if name in record]
    blocks: list[Block] = [("muted", " · ".join(known))]
    for name, value in record.items():
        if name in _ENVELOPE:
            continue
        text = value if isinstance(value, str) else pretty(value)
        label = one_line(name, 80)
        blocks += (
            [("", f"{label}: {text}")] if len(text) <= _SHORT and "\n" not in text else [("accent", label), ("", text)]
        )
    return blocks
