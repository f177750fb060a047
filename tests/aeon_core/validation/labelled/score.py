"""Precision and recall of the rules on the labelled plans, by type of issue.

`python -m tests.aeon_core.validation.labelled.score [SPLIT]` prints the table, and with `-v` each miss; SPLIT is one of
tune, held_out, unseen (plans.jsonl), fields_tune, fields_held_out, trades, crafts, terse, final (fields.jsonl).
A finding is right where the plan has a label of its type at its step; a label is met where a finding is right by it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import aeon_core
from aeon_core.plan.models import Plan
from aeon_core.validation.report import IssueType
from aeon_core.validation.validator import SemanticValidator
from tests.aeon_core.validation.labelled.tools import registry

PLANS = [Path(aeon_core.__file__).parent / "judge/labelled/plans.jsonl", Path(__file__).with_name("fields.jsonl")]
TYPES: tuple[IssueType, ...] = get_args(IssueType)


@dataclass
class Score:
    """Counts for one type, and the misses in words."""

    right: int = 0
    wrong: int = 0
    met: int = 0
    missed: int = 0
    misses: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.met / max(1, self.met + self.missed)


def labelled_plans(split: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the plans of a split, or all of them."""
    for line in chain.from_iterable(path.read_text(encoding="utf-8").splitlines() for path in PLANS):
        labelled = json.loads(line)
        if split is None or labelled["split"] == split:
            yield labelled


def scores(plans: Iterable[dict[str, Any]]) -> dict[IssueType, Score]:
    """Return the score of the rules alone for each type."""
    validator = SemanticValidator(registry())
    by_type: dict[IssueType, Score] = {kind: Score() for kind in TYPES}
    for labelled in plans:
        report = validator.validate_plan(Plan.model_validate(labelled["plan"]))
        found = {(issue.type, issue.location.step_id): issue.description for issue in report.issues}
        for kind, step_id in found:
            right = any(label["type"] == kind and step_id in label["steps"] for label in labelled["labels"])
            by_type[kind].right += right
            by_type[kind].wrong += not right
            if not right:
                by_type[kind].misses.append(f"wrong  {labelled['id']}: {found[kind, step_id]}")
        for label in labelled["labels"]:
            met = any((label["type"], step_id) in found for step_id in label["steps"])
            by_type[label["type"]].met += met
            by_type[label["type"]].missed += not met
            if not met:
                by_type[label["type"]].misses.append(f"missed {labelled['id']}: {label['type']} at {label['steps']}")
    return by_type


def false_alarms(plans: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """Return how many of the plans are clean, and in how many of these the rules find anything."""
    validator = SemanticValidator(registry())
    clean = [Plan.model_validate(labelled["plan"]) for labelled in plans if not labelled["labels"]]
    return len(clean), sum(bool(validator.validate_plan(plan).issues) for plan in clean)


def main() -> None:
    splits = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    for kind, score in scores(labelled_plans(splits[0] if splits else None)).items():
        counts = f"{score.right} right, {score.wrong} wrong, {score.missed} missed"
        print(f"{kind:<16} precision {score.precision:.2f}  recall {score.recall:.2f}  ({counts})")
        if "-v" in sys.argv:
            print(*(f"    {miss}" for miss in score.misses), sep="\n")
    clean, alarmed = false_alarms(labelled_plans(splits[0] if splits else None))
    print(f"{clean} clean plans, {alarmed} with a finding")


if __name__ == "__main__":
    main()
