"""How many broken plans and calls come out as they were meant, and what that costs (core SC-003)."""

from __future__ import annotations

import pytest

from tests.aeon_core.supervisor.score import score_calls, score_inventions, score_plans
from tests.sampling import sample


@pytest.mark.parametrize("seed", sample([15, 16], 1))
def test_a_perfect_repair_model_restores_broken_plans(seed: int) -> None:
    score = score_plans(504, seed)
    assert score.correct >= 0.97, score.wrong
    assert score.calls <= 0.32


@pytest.mark.exhaustive
def test_a_perfect_repair_model_restores_broken_calls() -> None:
    scores = score_calls()
    assert scores["missing"].correct >= 0.97
    for kind, score in scores.items():
        assert score.correct >= 0.95, (kind, score.wrong[:3])


@pytest.mark.exhaustive
def test_no_value_is_replaced_by_another() -> None:
    tried, invented = score_inventions(1500)
    assert tried >= 150
    assert invented == []
