"""The convergence engine: exact checks and a judgement with evidence decide whether a result is finished (FR-017)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from aeon_core.convergence.assessment import ConsistencyStatus, ConvergenceAssessment, RequirementVerdict
from aeon_core.convergence.criteria import AdditionalCriterion, ConvergenceCriteria
from aeon_core.convergence.figures import unsupported_figures
from aeon_core.errors import LLMError, SupervisorError, UsageError
from aeon_core.json_safe import json_safe
from aeon_core.judge.judgement import FLAGS, Check, Judgement
from aeon_core.judge.request import Ask, Judge, ask_of
from aeon_core.judge.result import Case, judge_result
from aeon_core.memory import Memory
from aeon_core.plan.models import Plan
from aeon_core.validation.report import SemanticValidationReport
from aeon_core.validation.result_checks import Artifacts, Flag, ResultFinding, check_result

_WEIGHT = {"yes": 1.0, "partly": 0.5, "no": 0.0}
_INCOHERENT = 0.5
_MET = {"partly": "partly met", "no": "not met"}
_FLAG_OF: dict[str, Flag] = {
    "plan": "plan", "step": "step", "results": "step", "execution_artifact": "step", "memory": "memory",
}  # fmt: skip
"""The flag that an issue with an artifact breaks; with any other it is the answer's."""


class ConvergenceEngine:
    """Assesses the result of a pass (adaptive FR-017 to FR-025).

    Code decides what it can prove: a step that failed or never ran, an output that reports failure, a tool that does
    not exist, no answer. Whether the answer meets the requirements is the `judge`'s to say, with evidence; exact checks
    can only lower its verdict. Without a judgement nothing converges: `not_judged`. `prompts_dir` may hold a judge.md
    of one's own; `votes` is how many verdicts a majority is taken of where the first is no clear yes.
    """

    def __init__(
        self,
        criteria: ConvergenceCriteria | None = None,
        judge: Judge | Ask | None = None,
        *,
        prompts_dir: Path | None = None,
        votes: int = 1,
    ) -> None:
        if not isinstance(criteria, ConvergenceCriteria | None):
            raise UsageError(
                f"criteria is of type {type(criteria).__name__}; write ConvergenceCriteria(completeness=0.9)"
            )
        self.criteria: ConvergenceCriteria = criteria if criteria is not None else ConvergenceCriteria()
        self._ask = ask_of(judge)
        self._prompts_dir = prompts_dir
        self._votes = votes

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
        requirements: Sequence[str] = (),
    ) -> ConvergenceAssessment:
        """Return whether the result converged, with reason codes, scores 0…1, flags and issues (FR-023 to FR-025).

        `results` holds each executed step's output and `failures` why steps failed, by step id; `report` what
        validation found; `tools` the names of the registered tools; `requirements` what a finished answer must satisfy,
        the goal itself where there are none. Asks the judge once, and again if its reply is in doubt.
        """
        artifacts = Artifacts(
            goal=goal,
            plan=plan,
            results=json_safe(dict(results)),
            answer=(answer or "").strip(),
            memory=entries_of(memory),
            failures=failures or {},
            tools=tools,
        )
        return self.judged(artifacts, requirements, report)[0]

    def judged(
        self,
        artifacts: Artifacts,
        requirements: Sequence[str] = (),
        report: SemanticValidationReport | Sequence[SemanticValidationReport] | None = None,
    ) -> tuple[ConvergenceAssessment, Judgement | None]:
        """Return the assessment, and the judgement that it rests on; None where there is none."""
        found = check_result(artifacts)
        additional = [f"{criterion.name}: {criterion.description}" for criterion in self.criteria.additional]
        texts = [*(requirements or [artifacts.goal]), *additional]
        case = Case(
            artifacts,
            texts,
            suspicions=suspicions_about(artifacts, texts),
            known=[each.finding.description for each in found],
        )
        judgement, reason = self._judgement(case)
        return self._assessment(case, found, _reports(report), judgement, reason), judgement

    def _judgement(self, case: Case) -> tuple[Judgement | None, str | None]:
        """Return the judgement, or why there is none; without an answer there is nothing to judge."""
        if not case.artifacts.answer:
            return None, None
        if self._ask is None:
            return None, "no model judged the result"
        try:
            return judge_result(case, self._ask, votes=self._votes, folder=self._prompts_dir), None
        except (LLMError, SupervisorError) as error:
            return None, f"the judge gave no usable verdict: {error.message}"

    def _assessment(
        self,
        case: Case,
        found: list[ResultFinding],
        reports: Sequence[SemanticValidationReport],
        judgement: Judgement | None,
        reason: str | None,
    ) -> ConvergenceAssessment:
        artifacts, verdicts, checks = case.artifacts, _verdicts(case, judgement), _checks(judgement)
        issues = [issue for report in reports for issue in report.issues]
        confirmed = [s["text"] for s in _suspicions(case, judgement) if s["stands"]]
        broken = {each.flag for each in found} | {name for name, check in checks.items() if not check.ok}
        broken |= {_FLAG_OF.get(i.location.artifact.lower(), "answer") for i in issues if i.severity == "high"}
        broken |= {"answer"} if confirmed else set()
        coherence, completeness = _INCOHERENT if "coherent" in broken else 1.0, _completeness(artifacts, verdicts)
        codes = self._codes(artifacts, found, verdicts, completeness, coherence, broken)
        unmet = _unmet(self.criteria.additional, verdicts)
        converged = judgement is not None and not codes and not unmet
        if reason is not None:
            codes = [*codes, "not_judged"]
        met = ["complete", "coherent", "consistent", *(criterion.name for criterion in self.criteria.additional)]
        lines = [each.finding.description for each in found] + [issue.description for issue in issues]
        lines += [f"requirement {v['n']} is {_MET[v['met']]}: {v['text']}" for v in verdicts if v["met"] != "yes"]
        lines += [issue.description for issue in judgement.issues] if judgement is not None else []
        lines += [*confirmed, *([reason] if reason is not None else [])]
        return ConvergenceAssessment(
            converged=converged,
            reason_codes=met if converged else [*codes, *unmet],
            completeness_score=completeness,
            coherence_score=coherence,
            consistency_status=cast("ConsistencyStatus", {flag: flag not in broken for flag in FLAGS}),
            detected_issues=list(dict.fromkeys(lines)),
            requirements=verdicts,
            judged=judgement is not None,
            metadata={
                "criteria": self.criteria.model_dump(),
                "steps": {
                    "required": len(artifacts.required),
                    "failed": artifacts.failed,
                    "missing": artifacts.missing,
                },
                "additional": {
                    criterion.name: {"met": criterion.name not in unmet, "by": "model"}
                    for criterion in self.criteria.additional
                    if judgement is not None
                },
                "evidence": {name: asdict(check) for name, check in checks.items()},
                "suspicions": _suspicions(case, judgement),
            },
        )

    def _codes(
        self,
        artifacts: Artifacts,
        found: list[ResultFinding],
        verdicts: list[RequirementVerdict],
        completeness: float,
        coherence: float,
        broken: Collection[str | None],
    ) -> list[str]:
        """Return the reason codes of what prevents convergence, in the order of the contract."""
        own = verdicts[: len(verdicts) - len(self.criteria.additional)]
        undone = bool(artifacts.missing or artifacts.failed) or not artifacts.answer
        unmet = any(verdict["met"] == "no" for verdict in own) or completeness < self.criteria.completeness
        incoherent = coherence < self.criteria.coherence
        inconsistent = any(flag in broken for flag in self.criteria.consistency)
        contradicted = "coherent" in broken or "answer" in broken
        holds = {
            "incomplete": undone or unmet,
            "incoherent": incoherent,
            "inconsistent": inconsistent,
            "missing_step": bool(artifacts.missing),
            "failed_step": bool(artifacts.failed),
            "contradiction_detected": contradicted and (incoherent or inconsistent),
            "hallucinated_tool": any(each.hallucinated for each in found),
        }
        return [code for code, applies in holds.items() if applies]


def suspicions_about(artifacts: Artifacts, requirements: Iterable[str] = ()) -> list[str]:
    """Return what code finds odd and cannot decide: figures from nowhere, failures beside a result, exit codes."""
    found = unsupported_figures(artifacts, requirements)
    for step in artifacts.required:
        output = artifacts.results.get(step.step_id)
        code = output.get("exit_code") if isinstance(output, Mapping) else None
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            found.append(f"step {step.step_id!r} ended with exit_code {code}, which the answer must account for")
        if (failure := artifacts.reported(step.step_id, beside_result=True)) is not None:
            found.append(f"step {step.step_id!r} gave a result, and yet {failure}, which the answer must account for")
    return found


def entries_of(memory: Memory | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a memory holds, as plain JSON."""
    entries: dict[str, Any] = json_safe(dict(memory.search("") if isinstance(memory, Memory) else memory or {}))
    return entries


def _reports(
    report: SemanticValidationReport | Sequence[SemanticValidationReport] | None,
) -> Sequence[SemanticValidationReport]:
    return [report] if isinstance(report, SemanticValidationReport) else report or ()


def _checks(judgement: Judgement | None) -> dict[str, Check]:
    return {} if judgement is None else {"coherent": judgement.coherent} | dict(judgement.consistent.items())


def _verdicts(case: Case, judgement: Judgement | None) -> list[RequirementVerdict]:
    given = zip(case.requirements, judgement.requirements, strict=True) if judgement is not None else ()
    return [cast("RequirementVerdict", {"n": each.n, "text": text, **asdict(each)}) for text, each in given]


def _suspicions(case: Case, judgement: Judgement | None) -> list[dict[str, Any]]:
    """Return each suspicion with what the judge says of it; `stands` is null where it says nothing."""
    answered = judgement.suspicions if judgement is not None else {}
    found: list[dict[str, Any]] = []
    for n, text in enumerate(case.suspicions, 1):
        check = answered.get(n)
        stands, evidence, quoted = (
            (None, "", False) if check is None else (not check.ok, check.evidence, check.quote_found)
        )
        found.append({"n": n, "text": text, "stands": stands, "evidence": evidence, "quote_found": quoted})
    return found


def _completeness(artifacts: Artifacts, verdicts: list[RequirementVerdict]) -> float:
    """Return the share of requirements that are met, and of steps that are done where that is lower."""
    required = len(artifacts.required)
    done = (required - len(artifacts.failed) - len(artifacts.missing)) / required if required else 0.0
    met = sum(_WEIGHT[verdict["met"]] for verdict in verdicts) / len(verdicts) if verdicts else 1.0
    return round(min(done, met), 3) if artifacts.answer else 0.0


def _unmet(additional: Sequence[AdditionalCriterion], verdicts: list[RequirementVerdict]) -> list[str]:
    own = verdicts[len(verdicts) - len(additional) :] if verdicts else []
    return [criterion.name for criterion, verdict in zip(additional, own, strict=False) if verdict["met"] != "yes"]
