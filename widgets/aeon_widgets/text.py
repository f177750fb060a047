"""Makes untrusted text safe to show: clipped, escaped, fitted to cells, wrapped, and never parsed as markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size

from aeon_core.escape import escape_blanks, escape_controls
from aeon_core.units import count

Piece = tuple[str, str]
"""Text that is safe to show, and the name of its style (empty for the pane's own)."""
Block = tuple[str, str]
"""Style name and untrusted text of any length. `markdown` and `json` are rendered as such."""
GAP: Block = ("", "")
MAX_SHOWN = 200_000
"""The most characters of one text that are shown; the journal has the rest."""

_TOKENS = re.compile(r"\s+|\d[\d.,]* m?s(?!\S)|\S+")
"""The tokens that a line is not broken within: words, and a time with its unit."""
_LEAD = re.compile(r"(?: *[○▶✔✖⊘◼□◐▸▾⏎•?⚠✎~·+…→│└] +)+|[a-z]+(?: [a-z]+)? {2,}| {2,}")
_TAB = " " * 4
_UNITS = ("bytes", "kB", "MB", "GB")


def block(text: str, limit: int = MAX_SHOWN) -> str:
    """Return the text safe to show on several lines, clipped to `limit` characters with a line that says so."""
    rest = len(text) - limit
    shown = escape_controls(text[:limit].replace("\r\n", "\n"), keep="\n\t").replace("\t", _TAB)
    return f"{shown}\n… {count(rest, 'more character')}, not shown here" if rest > 0 else shown


def one_line(text: str, limit: int = 1_000) -> str:
    """Return the first `limit` characters of a text as one line, with whitespace collapsed."""
    return escape_controls(" ".join(text[:limit].split()))


def exact(text: str, limit: int = 1_000) -> str:
    """Return the first `limit` characters of a command or path as one line that shows each of them as what it is."""
    return escape_controls(escape_blanks(text[:limit]))


def both_ends(text: str, limit: int = 600) -> str:
    """Return a message without the middle of what it quotes, so that it leaves room for the field that it is about."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"


def fit(text: str, width: int) -> str:
    """Return the text cut to `width` cells, with an ellipsis if it was longer."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def wrap(text: str, width: int) -> list[str]:
    """Return the text's lines, none wider than `width` cells, broken at whitespace if possible."""
    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= width and line.isascii():
            lines.append(line)
        else:
            _wrap_line(line, max(width, 2), lines)
    return lines


def wrap_hanging(text: str, width: int) -> list[str]:
    """Wrap as `wrap` does, but indent the lines after a leading sign, indent or label to the words after it."""
    lines: list[str] = []
    for line in text.split("\n"):
        hang = hang_of(line, width)
        if not hang or (len(line) <= width and line.isascii()):
            lines += wrap(line, width)
        else:
            first, *rest = wrap(line[hang:], width - hang)
            lines += [line[:hang] + first, *(" " * hang + each for each in rest)]
    return lines


def hang_of(line: str, width: int) -> int:
    """Return the cells of a line's leading sign, indent or label; 0 if it has none, or little room beside it."""
    lead = _LEAD.match(line)
    return lead.end() if lead is not None and lead.end() <= width // 3 else 0


def _wrap_line(line: str, width: int, lines: list[str]) -> None:
    current, used = "", 0
    for token in _TOKENS.findall(line):
        cells = cell_len(token)
        if used + cells <= width:
            current, used = current + token, used + cells
            continue
        if token.isspace():
            lines.append(current)
            current, used = "", 0
            continue
        if current.strip():
            lines.append(current.rstrip())
            current, used = "", 0
        if used + cells > width:
            *full, token = chop_cells(current + token, width)
            lines.extend(full)
            current, used = "", 0
            cells = cell_len(token)
        current, used = current + token, used + cells
    if current or not line:
        lines.append(current.rstrip() if current.strip() else current)


def joined(*parts: str, by: str = " · ") -> str:
    """Join the parts that are not empty."""
    return by.join(filter(None, parts))


def spaced(groups: Iterable[Iterable[Block]]) -> list[Block]:
    """Join groups of blocks with a gap between them, leaving out empty ones."""
    blocks: list[Block] = []
    for group in map(list, groups):
        blocks += [GAP, *group] if blocks and group else group
    return blocks


def pretty(value: Any, *, in_order: bool = False) -> str:
    """Return a value as indented JSON, or a note that it cannot be shown.

    With `in_order`, an object's keys are sorted.
    """
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=in_order)
    except (TypeError, ValueError, RecursionError) as error:
        return f"(cannot be shown: {type(error).__name__})"


def readable(output: dict[str, Any]) -> str:
    """Return a step's output for a person: its text if that is all there is, else JSON."""
    if len(output) == 1 and isinstance(output.get("text"), str):
        return str(output["text"])
    return pretty(output)


def size(number: int) -> str:
    """Return a number of bytes, such as `12 bytes` or `12.3 kB`."""
    amount, unit = float(number), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else count(number, "byte")


def duration(seconds: float) -> str:
    """Return seconds as `mm:ss`, or `h:mm:ss` from an hour on."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, second = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{second:02d}" if hours else f"{minutes:02d}:{second:02d}"
