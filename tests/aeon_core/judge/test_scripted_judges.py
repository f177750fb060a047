"""How far the engine agrees with the labelled outcomes, for judges that are scripted by the labels.

The exact checks may correct a judge, and must never make a right verdict wrong. No model is called: how good a model is
as a judge is for `aeon-tui calibrate` to say.
"""

from __future__ import annotations

import random

import pytest

from tests.aeon_core.judge.labelled import Outcome, accepts, literal, outcomes, perfect, rejects
from tests.aeon_core.validation.labelled.tools import registry

LANGUAGES = {"ar", "de", "en", "es", "fr", "hi", "ja"}
SEEDS = range(5)


def test_the_outcomes_are_many_and_in_seven_languages() -> None:
    assert len(outcomes()) >= 400
    assert {outcome.language for outcome in outcomes()} == LANGUAGES
    assert sum(outcome.ran for outcome in outcomes()) >= 390


def test_with_a_perfect_judge_every_outcome_is_as_labelled() -> None:
    wrong = [outcome.name for outcome in outcomes() if outcome.judged(perfect).converged != outcome.good]
    assert wrong == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", SEEDS)
def test_a_judge_that_errs_one_time_in_ten_is_never_made_worse(seed: int) -> None:
    ran = [outcome for outcome in outcomes() if outcome.ran]
    mistaken = set(random.Random(seed).sample([outcome.name for outcome in ran], len(ran) // 10))

    def right(outcome: Outcome) -> bool:
        says_good = outcome.good is (outcome.name not in mistaken)
        return outcome.judged(accepts if says_good else rejects).converged is outcome.good

    alone = 1 - len(mistaken) / len(ran)
    agreement = sum(map(right, ran)) / len(ran)
    assert agreement >= alone >= 0.9


def test_with_a_judge_that_finds_contradictions_alone_no_good_result_is_rejected() -> None:
    assert [o.name for o in outcomes() if o.good and not o.judged(literal).converged] == []
    caught = [o for o in outcomes() if o.flags and not o.judged(literal).converged]
    assert len(caught) == sum(bool(o.flags) for o in outcomes())


def test_outcomes_rejected_by_exact_checks_are_bad_with_a_reason() -> None:
    rejected = [(o, found) for o in outcomes() if not (found := o.judged(accepts)).converged]
    assert [outcome.name for outcome, _ in rejected if outcome.good] == []
    assert len(rejected) >= 29
    assert all(found.detected_issues for _, found in rejected)


def test_bad_answers_are_suspected_ten_times_as_often_as_good_ones() -> None:
    suspected = [o for o in outcomes() if o.judged(accepts).metadata["suspicions"]]
    good = sum(o.good for o in suspected)
    assert good <= 3
    assert len(suspected) - good >= 20


def test_registered_tools_of_a_plan_are_not_hallucinations() -> None:
    names = [tool.name for tool in registry()]
    for outcome in outcomes()[:5]:
        used = {step.tool for step in outcome.run["plan"].walk() if step.tool}
        known = Outcome("", "en", outcome.good, outcome.flags, {**outcome.run, "tools": [*names, *used]})
        assert "hallucinated_tool" not in known.judged(perfect).reason_codes
