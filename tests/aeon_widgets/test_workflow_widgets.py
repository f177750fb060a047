"""What a workflow's header draws: its cost against two marks."""

from __future__ import annotations

import pytest

from aeon_widgets.run_header import WorkflowFacts, cost_bar


@pytest.mark.parametrize(
    ("spent", "bar"),
    [
        (0.0, "░░░┊░░░░│"),
        (1.0, "██░┊░░░░│"),
        (2.6, "████░░░░│"),
        (5.0, "████████│"),
        (9.0, "████████│"),
    ],
)
def test_the_gauge_has_both_marks(spent: float, bar: str) -> None:
    assert cost_bar(WorkflowFacts(cost_usd=spent, warning_usd=2.0, ceiling_usd=5.0), 8) == bar


def test_without_a_ceiling_there_is_no_gauge() -> None:
    assert cost_bar(WorkflowFacts(cost_usd=1.0), 8) == ""
