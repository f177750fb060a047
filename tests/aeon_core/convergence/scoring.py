"""The labelled outcomes, and how far the engine agrees with them.

A file holds scenarios: a run, and outcomes of it that change something (`set`, `status`, `needs`, `add`). An outcome
without `codes` is one that a person would accept. `codes` are the reason codes that must be among those given, `flags`
the consistency flags that must be false, and no others. `labelled/more` was written later, in other domains, before the
engine was asked about any of it; all of `labelled/drill` was there to tune with.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from aeon_core.convergence.assessment import ConvergenceAssessment
from aeon_core.convergence.engine import ConvergenceEngine
from aeon_core.plan.models import Plan
from aeon_core.validation.report import IssueLocation, SemanticValidationReport, ValidationIssue, report_of

FOLDER = Path(__file__).parent / "labelled"

Part = Literal["tune", "held out"]
Collection = Literal["first", "more", "drill"]


@dataclass(frozen=True)
class Outcome:
    name: str
    domain: str
    part: Part
    arguments: dict[str, Any]
    codes: frozenset[str]
    flags: frozenset[str]

    @property
    def converged(self) -> bool:
        return not self.codes


@dataclass
class Agreement:
    """How many outcomes agree in each respect, and what differs in the others.

    Of the `inconsistent` ones, those with a flag that must be false, `detected` had one (SC-010).
    """

    total: int = 0
    status: int = 0
    codes: int = 0
    flags: int = 0
    inconsistent: int = 0
    detected: int = 0
    differences: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome, found: ConvergenceAssessment) -> None:
        broken = frozenset(flag for flag, holds in found.consistency_status.items() if not holds)
        right = (
            found.converged == outcome.converged,
            outcome.codes <= frozenset(found.reason_codes),
            broken == outcome.flags,
        )
        if outcome.converged:
            right = (right[0], found.reason_codes == ["complete", "coherent", "consistent"], right[2])
        self.inconsistent += bool(outcome.flags)
        self.detected += bool(outcome.flags) and bool(broken)
        self.total += 1
        self.status += right[0]
        self.codes += right[1]
        self.flags += right[2]
        if not all(right):
            self.differences.append(f"{outcome.name}: {found.reason_codes} {sorted(broken)} {found.detected_issues}")


def outcomes(part: Part | None = None, collection: Collection = "first") -> list[Outcome]:
    """Return the outcomes of a part, or all. A scenario with all its outcomes is in one part, by the hash of its id."""
    folder = FOLDER if collection == "first" else FOLDER / collection
    prefix = "{domain}/" if collection == "more" else ""
    found = [
        outcome
        for path in sorted(folder.glob("*.yml"))
        for scenario in yaml.safe_load(path.read_text(encoding="utf-8"))
        for outcome in _of(scenario, path.stem, _part(prefix.format(domain=path.stem) + scenario["id"]))
    ]
    return [outcome for outcome in found if part in (None, outcome.part)]


def measure(part: Part | None = None, collection: Collection = "first") -> Agreement:
    engine, agreement = ConvergenceEngine(), Agreement()
    for outcome in outcomes(part, collection):
        agreement.add(outcome, engine.assess(**outcome.arguments))
    return agreement


def _part(key: str) -> Part:
    return "tune" if hashlib.sha256(key.encode()).digest()[0] % 2 else "held out"


def _of(scenario: dict[str, Any], domain: str, part: Part) -> Iterator[Outcome]:
    for label in scenario["outcomes"]:
        run = copy.deepcopy({key: value for key, value in scenario.items() if key != "outcomes"})
        run |= copy.deepcopy(label.get("set", {}))
        run["steps"] += label.get("add", [])
        yield Outcome(
            name=f"{domain}/{scenario['id']}/{label['name']}",
            domain=domain,
            part=part,
            arguments=_arguments(run, label),
            codes=frozenset(label.get("codes", ())),
            flags=frozenset(label.get("flags", ())),
        )


def _arguments(run: dict[str, Any], label: dict[str, Any]) -> dict[str, Any]:
    steps = []
    for step in run["steps"]:
        fields = {"step_id": step["id"], "description": step["do"], "status": "complete"}
        fields |= {key: step[key] for key in ("tool", "agent", "arguments", "replaces") if key in step}
        if needs := label.get("needs", {}).get(step["id"], step.get("needs")):
            fields["depends_on"] = needs
        fields["status"] = label.get("status", {}).get(step["id"], "complete")
        steps.append(fields)
    issues = [_issue(number, told) for number, told in enumerate(run.get("report", ()), 1)]
    return {
        "goal": run["goal"],
        "plan": Plan(goal=run.get("plan_goal", run["goal"]), steps=steps),
        "results": run["results"],
        "answer": run["answer"],
        "report": _report(issues) if "report" in run else None,
        "memory": run.get("memory"),
        "failures": run.get("failures", {}),
        "tools": label.get("tools"),
    }


def _issue(number: int, told: dict[str, Any]) -> ValidationIssue:
    return ValidationIssue(
        issue_id=f"issue-{number}",
        type=told["type"],
        severity=told["severity"],
        description=told["description"],
        location=IssueLocation(artifact=told["artifact"], step_id=told["step"]),
        proposed_repair="rewrite it",
    )


def _report(issues: list[ValidationIssue]) -> SemanticValidationReport:
    return report_of("validation-1", "cross_phase", issues)
