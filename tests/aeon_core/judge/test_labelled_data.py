"""The labelled plans that ship inside `aeon_core`: their shape, their balance, and faults that are where they say."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, get_args

import pytest

from aeon_core.plan.models import Plan
from aeon_core.validation.report import IssueType
from tests.aeon_core.validation.labelled.tools import registry

LABELLED = files("aeon_core") / "judge" / "labelled"
LANGUAGES = {"ar", "de", "en", "es", "fr", "hi", "ja"}

PLANS: list[dict[str, Any]] = [
    json.loads(line) for line in (LABELLED / "plans.jsonl").read_text(encoding="utf-8").splitlines()
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


@pytest.mark.parametrize("labelled", PLANS, ids=[labelled["id"] for labelled in PLANS])
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
