"""Who decides while a workflow runs: gates, Bash commands, and what else only a person can say (REQ-073, AD-7).

Nothing below the command line reads from a terminal or writes to one: it asks a policy. A policy is called on the
workflow's thread, and may take its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, Literal, Protocol, TypeVar

from aeon_core.errors import AeonError, UsageError

Answer = TypeVar("Answer")


class GateDecisionType(Enum):
    """What a person can say at a gate."""

    APPROVE = "approve"
    REJECT = "reject"
    ABORT = "abort"


@dataclass(frozen=True)
class GateDecision:
    """What was said at a gate; a rejection comes with feedback (REQ-043)."""

    gate_number: int
    decision: GateDecisionType
    feedback: str | None = None
    timestamp: str = ""
    """When it was said, ISO 8601 in UTC; the orchestrator fills in what a policy leaves empty."""


class GatePolicy(Protocol):
    """Decides at the quality gates (REQ-042)."""

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:
        """Return the decision on an artifact, given by its path in the project.

        The summary says what is left open, which files changed and what the agent says, with the diffs below it.
        """


GateFunction = Callable[[int, str, str], GateDecision]
"""Stands in for a GatePolicy."""


class BashPolicy(Protocol):
    """Confirms Bash commands (REQ-027, REQ-115)."""

    def confirm(self, command: str, is_blocklisted: bool) -> bool | str:
        """Return whether the command may run; a text refuses it, and tells the agent why.

        A blocklisted command is only asked about in permissive mode.
        """


BashFunction = Callable[[str, bool], bool | str]
"""Stands in for a BashPolicy."""

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
"""What an agent said may be injected (REQ-113); the ceiling is reached (REQ-132); the context window is full (REQ-055);
the model cannot be reached (REQ-091); a file would change that steers the workflow or git; one would change that is not
the agent's document, or any where the settings say `ask`; an agent stopped without a completion signal (REQ-092);
`spec/` holds what an earlier workflow wrote; a call was cut off, and whether it took effect is unknown. `bash` occurs
in the transcript alone: a BashPolicy is asked."""


@dataclass(frozen=True)
class Question:
    """What only a person can say, as plain data that carries its reasons."""

    kind: QuestionKind
    agent: str
    text: str
    choices: tuple[str, ...]
    safe: str
    """The choice that is made where nobody can be asked."""
    details: tuple[str, ...] = ()


class QuestionPolicy(Protocol):
    """Answers what is neither a gate nor a Bash command."""

    def choose(self, question: Question) -> str:
        """Return one of the question's choices; any other answer counts as the safe one."""


QuestionFunction = Callable[[Question], str]
"""Stands in for a QuestionPolicy."""


class AutoApproveGates:
    """Approves every gate: `--auto-approve` (REQ-005). It is not asked where the work of a gate was not produced."""

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:  # noqa: ARG002  # the protocol's
        """Return an approval."""
        return GateDecision(gate, GateDecisionType.APPROVE)


def policy_of(given: Any, method: str, what: str) -> Any:
    """Return a policy for an object that has the method, or for a function in its place; None stays None (REQ-073).

    Raises UsageError for anything else, before it could fail in the middle of the work.
    """
    is_instance = not isinstance(given, type)
    if given is None or (is_instance and callable(getattr(given, method, None))):
        return given
    if is_instance and callable(given):
        return SimpleNamespace(**{method: given})
    got = f"the class {given.__name__}; pass an instance" if isinstance(given, type) else type(given).__name__
    raise UsageError(f"the {what} must be a function or have a method {method!r}, got {got}")


def answer_of(what: str, ask: Callable[[], Answer]) -> Answer:
    """Return what a policy answers. Raises AeonError that names the policy where it fails."""
    try:
        return ask()
    except AeonError:
        raise
    except Exception as error:
        raise AeonError(f"the {what} failed: {type(error).__name__}: {error}") from error
