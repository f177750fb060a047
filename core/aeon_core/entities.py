"""The entities of a run that several subsystems use (data model; contract: RunResult)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from aeon_core.plan import ExecutionMode, StepStatus
from aeon_core.plan.models import NonBlank, Plan


def _iso_8601(value: str) -> str:
    datetime.fromisoformat(value)
    return value


Timestamp = Annotated[str, AfterValidator(_iso_8601), Field(json_schema_extra={"format": "date-time"})]
"""ISO 8601, UTC."""

RunStatus = Literal[
    "converged", "accepted", "completed", "aborted", "failed", "cost_ceiling", "not_converged", "ttl_expired"
]
EXIT_CODES: dict[str, int] = {
    "converged": 0,
    "accepted": 0,
    "completed": 0,
    "aborted": 1,
    "failed": 1,
    "cost_ceiling": 4,
    "not_converged": 5,
    "ttl_expired": 5,
}


class Entity(BaseModel):
    """A public entity: strict about its keys, with a JSON Schema (`aeon-tui schema NAME`)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", defer_build=True)


def as_object(value: Any) -> dict[str, Any]:
    """Return a value as an object, for an entity: text as {"text": …}, anything else as {"value": …}."""
    if isinstance(value, dict):
        return value
    return {"text": value} if isinstance(value, str) else {"value": value}


Object = Annotated[dict[str, Any], BeforeValidator(lambda value: {"text": value} if isinstance(value, str) else value)]
"""An entity's object; text becomes {"text": …} (contract: Entities)."""


_BOTH: dict[str, Any] = {"result": {"type": "object"}, "error": {"type": "object"}}


class ToolCall(Entity):
    """One tool invocation: `result` or `error`, never both (data model: ToolCall)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"not": {"properties": _BOTH, "required": ["result", "error"]}}
    )

    tool_name: NonBlank
    arguments: dict[str, Any]
    result: Object | None = None
    error: Object | None = None
    timestamp: Timestamp
    step_id: NonBlank

    @model_validator(mode="after")
    def _one_outcome(self) -> ToolCall:
        if self.result is not None and self.error is not None:
            raise ValueError("a tool call has a result or an error, not both")
        return self


class MemoryEntry(Entity):
    """A key and its value in the memory store (data model: MemoryEntry)."""

    key: NonBlank
    value: JsonValue
    metadata: dict[str, Any] | None = None


class SupervisorAction(Entity):
    """One repair attempt: `repaired_output` or `error`, never both (data model: SupervisorAction)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "oneOf": [
                {"properties": {name: {"type": "object"}}, "required": [name]} for name in ("repaired_output", "error")
            ]
        },
    )

    action_type: Literal["json_repair", "tool_call_repair", "plan_repair"]
    original_output: Object
    repaired_output: Object | None = None
    error: Object | None = None
    attempt_number: Annotated[int, Field(ge=1, le=2)]
    timestamp: Timestamp

    @model_validator(mode="after")
    def _one_outcome(self) -> SupervisorAction:
        if (self.repaired_output is None) == (self.error is None):
            raise ValueError("a supervisor action has a repaired_output or an error, exactly one of them")
        return self


_STEP_KEYS = {"step_id", "description"}


class LogEntry(Entity):
    """One orchestration cycle (core FR-038; data model: LogEntry). `plan_state` is the plan at the cycle's start."""

    step_number: Annotated[int, Field(ge=1)]
    plan_state: dict[str, Any]
    llm_output: Object
    supervisor_actions: list[SupervisorAction]
    tool_calls: list[ToolCall]
    ttl_remaining: Annotated[int, Field(ge=0)]
    errors: list[Object]
    timestamp: Timestamp

    @model_validator(mode="after")
    def _plan_state_is_one(self) -> LogEntry:
        state, steps = self.plan_state, self.plan_state.get("steps")
        if state.keys() == {"goal", "steps"} and isinstance(state["goal"], str) and isinstance(steps, list):
            sound = bool(steps) and all(isinstance(step, dict) and step.keys() >= _STEP_KEYS for step in steps)
        elif state.keys() == {"since", "steps"} and type(state["since"]) is int and isinstance(steps, dict):
            sound = all(isinstance(changes, dict) for changes in steps.values())
        else:
            sound = not state
        if not sound:
            raise ValueError("plan_state is a plan, what changed in one, or {} before there is one")
        return self


class StepResult(Entity):
    """The outcome of one step."""

    step_id: str
    description: str
    status: StepStatus
    mode: ExecutionMode | None = None
    """How it was executed; None if it has not been."""
    output: Object | None = None
    errors: list[str] = Field(default_factory=list)
    """Why it failed, or what the validator found wrong."""


class TTLState(Entity):
    """Cycles of a run: `limit` is the maximum, `remaining` = `allocated` − `spent`."""

    limit: Annotated[int, Field(ge=0)]
    allocated: Annotated[int, Field(ge=0)]
    spent: Annotated[int, Field(ge=0)]
    remaining: Annotated[int, Field(ge=0)]


class UsageTotals(Entity):
    """Tokens of a whole run, including repairs and failed calls."""

    input_tokens: int = 0
    output_tokens: int = 0


class TTLExpiredMetadata(Entity):
    """What is known about quality when the TTL expired; the scores are null without a convergence engine."""

    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency_status: dict[str, bool] | None = None
    detected_issues: list[str] = Field(default_factory=list)
    reason_codes: list[str]
    pass_number: int
    incomplete_steps: list[str]


class RunResult(Entity):
    """How a run ended (contract: RunResult). Only a result with the status `ttl_expired` has the last six fields."""

    run_id: str
    status: RunStatus
    converged: bool = False
    """Whether the status is `converged`."""
    answer: str | None = None
    plan: Plan | None = None
    """The plan at the end; null if there was none."""
    steps: list[StepResult] = Field(default_factory=list)
    """Substeps after their parent."""
    passes: int = 0
    """How many were completed."""
    convergence: dict[str, Any] | None = None
    """The last ConvergenceAssessment; null if there was none."""
    follow_up_questions: list[str] = Field(default_factory=list)
    """What only a person can answer, and nobody has."""
    manual_intervention: list[dict[str, Any]] = Field(default_factory=list)
    """What refinement gave up on: `step_id`, `cause`, `reason` and `attempts` of each."""
    ttl: TTLState
    usage: UsageTotals = Field(default_factory=UsageTotals)
    cost_usd: float | None = None
    """US dollars; null if the model has no known price."""
    model: str
    simulated: bool = False
    error: dict[str, Any] | None = None
    """Why it was aborted or failed: `error_type`, `message`, and what is known about the place."""
    journal: str | None = None
    """Path of the journal; null if none was kept."""
    result_type: Literal["ttl_expired"] | None = None
    latest_pass_result: dict[str, Any] | None = None
    """`answer` and `steps` of the last completed pass; null if the TTL expired in the first."""
    partial_result: dict[str, Any] | None = None
    """The same of the unfinished first pass, if the TTL expired within a phase."""
    expiration_point: Literal["phase_boundary", "mid_phase"] | None = None
    ttl_expired_metadata: TTLExpiredMetadata | None = None
    termination_reason: Literal["ttl_expired"] | None = None

    @model_serializer(mode="wrap")
    def _expiration_only_when_expired(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.status != "ttl_expired":
            for name in _EXPIRATION_FIELDS:
                data.pop(name, None)
        return data

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends with this result."""
        recorded = (self.error or {}).get("exit_code")
        # The exit code in a damaged journal may be anything.
        return recorded if isinstance(recorded, int) else EXIT_CODES[self.status]


_EXPIRATION_FIELDS = (
    "result_type",
    "latest_pass_result",
    "partial_result",
    "expiration_point",
    "ttl_expired_metadata",
    "termination_reason",
)


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
    """One issue (adaptive: Validation Issue). High is an error, medium a warning, low a remark."""

    issue_id: NonBlank
    type: IssueType
    severity: Severity
    description: NonBlank
    location: IssueLocation
    proposed_repair: NonBlank


class SemanticValidationReport(Entity):
    """All issues of one artifact (adaptive: Semantic Validation Report). `overall_severity` is null without issues."""

    validation_id: NonBlank
    artifact_type: ArtifactType
    issues: list[ValidationIssue] = Field(default_factory=list)
    overall_severity: Severity | None = None
    """The highest severity among the issues."""
    issue_summary: dict[IssueType, Annotated[int, Field(ge=0)]]
    """The number of issues of each type, zeros included."""
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


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: its place (`step_id` None: the artifact as a whole), description and fix."""

    type: IssueType
    severity: Severity
    step_id: str | None
    description: str
    repair: str
    artifact: str | None = None
    """The part in which it was found, if any: results, answer, memory."""
