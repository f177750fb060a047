"""Validation's findings: issues and their report (adaptive: Validation Issue, Semantic Validation Report)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from aeon_core.entities import Entity
from aeon_core.plan.models import NonBlank

ArtifactType = Literal["plan", "step", "execution_artifact", "cross_phase"]
IssueType = Literal["specificity", "relevance", "consistency", "hallucination", "do_say_mismatch"]
Severity = Literal["high", "medium", "low"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Highest first."""


class IssueLocation(Entity):
    """Where an issue was found: an artifact, and the step if it is about one."""

    artifact: NonBlank
    step_id: NonBlank | None = None


class ValidationIssue(Entity):
    """One issue. High is an error, medium a warning, low a remark."""

    issue_id: NonBlank
    type: IssueType
    severity: Severity
    description: NonBlank
    location: IssueLocation
    proposed_repair: NonBlank


class SemanticValidationReport(Entity):
    """Every issue of one artifact. `overall_severity` is null without issues."""

    validation_id: NonBlank
    artifact_type: ArtifactType
    issues: list[ValidationIssue] = Field(default_factory=list)
    overall_severity: Severity | None = None
    """The highest severity among the issues."""
    issue_summary: dict[IssueType, Annotated[int, Field(ge=0)]]
    """The number of issues of each type, including zeros."""
    proposed_repairs: list[str] = Field(default_factory=list)
    """The issues' repairs, in order, without duplicates."""


def report_of(
    validation_id: str, artifact_type: ArtifactType, issues: Sequence[ValidationIssue]
) -> SemanticValidationReport:
    """Return the report on an artifact, with severity, counts and repairs derived from its issues."""
    found = {issue.severity for issue in issues}
    counts: dict[IssueType, int] = dict.fromkeys(get_args(IssueType), 0)
    for issue in issues:
        counts[issue.type] += 1
    return SemanticValidationReport(
        validation_id=validation_id,
        artifact_type=artifact_type,
        issues=list(issues),
        overall_severity=next((severity for severity in SEVERITIES if severity in found), None),
        issue_summary=counts,
        proposed_repairs=list(dict.fromkeys(issue.proposed_repair for issue in issues)),
    )


_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: where (`step_id` None: the artifact as a whole), what, and how to fix it."""

    type: IssueType
    severity: Severity
    step_id: str | None
    description: str
    repair: str
    artifact: str | None = None
    """The part it was found in, if any: results, answer, memory."""


def clip(text: str) -> str:
    """Return a text on one line for a message, at most 80 characters and quoted."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…")
