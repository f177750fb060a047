"""An assessment of convergence against the artifacts it is about: what it says that they do not bear out (FR-041).

The convergence engine computes what it says. An assessment that was read back, edited, or made by a model may claim
more: a step that does not exist, a result that is finished while steps failed, scores that contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aeon_core.validation.report import IssueType, Severity
from aeon_core.validation.semantic.execution import Execution
from aeon_core.validation.semantic.finding import Finding, clip

_NAMED_STEP = re.compile(r"\bsteps?\s+(?P<quote>['\"`])(?P<step_id>[^'\"`\n]{1,100})(?P=quote)")
_MAX_READ = 2_000
_MAX_LISTED = 5


def assessment_findings(assessment: Mapping[str, Any], execution: Execution) -> list[Finding]:
    """Return what an assessment claims that plan, results and failures contradict."""
    return [*_unknown_steps(assessment, execution), *_unearned(assessment, execution), *_against_itself(assessment)]


def _unknown_steps(assessment: Mapping[str, Any], execution: Execution) -> Iterator[Finding]:
    issues = assessment.get("detected_issues")
    told = [text for text in issues if isinstance(text, str)] if isinstance(issues, list) else []
    named = [match["step_id"] for text in told for match in _NAMED_STEP.finditer(text[:_MAX_READ])]
    known = execution.plan.by_id.keys() | execution.results.keys() | execution.failures.keys()
    for step_id in dict.fromkeys(named):
        if step_id not in known:
            yield _finding(
                "hallucination",
                "medium",
                f"the assessment speaks of step {clip(step_id)}, and the plan has no such step",
                f"Leave out what the assessment says of step {clip(step_id)}.",
            )


def _unearned(assessment: Mapping[str, Any], execution: Execution) -> Iterator[Finding]:
    """Find a result that is called finished or complete while steps of the plan failed, or have not run."""
    replaced = {step.step.replaces for step in execution.plan.steps}
    counted = [step for step in execution.plan.steps if step.step.status != "invalid" and step.step_id not in replaced]
    failed = [step.step_id for step in counted if step.step.status == "failed" or step.step_id in execution.failures]
    pending = [step.step_id for step in counted if not step.step.executed and step.step_id not in execution.results]
    claims = "converged" if assessment.get("converged") is True else None
    if claims is None and assessment.get("completeness_score") == 1:
        claims = "complete"
    for missing, how in ((failed, "failed"), (pending, "did not run")):
        if claims is not None and missing:
            names = ", ".join(map(repr, missing[:_MAX_LISTED]))
            yield _finding(
                "hallucination",
                "high",
                f"the assessment says {claims}, and these steps {how}: {names}",
                f"Assess the result again: it is not {claims} before {names} have a result.",
            )


def _against_itself(assessment: Mapping[str, Any]) -> Iterator[Finding]:
    """Find a converged assessment with a consistency flag down that its criteria ask for."""
    status = assessment.get("consistency_status")
    broken = {name for name, sound in status.items() if sound is False} if isinstance(status, dict) else set()
    wanted = _wanted_flags(assessment)
    broken &= broken if wanted is None else wanted
    if assessment.get("converged") is True and broken:
        names = ", ".join(map(repr, sorted(broken)))
        yield _finding(
            "consistency",
            "high",
            f"the assessment says converged, and its own flags say that these are inconsistent: {names}",
            f"Assess the result again, or leave {names} out of the criteria.",
        )


def _wanted_flags(assessment: Mapping[str, Any]) -> set[str] | None:
    """Return the flags that the criteria in the metadata ask for, None where they are not told."""
    metadata = assessment.get("metadata")
    criteria = metadata.get("criteria") if isinstance(metadata, dict) else None
    flags = criteria.get("consistency") if isinstance(criteria, dict) else None
    return {flag for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else None


def _finding(kind: IssueType, severity: Severity, what: str, repair: str) -> Finding:
    return Finding(kind, severity, None, what, repair, artifact="assessment")
