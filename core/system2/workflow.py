"""The order of the work: each agent after the gate before it, then the checks, then the last gate (REQ-040…047)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from aeon_core.errors import AeonError, RunAborted
from system2.agent_contracts import DOCUMENTS, contract_for, repair_contract
from system2.bounded_reads import read_text_start
from system2.change_tracker import SPEC_FOLDER, ChangeTracker
from system2.changes import FileChange, list_changes
from system2.constants import DELEGATION_MAP, LOG_FILE, MAX_CYCLES, POST_EXECUTION, TASK_GATE, Gate
from system2.contracts import DelegationContract
from system2.delegation import Delegation
from system2.documents import Documents
from system2.gates import (
    GATE_OF_AGENT,
    LAST_GATE,
    Gates,
    agent_problems,
    artifact_summary,
    closing_summary,
    listed,
    logged_results,
)
from system2.policies import GateDecision, GateDecisionType
from system2.relevance import Changes, skip_reason
from system2.replay_log import ReplayLog
from system2.session import AgentResult

EXECUTOR = "executor"
SCOPE_FILE = GATE_OF_AGENT["repo-governor"].artifact
MAX_SCOPE_BYTES = 100_000
CUT_OFF = "An earlier run of this work was cut off: some files may be there already. Look at them before you write."


class WorkLeftOpen(AeonError):
    """A person approved the last gate, and what the agents were to produce is not all there."""


class Workflow:
    """One task's way through the delegation map.

    `tracker` compares the project's files, `flag` tells a person of files that an agent changed though they were not
    its to change, and `facts` gives what the last gate shows of tests and cost.
    """

    def __init__(
        self,
        task: str,
        project_root: Path,
        delegation: Delegation,
        gates: Gates,
        tracker: ChangeTracker,
        flag: Callable[[str, Sequence[str]], None],
        facts: Callable[[], Sequence[str]],
        replay_log: ReplayLog | None = None,
    ) -> None:
        self._task, self._root = task, project_root
        self._delegation, self._gates, self._tracker = delegation, gates, tracker
        self._flag, self._facts = flag, facts
        self._replay_log = replay_log or ReplayLog()
        self._documents = Documents(project_root, self._replay_log.documents)
        self._written: set[str] = set()
        """The files that any agent wrote to by its tools."""
        self._tool_users: set[str] = set()
        """The agents that did more than write text."""
        self._specified: dict[str, AgentResult] = {}
        """How the work of each agent before the executor ended last."""
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
        """Do all of it. Returns when every gate is approved and nothing is left open.

        Raises RunAborted where a person ended it, WorkLeftOpen where one approved what is not complete, and what a
        model's call raises.
        """
        for agent in DELEGATION_MAP[: DELEGATION_MAP.index(EXECUTOR)]:
            self._specify(agent)
        self._execute()
        self._check()
        while (feedback := self._close()) is not None:
            contract = contract_for(EXECUTOR, self._task)
            self._executed = self._worked(EXECUTOR, partial(self._delegation.go_on, EXECUTOR, contract, feedback))
            self._check()
        if problems := self._open_problems():
            raise WorkLeftOpen(f"approved, but left open: {listed(problems)}")

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
        work = partial(self._delegation.work, agent, contract)
        result = self._worked(agent, work)
        if not live and self._replay_log.over and self._gates.automatic and self._problems(gate, result):
            # An earlier process ended on these, at this gate; what caused them may have been removed since.
            result = self._worked(agent, work)
        self._settle(agent, gate, contract, result)

    def _keep(self, agent: str, gate: Gate, contract: DelegationContract) -> None:
        """Ask at a gate about a document of an earlier workflow; its agent works where that is rejected."""
        kept = f"{gate.artifact} is from an earlier workflow"
        self._delegation.skip(agent, kept)
        missing = self._documents.problem(gate.artifact, self._written)
        problems = [missing] if missing is not None else []

        def summary(changed: str) -> str:
            return "\n".join([*problems, changed, f"{kept}; approve to keep it as it is"])

        feedback = self._decided(gate, summary, problems)
        if feedback is not None:
            self._settle(agent, gate, contract, self._again(agent, contract, feedback))

    def _settle(self, agent: str, gate: Gate, contract: DelegationContract, result: AgentResult) -> None:
        """Have an agent go on until its gate is approved (REQ-043)."""
        while True:
            self._specified[agent] = result
            problems = self._problems(gate, result)
            feedback = self._decided(gate, partial(artifact_summary, result, problems), problems)
            if feedback is None:
                return
            result = self._again(agent, contract, feedback)

    def _again(self, agent: str, contract: DelegationContract, feedback: str) -> AgentResult:
        return self._worked(agent, partial(self._delegation.go_on, agent, contract, feedback))

    def _worked(self, agent: str, work: Callable[[], AgentResult]) -> AgentResult:
        """Have an agent work, and note what it has changed."""
        rounds = self._delegation.rounds
        result = work()
        written = list(map(self._relative, result.files_changed))
        self._written.update(written)
        if result.cost.tool_turns:
            self._tool_users.add(agent)
        if self._delegation.rounds != rounds and (out_of_place := self._tracker.note(agent, written)):
            self._flag(agent, out_of_place)
        return result

    def _problems(self, gate: Gate, result: AgentResult) -> list[str]:
        """Return why the work behind a gate was not produced; nothing where it was."""
        missing = self._documents.problem(gate.artifact, self._written)
        return [*self._problems_of(result), *([missing] if missing is not None else [])]

    def _problems_of(self, result: AgentResult) -> list[str]:
        if result.completion is not None and result.agent not in self._tool_users:
            return [*agent_problems(result), f"{result.agent} wrote only text, and used no tool"]
        return agent_problems(result)

    def _execute(self) -> None:
        contract = contract_for(EXECUTOR, self._task, warnings=self._warnings(EXECUTOR))
        self._written.update(self._half_done())
        self._executed = self._worked(EXECUTOR, partial(self._delegation.work, EXECUTOR, contract))

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
                agent, self._task, changed=self._changed(), cycle=cycle, warnings=self._warnings(agent)
            )
            result = self._worked(agent, partial(self._delegation.work, agent, contract))
            blockers = result.completion.blockers if result.completion is not None else []
            if agent not in POST_EXECUTION or not blockers or cycle > MAX_CYCLES:
                return result
            repair = repair_contract(agent, self._task, blockers, cycle)
            self._worked(EXECUTOR, partial(self._delegation.work, EXECUTOR, repair))
            cycle += 1

    def _close(self) -> str | None:
        """Ask at the last gate; return the feedback for the executor, None where all is approved."""

        problems = self._open_problems()

        def summary(changed: str) -> str:
            results = self._checks
            if self._executed is not None and not _is_settled(self._executed):
                results = {EXECUTOR: self._executed, **self._checks}
            parts = [changed, *self._in_all(), *self._facts()]
            return closing_summary(self._root, results.items(), self._skipped.items(), parts, problems)

        return self._decided(LAST_GATE, summary, problems)

    def _open_problems(self) -> list[str]:
        """Return what was not produced, or is left open, of all agents' work (REQ-005, REQ-046)."""
        problems = []
        for agent, result in self._specified.items():
            problems += self._problems(GATE_OF_AGENT[agent], result)
        problems += self._problems_of_execution()
        logged = logged_results(self._root)
        for agent, result in self._checks.items():
            found = self._problems_of(result)
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
        problems = self._problems_of(self._executed)
        produced = self._tracker.produced()
        if produced is None:
            return problems
        if not produced:
            problems.append("the executor changed no file in the project")
        known = {path for change in produced for path in (change.path, change.was)} | self._written
        signal = self._executed.completion
        for path in dict.fromkeys(map(self._relative, signal.files_changed if signal is not None else [])):
            claimed = PurePosixPath(path).as_posix()
            is_ignored = not self._tracker.knows(claimed) and (self._root / claimed).exists()
            inside = not Path(claimed).is_absolute()
            if not any(each == claimed or each.startswith(f"{claimed}/") for each in known) and not (
                inside and is_ignored
            ):
                problems.append(f"the executor says it changed {path!r}, but did not")
        return problems

    def _decided(self, gate: Gate, summary: Callable[[str], str], problems: Sequence[str]) -> str | None:
        """Return what is to be done otherwise, None where the gate is approved. Raises RunAborted.

        Where nobody looks at it, a gate with `problems` is not approved. `summary` is given the list of what changed.
        """
        decision = self._replay_log.decision(gate.number)
        approved = decision is not None and decision.decision is GateDecisionType.APPROVE
        if decision is not None and not (approved and problems and gate is LAST_GATE):
            self._gates.decisions.append(decision)
        else:
            # The last gate is asked again where an earlier process ended on what is left open.
            changes = self._tracker.since_gate(gate.agent)
            decision = self._gates.ask(gate, summary(self._listed(changes)), problems, changes, self._snapshot(gate))
        if decision.decision is GateDecisionType.APPROVE:
            return None
        if decision.decision is GateDecisionType.ABORT:
            raise RunAborted(_aborted(gate, decision))
        return decision.feedback or ""

    def _listed(self, changes: Sequence[FileChange]) -> str:
        head = "Changed since the last decision:" if self._gates.decisions else "Changed since the start:"
        notes = [f"⚠ {note}" for note in self._tracker.notes]
        return "\n".join([head, list_changes(changes), *notes])

    def _in_all(self) -> list[str]:
        """Return the list of all that changed since the tasks were approved, where the last gate asks again."""
        produced = self._tracker.produced()
        if produced is None or not any(each.gate_number == LAST_GATE.number for each in self._gates.decisions):
            return []
        return [f"Changed since the tasks were approved:\n{list_changes(produced)}"]

    def _snapshot(self, gate: Gate) -> Callable[[GateDecision], str | None]:
        def taken(decision: GateDecision) -> str | None:
            if decision.decision is GateDecisionType.ABORT:
                return None
            executes = gate.number == TASK_GATE and decision.decision is GateDecisionType.APPROVE
            return self._tracker.decided(executes=executes)

        return taken

    def _changed(self) -> list[str]:
        """Return the files that are not what they were when the tasks were approved, but for those in `spec/`."""
        produced = self._tracker.produced()
        if produced is None:
            return sorted(path for path in self._written if not path.startswith(SPEC_FOLDER))
        return [change.path for change in produced]

    def _reason_to_skip(self, agent: str) -> str | None:
        return skip_reason(agent, self._task, self._scope(), Changes.of(self._changed()))

    def _scope(self) -> str:
        try:
            return read_text_start(self._root / SCOPE_FILE, MAX_SCOPE_BYTES)
        except OSError:
            return ""

    def _warnings(self, agent: str) -> list[str]:
        return [CUT_OFF] if self._replay_log.over and self._replay_log.cut_off == agent else []

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
