"""Agreement with the labelled outcomes: the floors are what was reached, on the tuned part and on the unseen one."""

from __future__ import annotations

import pytest

from tests.aeon_core.convergence.scoring import Part, measure, outcomes


def test_the_set_is_large_broad_and_balanced() -> None:
    found = outcomes()
    assert len(found) >= 110
    assert len({outcome.domain for outcome in found}) >= 6
    assert len({outcome.name for outcome in found}) == len(found)
    assert 0.3 <= sum(outcome.converged for outcome in found) / len(found) <= 0.5
    assert {flag for outcome in found for flag in outcome.flags} == {"plan", "step", "answer", "memory"}
    assert len(outcomes("held out")) >= 50
    assert len(outcomes("tune")) >= 50


@pytest.mark.parametrize(
    ("part", "status", "codes", "flags"),
    [("tune", 1.0, 1.0, 1.0), ("held out", 0.92, 0.91, 0.88)],
    ids=["tune", "held-out"],
)
def test_the_engine_agrees_with_the_labels(part: Part, status: float, codes: float, flags: float) -> None:
    found = measure(part)
    told = "\n".join(found.differences)
    assert found.status / found.total >= status, told
    assert found.codes / found.total >= codes, told
    assert found.flags / found.total >= flags, told
