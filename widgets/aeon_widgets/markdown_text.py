"""A Markdown text as blocks of plain lines: headings, lists, code and tables are told apart, no link is ever followed.

No word of the text is left out or drawn as anything else: a person decides on what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len

from aeon_widgets.text_view import Block

MAX_COLUMN = 60
"""Cells up to which a table's column is drawn to one width."""
_HEADING = re.compile(r"^(#{1,6})[ \t]+\S")
_BULLET = re.compile(r"^([ \t]*)[-*+]([ \t]+)")
_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_RULE = re.compile(r"^[ \t]*([-*_])([ \t]*\1){2,}[ \t]*$")
_DIVIDER = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_LONGEST_TABLE = 500


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield style and text of each line of a Markdown text."""
    fence = ""
    table: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        is_row = not fence and line.lstrip().startswith("|") and len(table) < _LONGEST_TABLE
        if table and not is_row:
            yield from _table(table)
            table = []
        if is_row:
            table.append(line)
        elif found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
            yield "muted", line
        elif fence:
            yield "accent", f"  {line}"
        else:
            yield _line(line)
    yield from _table(table)


def _line(line: str) -> Block:
    if found := _HEADING.match(line):
        return ("bold accent" if len(found[1]) <= 2 else "bold"), line
    if line.lstrip().startswith(">"):
        return "muted", line
    if _RULE.match(line):
        return "muted", line
    return "", _BULLET.sub(r"\1•\2", line)


def _table(rows: list[str]) -> Iterator[Block]:
    """Yield a table's rows with its columns under each other."""
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
    widths: list[int] = []
    for row, line in zip(cells, rows, strict=True):
        if not _DIVIDER.match(line):
            for place, cell in enumerate(row):
                if place == len(widths):
                    widths.append(0)
                widths[place] = min(MAX_COLUMN, max(widths[place], cell_len(cell)))
    for number, (row, line) in enumerate(zip(cells, rows, strict=True)):
        if _DIVIDER.match(line):
            yield "muted", "─┼─".join("─" * width for width in widths)
        else:
            shown = " │ ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False))
            yield "bold" if number == 0 else "", shown.rstrip()
