"""Handing work to one agent at a time, and what becomes of work that does not end well (REQ-092, REQ-120, REQ-N05)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from aeon_core.errors import RunAborted
from system2.agents.definition import AgentDefinition
from system2.agents.library import AgentLibrary
from system2.context import WorkflowContext
from system2.contracts import DelegationContract
from system2.converse import Turn
from system2.entries import AgentSkipped
from system2.policies import Question
from system2.replay_log import ReplayLog
from system2.session import AgentResult, AgentSession
from system2.view import AgentState

OnAgentComplete = Callable[[AgentResult], Any]
OnState = Callable[[str, AgentState], None]


class Delegation:
    """The agents of one workflow. A session is kept, so that an agent can go on after a rejection (REQ-043).

    `replay_log` is what an earlier process has done, and `history` gives its conversation with an agent. `limits` are
    the files that an agent may change without a person's approval; one that is not named may change all.
    """

    def __init__(
        self,
        context: WorkflowContext,
        library: AgentLibrary,
        *,
        on_state: OnState,
        on_complete: OnAgentComplete | None = None,
        replay_log: ReplayLog | None = None,
        history: Callable[[str], tuple[list[Turn], int]] = lambda _: ([], 0),
        limits: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._context, self._library = context, library
        self._on_state, self._on_complete = on_state, on_complete
        self._replay_log = replay_log or ReplayLog()
        self._history, self._limits = history, limits or {}
        self._sessions: dict[str, AgentSession] = {}
        self.invoked: list[str] = []
        """Who has worked, each once, in the order of their first work."""
        self.rounds = 0
        """How often agents worked in this process."""

    def work(self, agent: str, contract: DelegationContract) -> AgentResult:
        """Have an agent work on a contract from the beginning, and return how that ended.

        An agent that stops before it is done, or says that it has failed, is asked about: again, without it, or not at
        all. Raises RunAborted for the last, UsageError where there is no such agent, and what a model's call raises.
        """
        while True:
            result = self._replay_log.result(agent) or self._live(agent, contract)
            self._note(result)
            if not _is_in_doubt(result) or self._choice(result) == "skip":
                return result

    def go_on(self, agent: str, contract: DelegationContract, feedback: str) -> AgentResult:
        """Have an agent go on with what it was told at a gate, and return how that ended. Raises as `work`."""
        result = self._replay_log.result(agent)
        if result is None:
            self._on_state(agent, "running")
            self.rounds += 1
            result = self._session(agent).go_on(contract, feedback)
            self._tell(result)
        self._note(result)
        if _is_in_doubt(result) and self._choice(result) == "retry":
            return self.work(agent, contract)
        return result

    def skip(self, agent: str, reason: str) -> None:
        """Leave an agent out, and say why (REQ-047)."""
        self._on_state(agent, "skipped")
        if self._replay_log.skipped(agent) is None:
            self._context.transcript.write(AgentSkipped(agent=agent, reason=reason))
            self._context.log.info(f"[SKIP] {agent}: {reason}")

    def _live(self, agent: str, contract: DelegationContract) -> AgentResult:
        self._on_state(agent, "running")
        self.rounds += 1
        writes = self._limits.get(agent)
        session = self._sessions[agent] = AgentSession(self._definition(agent), self._context, writes=writes)
        self._context.log.info(f"[AGENT] {agent}: {contract.objective.splitlines()[0]}")
        result = session.run(contract)
        self._tell(result)
        return result

    def _session(self, agent: str) -> AgentSession:
        """Return the agent's session, made of the earlier process's conversation where this one has none."""
        if agent not in self._sessions:
            history, rounds = self._history(agent)
            definition = self._definition(agent)
            writes = self._limits.get(agent)
            self._sessions[agent] = AgentSession(definition, self._context, history, rounds=rounds, writes=writes)
        return self._sessions[agent]

    def _definition(self, agent: str) -> AgentDefinition:
        """Return the agent as its file defines it now; where that was changed meanwhile, a person looks at it first.

        Another agent may have done it by a command. Raises RunAborted where it is not to be used.
        """
        definition = self._library.get(agent)
        if self._library.was_changed(definition):
            what = f"the agent file {str(definition.source_path)!r} has changed since the workflow started"
            question = Question("protected_file", agent, f"{what}; use the new version?", ("refuse", "allow"), "refuse")
            if self._context.human_input.choose(question) != "allow":
                raise RunAborted(f"{what}, and you have not allowed it; check it, then resume the workflow")
        return definition

    def _note(self, result: AgentResult) -> None:
        if result.agent not in self.invoked:
            self.invoked.append(result.agent)
        self._on_state(result.agent, "halted" if _is_in_doubt(result) else "complete")

    def _tell(self, result: AgentResult) -> None:
        if self._on_complete is None:
            return
        try:
            self._on_complete(result)
        except Exception as error:
            self._context.log.warning(f"on_agent_complete failed: {type(error).__name__}: {error}")

    def _choice(self, result: AgentResult) -> str:
        """Return `retry` or `skip`. Raises RunAborted."""
        choice = self._replay_log.halted(result.agent)
        if choice is None:
            question = Question(
                "agent_halted", result.agent, _why(result), ("abort", "retry", "skip"), "abort", _partial(result)
            )
            choice = self._context.human_input.choose(question)
        if choice == "abort":
            raise RunAborted(_why(result))
        return choice


def _is_in_doubt(result: AgentResult) -> bool:
    return result.completion is None or result.completion.status == "failure"


def _why(result: AgentResult) -> str:
    if result.completion is not None:
        return f"the agent {result.agent!r} reports that it failed"
    return f"the agent {result.agent!r} stopped before it finished ({(result.halted or '').replace('_', ' ')})"


def _partial(result: AgentResult) -> tuple[str, ...]:
    """Return what there is of the agent's work, for whoever decides."""
    said = result.completion.summary if result.completion is not None else result.text
    return (*([said] if said.strip() else []), *(f"changed: {path}" for path in result.files_changed))
