"""Every record of the journal, one class per type (contract: The journal).

A record here is the body of a line; the writer adds the envelope (`v`, `seq`, `ts`, `run`, `type`). Readers ignore what
they do not know.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from aeon_core.entities import Entity, LogEntry, RunResult, SupervisorAction
from aeon_core.plan import ExecutionMode, StepStatus
from aeon_core.plan.models import Plan

Phase = Literal["plan", "execute", "evaluate", "refine"]
Effect = Literal["pure", "idempotent", "unsafe"]
ApprovalPoint = Literal["plan", "pass", "tool", "unknown", "budget", "gate", "question"]
Decision = Literal["approve", "edit", "reject", "replay", "accept", "abort"]
Scope = Literal["run", "project", "always"]
"""Where a rule that a person has allowed applies: the run, the project's configuration, or the person's own."""
Verdict = Literal["good", "bad"]
PlanCause = Literal["generated", "given", "repaired", "refined", "edited"]
Nulls = Literal["dropped", "given", "kept"]
PassNumber = Annotated[int, Field(validation_alias="pass", serialization_alias="pass")]
"""The number of the pass that a record belongs to; its key on a line is `pass`."""


class Record(BaseModel):
    """The body of a record. `tag` is its type; `nulls` says which null fields are written: none, those given, or all.

    `raw` says that it may hold text that did not pass the port, such as a prompt: it is redacted when it is written.
    `emitted` says that the kernel emits it, so that a replay compares it; `may_be_missing` that journals from before
    its type existed lack it, so that a replay skips one that was not recorded.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="ignore", validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, defer_build=True
    )
    nulls: ClassVar[Nulls] = "dropped"
    raw: ClassVar[bool] = False
    emitted: ClassVar[bool] = True
    may_be_missing: ClassVar[bool] = False
    tag: ClassVar[str] = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "type" in cls.model_fields:
            cls.tag = cls.model_fields["type"].default

    def body(self) -> bytes:
        """Return the body as one line of JSON, without its type and without a newline."""
        return self.__pydantic_serializer__.to_json(
            self, by_alias=True, exclude_none=self.nulls == "dropped", exclude_unset=self.nulls == "given"
        )


class RunStarted(Record):
    """The first line of a run."""

    type: Literal["run_started"] = Field(default="run_started", exclude=True)
    raw: ClassVar[bool] = True
    task: str
    config: dict[str, Any]
    model: str
    simulated: bool = False
    models: list[dict[str, Any]] | None = None
    """The models in the order in which they are used: `model`, `price` (USD per million tokens), `context_window`."""
    prices: str | None = None
    """The source of the prices, and their date."""
    tools: list[dict[str, Any]]
    versions: dict[str, str]
    memory: dict[str, Any]
    """The initial entries of the memory."""
    plan: dict[str, Any] | None = None
    """The given plan, if there is one."""
    plan_cut: list[str] | None = None
    """The steps of that plan whose subplans were left out because they nest too deeply."""
    criteria: dict[str, Any] | None = None
    """The convergence criteria, if not the defaults."""
    requirements: list[str] | None = None
    """What a finished answer must satisfy, if given; otherwise it is inferred with the profile."""
    parent: dict[str, Any] | None = None
    """For a fork: `run_id` of its parent, and `pass`, the pass that it starts with."""
    start: dict[str, Any] | None = None
    """For a fork from a later pass: the parent's state before that pass."""
    workflow: dict[str, Any] | None = None
    """For a system2 workflow: its project and its settings. Its passes are the rounds of its agents."""


class RunResumed(Record):
    """A process continues a run."""

    type: Literal["run_resumed"] = Field(default="run_resumed", exclude=True)
    emitted: ClassVar[bool] = False
    raw: ClassVar[bool] = True
    options: dict[str, Any]
    """The overrides; everything else is unchanged."""
    continues_at: int
    """Earlier lines below this seq remain valid; those from it on belong to the ending that is superseded."""
    models: list[dict[str, Any]] | None = None
    """The models from here on, as in run_started, if they have changed."""
    prices: str | None = None
    answers: dict[str, str] | None = None
    """Answers to open questions, given with an abort that this resume undoes; the repeated question keeps them."""


class JournalRecovered(Record):
    """A torn last line was set aside."""

    type: Literal["journal_recovered"] = Field(default="journal_recovered", exclude=True)
    emitted: ClassVar[bool] = False
    offset: int
    set_aside: str


class PhaseRecord(Record):
    """A phase starts or ends."""

    type: Literal["phase"] = Field(default="phase", exclude=True)
    pass_number: PassNumber
    phase: Phase
    state: Literal["started", "finished"]
    duration_ms: float | None = None


class PlanRecord(Record):
    """The whole plan, whenever its structure changes."""

    type: Literal["plan"] = Field(default="plan", exclude=True)
    pass_number: PassNumber
    cause: PlanCause
    plan: Plan
    step_id: str | None = None
    """The step that was repaired."""
    substitutions: dict[str, str] | None = None
    """The steps whose tool a repair chose, each with the tool that it named before; "" for none."""


class StepRecord(Record):
    """A step's status changed. The last one has `output` and `errors`, the reasons for a failure."""

    type: Literal["step"] = Field(default="step", exclude=True)
    pass_number: PassNumber
    step_id: str
    status: StepStatus
    mode: ExecutionMode | None = None
    output: dict[str, Any] | None = None
    errors: list[str] | None = None


class LLMRecord(Record):
    """An attempt of a model call starts or has finished. `retry_in_s` announces another attempt."""

    type: Literal["llm"] = Field(default="llm", exclude=True)
    nulls: ClassVar[Nulls] = "given"
    raw: ClassVar[bool] = True
    call_id: str
    state: Literal["started", "finished"]
    purpose: str
    pass_number: PassNumber
    step_id: str | None = None
    attempt: int
    model: str | None = None
    """The model that is called, if the run has several."""
    request: dict[str, Any] | None = None
    reserved_usd: float | None = None
    response: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    error: dict[str, Any] | None = None
    retry_in_s: float | None = None
    repeats: str | None = None
    """The call_id of an earlier call that is repeated to recover a secret in its reply, not for the kernel."""


class ToolRecord(Record):
    """A tool call starts or has finished."""

    type: Literal["tool"] = Field(default="tool", exclude=True)
    call_id: str
    state: Literal["started", "finished"]
    pass_number: PassNumber
    step_id: str
    tool_name: str
    arguments: dict[str, Any] | None = None
    effect: Effect | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    duration_ms: float | None = None
    note: str | None = None
    """What is missing from the recorded result."""
    repeats: str | None = None
    """As in an `llm` record: a pure or idempotent call that is repeated to recover a secret in its result."""
    substitutes: str | None = None
    """The tool that the step named before a repair chose this one; "" for none."""


class SupervisorRecord(SupervisorAction, Record):
    """One repair attempt."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")
    type: Literal["supervisor"] = Field(default="supervisor", exclude=True)
    method: Literal["local", "llm"]
    pass_number: PassNumber
    step_id: str | None = None


class MemoryRecord(Record):
    """A write to memory; `error` if the store refused it, `source` if someone other than the kernel wrote it."""

    type: Literal["memory"] = Field(default="memory", exclude=True)
    nulls: ClassVar[Nulls] = "kept"
    key: str
    value: Any
    source: Literal["kernel", "external"] = "kernel"
    error: str | None = None


class TTLRecord(Record):
    """The TTL changed. Also holds running totals."""

    type: Literal["ttl"] = Field(default="ttl", exclude=True)
    nulls: ClassVar[Nulls] = "kept"
    limit: int
    allocated: int
    spent: int
    remaining: int
    reason: str
    usage: dict[str, int]
    cost_usd: float | None


class AllowedRule(Entity):
    """A policy rule that a person allows together with a call, and where it is saved."""

    rule: str
    scope: Scope


class _Asked(Record):
    point: ApprovalPoint
    state: Literal["asked", "decided"]
    pass_number: PassNumber
    step_id: str | None = None
    subject: dict[str, Any] | None = None
    """What was shown."""
    decision: Decision | None = None
    feedback: str | None = None
    edited: dict[str, Any] | None = None
    answers: dict[str, str] | None = None
    """The person's answers to open questions, by question."""
    allow: AllowedRule | None = None
    digest: str


class ApprovalRecord(_Asked):
    """A person was asked, or has decided."""

    type: Literal["approval"] = Field(default="approval", exclude=True)
    seal: str | None = None
    """Proves to the user who decided it that a decision, by which a call may be made, is their own: an HMAC."""


class GateRecord(_Asked):
    """A gate of a workflow waits for a decision, or was decided."""

    type: Literal["gate"] = Field(default="gate", exclude=True)


class QuestionRecord(_Asked):
    """A workflow asked about something other than a gate or a call, or got an answer."""

    type: Literal["question"] = Field(default="question", exclude=True)


class AgentRecord(Record):
    """An agent of a workflow starts a round, is skipped, gets the result of a tool use, or ends the round."""

    type: Literal["agent"] = Field(default="agent", exclude=True)
    agent: str
    state: Literal["started", "skipped", "answered", "finished"]
    pass_number: PassNumber
    """Its round."""
    contract: dict[str, Any] | None = None
    feedback: str | None = None
    """Why its work was sent back, if that is why the round started."""
    model: str | None = None
    system: str | None = None
    tools: list[str] | None = None
    source: str | None = None
    """The file that defines the agent."""
    reason: str | None = None
    """Why it was skipped."""
    tool: str | None = None
    tool_use_id: str | None = None
    args_summary: str | None = None
    success: bool | None = None
    duration_ms: float | None = None
    input: dict[str, Any] | None = None
    result: str | None = None
    """What the model gets for the tool use."""
    flags: list[str] | None = None
    """The parts of the result that look like instructions to the model."""
    cost: dict[str, Any] | None = None
    completion: dict[str, Any] | None = None
    halted: str | None = None
    files_changed: list[str] | None = None


class ObservationRecord(Record):
    """What a workflow observed in its project, so that a replay does not look again."""

    type: Literal["observation"] = Field(default="observation", exclude=True)
    nulls: ClassVar[Nulls] = "given"
    what: str
    value: Any
    error: str | None = None
    """Why the observation failed, which ended the workflow."""


class PolicyRecord(Record):
    """The policy's verdict on a call that needs approval, or that a rule or the tool itself blocks, with the reason."""

    type: Literal["policy"] = Field(default="policy", exclude=True)
    pass_number: PassNumber
    step_id: str
    tool_name: str
    answer: Literal["allow", "ask", "deny"]
    reason: str
    proposal: dict[str, Any] | None = None
    """If a person is asked: the rule that would allow calls like it, as in `Verdict.proposal`."""


class _EntityRecord(Record):
    """A record with the fields of an entity, and the pass."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")
    nulls: ClassVar[Nulls] = "kept"
    pass_number: PassNumber


class ProfileRecord(_EntityRecord):
    """The fields of a TaskProfile, the depth that follows from it, and why it was made or revised."""

    type: Literal["profile"] = Field(default="profile", exclude=True)
    adaptive_depth: dict[str, Any]
    adjustment_reason: str


class ValidationRecord(_EntityRecord):
    """The fields of a SemanticValidationReport."""

    type: Literal["validation"] = Field(default="validation", exclude=True)


class ConvergenceRecord(_EntityRecord):
    """The fields of a ConvergenceAssessment."""

    type: Literal["convergence"] = Field(default="convergence", exclude=True)


class RefinementRecord(_EntityRecord):
    """A RefinementAction, under `action`, and its result: whether it was accepted, why, and what it changed."""

    type: Literal["refinement"] = Field(default="refinement", exclude=True)


class NoticeRecord(Record):
    """A notice that stops nothing: another model is used, a budget or a context window is nearly full."""

    type: Literal["notice"] = Field(default="notice", exclude=True)
    kind: Literal[
        "model_fallback",
        "budget_warning",
        "context_window",
        "provider",
        "advisory",
        "questions",
        "manual_intervention",
        "not_judged",
        "not_reviewed",
        "context_summarized",
        "flagged",
        "retry",
        "memory",
    ]
    pass_number: PassNumber
    step_id: str | None = None
    message: str
    data: dict[str, Any] | None = None


class LabelRecord(Record):
    """A person's verdict on the result of a pass, also after `run_finished`; the last one for a pass counts.

    `source` is `decision` if the kernel writes it with a decision about the pass, and `person` if someone adds it
    later: no run emits those, so no replay compares them.
    """

    type: Literal["label"] = Field(default="label", exclude=True)
    nulls: ClassVar[Nulls] = "kept"
    raw: ClassVar[bool] = True
    verdict: Verdict
    why: str | None = None
    pass_number: PassNumber
    source: Literal["person", "decision"]


class CycleRecord(LogEntry, Record):
    """One orchestration cycle: the fields of LogEntry."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")
    type: Literal["cycle"] = Field(default="cycle", exclude=True)


class PassRecord(Record):
    """A pass ended: the fields of ExecutionPass, and all that another process needs to continue from here."""

    type: Literal["pass"] = Field(default="pass", exclude=True)
    nulls: ClassVar[Nulls] = "kept"
    pass_number: int
    phases: list[dict[str, Any]]
    plan_state: dict[str, Any]
    execution_results: dict[str, Any]
    evaluation_results: dict[str, Any]
    refinement_changes: list[dict[str, Any]]
    ttl_remaining: int
    timing_information: dict[str, Any]
    task_profile: dict[str, Any] | None = None
    adaptive_depth: dict[str, Any] | None = None
    snapshot: dict[str, Any]
    totals: dict[str, Any]
    outcomes: str | None = None
    """A digest of all input from outside up to here."""
    standing: dict[str, Any] | None = None
    """The rest of the run's state after the pass; None in a single-pass run."""


class TextRecord(Record):
    """A long text at its first occurrence; later ones refer to it as `{"$text": "<sha256>"}`."""

    type: Literal["text"] = Field(default="text", exclude=True)
    emitted: ClassVar[bool] = False
    sha256: str
    text: str


class RunFinished(Record):
    """The last line of a process's part of a run."""

    type: Literal["run_finished"] = Field(default="run_finished", exclude=True)
    nulls: ClassVar[Nulls] = "kept"
    result: RunResult
    outcomes: str | None = None
    """As in a pass record."""
    resumes_at: int | None = None
    """The seq from which a resume continues; the lines after it belong to the ending. None if the run is finished."""


RECORDS: dict[str, type[Record]] = {
    kind.tag: kind for kind in list(vars().values()) if isinstance(kind, type) and issubclass(kind, Record) and kind.tag
}
"""The class of each type of record that this version knows."""
_ANY: Any = reduce(or_, RECORDS.values())
RECORD: TypeAdapter[Any] = TypeAdapter(
    Annotated[_ANY, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
"""Validates a parsed line into its record; raises pydantic's ValidationError."""
EMITTED = frozenset(tag for tag, kind in RECORDS.items() if kind.emitted)
"""The types that the kernel emits."""
