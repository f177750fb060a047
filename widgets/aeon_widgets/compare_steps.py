"""Two texts, and the steps of two plans, side by side: what corresponds, how it differs, and the rows that show it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from aeon_core.journal.view.model import StepView
from aeon_widgets.icons import STATUS_ICONS
from aeon_widgets.text import block, one_line, pretty, readable

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


ALIKE = 0.5
"""Two steps may correspond from this share of common words; 1 means that all words are the same."""
COMMON = 50
"""A word that more steps have on either side says nothing about which of them correspond."""
DEFINED = ("description", "tool", "agent", "arguments")
"""What a plan says of a step, in display order."""
BECAME = ("status", "mode", "output", "errors")
"""What became of a step."""
_WORD = re.compile(r"\w+")
_READ = 2_000
"""Characters of a description by which steps are distinguished."""
_OWN_TOOL = 2
"""The tool counts as much as so many words."""


@dataclass(frozen=True)
class StepPair:
    """A step of each of two plans, or of one of them alone, and the fields in which they differ."""

    left: StepView | None
    right: StepView | None
    changed: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether there is anything to tell: a field that differs, or a step that the other plan lacks."""
        return self.left is None or self.right is None or bool(self.changed)


def pair_steps(left: Mapping[str, StepView], right: Mapping[str, StepView], *, outputs: bool = True) -> list[StepPair]:
    """Return the steps of two plans in the order of the plans, each with its counterpart.

    These have the same id and are alike; else they are alike enough; else they have the same id. Exchanging the plans
    exchanges the sides of the pairs and nothing else, but for the order. Without `outputs` only what a view of a
    journal's end knows for certain is compared: the plan, and statuses.
    """
    partner = _partners(list(left.values()), list(right.values()))
    fields = (*DEFINED, *BECAME) if outputs else (*DEFINED, "status")
    return [_pair(*sides, fields) for sides in _in_order(left, right, partner)]


def _pair(left: StepView | None, right: StepView | None, fields: Iterable[str]) -> StepPair:
    if left is None or right is None:
        return StepPair(left, right)
    return StepPair(left, right, tuple(name for name in fields if _differs(name, left, right)))


def _differs(name: str, left: StepView, right: StepView) -> bool:
    one, other = getattr(left, name), getattr(right, name)
    # A fork does not know how the steps before it were done; that a step was not done its status says.
    return not equal(one, other) and (name != "mode" or None not in (one, other))


def equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are the same, however deep they are: true is not 1."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif one != other or isinstance(one, bool) is not isinstance(other, bool):
            return False
    return True


def _partners(left: Sequence[StepView], right: Sequence[StepView]) -> dict[str, str]:
    """Return the id of the right counterpart of each left step."""
    partner: dict[str, str] = {}
    there = {step.step_id: step for step in right}
    for step in left:
        if (other := there.get(step.step_id)) is not None and likeness(step, other) >= ALIKE:
            partner[step.step_id] = other.step_id
    _add_alike(partner, left, right)
    taken = set(partner.values())
    for step in left:
        if step.step_id not in partner and step.step_id in there and step.step_id not in taken:
            partner[step.step_id] = step.step_id
    return partner


def _add_alike(partner: dict[str, str], left: Sequence[StepView], right: Sequence[StepView]) -> None:
    """Pair the steps that are left and alike, the most alike first, then the nearest ones."""
    taken = set(partner.values())
    free = [(place, step) for place, step in enumerate(left) if step.step_id not in partner]
    others = [(place, step) for place, step in enumerate(right) if step.step_id not in taken]
    found: list[tuple[float, int, int, str, str]] = []
    for (place, step), (there, other) in _candidates(free, others):
        if (how := likeness(step, other)) >= ALIKE:
            found.append((-how, abs(place - there), place + there, step.step_id, other.step_id))
    for _, _, _, step_id, other_id in sorted(found, key=lambda each: each[:3]):
        if step_id not in partner and other_id not in taken:
            partner[step_id] = other_id
            taken.add(other_id)


_Placed = tuple[int, StepView]


def _candidates(left: Sequence[_Placed], right: Sequence[_Placed]) -> Iterable[tuple[_Placed, _Placed]]:
    """Yield the pairs that have a telling word in common, so that long plans are not compared step by step."""
    places: dict[str, list[int]] = defaultdict(list)
    for index, (_, step) in enumerate(right):
        for word in words_of(step):
            places[word].append(index)
    spread = Counter(word for _, step in left for word in words_of(step))
    for placed in left:
        telling = (word for word in words_of(placed[1]) if len(places.get(word, ())) <= COMMON >= spread[word])
        for index in sorted({index for word in telling for index in places.get(word, ())}):
            yield placed, right[index]


def likeness(one: StepView, other: StepView) -> float:
    """Return how alike two steps are, 0…1: the share of their words, the tool among them, that both have."""
    words, others = words_of(one), words_of(other)
    total = sum(words.values()) + sum(others.values())
    return 2 * sum((words & others).values()) / total if total else 1.0


def words_of(step: StepView) -> Counter[str]:
    """Return the words that a step's description begins with, and its tool."""
    words = Counter(_WORD.findall(step.description[:_READ].casefold()))
    if step.tool is not None:
        words[f"tool:{step.tool}"] = _OWN_TOOL
    return words


def _in_order(
    left: Mapping[str, StepView], right: Mapping[str, StepView], partner: Mapping[str, str]
) -> Iterable[tuple[StepView | None, StepView | None]]:
    """Yield the sides of each pair in the right plan's order; steps of the left alone follow the one before them."""
    of_right = {other: step_id for step_id, other in partner.items()}
    following: dict[str | None, list[StepView]] = defaultdict(list)
    before: str | None = None
    for step in left.values():
        if step.step_id in partner:
            before = step.step_id
        else:
            following[before].append(step)
    yield from ((step, None) for step in following[None])
    for step in right.values():
        mate = of_right.get(step.step_id)
        yield (left[mate] if mate is not None else None), step
        yield from ((alone, None) for alone in following[mate] if mate is not None)


_INDENT = "  "
_LABEL = 11
_SHORT = 60
"""The longest value that fits on the line of its name, in characters."""
CONTEXT = 1
"""Equal lines shown around those that differ."""
MOST_ROWS = 60
"""Rows of one value that are shown."""
_NAMES = {"mode": "done by"}


def plan_rows(pairs: Sequence[StepPair]) -> Iterator[CompareRow]:
    """Yield each step of two plans next to its counterpart, and below it what differs."""
    for pair in pairs:
        yield from _step(pair)


def _step(pair: StepPair) -> Iterator[CompareRow]:
    left, right = pair.left, pair.right
    if left is None or right is None:
        yield _alone(left, right)
        return
    head = replace(line_row(_head(left), _head(right)), hang=_hang(left, right))
    if not pair.changed:
        yield replace(head, mark=" ")
        return
    yield replace(head, mark="≠", begins=True)
    indent = _INDENT * (1 + max(left.depth, right.depth)) + _INDENT
    for name in pair.changed:
        if name != "description":
            yield from _field(name, getattr(left, name), getattr(right, name), indent)


def _alone(left: StepView | None, right: StepView | None) -> CompareRow:
    if left is not None:
        return CompareRow("A", _head(left), "", hang=_hang(left), begins=True)
    return CompareRow("B", "", _head(right) if right is not None else "", hang=_hang(right), begins=True)


def _hang(*steps: StepView | None) -> int:
    """Return the column of a step's id: its later lines begin there."""
    return len(_INDENT) * (1 + max((step.depth for step in steps if step is not None), default=0))


def _head(step: StepView) -> str:
    icon = STATUS_ICONS.get(step.status, "?")
    return f"{_INDENT * step.depth}{icon} {one_line(step.step_id, 40)} {one_line(step.description)}"


def _field(name: str, left: Any, right: Any, indent: str) -> Iterator[CompareRow]:
    label = f"{indent}{_NAMES.get(name, name):<{_LABEL}}"
    one, other = _text(name, left), _text(name, right)
    if all(len(text) <= _SHORT and "\n" not in text for text in (one, other)):
        row = line_row(one, other, label)
        yield replace(row, mark="≠")
        return
    yield CompareRow("≠", label.rstrip(), label.rstrip())
    rows = _shortened([replace(row, begins=False) for row in text_rows(one, other, indent + _INDENT)], indent)
    if not any(row.differs for row in rows):
        told = f"{indent}{_INDENT}differs in details not shown here"
        rows = [CompareRow("≠", told, told)]
    yield from rows


def _text(name: str, value: Any) -> str:
    if value is None or value == []:
        return "–"
    if name == "output":
        return block(readable(value))
    if name == "errors":
        return block("\n".join(value))
    if name == "status":
        return f"{STATUS_ICONS.get(value, '?')} {value}"
    return block(value if isinstance(value, str) else pretty(value))


def _shortened(rows: Sequence[CompareRow], indent: str) -> list[CompareRow]:
    """Return the rows that differ with those next to them, and say what is left out."""
    near = {place + by for place, row in enumerate(rows) if row.differs for by in range(-CONTEXT, CONTEXT + 1)}
    shown: list[CompareRow] = []
    left_out = 0
    for place, row in enumerate(rows):
        if place in near:
            shown += _same_lines(left_out, indent)
            shown.append(row)
            left_out = 0
        else:
            left_out += 1
    shown += _same_lines(left_out, indent)
    if len(shown) <= MOST_ROWS:
        return shown
    told = f"{indent}{_INDENT}… {len(shown) - MOST_ROWS:,} more lines: open the run to see them"
    return [*shown[:MOST_ROWS], CompareRow("≠", told, told)]


def _same_lines(number: int, indent: str) -> list[CompareRow]:
    if not number:
        return []
    text = f"{indent}{_INDENT}⋯ {number:,} {'line' if number == 1 else 'lines'} the same"
    return [CompareRow(" ", text, text)]
