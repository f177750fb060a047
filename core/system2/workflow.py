"""The order of the work: each agent after the gate before it, then the checks, then the last gate (REQ-040…047)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from aeon_core.errors import RunAborted
from system2.agent_contracts import DOCUMENTS, contract_for, repair_contract
from system2.bounded_reads import read_text_start
from system2.constants import DELEGATION_MAP, LOG_FILE, MAX_CYCLES, POST_EXECUTION, Gate
from system2.contracts import DelegationContract
from system2.delegation import Delegation
from system2.documents import Documents, ProjectFiles, changed_files, project_files
from system2.gates import (
    GATE_OF_AGENT,
    LAST_GATE,
    Gates,
    agent_problems,
    artifact_summary,
    closing_summary,
    logged_results,
)
from system2.policies import GateDecision, GateDecisionType
from system2.relevance import Changes, skip_reason
from system2.replay_log import ReplayLog
from system2.session import AgentResult

EXECUTOR = "executor"
SCOPE_FILE = GATE_OF_AGENT["repo-governor"].artifact
SPEC_FOLDER = "spec/"
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
        replay_log: ReplayLog | None = None,
    ) -> None:
        self._task, self._root = task, project_root
        self._delegation, self._gates, self._cost = delegation, gates, cost
        self._replay_log = replay_log or ReplayLog()
        self._changed: dict[str, None] = {}
        """The files that were changed since the tasks were approved, in order, relative to the project root."""
        self._documents = Documents(project_root, self._replay_log.documents)
        self._written: set[str] = set()
        """The files that any agent wrote to by its tools."""
        self._before: ProjectFiles | None = None
        """The project as the executor found it; None where an earlier process had it work."""
        self._produced: set[str] = set()
        """What the project has since the executor worked, and had not before, but for `spec/`."""
        self._executed: AgentResult | None = None
        """How the executor's work ended; repairs are told by those who check them."""
        self._checks: dict[str, AgentResult] = {}
        self._skipped: dict[str, str] = {}
        self._kept: tuple[str, ...] = ()
        """The documents of an earlier workflow that this one builds on."""

    def keep(self, documents: tuple[str, ...]) -> None:
        """Begin with these documents of an earlier workflow: their agents work only where a gate is rejected."""
        self._kept = documents
        self._written.update(documents)

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
            self._note_production()
            self._check()

    def _specify(self, agent: str) -> None:
        """Have an agent write its document, again and again until its gate is approved (REQ-043, REQ-044)."""
        if (reason := self._reason_to_skip(agent)) is not None:
            self._delegation.skip(agent, reason)
            return
        gate = GATE_OF_AGENT[agent]
        contract = contract_for(agent, self._task, warnings=self._warnings(agent))
        if gate.artifact in self._kept:
            self._keep(agent, gate, contract)
            return
        live = self._replay_log.over
        result = self._worked(agent, contract)
        if not live and self._replay_log.over and self._gates.automatic and self._problems(gate, result):
            # An earlier process ended on these, at this gate; what caused them may have been removed since.
            result = self._worked(agent, contract)
        self._settle(agent, gate, contract, result)

    def _keep(self, agent: str, gate: Gate, contract: DelegationContract) -> None:
        """Ask at a gate about a document of an earlier workflow; its agent works where that is rejected."""
        kept = f"{gate.artifact} is from an earlier workflow"
        self._delegation.skip(agent, kept)
        missing = self._documents.problem(gate.artifact, self._written)
        problems = [missing] if missing is not None else []
        feedback = self._decided(gate, lambda: "\n".join([*problems, f"{kept}; approve to keep it as it is"]), problems)
        if feedback is not None:
            self._settle(agent, gate, contract, self._again(agent, contract, feedback))

    def _settle(self, agent: str, gate: Gate, contract: DelegationContract, result: AgentResult) -> None:
        """Have an agent go on until its gate is approved (REQ-043)."""
        while True:
            problems = self._problems(gate, result)
            feedback = self._decided(gate, partial(artifact_summary, result, problems), problems)
            if feedback is None:
                return
            result = self._again(agent, contract, feedback)

    def _again(self, agent: str, contract: DelegationContract, feedback: str) -> AgentResult:
        result = self._delegation.go_on(agent, contract, feedback)
        self._written.update(map(self._relative, result.files_changed))
        return result

    def _worked(self, agent: str, contract: DelegationContract) -> AgentResult:
        result = self._delegation.work(agent, contract)
        self._written.update(map(self._relative, result.files_changed))
        return result

    def _problems(self, gate: Gate, result: AgentResult) -> list[str]:
        """Return why the work behind a gate was not produced; nothing where it was."""
        missing = self._documents.problem(gate.artifact, self._written)
        return [*agent_problems(result), *([missing] if missing is not None else [])]

    def _execute(self) -> None:
        contract = contract_for(EXECUTOR, self._task, warnings=self._warnings(EXECUTOR))
        half_done = list(self._half_done())
        self._changed.update(dict.fromkeys(half_done))
        self._written.update(half_done)
        self._before = project_files(self._root) if self._replay_log.over else None
        self._executed = self._delegation.work(EXECUTOR, contract)
        self._note_changes(self._executed)
        self._note_production(half_done)

    def _note_production(self, half_done: Iterable[str] = ()) -> None:
        if self._before is not None and self._executed is not None:
            found = changed_files(self._before, project_files(self._root))
            found.update(half_done, map(self._relative, self._executed.files_changed))
            self._produced = {path for path in found if not path.startswith(SPEC_FOLDER)}

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

        problems = self._open_problems()

        def summary() -> str:
            results = self._checks
            if self._executed is not None and not _is_settled(self._executed):
                results = {EXECUTOR: self._executed, **self._checks}
            skipped = self._skipped.items()
            return closing_summary(self._root, results.items(), skipped, self._cost(), problems)

        return self._decided(LAST_GATE, summary, problems)

    def _open_problems(self) -> list[str]:
        """Return what of the executor's work and of the checks was not produced, or is left open (REQ-005, REQ-046)."""
        problems = self._problems_of_execution()
        logged = logged_results(self._root)
        for agent, result in self._checks.items():
            found = agent_problems(result)
            if not found and logged.get(agent, "").lower().startswith("blocker"):
                found = [f"{LOG_FILE} says of {agent}: {logged[agent]}"]
            if (missing := self._documents.problem(DOCUMENTS[agent], self._written)) is not None:
                found.append(f"{agent}: {missing}")
            problems += found
        if self._checks.keys() & set(POST_EXECUTION):
            missing = self._documents.problem(LOG_FILE, self._written)
            problems += [missing] if missing is not None else []
        return problems

    def _problems_of_execution(self) -> list[str]:
        if self._executed is None:
            return []
        problems = agent_problems(self._executed)
        if self._before is None:
            return problems
        if not self._produced:
            problems.append("the executor changed no file in the project")
        known = changed_files(self._before, project_files(self._root)) | self._written
        signal = self._executed.completion
        for path in dict.fromkeys(map(self._relative, signal.files_changed if signal is not None else [])):
            claimed = PurePosixPath(path).as_posix()
            if not any(each == claimed or each.startswith(f"{claimed}/") for each in known):
                problems.append(f"the executor says it changed {path!r}, but did not")
        return problems

    def _decided(self, gate: Gate, summary: Callable[[], str], problems: Sequence[str]) -> str | None:
        """Return what is to be done otherwise, None where the gate is approved. Raises RunAborted.

        Where nobody looks at it, a gate with `problems` is not approved.
        """
        decision = self._replay_log.decision(gate.number)
        if decision is not None:
            self._gates.decisions.append(decision)
        else:
            decision = self._gates.ask(gate, summary(), problems)
        if decision.decision is GateDecisionType.APPROVE:
            return None
        if decision.decision is GateDecisionType.ABORT:
            raise RunAborted(_aborted(gate, decision))
        return decision.feedback or ""

    def _reason_to_skip(self, agent: str) -> str | None:
        return skip_reason(agent, self._task, self._scope(), Changes.of(self._changed))

    def _scope(self) -> str:
        try:
            return read_text_start(self._root / SCOPE_FILE, MAX_SCOPE_BYTES)
        except OSError:
            return ""

    def _warnings(self, agent: str) -> list[str]:
        return [CUT_OFF] if self._replay_log.over and self._replay_log.cut_off == agent else []

    def _note_changes(self, result: AgentResult) -> None:
        told = result.completion.files_changed if result.completion is not None else []
        self._written.update(map(self._relative, result.files_changed))
        self._changed.update(dict.fromkeys(map(self._relative, [*result.files_changed, *told])))

    def _half_done(self) -> Iterator[str]:
        """Yield what was changed behind the tasks' gate by work that was cut off, and may be found done."""
        for agent, path in self._replay_log.half_done:
            if agent not in GATE_OF_AGENT:
                yield self._relative(path)

    def _relative(self, path: str) -> str:
        return str(Path(path).relative_to(self._root)) if Path(path).is_relative_to(self._root) else path


def _is_settled(result: AgentResult) -> bool:
    return result.completion is not None and result.completion.status == "success"


def _aborted(gate: Gate, decision: GateDecision) -> str:
    why = f": {decision.feedback}" if decision.feedback else ""
    return f"aborted at gate {gate.number} ({gate.title}){why}"
