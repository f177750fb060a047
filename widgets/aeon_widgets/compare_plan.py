"""What became of two plans, step by step, as rows with a side each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from aeon_core.journal.view.model import StepView
from aeon_widgets.compare_steps import StepPair
from aeon_widgets.compare_text import CompareRow, line_row, text_rows
from aeon_widgets.icons import STATUS_ICONS
from aeon_widgets.text import block, one_line, pretty, readable

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
