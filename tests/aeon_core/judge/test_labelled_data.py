"""The labelled plans and outcomes that ship inside `aeon_core`: their shape, balance, and faults where they say."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, get_args

from aeon_core.convergence import REASON_CODES
from aeon_core.entities import IssueType
from aeon_core.plan.models import Plan
from tests.aeon_core.validation.labelled.tools import registry
from tests.sampling import each

LABELLED = files("aeon_core") / "judge" / "labelled"
LANGUAGES = {"ar", "de", "en", "es", "fr", "hi", "ja"}

PLANS: list[dict[str, Any]] = [
    json.loads(line) for line in (LABELLED / "plans.jsonl").read_text(encoding="utf-8").splitlines()
]
FIELDS = ["id", "domain", "language", "label", "why", "codes", "flags", "requirements"]
FIELDS += ["goal", "plan", "results", "failures", "answer", "memory"]
OUTCOMES: list[dict[str, Any]] = [
    json.loads(line)
    for path in (LABELLED / "outcomes").iterdir()
    for line in path.read_text(encoding="utf-8").splitlines()
]


def test_every_plan_has_its_fields_in_order_and_its_labels_at_its_steps() -> None:
    for labelled in PLANS:
        assert list(labelled) == ["id", "domain", "split", "language", "labels", "plan"]
        plan = Plan.model_validate(labelled["plan"])
        for label in labelled["labels"]:
            assert list(label) == ["type", "steps", "exact"]
            assert label["type"] in get_args(IssueType)
            assert isinstance(label["exact"], bool)
            assert label["steps"]
            assert all(plan.find(step_id) is not None for step_id in label["steps"]), labelled["id"]


def test_no_plan_occurs_twice() -> None:
    assert len({labelled["id"] for labelled in PLANS}) == len(PLANS)
    assert len({json.dumps(labelled["plan"], sort_keys=True) for labelled in PLANS}) == len(PLANS)


def test_a_third_of_the_plans_in_other_languages_are_at_fault_and_some_only_a_model_can_find() -> None:
    other = [labelled for labelled in PLANS if labelled["language"] != "en"]
    clean = [labelled for labelled in other if not labelled["labels"]]
    exact = {labelled["language"] for labelled in other if any(label["exact"] for label in labelled["labels"])}
    meant = {labelled["language"] for labelled in other if any(not label["exact"] for label in labelled["labels"])}
    assert {labelled["language"] for labelled in PLANS} == LANGUAGES
    assert len(other) >= 40
    assert len(clean) >= 25
    assert len(other) - len(clean) >= 15
    assert exact == meant == LANGUAGES - {"en"}


@each(PLANS)
def test_exact_labels_are_at_the_steps_that_can_be_proved_wrong(labelled: dict[str, Any]) -> None:
    wrong = _provably_wrong(Plan.model_validate(labelled["plan"]))
    exact = [label for label in labelled["labels"] if label["exact"]]
    assert wrong <= {step_id for label in exact for step_id in label["steps"]}
    for label in exact:
        assert label["type"] != "hallucination" or wrong & set(label["steps"])


def _provably_wrong(plan: Plan) -> set[str]:
    """Return the steps with an unknown tool, with arguments that do not fit it, or that need no earlier step."""
    tools, earlier, wrong = registry(), set[str](), set[str]()
    for step in plan.walk():
        known = step.tool is None or tools.get(step.tool) is not None
        fits = not (known and step.tool and step.arguments) or not tools.input_schema(step.tool).errors(step.arguments)
        if not (known and fits and set(step.depends_on or ()) <= earlier):
            wrong.add(step.step_id)
        earlier.add(step.step_id)
    return wrong


def test_every_outcome_has_its_fields_in_order_in_the_file_of_its_language() -> None:
    for path in (LABELLED / "outcomes").iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            outcome = json.loads(line)
            assert list(outcome) == FIELDS, outcome["id"]
            assert f"{outcome['language']}.jsonl" == path.name


def test_no_outcome_occurs_twice() -> None:
    labels = {"id", "label", "why", "codes", "flags"}
    told = {json.dumps({key: o[key] for key in FIELDS if key not in labels}, sort_keys=True) for o in OUTCOMES}
    assert len({outcome["id"] for outcome in OUTCOMES}) == len(OUTCOMES)
    assert len(told) == len(OUTCOMES)


@each(OUTCOMES)
def test_an_outcome_is_a_run_with_a_label_and_a_reason(outcome: dict[str, Any]) -> None:
    plan = Plan.model_validate(outcome["plan"])
    assert outcome["goal"].strip()
    assert isinstance(outcome["answer"], str)
    assert isinstance(outcome["memory"], dict | None)
    assert 1 <= len(outcome["requirements"]) <= 8
    assert all(text.strip() and len(text) <= 120 for text in outcome["requirements"])
    assert set(outcome["codes"]) <= set(REASON_CODES) - {"complete", "coherent", "consistent"}
    assert set(outcome["flags"]) <= {"plan", "step", "answer", "memory"}
    assert all(errors and all(errors) for errors in outcome["failures"].values())
    if outcome["label"] == "good":
        assert outcome["codes"] == outcome["flags"] == []
        assert outcome["why"] is None
        assert outcome["answer"].strip()
        assert not outcome["failures"]
        assert outcome["results"].keys() == {step.step_id for step in plan.walk()}
    else:
        assert outcome["label"] == "bad"
        assert outcome["codes"]
        assert outcome["why"].strip()


def test_the_english_outcomes_are_many_and_a_third_or_more_are_good() -> None:
    english = [outcome for outcome in OUTCOMES if outcome["language"] == "en"]
    formats = [outcome for outcome in english if outcome["id"].startswith("format/")]
    assert len(english) >= 320
    assert len({outcome["domain"] for outcome in english}) >= 18
    assert 0.3 <= sum(outcome["label"] == "good" for outcome in english) / len(english) <= 0.5
    assert len(formats) >= 40
    assert {outcome["label"] for outcome in formats} == {"good"}


def test_six_other_languages_have_a_dozen_outcomes_each_and_almost_half_are_good() -> None:
    assert {outcome["language"] for outcome in OUTCOMES} == LANGUAGES
    for language in LANGUAGES - {"en"}:
        good = [outcome["label"] == "good" for outcome in OUTCOMES if outcome["language"] == language]
        assert len(good) >= 12
        assert 0.4 <= sum(good) / len(good) <= 0.5
