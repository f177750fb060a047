"""Additional criteria: computed, judged by a model, or not met (adaptive FR-022)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon_core.convergence.additional import computed
from aeon_core.convergence.criteria import ConvergenceCriteria
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.errors import LLMError, RunAborted, UsageError
from aeon_core.llm.base import LLMAdapter
from aeon_core.plan.models import Plan
from tests.fakes import ScriptedModel

PLAN = Plan(
    goal="Describe the bell.", steps=[{"step_id": "s1", "description": "Describe the bell", "status": "complete"}]
)
RUN: dict[str, Any] = {
    "goal": "Describe the bell.",
    "plan": PLAN,
    "results": {"s1": {"text": "The bell is bronze and hangs in the north tower."}},
    "answer": "The bell is bronze and hangs in the north tower.",
}
POLITE = {"name": "polite", "description": "the tone is polite"}
SOURCED = {"name": "sourced", "description": "every claim has a source"}


def engine(*criteria: dict[str, str], judge: LLMAdapter | None = None) -> ConvergenceEngine:
    return ConvergenceEngine(ConvergenceCriteria(additional=list(criteria)), judge)


def issue(artifact: str, description: str = "not so") -> dict[str, Any]:
    return {
        "issue_id": "c1",
        "type": "consistency",
        "severity": "high",
        "description": description,
        "location": {"artifact": artifact, "step_id": None},
        "proposed_repair": "r",
    }


def test_without_a_judge_a_criterion_in_words_is_not_met() -> None:
    found = engine(POLITE).assess(**RUN)
    assert found.reason_codes == ["polite"]
    assert found.detected_issues == ["criterion 'polite' is not met: no model is there to judge it"]
    assert found.metadata["additional"] == {"polite": {"met": False, "by": "nobody"}}


def test_a_judge_without_an_issue_meets_them_all_and_is_asked_once() -> None:
    judge = ScriptedModel(judge={"issues": []})
    found = engine(POLITE, SOURCED, judge=judge).assess(**RUN)
    assert found.reason_codes == ["complete", "coherent", "consistent", "polite", "sourced"]
    [request] = judge.requests
    assert request.system.startswith("Aeon judge\n")
    assert request.schema is not None
    for told in ("<criteria>", "every claim has a source", "<answer>\nThe bell is bronze", "<results>", "<goal>"):
        assert told in request.prompt


def test_an_issue_names_the_criterion_that_is_not_met() -> None:
    judge = ScriptedModel(judge={"issues": [issue("sourced", "no source for the tower")]})
    found = engine(POLITE, SOURCED, judge=judge).assess(**RUN)
    assert not found.converged
    assert found.reason_codes == ["sourced"]
    assert found.detected_issues == ["criterion 'sourced' is not met: no source for the tower"]


def test_an_issue_that_names_no_criterion_is_held_against_all() -> None:
    judge = ScriptedModel(judge={"issues": [issue("answer")]})
    assert engine(POLITE, SOURCED, judge=judge).assess(**RUN).reason_codes == ["polite", "sourced"]


@pytest.mark.parametrize(
    "reply",
    ["certainly!", "[]", '{"issues": 3}', '{"verdict": "met"}', LLMError("overloaded")],
    ids=["prose", "list", "number", "other-key", "error"],
)
def test_a_judge_that_gives_nothing_usable_meets_nothing(reply: Any) -> None:
    found = engine(POLITE, judge=ScriptedModel(judge=reply)).assess(**RUN)
    assert found.reason_codes == ["polite"]
    assert found.metadata["additional"]["polite"]["by"] == "nobody"
    assert "no usable reply" in found.detected_issues[0]


def test_what_ends_a_run_is_not_absorbed() -> None:
    with pytest.raises(RunAborted):
        engine(POLITE, judge=ScriptedModel(judge=RunAborted("by a person"))).assess(**RUN)


def test_a_prompt_of_ones_own_that_cannot_be_read_is_said_before_the_call(tmp_path: Path) -> None:
    (tmp_path / "criteria.md").write_bytes(b"\xff\xfe")
    judge = ScriptedModel(judge={"issues": []})
    engine = ConvergenceEngine(ConvergenceCriteria(additional=[POLITE]), judge, prompts_dir=tmp_path)
    with pytest.raises(UsageError, match=r"criteria\.md' is not UTF-8 text"):
        engine.assess(**RUN)
    assert judge.requests == []


def test_a_fenced_reply_is_read() -> None:
    judge = ScriptedModel(judge='```json\n{"issues": []}\n```')
    assert engine(POLITE, judge=judge).assess(**RUN).converged


def test_a_judge_cannot_make_a_failed_run_converge() -> None:
    plan = PLAN.model_copy(deep=True, update={"steps": [PLAN.steps[0].model_copy(update={"status": "failed"})]})
    found = engine(POLITE, judge=ScriptedModel(judge={"issues": []})).assess(**(RUN | {"plan": plan}))
    assert "failed_step" in found.reason_codes


def test_computed_criteria_ask_no_model() -> None:
    judge = ScriptedModel()
    short = {"name": "short", "description": "at most 5 words"}
    found = engine(short, {"name": "tower", "description": 'mentions "tower"'}, judge=judge).assess(**RUN)
    assert found.reason_codes == ["short"]
    assert judge.requests == []
    assert found.detected_issues == ["criterion 'short' is not met: the answer has 10 words"]


@pytest.mark.parametrize(
    ("description", "met"),
    [
        ('The answer mentions "EUR".', True),
        ('does not contain "secret"', True),
        ('must not contain "eur"', False),
        ("The answer has at least 2 lines", True),
        ("The answer has fewer than 2 lines", False),
        ("The answer has fewer than 50 words.", True),
        ("The answer has more  than 1 line", True),
        ("The answer has more than 2 lines", False),
        ("no more than 3 words", False),
        ("exactly 2 sentences", True),
        ('mentions "EUR" and explains why', None),
        ("is correct", None),
    ],
)
def test_what_can_be_computed_is(description: str, met: bool | None) -> None:
    verdict = computed(description, "It costs 5 EUR.\nDelivery is free.")
    assert (verdict.met if verdict else None) is met
