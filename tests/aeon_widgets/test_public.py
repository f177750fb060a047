"""What a stranger imports, and the example that tells how."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

import aeon_widgets
from aeon_widgets.plan_tree import PlanTree
from tools.widget_demos.demos import RECORDING


def test_every_public_name_exists() -> None:
    assert all(getattr(aeon_widgets, name) is not None for name in aeon_widgets.__all__)
    assert dir(aeon_widgets) == aeon_widgets.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'aeon_widgets' has no attribute 'Plan'"):
        _ = aeon_widgets.Plan


async def test_the_example_shows_the_plan_of_a_journal() -> None:
    lines = (aeon_widgets.__doc__ or "").split("\n")
    code = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ") or not line))
    body, _, last = code.rstrip().rpartition("\n")
    assert last == 'Plan(Path("20261120-093000-a1b2c3.jsonl")).run()'
    names: dict[str, Any] = {"__name__": "example"}
    exec(body, names)
    app = names["Plan"](RECORDING)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.query_one(PlanTree).pane_title == "Plan 9/9 done"
