"""The convergence engine: whether a result is finished, computed from the artifacts (adaptive FR-017 to FR-025)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from aeon_core.convergence.additional import Judge, Verdict, judge_additional
from aeon_core.convergence.artifacts import gather
from aeon_core.convergence.assessment import ConsistencyStatus, ConvergenceAssessment
from aeon_core.convergence.claims import check_claims
from aeon_core.convergence.completeness import Completeness, check_completeness
from aeon_core.convergence.consistency import check_consistency
from aeon_core.convergence.criteria import REASON_CODES, ConvergenceCriteria
from aeon_core.convergence.finding import Finding
from aeon_core.convergence.names import check_names
from aeon_core.convergence.outputs import check_outputs
from aeon_core.convergence.references import check_codes, check_tools_named
from aeon_core.convergence.reported import check_report
from aeon_core.convergence.units import check_units
from aeon_core.convergence.verdicts import check_verdicts
from aeon_core.memory.base import Memory
from aeon_core.plain import plain
from aeon_core.plan.models import Plan
from aeon_core.validation.report import SemanticValidationReport


class ConvergenceEngine:
    """Assesses the result of a pass by rules. Only additional criteria that cannot be computed are asked of `judge`.

    What a model says of its own work counts for nothing: scores, codes and flags come from the plan's statuses, the
    outputs, the answer, the memory and the validation report. The same input gives the same assessment. Without
    a judge a criterion that only a model could judge is not met, and says so. `prompts_dir` may hold a criteria.md of
    one's own.
    """

    def __init__(
        self,
        criteria: ConvergenceCriteria | None = None,
        judge: Judge | None = None,
        *,
        prompts_dir: Path | None = None,
    ) -> None:
        self.criteria = criteria if criteria is not None else ConvergenceCriteria()
        self.judge = judge
        self._prompts_dir = prompts_dir

    def assess(
        self,
        *,
        goal: str,
        plan: Plan,
        results: Mapping[str, Any],
        answer: str | None,
        report: SemanticValidationReport | Sequence[SemanticValidationReport] | None = None,
        memory: Memory | Mapping[str, Any] | None = None,
        failures: Mapping[str, Sequence[str]] | None = None,
        tools: Collection[str] | None = None,
    ) -> ConvergenceAssessment:
        """Return whether the result converged, with reason codes, scores 0…1, flags and issues (FR-023 to 025).

        `results` holds each executed step's output and `failures` why steps failed, by step id; `report` what
        validation found, one report or several; `tools` the names of the registered tools. Whatever the criteria say,
        a step that failed or was not done, a contradiction and a tool that does not exist never converge (FR-021).
        """
        artifacts = gather(
            goal=goal,
            plan=plan,
            results=plain(dict(results)),
            answer=answer,
            memory=_entries(memory),
            failures=failures or {},
        )
        completeness = check_completeness(artifacts)
        findings = [*completeness.findings, *check_outputs(artifacts), *check_claims(artifacts)]
        findings += [*check_units(artifacts), *check_codes(artifacts), *check_names(artifacts)]
        findings += [*check_verdicts(artifacts), *check_consistency(artifacts, tools)]
        findings += check_tools_named(artifacts, tools)
        for each in _reports(report):
            findings += check_report(each, artifacts)
        verdicts = judge_additional(self.criteria.additional, artifacts, self.judge, self._prompts_dir)
        return self._assessment(completeness, list(dict.fromkeys(findings)), verdicts)

    def _assessment(
        self, completeness: Completeness, findings: list[Finding], verdicts: dict[str, Verdict]
    ) -> ConvergenceAssessment:
        coherence = round(prod(finding.weight for finding in findings), 3)
        broken = {finding.flag for finding in findings}
        status: ConsistencyStatus = {
            "plan": "plan" not in broken,
            "step": "step" not in broken,
            "answer": "answer" not in broken,
            "memory": "memory" not in broken,
        }
        failing = self._failing(completeness, coherence, status, findings)
        unmet = [name for name, verdict in verdicts.items() if not verdict.met]
        converged = not failing and not unmet
        issues = [finding.description for finding in findings]
        issues += [f"criterion {name!r} is not met: {verdicts[name].reason}" for name in unmet]
        return ConvergenceAssessment(
            converged=converged,
            reason_codes=["complete", "coherent", "consistent", *verdicts] if converged else [*failing, *unmet],
            completeness_score=completeness.score,
            coherence_score=coherence,
            consistency_status=status,
            detected_issues=issues,
            metadata={
                "criteria": self.criteria.model_dump(),
                "steps": completeness.steps,
                "goal_parts": completeness.goal_parts,
                "additional": {name: {"met": each.met, "by": each.by} for name, each in verdicts.items()},
            },
        )

    def _failing(
        self, completeness: Completeness, coherence: float, status: ConsistencyStatus, findings: Iterable[Finding]
    ) -> list[str]:
        """Return the reason codes of what stands in the way, in the order of the contract."""
        codes: set[str] = {finding.code for finding in findings if finding.code is not None}
        if completeness.score < self.criteria.completeness or codes & {"missing_step", "failed_step"}:
            codes.add("incomplete")
        if coherence < self.criteria.coherence or codes & {"contradiction_detected", "hallucinated_tool"}:
            codes.add("incoherent")
        if not all(status[flag] for flag in self.criteria.consistency):
            codes.add("inconsistent")
        return [code for code in REASON_CODES if code in codes]


def _entries(memory: Memory | Mapping[str, Any] | None) -> dict[str, Any]:
    if memory is None:
        return {}
    entries: dict[str, Any] = plain(dict(memory.search("") if isinstance(memory, Memory) else memory))
    return entries


def _reports(
    report: SemanticValidationReport | Sequence[SemanticValidationReport] | None,
) -> Sequence[SemanticValidationReport]:
    if report is None:
        return ()
    return [report] if isinstance(report, SemanticValidationReport) else report
