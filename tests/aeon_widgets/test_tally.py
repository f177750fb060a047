from __future__ import annotations

import pytest
from textual.content import Content

from aeon_widgets.tally import Tally


@pytest.mark.parametrize(
    ("tally", "wide", "narrow"),
    [
        (Tally(), "", ""),
        (Tally(2), "2 running", "2 running"),
        (Tally(2, 1), "2 running · 1 waits for you", "1 waits"),
        (Tally(3, 2), "3 running · 2 wait for you", "2 wait"),
        (Tally(0, 1), "1 waits for you", "1 waits"),
    ],
)
def test_waiting_runs_are_shown_even_in_little_room(tally: Tally, wide: str, narrow: str) -> None:
    assert [Content.assemble(*tally.parts(width)).plain for width in (72, 71)] == [wide, narrow]
