"""The difference of two texts, line by line and word by word, as rows with a side each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

Mark = Literal[" ", "A", "B", "≠", "#"]
"""Both sides are the same, only the left or the right one has it, both differ; `#`: it belongs to neither."""
Span = tuple[int, int]
"""Where a part of a text begins and ends."""
MOST_LINES = 4_000
"""Longer texts are compared line for line, each with the one at its place: finding what moved would take too long."""
MOST_CHARACTERS = 2_000
"""Of longer lines the words are not compared."""
LIKE = 0.4
"""Lines that have less in common differ as a whole."""
_WORDS = re.compile(r"\s+|\w+(?:[.,:]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class CompareRow:
    """One row of a comparison: its left and right side, and how they differ."""

    mark: Mark
    left: str = ""
    right: str = ""
    left_spans: tuple[Span, ...] = ()
    """The words of the left text that the right one does not have; empty where the lines differ as a whole."""
    right_spans: tuple[Span, ...] = ()
    left_style: str = ""
    right_style: str = ""
    hang: int = 0
    """Cells that the text's later lines are indented by, where it takes more than one."""
    begins: bool = False
    """Whether a difference begins here: keys lead from one to the next."""

    @property
    def differs(self) -> bool:
        """Whether the sides differ."""
        return self.mark in ("A", "B", "≠")

    @property
    def mirrored(self) -> CompareRow:
        """The row with its sides exchanged."""
        marks: dict[Mark, Mark] = {"A": "B", "B": "A"}
        return replace(
            self,
            mark=marks.get(self.mark, self.mark),
            left=self.right,
            right=self.left,
            left_spans=self.right_spans,
            right_spans=self.left_spans,
            left_style=self.right_style,
            right_style=self.left_style,
        )


def text_rows(left: str, right: str, indent: str = "") -> list[CompareRow]:
    """Return two texts line by line; lines that differ are paired as far as they are alike.

    Exchanging the texts exchanges the sides of every row. The first row of each stretch that differs `begins`.
    """
    if right < left:  # what the matcher finds depends on which text comes first
        return [row.mirrored for row in text_rows(right, left, indent)]
    before, after = left.split("\n") if left else [], right.split("\n") if right else []
    rows: list[CompareRow] = []
    for name, start, end, there, there_end in _blocks(before, after):
        made = list(_block_rows(before[start:end], after[there:there_end], indent, same=name == "equal"))
        rows += made if name == "equal" else begun(made)
    return rows


def begun(rows: Sequence[CompareRow]) -> list[CompareRow]:
    """Return the rows with a difference that begins at the first of them that differs."""
    first = next((place for place, row in enumerate(rows) if row.differs), None)
    return [_beginning(row) if place == first else row for place, row in enumerate(rows)]


def _beginning(row: CompareRow) -> CompareRow:
    return replace(row, begins=True)


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterable[tuple[str, int, int, int, int]]:
    if len(before) + len(after) <= MOST_LINES:
        return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return _place_by_place(before, after)


def _place_by_place(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    both = min(len(before), len(after))
    for place in range(both):
        yield "equal" if before[place] == after[place] else "replace", place, place + 1, place, place + 1
    if len(before) != len(after):
        yield "replace", both, len(before), both, len(after)


def _block_rows(before: Sequence[str], after: Sequence[str], indent: str, *, same: bool) -> Iterator[CompareRow]:
    for place in range(max(len(before), len(after))):
        left = before[place] if place < len(before) else None
        right = after[place] if place < len(after) else None
        if left is None:
            yield CompareRow("B", "", f"{indent}{right}", hang=len(indent))
        elif right is None:
            yield CompareRow("A", f"{indent}{left}", "", hang=len(indent))
        elif same:
            yield CompareRow(" ", f"{indent}{left}", f"{indent}{right}", hang=len(indent))
        else:
            yield line_row(left, right, indent)


def line_row(left: str, right: str, indent: str = "", style: str = "") -> CompareRow:
    """Return a line of each text beside each other, with the words that differ."""
    if right < left:
        return line_row(right, left, indent, style).mirrored
    spans, others = _word_spans(left, right, len(indent))
    mark: Mark = " " if left == right else "≠"
    return CompareRow(mark, f"{indent}{left}", f"{indent}{right}", spans, others, style, style, hang=len(indent))


def _word_spans(left: str, right: str, offset: int) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    if left == right or len(left) + len(right) > MOST_CHARACTERS:
        return (), ()
    before, after = _WORDS.findall(left), _WORDS.findall(right)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < LIKE:
        return (), ()
    found = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    starts, ends = _starts(before, offset), _starts(after, offset)
    return (
        tuple((starts[code[1]], starts[code[2]]) for code in found if code[1] < code[2]),
        tuple((ends[code[3]], ends[code[4]]) for code in found if code[3] < code[4]),
    )


def _starts(words: Sequence[str], offset: int) -> list[int]:
    starts = [offset]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts
