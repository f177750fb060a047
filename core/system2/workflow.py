"""The order of the work: each agent after the gate before it, then the checks, then the last gate (REQ-040…047)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from aeon_core.errors import RunAborted
from system2.briefs import contract_for, repair_contract
from system2.constants import DELEGATION_MAP, MAX_CYCLES, POST_EXECUTION, Gate
from system2.delegation import Delegation
from system2.gates import GATE_OF_AGENT, LAST_GATE, Gates, artifact_summary, closing_summary
from system2.policies import GateDecision, GateDecisionType
from system2.reading import text_of
from system2.recorded import Recorded
from system2.relevance import Changes, skip_reason
from system2.session import AgentResult

EXECUTOR = "executor"
SCOPE_FILE = GATE_OF_AGENT["repo-governor"].artifact
MAX_SCOPE_BYTES = 100_000
CUT_OFF = "An earlier run of this work was cut off: some files may be there already. Look at them before you write."


class Workflow:
    """One task's way through the delegation map. `cost` tells what was spent so far, for the last gate."""

    def __init__(
        self,
        task: str,
        project_root: Path,
        delegation: Delegation,
        gates: Gates,
        cost: Callable[[], str],
        recorded: Recorded | None = None,
    ) -> None:
        self._task, self._root = task, project_root
        self._delegation, self._gates, self._cost = delegation, gates, cost
        self._recorded = recorded or Recorded()
        self._changed: dict[str, None] = {}
        """The files that were changed since the tasks were approved, in order, relative to the project root."""
        self._executed: AgentResult | None = None
        """How the executor's work ended; repairs are told by those who check them."""
        self._checks: dict[str, AgentResult] = {}
        self._skipped: dict[str, str] = {}

    def run(self) -> None:
        """Do all of it. Returns when every gate is approved.

        Raises RunAborted where a person ended it, and what a model's call raises.
        """
        for agent in DELEGATION_MAP[: DELEGATION_MAP.index(EXECUTOR)]:
            self._specify(agent)
        self._execute()
        self._check()
        while (feedback := self._close()) is not None:
            self._executed = self._delegation.go_on(EXECUTOR, contract_for(EXECUTOR, self._task), feedback)
            self._note_changes(self._executed)
            self._check()

    def _specify(self, agent: str) -> None:
        """Have an agent write its document, again and again until its gate is approved (REQ-043, REQ-044)."""
        if (reason := self._reason_to_skip(agent)) is not None:
            self._delegation.skip(agent, reason)
            return
        gate = GATE_OF_AGENT[agent]
        contract = contract_for(agent, self._task, warnings=self._warnings(agent))
        result = self._delegation.work(agent, contract)
        while (feedback := self._decided(gate, partial(artifact_summary, gate, result, self._root))) is not None:
            result = self._delegation.go_on(agent, contract, feedback)

    def _execute(self) -> None:
        contract = contract_for(EXECUTOR, self._task, warnings=self._warnings(EXECUTOR))
        self._changed.update(dict.fromkeys(self._half_done()))
        self._executed = self._delegation.work(EXECUTOR, contract)
        self._note_changes(self._executed)

    def _check(self) -> None:
        """Have the change checked by those whom it concerns, and then the rest of the map done (REQ-045)."""
        self._skipped.clear()
        for agent in DELEGATION_MAP[DELEGATION_MAP.index(EXECUTOR) + 1 :]:
            if (reason := self._reason_to_skip(agent)) is not None:
                self._skipped[agent] = reason
                self._delegation.skip(agent, reason)
            else:
                self._checks[agent] = self._checked(agent)

    def _checked(self, agent: str) -> AgentResult:
        """Return an agent's last result; the executor repairs what it reports, at most MAX_CYCLES times."""
        cycle = 1
        while True:
            contract = contract_for(
                agent, self._task, changed=list(self._changed), cycle=cycle, warnings=self._warnings(agent)
            )
            result = self._delegation.work(agent, contract)
            self._note_changes(result)
            blockers = result.completion.blockers if result.completion is not None else []
            if agent not in POST_EXECUTION or not blockers or cycle > MAX_CYCLES:
                return result
            repair = repair_contract(agent, self._task, blockers, cycle)
            self._note_changes(self._delegation.work(EXECUTOR, repair))
            cycle += 1

    def _close(self) -> str | None:
        """Ask at the last gate; return the feedback for the executor, None where all is approved."""

        def summary() -> str:
            results = self._checks
            if self._executed is not None and not _is_settled(self._executed):
                results = {EXECUTOR: self._executed, **self._checks}
            return closing_summary(self._root, results.items(), self._skipped.items(), self._cost())

        return self._decided(LAST_GATE, summary)

    def _decided(self, gate: Gate, summary: Callable[[], str]) -> str | None:
        """Return what is to be done otherwise, None where the gate is approved. Raises RunAborted."""
        decision = self._recorded.decision(gate.number)
        if decision is not None:
            self._gates.decisions.append(decision)
        else:
            decision = self._gates.ask(gate, summary())
        if decision.decision is GateDecisionType.APPROVE:
            return None
        if decision.decision is GateDecisionType.ABORT:
            raise RunAborted(_aborted(gate, decision))
        return decision.feedback or ""

    def _reason_to_skip(self, agent: str) -> str | None:
        return skip_reason(agent, self._task, self._scope(), Changes.of(self._changed))

    def _scope(self) -> str:
        try:
            return text_of(self._root / SCOPE_FILE, MAX_SCOPE_BYTES)
        except OSError:
            return ""

    def _warnings(self, agent: str) -> list[str]:
        return [CUT_OFF] if self._recorded.over and self._recorded.cut_off == agent else []

    def _note_changes(self, result: AgentResult) -> None:
        told = result.completion.files_changed if result.completion is not None else []
        self._changed.update(dict.fromkeys(map(self._relative, [*result.files_changed, *told])))

    def _half_done(self) -> Iterator[str]:
        """Yield what was changed behind the tasks' gate by work that was cut off, and may be found done."""
        for agent, path in self._recorded.half_done:
            if agent not in GATE_OF_AGENT:
                yield self._relative(path)

    def _relative(self, path: str) -> str:
        return str(Path(path).relative_to(self._root)) if Path(path).is_relative_to(self._root) else path


def _is_settled(result: AgentResult) -> bool:
    return result.completion is not None and result.completion.status == "success"


def _aborted(gate: Gate, decision: GateDecision) -> str:
    why = f": {decision.feedback}" if decision.feedback else ""
    return f"aborted at gate {gate.number} ({gate.title}){why}"
