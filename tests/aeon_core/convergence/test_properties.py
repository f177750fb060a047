"""What holds for every input (hypothesis)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aeon_core.convergence import REASON_CODES, ConvergenceAssessment, ConvergenceCriteria, ConvergenceEngine
from aeon_core.judge.judgement import FLAGS
from aeon_core.plan.models import Plan
from tests.fakes import ScriptedModel, judged

LAX = ConvergenceCriteria(completeness=0, coherence=0, consistency=[])

texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "The tank holds 40 litres.",
            "The tank does not leak.",
            "No errors were found; 3.5% remain by 2026-03-01, Friday 14:30.",
            "All steps completed successfully.",
            "I cannot tell.",
            "1. one\n2. two",
            "-1,234.5e300 and 12.345.678,9 and ٣",
        ]
    ),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.just(10**400))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
outputs = st.dictionaries(
    st.sampled_from(["result", "text", "status", "error", "ok", "leaks", "a_key"]), values, max_size=3
)
statuses = st.sampled_from(["pending", "running", "complete", "failed", "invalid"])


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 4))
    ids = [f"s{number}" for number in range(count)]
    words = st.text(min_size=1, max_size=30).filter(str.strip)
    steps = [
        {
            "step_id": step_id,
            "description": draw(st.one_of(words, st.just("Measure the tank"))),
            "status": draw(statuses),
            "depends_on": draw(st.one_of(st.none(), st.lists(st.sampled_from(ids), max_size=2))),
        }
        for step_id in ids
    ]
    return {
        "goal": draw(texts),
        "plan": Plan(goal=draw(words), steps=steps),
        "results": draw(st.dictionaries(st.sampled_from([*ids, "other"]), outputs, max_size=5)),
        "answer": draw(st.one_of(st.none(), texts)),
        "memory": draw(
            st.one_of(st.none(), st.dictionaries(st.sampled_from([*ids, "a_key", "k"]), values, max_size=3))
        ),
        "failures": draw(st.dictionaries(st.sampled_from(ids), st.lists(texts, min_size=1, max_size=2), max_size=2)),
    }


def assess(run: dict[str, Any], criteria: ConvergenceCriteria | None = None, met: str = "yes") -> ConvergenceAssessment:
    """Return the assessment with a judge that says the same of every requirement."""
    return ConvergenceEngine(criteria, ScriptedModel(judge=lambda request: judged(request, met=met))).assess(**run)


@given(runs(), st.sampled_from(["yes", "partly", "no"]))
def test_every_run_is_assessed_within_the_bounds(run: dict[str, Any], met: str) -> None:
    found = assess(run, met=met)
    assert 0 <= found.completeness_score <= 1
    assert 0 <= found.coherence_score <= 1
    assert set(found.reason_codes) <= set(REASON_CODES)
    assert found.converged == (found.reason_codes == ["complete", "coherent", "consistent"])
    assert set(found.consistency_status) == set(FLAGS)
    assert assess(run, met=met) == found
    assert not (found.converged and met == "no")
    assert not ConvergenceEngine(LAX).assess(**run).converged


@given(runs())
def test_a_failed_missing_or_pending_step_never_converges(run: dict[str, Any]) -> None:
    found = assess(run, LAX)
    steps = run["plan"].steps
    undone = [step for step in steps if step.status != "complete" or run["results"].get(step.step_id) is None]
    if undone or run["failures"]:
        assert not found.converged
        assert set(found.reason_codes) & {"missing_step", "failed_step"}


@given(runs(), st.floats(0, 1), st.floats(0, 1), st.lists(st.sampled_from(FLAGS), unique=True))
def test_stricter_criteria_never_make_a_run_converge(
    run: dict[str, Any], completeness: float, coherence: float, flags: list[Any]
) -> None:
    strict = ConvergenceCriteria(completeness=completeness, coherence=coherence, consistency=flags)
    if assess(run, strict).converged:
        assert assess(run, LAX).converged
        assert assess(run, strict.model_copy(update={"completeness": completeness / 2})).converged
        assert assess(run, strict.model_copy(update={"consistency": flags[1:]})).converged


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return [_turned(item) for item in value] if isinstance(value, list) else value


@given(runs())
def test_the_order_of_keys_changes_nothing(run: dict[str, Any]) -> None:
    turned = {key: _turned(value) if isinstance(value, dict) else value for key, value in run.items()}
    assert assess(turned) == assess(run)
