"""What semantic validation found, as the convergence engine weighs it (adaptive FR-050, FR-081)."""

from __future__ import annotations

import re

from aeon_core.convergence.artifacts import Artifacts
from aeon_core.convergence.criteria import Flag, ReasonCode
from aeon_core.convergence.finding import CONTRADICTION, REMARK, SERIOUS, WARNING, Finding
from aeon_core.validation.report import SemanticValidationReport, ValidationIssue

_CONTRADICTING = re.compile(r"contradict|conflict|disagree|opposite|inconsisten", re.IGNORECASE)
_OMITTED = re.compile(r"\b(?:omit|omission|omits|missing step|leaves? out)", re.IGNORECASE)


def check_report(report: SemanticValidationReport | None, artifacts: Artifacts) -> list[Finding]:
    """Return a finding for each issue of a report. Validation is advisory: only what is high breaks a flag.

    A tool that does not exist is `hallucinated_tool` at high and medium. Issues of steps that another one stands in
    for are over and done.
    """
    if report is None:
        return []
    over = {view.step_id for view in artifacts.steps if view.superseded}
    return [_finding(issue, report) for issue in report.issues if issue.location.step_id not in over]


def _finding(issue: ValidationIssue, report: SemanticValidationReport) -> Finding:
    where = f" (step {issue.location.step_id!r})" if issue.location.step_id else ""
    text = f"validation, {issue.severity} {issue.type}{where}: {issue.description}"
    flag = _flag(issue)
    if issue.type == "hallucination" and issue.severity != "low" and flag in ("plan", "step"):
        return Finding(text, code="hallucinated_tool", flag=flag if issue.severity == "high" else None, weight=SERIOUS)
    if issue.severity == "low":
        return Finding(text, weight=REMARK)
    if issue.severity == "medium":
        return Finding(text, weight=WARNING)
    if issue.type in ("specificity", "relevance"):
        return Finding(text, weight=SERIOUS)
    code = _code(issue, report)
    return Finding(text, code=code, flag=flag, weight=CONTRADICTION if code else SERIOUS)


def _code(issue: ValidationIssue, report: SemanticValidationReport) -> ReasonCode | None:
    if _OMITTED.search(issue.description):
        return "missing_step"
    executed = report.artifact_type in ("execution_artifact", "cross_phase") and issue.type == "consistency"
    return "contradiction_detected" if executed or _CONTRADICTING.search(issue.description) else None


def _flag(issue: ValidationIssue) -> Flag:
    artifact = issue.location.artifact.lower()
    if "memory" in artifact:
        return "memory"
    if "answer" in artifact:
        return "answer"
    if "plan" in artifact or "goal" in artifact:
        return "plan"
    return "step"
