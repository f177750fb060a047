"""The quality gates: what they show, and how they are decided (REQ-042, REQ-046, REQ-123)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from aeon_core.approvals import ApprovalDecision
from system2.changes import FileChange
from system2.constants import LOG_FILE, Gate
from system2.context import WorkflowContext
from system2.documents import text_of
from system2.policies import ended_by
from system2.session import AgentResult

_ENTRY = re.compile(r"^##[ \t]+(?P<agent>[^\n]+?)[ \t]*$", re.MULTILINE)
_RESULT = re.compile(r"^[ \t]*[-*]?[ \t]*\**Result\**[ \t]*:\**[ \t]*(?P<result>[^\n]*)", re.MULTILINE | re.IGNORECASE)


class Gates:
    """Asks at each gate; an automatic workflow asks nobody, and approves a gate whose work was produced."""

    def __init__(self, context: WorkflowContext) -> None:
        self._context, self._effects = context, context.effects
        self._again = context.resumed
        """Whether, after a resume, the first failure is rejected instead of aborted: its cause may be gone."""
        self.decided: set[int] = set()
        """The gates that have been decided, by number."""

    def ask(
        self, gate: Gate, summary: str, problems: Sequence[str] = (), changes: Sequence[FileChange] = ()
    ) -> ApprovalDecision:
        """Return the decision at a gate, which is never approved automatically if there are `problems`.

        `changes` lists the files that changed since the previous gate. Raises RunAborted if the workflow ends here,
        AeonError if the policy fails.
        """
        root = self._context.project_root
        subject = {
            "gate": gate.number,
            "title": gate.title,
            "agent": gate.agent,
            "artifact": gate.artifact,
            "summary": summary,
            "changes": [change.as_dict() for change in changes],
            "content": self._effects.observe("artifact", lambda: text_of(root, gate.artifact)),
        }
        answer = self._effects.decide(
            "gate", subject, pass_number=gate.number, step_id=gate.agent, policy=lambda: self._automatic(problems)
        )
        self.decided.add(gate.number)
        if answer.decision == "abort":
            raise ended_by(answer, f"gate {gate.number} ({gate.title})")
        return answer

    def _automatic(self, problems: Sequence[str]) -> ApprovalDecision | None:
        if not self._context.automatic:
            return None
        if not problems:
            return ApprovalDecision(decision="approve")
        again, self._again = self._again, False
        return ApprovalDecision(
            decision="reject" if again else "abort", feedback=f"not approved: {join_problems(problems)}"
        )


def agent_problems(result: AgentResult) -> list[str]:
    """Return why an agent's work is not done, by its own report: not completed, failed, or blockers left."""
    if result.completion is None:
        return [f"{result.agent} did not complete its work ({(result.halted or '').replace('_', ' ')})"]
    blockers = [f"{result.agent} reports a blocker: {blocker}" for blocker in result.completion.blockers]
    if blockers or result.completion.status == "success":
        return blockers
    return [f"{result.agent} reports {result.completion.status}"]


def artifact_summary(result: AgentResult, problems: Iterable[str], changed: str) -> str:
    """Return what a person reads at the gate that follows an agent's work.

    It lists the `problems` and the files that changed, and ends with the agent's summary.
    """
    own_summary = result.completion.summary if result.completion is not None else result.text
    return "\n".join(line for line in (*problems, changed, own_summary) if line.strip())


def closing_summary(
    entries: Mapping[str, str],
    results: Mapping[str, AgentResult],
    skipped: Mapping[str, str],
    parts: Sequence[str],
    problems: Sequence[str] = (),
) -> str:
    """Return what a person reads at the last gate (REQ-046): what is left open, `parts`, each check's result.

    `parts` are the changed files, the tests and the cost; `results` holds the last result of each check. `entries` are
    the agents' results in the log, which may be incomplete.
    """
    lines = ["Missing or left open:", *(f"- {problem}" for problem in problems), ""] if problems else []
    for part in parts:
        lines += [part, ""]
    lines.append("Checks after execution:")
    for agent, result in results.items():
        lines.append(f"- {agent}: {_outcome(result, entries.get(agent))}")
        if result.completion is not None:
            lines += [f"  - blocker: {blocker}" for blocker in result.completion.blockers]
            lines += [f"  {line}" for line in result.completion.summary.splitlines()[:3] if line.strip()]
    lines += [f"- {agent}: skipped, {reason}" for agent, reason in skipped.items()]
    lines += [
        f"- {agent}: {said or 'no result'} (in {LOG_FILE})" for agent, said in entries.items() if agent not in results
    ]
    if not entries:
        lines.append(f"{LOG_FILE} has no entry.")
    return "\n".join(lines)


def log_entries(text: str) -> dict[str, str]:
    """Return each agent's result in a post-execution log: the last `Result:` under the agent's last heading."""
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
    verdict = "pass" if result.completion.status == "success" else result.completion.status
    if logged and logged.lower() not in (verdict, result.completion.status):
        return f"{verdict} (the log says: {logged})"
    return verdict


def join_problems(problems: Sequence[str]) -> str:
    """Return the first problems in one line, and how many more there are."""
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more
