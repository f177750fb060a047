"""The quality gates: what is shown, what is decided, and what is written down about it (REQ-042, REQ-046, REQ-123)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from aeon_core.errors import AeonError, RunAborted
from aeon_core.json_safe import clean_text
from system2.bounded_reads import read_text_start
from system2.changes import FileChange
from system2.constants import GATES, LOG_FILE, Gate
from system2.context import WorkflowContext
from system2.entries import GateAsked, GateDecided
from system2.policies import (
    AutoApproveGates,
    GateDecision,
    GateDecisionType,
    GatePolicy,
    GateReview,
    GateReviewer,
    answer_of,
)
from system2.session import AgentResult

MAX_LOG_BYTES = 200_000
"""How much of the log of the checks is read for the last gate."""
_ENTRY = re.compile(r"^##[ \t]+(?P<agent>[^\n]+?)[ \t]*$", re.MULTILINE)
_RESULT = re.compile(r"^[ \t]*[-*]?[ \t]*\**Result\**[ \t]*:\**[ \t]*(?P<result>[^\n]*)", re.MULTILINE | re.IGNORECASE)

GATE_OF_AGENT: dict[str, Gate] = {gate.agent: gate for gate in GATES if gate.agent is not None}
"""The gate behind an agent's work."""
LAST_GATE = GATES[-1]


class Gates:
    """Asks the policy at each gate. `on_wait` is told of the gate that waits, and None when it is decided."""

    def __init__(self, context: WorkflowContext, policy: GatePolicy, on_wait: Callable[[Gate | None], None]) -> None:
        self._context, self._policy, self._on_wait = context, policy, on_wait
        self.decisions: list[GateDecision] = []
        """All decisions, in order."""

    @property
    def automatic(self) -> bool:
        """Whether nobody looks at what a gate is about."""
        return isinstance(self._policy, AutoApproveGates)

    def ask(
        self,
        gate: Gate,
        summary: str,
        problems: Sequence[str] = (),
        changes: Sequence[FileChange] = (),
        snapshot: Callable[[GateDecision], str | None] = lambda _: None,
    ) -> GateDecision:
        """Return the decision at a gate. With `problems` in what was to be produced none is approved automatically.

        `changes` are the files that changed since the gate before, and `snapshot` names the project's files once it is
        decided. Raises AeonError where the policy fails or its answer is none, RunAborted where the work was stopped
        meanwhile and the answer comes too late: nothing goes on then.
        """
        context = self._context
        review = GateReview(gate.number, gate.artifact, summary, tuple(changes))
        told = [change.as_dict() for change in changes]
        context.transcript.write(
            GateAsked(gate=gate.number, agent=gate.agent, artifact=gate.artifact, summary=summary, changes=told)
        )
        if self.automatic:
            context.log.info(f"[GATE] Gate {gate.number} ({gate.title})\n{summary}")
        self._on_wait(gate)
        try:
            if problems and self.automatic:
                said = GateDecision(gate.number, GateDecisionType.ABORT, f"not approved: {listed(problems)}")
            else:
                said = answer_of("gate policy", lambda: self._decision(review))
        finally:
            self._on_wait(None)
        if not isinstance(said, GateDecision) or not isinstance(said.decision, GateDecisionType):
            raise AeonError(f"the gate policy returned {type(said).__name__}, expected a GateDecision")
        if context.abort.is_set() and said.decision is not GateDecisionType.ABORT:
            raise RunAborted(f"the workflow was aborted at gate {gate.number} ({gate.title})")
        timestamp = said.timestamp or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        feedback = clean_text(said.feedback) if said.feedback is not None else None
        decision = replace(said, gate_number=gate.number, timestamp=timestamp, feedback=feedback)
        context.transcript.write(
            GateDecided(
                gate=gate.number,
                decision=decision.decision.value,
                feedback=decision.feedback,
                agent=gate.agent,
                snapshot=snapshot(decision),
            )
        )
        context.log.gate(gate.title, decision)
        self.decisions.append(decision)
        return decision

    def _decision(self, review: GateReview) -> GateDecision:
        if isinstance(self._policy, GateReviewer):
            return self._policy.review(review)
        return self._policy.decide(review.gate, review.artifact, review.text)


def agent_problems(result: AgentResult) -> list[str]:
    """Return why an agent's work does not count as done, by its own word: not completed, failed, blockers left."""
    if result.completion is None:
        return [f"{result.agent} did not complete its work ({(result.halted or '').replace('_', ' ')})"]
    blockers = [f"{result.agent} reports a blocker: {blocker}" for blocker in result.completion.blockers]
    if blockers or result.completion.status == "success":
        return blockers
    return [f"{result.agent} reports {result.completion.status}"]


def artifact_summary(result: AgentResult, problems: Iterable[str], changed: str) -> str:
    """Return what a person is told at the gate behind an agent's work.

    That is the `problems` with it, the list of the files that changed, and the agent's summary.
    """
    said = result.completion.summary if result.completion is not None else result.text
    return "\n".join(line for line in (*problems, changed, said) if line.strip())


def closing_summary(
    project_root: Path,
    results: Iterable[tuple[str, AgentResult]],
    skipped: Iterable[tuple[str, str]],
    parts: Sequence[str],
    problems: Sequence[str] = (),
) -> str:
    """Return what a person is told at the last gate (REQ-046): what is left open, `parts`, each check's result.

    `parts` are the changed files, the tests and the cost; `results` are the checks' last ones. What the log says of an
    agent comes with it; it is read, never trusted to be complete.
    """
    entries = logged_results(project_root)
    lines = ["Missing or left open:", *(f"- {problem}" for problem in problems), ""] if problems else []
    for part in parts:
        lines += [part, ""]
    lines.append("Checks after execution:")
    told = set()
    for agent, result in results:
        told.add(agent)
        lines.append(f"- {agent}: {_outcome(result, entries.get(agent))}")
        if result.completion is not None:
            lines += [f"  - blocker: {blocker}" for blocker in result.completion.blockers]
            lines += [f"  {line}" for line in result.completion.summary.splitlines()[:3] if line.strip()]
    lines += [f"- {agent}: skipped, {reason}" for agent, reason in skipped]
    lines += [
        f"- {agent}: {said or 'no result'} (in {LOG_FILE})" for agent, said in entries.items() if agent not in told
    ]
    if not entries:
        lines.append(f"{LOG_FILE} has no entry.")
    return "\n".join(lines)


def logged_results(project_root: Path) -> dict[str, str]:
    """Return what the project's log of the checks says of each agent; nothing where it cannot be read."""
    return log_entries(_log(project_root))


def log_entries(text: str) -> dict[str, str]:
    """Return what the log of the checks says of each agent: the last `Result:` under its last heading."""
    headings = list(_ENTRY.finditer(text))
    entries: dict[str, str] = {}
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
        found = list(_RESULT.finditer(text, heading.end(), end))
        entries[heading["agent"].strip("` *")] = found[-1]["result"].strip("` *") if found else ""
    return entries


def _outcome(result: AgentResult, logged: str | None) -> str:
    if result.completion is None:
        return f"halted ({(result.halted or '').replace('_', ' ')})"
    said = "pass" if result.completion.status == "success" else result.completion.status
    if logged and logged.lower() not in (said, result.completion.status):
        return f"{said} (the log says: {logged})"
    return said


def listed(problems: Sequence[str]) -> str:
    """Return the first problems in one line, and how many more there are."""
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def _log(project_root: Path) -> str:
    try:
        return read_text_start(project_root / LOG_FILE, MAX_LOG_BYTES)
    except OSError:
        return ""
