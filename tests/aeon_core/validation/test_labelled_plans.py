"""The exact checks on the labelled plans: no clean one is flagged, every exact fault is found (Decision 7)."""

from __future__ import annotations

from collections import Counter

from aeon_core.entities import Finding
from aeon_core.plan.models import Plan
from aeon_core.validation.plan_checks import check_plan
from tests.aeon_core.validation.labelled.plans import labelled_plans
from tests.aeon_core.validation.labelled.tools import registry

REGISTRY = registry()
CHECKED = [(labelled, check_plan(Plan.model_validate(labelled["plan"]), REGISTRY)) for labelled in labelled_plans()]


def test_no_clean_plan_is_flagged_in_any_domain_or_language() -> None:
    clean = [(labelled, found) for labelled, found in CHECKED if not labelled["labels"]]
    assert len(clean) >= 300
    assert len({labelled["domain"] for labelled, _ in clean}) >= 40
    assert len({labelled.get("language", "en") for labelled, _ in clean}) == 7
    assert {labelled["id"]: found for labelled, found in clean if found} == {}


def test_every_provable_fault_is_found() -> None:
    missed, met = [], Counter[str]()
    for labelled, found in CHECKED:
        for label in labelled["labels"]:
            if label.get("exact"):
                hit = any(finding.step_id in label["steps"] for finding in found)
                met[label["type"]] += hit
                missed += [] if hit else [labelled["id"]]
    assert missed == []
    assert met.total() >= 50
    assert set(met) >= {"hallucination", "consistency", "do_say_mismatch"}


def test_a_finding_is_always_at_a_step_that_is_labelled() -> None:
    wrong: list[tuple[str, Finding]] = [
        (labelled["id"], finding)
        for labelled, found in CHECKED
        for finding in found
        if not any(finding.step_id in label["steps"] for label in labelled["labels"])
    ]
    assert wrong == []
