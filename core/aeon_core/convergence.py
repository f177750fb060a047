"""When a result counts as finished: the criteria and their file (adaptive FR-022), and the engine that applies them.

Exact checks and a judgement with evidence decide (adaptive FR-017).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict

from aeon_core.entities import Entity, SemanticValidationReport
from aeon_core.errors import LLMError, SupervisorError, UsageError
from aeon_core.json_safe import NotJsonSafeError, json_safe
from aeon_core.judge.judgement import FLAGS, Ask, Check, Judge, Judgement, Met, ask_of
from aeon_core.judge.result import Case, judge_result
from aeon_core.memory import Memory, entries_of
from aeon_core.plan.models import NonBlank, Plan
from aeon_core.suggest import check_failures, check_texts, check_type, nearest, shown
from aeon_core.validation.result_checks import Artifacts, Flag, ResultFinding, check_result, suspicions_about
from aeon_core.yaml_file import load_yaml, without_schema_line

REASON_CODES = (
    "complete",
    "coherent",
    "consistent",
    "incomplete",
    "incoherent",
    "inconsistent",
    "missing_step",
    "failed_step",
    "contradiction_detected",
    "hallucinated_tool",
    "no_progress",
    "not_judged",
    "ttl_expired",
)


def _no_repeats(values: list[Any]) -> list[Any]:
    names = [value if isinstance(value, str) else value.name for value in values]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{twice[0]!r} occurs twice")
    return values


def _no_reason_code(name: str) -> str:
    if name in REASON_CODES:
        raise ValueError(f"{name!r} is already a reason code")
    return name


Score = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class AdditionalCriterion(Entity):
    """A custom criterion, in words: one more requirement. Its name is the reason code if it is not met."""

    name: Annotated[NonBlank, AfterValidator(_no_reason_code)]
    """The reason code if the result does not meet it."""
    description: NonBlank
    """What the result must satisfy, in words."""


class ConvergenceCriteria(Entity):
    """What a result must meet, besides what always applies: every step done, no invented tool, a judgement.

    `completeness` and `coherence` are minimum scores, 0…1; `consistency` lists the flags that must hold (adaptive
    FR-022). Unknown keys and wrong values raise UsageError, in one line.
    """

    completeness: Score = 0.8
    """Minimum share of the requirements that are met, 0 to 1."""
    coherence: Score = 0.8
    """Minimum coherence score, 0 to 1."""
    consistency: Annotated[list[Flag], AfterValidator(_no_repeats)] = Field(default_factory=lambda: list(FLAGS))
    """What must be free of contradictions."""
    additional: Annotated[list[AdditionalCriterion], AfterValidator(_no_repeats)] = Field(default_factory=list)
    """Your own criteria."""

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            failure = error
        raise UsageError(_wrong(info.context or "ConvergenceCriteria", data, failure))


_EXPECTED = {
    "completeness": "a number between 0 and 1",
    "coherence": "a number between 0 and 1",
    "consistency": f"a list of flags, each once, out of {', '.join(FLAGS)}",
    "additional": "a list of {name: …, description: …}, both text; each name unique and not a reason code",
}
_CRITERION_KEYS = tuple(AdditionalCriterion.model_fields)


def load_criteria(path: Path | str) -> ConvergenceCriteria:
    """Return the criteria in a YAML or JSON file; a missing key keeps its default (contract: --criteria).

    Raises UsageError in one line that names the file, and the key if one is wrong.
    """
    where = f"the criteria file {str(path)!r}"
    return parse_criteria(without_schema_line(load_yaml(path, where)), where)


def parse_criteria(data: Any, where: str = "the criteria") -> ConvergenceCriteria:
    """Return the criteria in plain data; `where` names its source in errors. Raises UsageError."""
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if value is not None or key not in _EXPECTED}
    return ConvergenceCriteria.model_validate({} if data is None else data, context=where)


def _wrong(where: str, data: Any, error: ValidationError) -> str:
    if not isinstance(data, dict):
        return f"{where} is {shown(data)}; expected keys such as `completeness: 0.9`"
    errors = error.errors(include_url=False, include_context=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    *around, name = map(str, first["loc"])
    if first["type"] == "extra_forbidden":
        inside, known = (f", in 'additional[{around[1]}]'", _CRITERION_KEYS) if around else ("", tuple(_EXPECTED))
        return f"{where} has an unknown key, {name!r}{inside}{nearest(name, known)}"
    key = str(first["loc"][0])
    place = key + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"][1:])
    detail = f", {place!r} is {shown(first['input'])}" if place != key else ""
    if first["type"] == "missing":
        detail = f", {place!r} is missing"
    elif first["type"] == "value_error":
        detail = f", {first['msg'].removeprefix('Value error, ')}"
    return f"{key!r} in {where} must be {_EXPECTED[key]}; got {shown(data[key])}{detail}"


@with_config(ConfigDict(extra="forbid"))
class ConsistencyStatus(TypedDict):
    """Which artifacts agree with the others.

    `plan`: the plan with the goal and the execution. `step`: the steps' statuses and outputs with one another.
    `answer`: the answer with the outputs. `memory`: the memory with both.
    """

    plan: bool
    step: bool
    answer: bool
    memory: bool


@with_config(ConfigDict(extra="forbid"))
class RequirementVerdict(TypedDict):
    """The judge's verdict on one requirement, counted from 1.

    `evidence` is the quote; `quote_found` says whether it occurs in an artifact.
    """

    n: int
    text: str
    met: Met
    evidence: str
    quote_found: bool


class ConvergenceAssessment(Entity):
    """Whether a result is finished, and why (adaptive FR-023, FR-024, FR-025).

    `reason_codes` of a converged result name the criteria that are met, otherwise only what keeps it from converging;
    an additional criterion appears under its name in both. Scores are 0…1. `detected_issues` has one line an issue.
    `judged` says whether a model judged the result; otherwise it never converges. `metadata` holds `criteria`, `steps`
    (counts and ids), `evidence` (by flag) and `suspicions`.
    """

    converged: bool
    reason_codes: list[NonBlank] = Field(min_length=1)
    completeness_score: Annotated[float, Field(ge=0, le=1)]
    coherence_score: Annotated[float, Field(ge=0, le=1)]
    consistency_status: ConsistencyStatus
    detected_issues: list[str] = Field(default_factory=list)
    requirements: list[RequirementVerdict] = Field(default_factory=list)
    judged: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)

    def ended(self, code: Literal["incomplete", "no_progress", "not_judged", "ttl_expired"]) -> ConvergenceAssessment:
        """Return the assessment with a reason code that rules convergence out, even if it had looked converged."""
        if code in self.reason_codes:
            return self
        if self.converged:
            return self.model_copy(update={"converged": False, "reason_codes": [code]})
        return self.model_copy(update={"reason_codes": [*self.reason_codes, code]})


_WEIGHT = {"yes": 1.0, "partly": 0.5, "no": 0.0}
_INCOHERENT = 0.5
_MET = {"partly": "partly met", "no": "not met"}
_FLAG_OF: dict[str, Flag] = {
    "plan": "plan", "step": "step", "results": "step", "execution_artifact": "step", "memory": "memory",
}  # fmt: skip
"""The flag that an issue with an artifact breaks; for any other artifact, the answer's."""


class ConvergenceEngine:
    """Assesses the result of a pass (adaptive FR-017 to FR-025).

    Code decides what it can prove: a step that failed or never ran, an output that reports failure, a tool that does
    not exist, no answer. Whether the answer meets the requirements is up to the `judge`, with evidence; exact checks
    can only lower its verdict. Without a judgement, nothing converges: `not_judged`. `prompts_dir` may hold a custom
    judge.md; `votes` is the number of verdicts for a majority if the first is not a clear yes.
    """

    def __init__(
        self,
        criteria: ConvergenceCriteria | None = None,
        judge: Judge | Ask | None = None,
        *,
        prompts_dir: Path | None = None,
        votes: int = 1,
    ) -> None:
        self.criteria: ConvergenceCriteria = criteria if criteria is not None else ConvergenceCriteria()
        check_type(self.criteria, ConvergenceCriteria, "criteria", "; write ConvergenceCriteria(completeness=0.9)")
        if votes not in (1, 3):
            raise UsageError(f"votes is {shown(votes)}, expected 1 or 3")
        check_type(prompts_dir, str | Path | None, "prompts_dir")
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

        `results` holds each executed step's output and `failures` why steps failed, by step id; `report` is
        validation's, of which issues of severity high count; `tools` the names of the registered tools; `requirements`
        what a finished answer must satisfy, by default the goal itself. Asks the judge once, and again if its reply is
        in doubt.
        """
        check_type(goal, str, "the goal")
        check_type(plan, Plan, "the plan")
        check_type(results, Mapping, "results")
        check_type(answer or "", str, "the answer")
        check_failures(failures)
        check_texts(requirements or (), "requirements")
        check_texts(tools or (), "tools")
        for each in _reports(report):
            check_type(each, SemanticValidationReport, "the report")
        artifacts = Artifacts(
            goal=goal,
            plan=plan,
            results=_plain(dict(results), "a result"),
            answer=(answer or "").strip(),
            memory=_plain(entries_of(memory), "a memory entry"),
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
        """Return the assessment and the judgement behind it; None if there is none."""
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
        """Return the judgement, or why there is none; without an answer, there is nothing to judge."""
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
        severe = [issue for issue in issues if issue.severity == "high"]
        reported = [(_FLAG_OF.get(issue.location.artifact.lower(), "answer"), issue.type) for issue in severe]
        broken |= {flag for flag, _ in reported}
        broken |= {"answer"} if confirmed else set()
        coherence, completeness = _INCOHERENT if "coherent" in broken else 1.0, _completeness(artifacts, verdicts)
        invented = any(flag in ("plan", "step") and kind == "hallucination" for flag, kind in reported)
        invented = invented or any(each.hallucinated for each in found)
        codes = self._codes(artifacts, verdicts, completeness, coherence, broken, invented)
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
        verdicts: list[RequirementVerdict],
        completeness: float,
        coherence: float,
        broken: Collection[str | None],
        invented: bool,
    ) -> list[str]:
        """Return the reason codes that prevent convergence, in the contract's order."""
        own = verdicts[: len(verdicts) - len(self.criteria.additional)]
        undone = bool(artifacts.missing or artifacts.failed) or not artifacts.answer
        unmet = any(verdict["met"] == "no" for verdict in own) or completeness < self.criteria.completeness
        incoherent = coherence < self.criteria.coherence
        inconsistent = any(flag in broken for flag in self.criteria.consistency)
        contradicted = "coherent" in broken or "answer" in broken
        applicable = {
            "incomplete": undone or unmet,
            "incoherent": incoherent,
            "inconsistent": inconsistent,
            "missing_step": bool(artifacts.missing),
            "failed_step": bool(artifacts.failed),
            "contradiction_detected": contradicted and (incoherent or inconsistent),
            "hallucinated_tool": invented,
        }
        return [code for code, applies in applicable.items() if applies]


def _plain(given: dict[str, Any], what: str) -> dict[str, Any]:
    try:
        made: dict[str, Any] = json_safe(given)
    except NotJsonSafeError as error:
        raise UsageError(f"{what} is not plain JSON: {error}") from None
    return made


def _reports(
    report: SemanticValidationReport | Sequence[SemanticValidationReport] | None,
) -> Sequence[SemanticValidationReport]:
    if report is None:
        return ()
    return report if isinstance(report, Sequence) else [report]


def _checks(judgement: Judgement | None) -> dict[str, Check]:
    return {} if judgement is None else {"coherent": judgement.coherent} | dict(judgement.consistent.items())


def _verdicts(case: Case, judgement: Judgement | None) -> list[RequirementVerdict]:
    given = zip(case.requirements, judgement.requirements, strict=True) if judgement is not None else ()
    return [cast("RequirementVerdict", {"n": each.n, "text": text, **asdict(each)}) for text, each in given]


def _suspicions(case: Case, judgement: Judgement | None) -> list[dict[str, Any]]:
    """Return each suspicion with the judge's verdict; `stands` is null if there is none."""
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
    """Return the share of met requirements, or of completed steps if that is lower."""
    required = len(artifacts.required)
    done = (required - len(artifacts.failed) - len(artifacts.missing)) / required if required else 0.0
    met = sum(_WEIGHT[verdict["met"]] for verdict in verdicts) / len(verdicts) if verdicts else 1.0
    return round(min(done, met), 3) if artifacts.answer else 0.0


def _unmet(additional: Sequence[AdditionalCriterion], verdicts: list[RequirementVerdict]) -> list[str]:
    own = verdicts[len(verdicts) - len(additional) :] if verdicts else []
    return [criterion.name for criterion, verdict in zip(additional, own, strict=False) if verdict["met"] != "yes"]
