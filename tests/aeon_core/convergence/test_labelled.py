"""Agreement with the labelled outcomes: the floors are what was reached, on the tuned part and on the unseen one."""

from __future__ import annotations

import pytest

from tests.aeon_core.convergence.scoring import Collection, Part, measure, outcomes


def test_the_set_is_large_broad_and_balanced() -> None:
    found = outcomes()
    assert len(found) >= 110
    assert len({outcome.domain for outcome in found}) >= 6
    assert len({outcome.name for outcome in found}) == len(found)
    assert 0.3 <= sum(outcome.converged for outcome in found) / len(found) <= 0.5
    assert {flag for outcome in found for flag in outcome.flags} == {"plan", "step", "answer", "memory"}
    assert len(outcomes("held out")) >= 50
    assert len(outcomes("tune")) >= 50


def test_the_later_set_is_as_balanced() -> None:
    found = outcomes(collection="more")
    assert len(found) >= 110
    assert len({outcome.domain for outcome in found}) >= 7
    assert 0.3 <= sum(outcome.converged for outcome in found) / len(found) <= 0.5
    assert min(len(outcomes("held out", "more")), len(outcomes("tune", "more"))) >= 50


@pytest.mark.parametrize(
    ("collection", "part", "status", "codes", "flags", "detected"),
    [
        ("first", "tune", 1.0, 1.0, 1.0, 1.0),
        ("first", "held out", 0.93, 0.92, 0.91, 0.9),
        ("more", "tune", 0.96, 0.94, 0.98, 0.95),
        ("more", "held out", 0.87, 0.84, 0.87, 0.82),
        ("drill", None, 0.95, 0.95, 1.0, 1.0),
    ],
    ids=["first-tune", "first-held-out", "more-tune", "more-held-out", "drill"],
)
def test_the_engine_agrees_with_the_labels(
    collection: Collection, part: Part | None, status: float, codes: float, flags: float, detected: float
) -> None:
    found = measure(part, collection)
    told = "\n".join(found.differences)
    assert found.status / found.total >= status, told
    assert found.codes / found.total >= codes, told
    assert found.flags / found.total >= flags, told
    assert found.detected / found.inconsistent >= detected, told
