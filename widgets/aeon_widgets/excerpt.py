"""A part of a text, cut so that the match is visible and highlighted."""

from __future__ import annotations

import re

from rich.cells import cell_len

from aeon_widgets.text import fit, one_line
from aeon_widgets.virtual_list import Piece

_CUT_WORD = re.compile(r"^…\S*\s+")
_BEFORE = 0.3
"""The share of the width for the text before the match."""


def excerpt(text: str, wanted: str, width: int) -> list[Piece]:
    """Return the text on one line of at most `width` cells, with the first place of `wanted` in it marked.

    Upper and lower case are alike. Where the text does not hold it, it is shown from its beginning.
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
