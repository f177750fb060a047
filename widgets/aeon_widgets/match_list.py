"""Where a text occurs in a run, step by step, and a record with the text marked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from typing_extensions import override

from aeon_core.journal.values import ENVELOPE
from aeon_core.units import count
from aeon_widgets.text import Block, Piece, fit, one_line, pretty
from aeon_widgets.text_view import TextView
from aeon_widgets.virtual_list import RowsView

if TYPE_CHECKING:
    from aeon_core.journal.search import SearchHit

_CUT_WORD = re.compile(r"^…\S*\s+")
_BEFORE = 0.3
"""The share of the width that the text before the match may take."""


def excerpt(text: str, wanted: str, width: int) -> list[Piece]:
    """Return the text on one line of at most `width` cells, with the first occurrence of `wanted` marked.

    Case is ignored. A text that does not contain it is shown from its beginning.
    """
    line, sought = one_line(text), one_line(wanted)
    found = re.search(re.escape(sought), line, re.IGNORECASE) if sought else None
    if found is None:
        return [(fit(line, width), "muted")]
    before = _CUT_WORD.sub("…", line[: found.start()])
    room = max(int(width * _BEFORE), width - cell_len(line[found.start() :]))
    if cell_len(before) > room:
        while before and cell_len(before) >= room:
            before = before[1:]
        before = _CUT_WORD.sub("…", f"…{before}")
    marked = fit(found.group(), width - cell_len(before))
    rest = fit(line[found.end() :], width - cell_len(before) - cell_len(marked))
    return [(before, "muted"), (marked, "accent bold"), (rest, "muted")]


_SHORT = 60
"""The longest value that fits on the line of its name, in characters."""
_KIND_WIDTH = 15
_PARTS = {
    "llm.request": "prompt",
    "llm.response": "reply",
    "tool.tool_name": "tool",
    "run_started.task": "task",
    "run_started.config": "settings",
    "run_finished": "result",
    "run_finished.answer": "answer",
    "validation": "issue",
    "convergence": "verdict",
    "profile": "task profile",
    "pass": "end of pass",
    "cycle": "supervisor",
    "step.errors": "error",
}
"""The label of a part of a record, by `type.field` or `type`; parts not listed are named after these."""


_REPEATING = ("cycle.", "repair.")
"""Records that repeat the whole plan: equal matches in them share one row."""


class Heading(NamedTuple):
    """What the matches below it belong to: a step, a pass, or the run."""

    step_id: str | None
    pass_number: int | None


class MatchList(RowsView):
    """Matches under the step or pass that they belong to: what contains the text, and its context."""

    HELP_TITLE = "Found"

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""
        self._steps: Mapping[str, str] = {}
        self._groups: dict[Heading, list[SearchHit]] = {}
        self._times: Counter[tuple[str, ...] | Heading] = Counter()
        """The number of matches under each heading, and of those in each row."""
        self._rows: list[Heading | SearchHit] = []
        self._taken = 0

    @property
    def selected(self) -> SearchHit | Heading | None:
        """The selected match or heading."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def update_matches(
        self, matches: Sequence[SearchHit], wanted: str, where_empty: str = "", steps: Mapping[str, str] | None = None
    ) -> None:
        """Show the matches so far, adding new ones after those already shown; the selection stays on its row.

        `where_empty` is shown if there are none; `steps` maps each step's id to its description.
        """
        if wanted != self._wanted or len(matches) < self._taken:
            self._groups, self._times, self._taken = {}, Counter(), 0
        selected = self.selected if self._taken else None
        self._wanted, self._steps, self.where_empty = wanted, steps or {}, (where_empty,)
        for match in matches[self._taken :]:
            heading = Heading(match.step_id, match.pass_number if match.step_id is None else None)
            same = _same(match)
            group = self._groups.setdefault(heading, [])
            self._times[heading] += 1
            self._times[same] += 1
            if self._times[same] == 1 or not match.part.startswith(_REPEATING):
                group.append(match)
        self._taken = len(matches)
        self._rows = []
        for heading, group in self._groups.items():
            self._rows += [heading, *group]
        self.set_line_count(len(self._rows))
        # The first match until the person moves; the selected row is where it was, or further down.
        rows = range(self.cursor if selected is not None else 0, len(self._rows))
        self.cursor = next((at for at in rows if self._rows[at] is selected), min(1, len(self._rows)))

    def select_next(self, by: int) -> None:
        """Select the next match, or with -1 the previous one, skipping headings."""
        at = self.cursor + by
        while 0 <= at < len(self._rows) and isinstance(self._rows[at], Heading):
            at += by
        if 0 <= at < len(self._rows):
            self.move_to(at)

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        row = self._rows[index]
        if isinstance(row, Heading):
            return self._heading(row, width)
        kind = f"   {fit(one_line(part_words(row), 40), _KIND_WIDTH):<{_KIND_WIDTH}} "
        times = self._times[_same(row)] if row.part.startswith(_REPEATING) else 1
        more = f"  ×{times:,}" if times > 1 else ""
        return [(kind, ""), *excerpt(row.excerpt, self._wanted, width - len(kind) - len(more) - 1), (more, "muted")]

    def _heading(self, row: Heading, width: int) -> list[Piece]:
        number = f" · {count(self._times[row], 'match')}"
        if row.step_id is None:
            name = f" Pass {row.pass_number}" if row.pass_number else " The run"
        else:
            name = f" {one_line(row.step_id, 30)} {one_line(self._steps.get(row.step_id, ''), 200)}".rstrip()
        return [(fit(name, width - len(number) - 1), "accent bold"), (number, "muted")]


def _same(match: SearchHit) -> tuple[str, ...]:
    return (match.step_id or "", str(match.pass_number), match.part, match.excerpt)


def part_words(match: SearchHit) -> str:
    """Return the label of the part that a match is in, such as `output`, `prompt` or `tool result`."""
    kind, _, field = match.part.partition(".")
    if not kind:
        return match.type or "damaged line" if match.seq is not None else "damaged line"
    if match.part in _PARTS or kind in _PARTS:
        return _PARTS.get(match.part) or _PARTS[kind]
    words = {"step": field, "tool": f"tool {field}"}.get(kind, kind)
    return words.replace("_", " ")


class RecordText(TextView):
    """One record, scrolled to the searched text, which is marked."""

    HELP_TITLE = "Record"

    def __init__(self) -> None:
        super().__init__()
        self._pattern: re.Pattern[str] | None = None

    def open(self, blocks: Sequence[Block], wanted: str) -> None:
        """Show a record, scrolled to the first match."""
        self._pattern = re.compile(re.escape(one_line(wanted)), re.IGNORECASE) if wanted.strip() else None
        self.start(blocks, follow=False)
        found = (place for place, line in enumerate(self._lines) if self._pattern and self._pattern.search(line.text))
        self.scroll_to(y=max(0, next(found, 0) - 2), animate=False, immediate=True, force=True)

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
    """Return a record's fields: strings as they are, everything else as JSON."""
    known = [one_line(str(record[name]), 80) for name in ("ts", "run") if name in record]
    blocks: list[Block] = [("muted", " · ".join(known))]
    for name, value in record.items():
        if name in ENVELOPE:
            continue
        text = value if isinstance(value, str) else pretty(value)
        label = one_line(name, 80)
        blocks += (
            [("", f"{label}: {text}")] if len(text) <= _SHORT and "\n" not in text else [("accent", label), ("", text)]
        )
    return blocks
