"""Hands work to one agent at a time, and asks what to do if it fails (REQ-092, REQ-120, REQ-N05)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from aeon_core.errors import RunAborted
from aeon_core.journal.records import AgentRecord
from system2.agents.library import AgentDefinition
from system2.context import WorkflowContext
from system2.contracts import DelegationContract
from system2.policies import Question
from system2.session import AgentResult, AgentSession


class Delegation:
    """The agents of one workflow. Sessions are kept so that an agent can continue after a rejection (REQ-043).

    `limits` lists the files that each agent may change without a person's approval; other agents may change any.
    """

    def __init__(self, context: WorkflowContext, limits: Mapping[str, Collection[str]]) -> None:
        self._context, self._limits = context, limits
        self._sessions: dict[str, AgentSession] = {}

    def work(self, agent: str, contract: DelegationContract, feedback: str | None = None) -> AgentResult:
        """Have an agent work on a contract from the start, and return how that ended.

        With `feedback` from a gate it continues its conversation. If it stops early or reports failure, a person can
        retry, skip or abort. Raises RunAborted for an abort, UsageError if there is no such agent, and what a
        model's call raises.
        """
        while True:
            if feedback is None:
                self._sessions.pop(agent, None)
            result = self._session(agent).run(contract, feedback)
            self._notify(result)
            if not _is_in_doubt(result) or self._choice(result) == "skip":
                return result
            feedback = None

    def skip(self, agent: str, reason: str) -> None:
        """Record that an agent is skipped, and why (REQ-047)."""
        rounds = self._sessions[agent].rounds if agent in self._sessions else 0
        self._context.effects.emit(AgentRecord(agent=agent, state="skipped", pass_number=rounds, reason=reason))

    def _session(self, agent: str) -> AgentSession:
        """Return the agent's session; it is new if the agent has not worked, as after keeping an earlier document."""
        if agent not in self._sessions:
            definition, writes = self._definition(agent), self._limits.get(agent)
            self._sessions[agent] = AgentSession(definition, self._context, writes=writes)
        return self._sessions[agent]

    def _definition(self, agent: str) -> AgentDefinition:
        """Return the agent as its file defines it now; a person must allow a file that changed during the workflow.

        Another agent may have changed it with a command. Raises RunAborted if it is refused.
        """
        found = self._context.effects.observe("agent", lambda: self._read(agent))
        definition = AgentDefinition(**{**found["definition"], "source_path": Path(found["definition"]["source_path"])})
        if found["was_changed"]:
            what = f"the agent file {str(definition.source_path)!r} has changed since the workflow started"
            question = Question("protected_file", agent, f"{what}; use the new version?", ("refuse", "allow"), "refuse")
            if self._context.choose(question) != "allow":
                raise RunAborted(f"{what}, and you have not allowed it; check it, then resume the workflow")
        return definition

    def _read(self, agent: str) -> dict[str, Any]:
        library = self._context.library
        assert library is not None
        definition = library.get(agent)
        definition_dict = {**vars(definition), "source_path": str(definition.source_path)}
        return {"definition": definition_dict, "was_changed": library.was_changed(definition)}

    def _notify(self, result: AgentResult) -> None:
        context = self._context
        if context.on_complete is not None and not context.effects.recording:
            try:
                context.on_complete(result)
            except Exception as error:
                context.warn(f"on_agent_complete failed: {type(error).__name__}: {error}")

    def _choice(self, result: AgentResult) -> str:
        """Return `retry` or `skip`. Raises RunAborted."""
        asked_at = self._context.effects.next_seq
        question = Question(
            "agent_halted", result.agent, _why(result), ("abort", "retry", "skip"), "abort", _partial(result)
        )
        choice = self._context.choose(question)
        if choice == "abort":
            self._context.effects.resumes_from(asked_at)
            raise RunAborted(_why(result))
        return choice


def _is_in_doubt(result: AgentResult) -> bool:
    return result.completion is None or result.completion.status == "failure"


def _why(result: AgentResult) -> str:
    if result.completion is not None:
        return f"the agent {result.agent!r} reports that it failed"
    return f"the agent {result.agent!r} stopped before it finished ({(result.halted or '').replace('_', ' ')})"


def _partial(result: AgentResult) -> tuple[str, ...]:
    """Return what the agent has said and changed, for the person who decides."""
    summary_text = result.completion.summary if result.completion is not None else result.text
    return (*([summary_text] if summary_text.strip() else []), *(f"changed: {path}" for path in result.files_changed))
