"""Who decides while a workflow runs: at gates, about Bash commands, and on other questions (REQ-073, AD-7).

Nothing below the command line uses a terminal; it asks a policy. A policy is called on the workflow's thread, and may
block it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, Literal, Protocol

from aeon_core.approvals import NOBODY, ApprovalDecision, ApprovalRequest, Approver, nobody_answered, rejected
from aeon_core.errors import AeonError, RunAborted, UsageError
from aeon_core.json_safe import clean_text
from aeon_core.paths import leads_to
from aeon_core.suggest import shown
from aeon_core.tools.files import CUT_AT, whole_diff
from system2.cost import dollars


class GateDecisionType(Enum):
    APPROVE = "approve"
    REJECT = "reject"
    ABORT = "abort"


@dataclass(frozen=True)
class GateDecision:
    """A decision at a gate; a rejection comes with feedback (REQ-043)."""

    gate_number: int
    decision: GateDecisionType
    feedback: str | None = None
    timestamp: str = ""
    """When it was made, ISO 8601 in UTC; the orchestrator sets it."""


class GatePolicy(Protocol):
    """Decides at the quality gates (REQ-042)."""

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:
        """Return the decision on an artifact, given by its path in the project.

        The summary says what is left open, which files changed and what the agent reported, followed by the diffs.
        """


class BashPolicy(Protocol):
    """Confirms Bash commands (REQ-027, REQ-115)."""

    def confirm(self, command: str, is_blocklisted: bool) -> bool | str:
        """Return whether the command may run; a string refuses it and tells the agent why.

        A blocklisted command is only asked about in permissive mode.
        """


QuestionKind = Literal[
    "injection",
    "cost_ceiling",
    "context_overflow",
    "api_error",
    "protected_file",
    "file_change",
    "agent_halted",
    "existing_spec",
    "unknown_call",
    "bash",
]
"""In order: an agent's message may be injected (REQ-113); the ceiling is reached (REQ-132); the context window is full
(REQ-055); the model cannot be reached (REQ-091); a change to a file that controls the workflow or git; a change outside
the agent's document, or any if the settings say `ask`; an agent failed or stopped without completing (REQ-092);
`spec/` holds an earlier workflow's documents; a call was cut off, and its effect is unknown. `bash` occurs only in the
transcript: a BashPolicy is asked instead."""


@dataclass(frozen=True)
class Question:
    """A question for a person, as plain data that includes the reasons for it."""

    kind: QuestionKind
    agent: str
    text: str
    choices: tuple[str, ...]
    safe: str
    """The choice that is made if nobody can be asked."""
    details: tuple[str, ...] = ()

    @property
    def takes_reason(self) -> bool:
        """Whether the agent reads why a person refuses."""
        return self.kind in ("protected_file", "file_change")


class QuestionPolicy(Protocol):
    """Answers questions other than gates and Bash commands."""

    def choose(self, question: Question) -> str:
        """Return one of the question's choices; any other answer counts as the safe one."""


class AutoApproveGatePolicy:
    """Approves every gate: `--auto-approve` (REQ-005). It is not asked if a gate's work was not produced."""

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:  # noqa: ARG002  # the protocol's
        return GateDecision(gate, GateDecisionType.APPROVE)


AutoApproveGates = AutoApproveGatePolicy  # an earlier name, for programs that use it


def policy_of(given: Any, method: str, what: str) -> Any:
    """Return a policy from an object with the method, or from a function; None stays None (REQ-073).

    Raises UsageError for anything else, which would otherwise fail in the middle of the work.
    """
    is_instance = not isinstance(given, type)
    if is_instance and any(map(inspect.iscoroutinefunction, (given, getattr(given, method, None)))):
        raise UsageError(
            f"the {what} is async, expected a plain function; run the coroutine inside it with asyncio.run"
        )
    if given is None or (is_instance and callable(getattr(given, method, None))):
        return given
    if is_instance and callable(given):
        return SimpleNamespace(**{method: given})
    got = f"the class {given.__name__}; pass an instance" if isinstance(given, type) else type(given).__name__
    raise UsageError(f"the {what} must be a function or have a method {method!r}, got {got}")


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Convert an error in a policy to an AeonError that names the policy."""
    try:
        yield
    except AeonError:
        raise
    except Exception as error:
        raise AeonError(f"the {what} failed: {type(error).__name__}: {error}") from error


_CHOICES = {
    "tool": ("refuse", "allow"),
    "budget": ("stop", "continue"),
    "unknown": ("leave", "repeat"),
}
UNPROTECTED = ("it is outside the agent's document", "the settings ask", "the rule ask:")
"""Prefixes of the reasons for asking about a file that controls nothing."""
FAILED = "not decided: "
"""Prefix of the feedback of an abort that nobody decided, because a policy failed."""
NOBODY_DECIDED = "nobody decided in time"
NOBODY_CONFIRMS = "nobody is there to confirm commands"
NOBODY_ALLOWS = "nobody allowed it"


def question_of(point: str, subject: Mapping[str, Any], agent: str | None) -> Question:
    """Return the question at an approval point other than a gate."""
    who = str(subject.get("agent") or agent or "")
    if point == "question":
        details = tuple(map(str, subject.get("details") or ()))
        return Question(subject["kind"], who, subject["text"], tuple(subject["choices"]), subject["safe"], details)
    if point == "budget":
        names = ("spent_usd", "reserved_usd", "limit_usd", "proposed_usd")
        spent, next_call, limit, proposed = (dollars(subject[name]) for name in names)
        held = f", and {dollars(subject['held_usd'])} more may have been spent" if subject.get("held_usd") else ""
        reached = f"the workflow has cost {spent}{held}; the next call may cost up to {next_call}"
        text = f"{reached}, the ceiling is {limit}; continue, up to {proposed}?"
        return Question("cost_ceiling", who, text, _CHOICES[point], "stop")
    arguments, name = dict(subject.get("arguments") or {}), str(subject.get("tool_name"))
    what = str(arguments.get("command") or arguments.get("file_path") or name)
    preview = subject.get("preview") or {}
    shown = preview.get("diff") or preview.get("problem")
    if shown is None and name == "Write":
        shown = whole_diff(what, b"", str(arguments.get("content", "")).encode("utf-8", "replace"))
    is_cut = any(line.startswith(CUT_AT) for line in (shown or "").split("\n"))
    in_full = (f"{key}:\n{value}" for key, value in arguments.items() if is_cut and key != "file_path")
    if point == "unknown":
        text = f"the outcome of {name} is unknown: the process ended during {what!r}; repeat it?"
        return Question("unknown_call", who, text, _CHOICES[point], "leave", (shown,) if shown else ())
    if name == "Bash":
        why = (str(subject["reason"]),) if subject.get("blocklisted") else ()
        return Question("bash", who, what, ("refuse", "run"), "refuse", why)
    reason = str(subject.get("reason") or "")
    kind: QuestionKind = "file_change" if reason.startswith(UNPROTECTED) else "protected_file"
    details = tuple(filter(None, (preview.get("warning"), reason, shown, *in_full)))
    target = leads_to(what, preview.get("diff") or "")
    text = f"{name} would change {what!r}{f', which leads to {target!r}' if target else ''}"
    return Question(kind, who, text, _CHOICES[point], "refuse", details)


def choice_of(question: Question, decision: Mapping[str, Any]) -> str:
    """Return the choice that a decision makes; without an answer that fits, approval chooses the first unsafe one."""
    chosen = next(iter((decision.get("answers") or {}).values()), None)
    if chosen in question.choices:
        return str(chosen)
    if decision.get("decision") == "abort" and "abort" in question.choices:
        return "abort"
    others = [choice for choice in question.choices if choice != question.safe]
    return others[0] if decision.get("decision") in ("approve", "edit") and others else question.safe


def decision_on(question: Question, choice: str) -> ApprovalDecision:
    """Return the decision that expresses a choice; an unknown one counts as the safe one."""
    if choice not in question.choices or choice == question.safe:
        return ApprovalDecision(decision="reject")
    return ApprovalDecision(decision="approve", answers={question.text: choice})


def ended_by(decision: ApprovalDecision, where: str) -> AeonError:
    """Return the error with which a decision to abort ends the workflow."""
    feedback = decision.feedback or ""
    if feedback.startswith(FAILED):
        return AeonError(feedback.removeprefix(FAILED))
    return RunAborted(f"aborted at {where}{f': {feedback}' if feedback else ''}")


class PolicyApprover:
    """Asks the policies of a workflow; `others` is asked if there is no policy.

    `aborted` says whether the work was stopped: the gate policy's answer then counts as an abort.
    """

    def __init__(
        self,
        gates: GatePolicy | None,
        bash: BashPolicy | None,
        questions: QuestionPolicy | None,
        others: Approver | None = None,
        aborted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._gates, self._bash, self._questions = gates, bash, questions
        self._others, self._aborted = others, aborted

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return the decision; if a policy fails, it is an abort whose feedback says so."""
        try:
            return self._decide(request)
        except AeonError as error:
            return ApprovalDecision(decision="abort", feedback=f"{FAILED}{error.message}")

    def _decide(self, request: ApprovalRequest) -> ApprovalDecision:
        if request.point == "gate":
            return self._other(request) if self._gates is None else self._at_gate(self._gates, request.subject)
        question = question_of(request.point, request.subject, request.step_id)
        if question.kind == "bash":
            if self._bash is None:
                return self._other(request, NOBODY_CONFIRMS)
            with _named("Bash policy"):
                answer = self._bash.confirm(question.text, bool(request.subject.get("blocklisted")))
            reason = clean_text(answer.strip()) if isinstance(answer, str) else ""
            return ApprovalDecision(decision="approve" if answer is True else "reject", feedback=reason or None)
        if self._questions is None:
            return self._other(request)
        with _named("question policy"):
            decision = decision_on(question, self._questions.choose(question))
        refused = decision.decision == "reject" and request.point == "tool"
        return decision.model_copy(update={"feedback": NOBODY_ALLOWS}) if refused else decision

    def _other(self, request: ApprovalRequest, why_not: str = NOBODY_ALLOWS) -> ApprovalDecision:
        decision = self._others(request) if self._others is not None else None
        if request.point == "unknown":
            return decision or rejected(NOBODY)
        if self._others is None and request.point != "gate":
            # With --unsafe-bash, only the reason says what is not plain about a command.
            feedback = f"{request.subject['reason']}, and {why_not}" if request.point == "tool" else None
            return ApprovalDecision(decision="reject", feedback=feedback)
        if decision is None or nobody_answered(getattr(decision, "feedback", None)):
            # A gate stays open, and a resume asks again; a rejection would have the agent work for nothing.
            return ApprovalDecision(decision="abort" if request.point == "gate" else "reject", feedback=NOBODY_DECIDED)
        return decision

    def _at_gate(self, policy: GatePolicy, subject: Mapping[str, Any]) -> ApprovalDecision:
        diffs = [change["diff"] for change in subject.get("changes") or () if change.get("diff")]
        with _named("gate policy"):
            text = "\n\n".join([subject["summary"], *diffs])
            answer: object = policy.decide(subject["gate"], subject["artifact"], text)
        if not isinstance(answer, GateDecision):
            raise AeonError(f"the gate policy returned {type(answer).__name__}, expected a GateDecision")
        if not isinstance(answer.decision, GateDecisionType):
            raise AeonError(
                f"the gate policy decided {shown(answer.decision)}, expected a GateDecisionType such as "
                "GateDecisionType.APPROVE"
            )
        if self._aborted() and answer.decision is not GateDecisionType.ABORT:
            return ApprovalDecision(decision="abort")
        feedback = clean_text(answer.feedback) if answer.feedback is not None else None
        return ApprovalDecision(decision=answer.decision.value, feedback=feedback)
