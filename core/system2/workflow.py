"""A workflow as a program over its port, live, resumed or replayed (Decision 2; REQ-040…047).

The order of the work: each agent once the gate before it is approved, then the checks, then the last gate.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from aeon_core.budget import CostCeilingReached
from aeon_core.config.schema import recorded_config
from aeon_core.effects.port import Effects
from aeon_core.effects.replay_cursor import RecordedModel
from aeon_core.entities import RunResult, TTLState, UsageTotals
from aeon_core.errors import AeonError, ReplayMismatchError, RunAborted, UnconfirmedCall, UsageError
from aeon_core.journal.records import RunFinished, RunStarted
from aeon_core.journal.writer import JournalWriter
from aeon_core.runs.replay import ComparedLines, Replay, recorded_lines, recorded_tools, replayed
from system2.changes import ChangeTracker, list_changes
from system2.constants import (
    ARTIFACTS,
    DELEGATION_MAP,
    GATE_OF_AGENT,
    LAST_GATE,
    LOG_FILE,
    MAX_CYCLES,
    POST_EXECUTION,
    TASK_GATE,
    Gate,
)
from system2.context import WorkflowContext
from system2.contracts import DOCUMENTS, DelegationContract, contract_for, repair_contract
from system2.cost import CostRecord, dollars
from system2.delegation import OPTIONAL, Delegation, skip_reason
from system2.documents import UNDECIDED, digests, earlier_task, kept_documents, spec_question, state_of, text_of
from system2.gates import Gates, agent_problems, artifact_summary, closing_summary, join_problems, log_entries
from system2.policies import GateDecision
from system2.session import RETRIES, AgentResult
from system2.settings import recorded_settings
from system2.toolbox import list_tests
from system2.view import AgentState
from system2.workflow_journal import first_record

Ending = Literal["completed", "aborted", "failed", "cost_ceiling"]
WorkflowState = Literal["idle", "running", "waiting", "completed", "aborted", "failed", "cost_ceiling"]


@dataclass(frozen=True)
class WorkflowResult:
    """How a workflow ended."""

    agents_invoked: list[str]
    """In the order in which they first worked, each once."""
    gate_decisions: list[GateDecision]
    total_cost: CostRecord
    wall_clock_seconds: float
    transcript_path: Path | None
    """None if it could not be written."""
    status: Ending = "completed"
    exit_code: int = 0
    """The command's exit code: 0 completed, 1 aborted or failed, 3 credentials rejected, 4 cost ceiling reached."""
    error: str | None = None
    """Why it did not complete, in one line."""
    summary: str = ""
    """The summary that is shown at the end (REQ-121)."""
    journal: Path | None = None
    """The journal; None if it could not be written."""


@dataclass
class WorkflowStatus:
    """How far a workflow is; any thread may ask."""

    state: WorkflowState = "idle"
    task: str = ""
    agent: str | None = None
    """The agent at work."""
    gate: int | None = None
    """The gate that waits for a decision."""
    agents: dict[str, AgentState] = field(default_factory=dict)
    gate_decisions: list[GateDecision] = field(default_factory=list)
    cost_usd: float = 0.0
    transcript_path: Path | None = None


def status_of(error: BaseException | None) -> Ending:
    """Return the status of a workflow that ended with this error; None means that it is complete."""
    if error is None:
        return "completed"
    if isinstance(error, CostCeilingReached):
        return "cost_ceiling"
    return "aborted" if isinstance(error, RunAborted | KeyboardInterrupt) else "failed"


logger: logging.Logger = logging.getLogger("aeon")
EXECUTOR = "executor"
_FILES = (*DOCUMENTS.values(), LOG_FILE)
SCOPE_FILE = GATE_OF_AGENT["repo-governor"].artifact
MAX_FLAGGED = 5


class WorkLeftOpen(AeonError):
    """A person approved the last gate although the agents' work is incomplete."""


@dataclass
class Workflow:
    """Takes one task through the delegation map.

    `tracker` compares the project's files. `kept` lists the documents of an earlier workflow that this one builds on;
    their agents work only if their gate is rejected.
    """

    task: str
    context: WorkflowContext
    delegation: Delegation
    gates: Gates
    tracker: ChangeTracker
    before: Mapping[str, str]
    """The digests of the documents at the start."""
    kept: Sequence[str]
    _tool_users: set[str] = field(default_factory=set)
    _results: dict[str, AgentResult] = field(default_factory=dict)
    """Each agent's last result; that of the executor excludes repairs, on which the checking agents report."""
    _skipped: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._written = set(self.kept)
        """The kept documents, and the files that agents wrote with their tools."""
        self._root, self._effects = self.context.project_root, self.context.effects

    def run(self) -> None:
        """Run the workflow. Returns when every gate is approved and nothing is left open.

        Raises RunAborted if a person ended it, WorkLeftOpen if a person approved incomplete work, and what a
        model's call raises.
        """
        for agent in DELEGATION_MAP[: DELEGATION_MAP.index(EXECUTOR)]:
            self._specify(agent)
        contract, feedback = contract_for(EXECUTOR, self.task), None
        while True:
            self._results[EXECUTOR] = self._have_work(EXECUTOR, contract, feedback)
            self._check()
            problems, closed_at = self._open_problems(), self._effects.next_seq
            if (feedback := self._decide(LAST_GATE, partial(self._closing_summary, problems), problems)) is None:
                break
        if problems := self._open_problems():
            # A resume asks at the last gate again.
            self._effects.resumes_from(closed_at)
            raise WorkLeftOpen(f"approved, but left open: {join_problems(problems)}")

    def _specify(self, agent: str) -> None:
        """Have an agent write its document until its gate is approved (REQ-043, REQ-044)."""
        gate, contract, feedback = GATE_OF_AGENT[agent], contract_for(agent, self.task), None
        if gate.artifact in self.kept and (feedback := self._keep(agent, gate)) is None:
            return
        while True:
            result = self._results[agent] = self._have_work(agent, contract, feedback)
            problems = self._problems(agent)
            feedback = self._decide(gate, partial(artifact_summary, result, problems), problems)
            if feedback is None:
                return

    def _keep(self, agent: str, gate: Gate) -> str | None:
        """Ask at a gate about a document of an earlier workflow; return feedback for its agent, or None to keep it."""
        kept = f"{gate.artifact} is from an earlier workflow"
        self.delegation.skip(agent, kept)
        problems = self._missing(gate.artifact)

        def summary(changed: str) -> str:
            return "\n".join([*problems, changed, f"{kept}; approve to keep it as it is"])

        return self._decide(gate, summary, problems)

    def _have_work(self, agent: str, contract: DelegationContract, feedback: str | None = None) -> AgentResult:
        """Have an agent work, or continue with feedback, and note what it has changed."""
        result = self.delegation.work(agent, contract, feedback)
        written = list(map(self._relative, result.files_changed))
        self._written.update(written)
        if result.cost.tool_turns:
            self._tool_users.add(agent)
        if paths := self.tracker.note(agent, written):
            path_list = ", ".join(map(repr, paths[:MAX_FLAGGED])) + (", …" if len(paths) > MAX_FLAGGED else "")
            self.context.note(
                "flagged", agent, f"{agent!r} changed files that it may not change: {path_list}", paths=paths
            )
        return result

    def _check(self) -> None:
        """Have the agents after the executor work, except for those that are not needed (REQ-045)."""
        self._skipped.clear()
        for agent in DELEGATION_MAP[DELEGATION_MAP.index(EXECUTOR) + 1 :]:
            if (reason := self._reason_to_skip(agent)) is not None:
                self._skipped[agent] = reason
                self.delegation.skip(agent, reason)
            else:
                self._results[agent] = self._have_check(agent)

    def _have_check(self, agent: str) -> AgentResult:
        """Return an agent's last result, after the executor has repaired its blockers at most MAX_CYCLES times."""
        cycle = 1
        while True:
            contract = contract_for(agent, self.task, changed=self._changed_files(), cycle=cycle)
            result = self._have_work(agent, contract)
            blockers = result.completion.blockers if result.completion is not None else []
            if agent not in POST_EXECUTION or not blockers or cycle > MAX_CYCLES:
                return result
            self._have_work(EXECUTOR, repair_contract(agent, self.task, blockers, cycle))
            cycle += 1

    def _open_problems(self) -> list[str]:
        """Return what any agent did not produce or left open (REQ-005, REQ-046)."""
        checked = [agent for agent in self._results if agent not in GATE_OF_AGENT and agent != EXECUTOR]
        problems = [each for agent in self._results if agent in GATE_OF_AGENT for each in self._problems(agent)]
        problems += self._problems_of_execution()
        logged = self._read_log()
        for agent in checked:
            found = self._reported_problems(agent)
            if not found and logged.get(agent, "").lower().startswith("blocker"):
                found = [f"{LOG_FILE} on {agent}: {logged[agent]}"]
            problems += [*found, *(f"{agent}: {missing}" for missing in self._missing(DOCUMENTS[agent]))]
        return problems + (self._missing(LOG_FILE) if set(checked) & set(POST_EXECUTION) else [])

    def _problems(self, agent: str) -> list[str]:
        """Return why the work for an agent's gate was not produced; empty if it was."""
        missing = self._missing(GATE_OF_AGENT[agent].artifact)
        return [*self._reported_problems(agent), *missing]

    def _reported_problems(self, agent: str) -> list[str]:
        """Return why an agent's work is not done, by its own report and its use of tools."""
        result = self._results[agent]
        is_text = result.completion is not None and agent not in self._tool_users
        return [*agent_problems(result), *([f"{agent} wrote only text, and used no tool"] if is_text else [])]

    def _missing(self, document: str) -> list[str]:
        """Return why a document was not produced, as a list that is empty if it was."""
        found = self._effects.observe("document", lambda: state_of(self._root, document))
        problem = found["problem"]
        if problem is None and found["digest"] == self.before.get(document) and document not in self._written:
            problem = f"{document} was not written: it is from before this workflow"
        return [problem] if problem is not None else []

    def _problems_of_execution(self) -> list[str]:
        problems, produced = self._reported_problems(EXECUTOR), self.tracker.executed_changes()
        if not produced:
            problems.append("the executor changed no file in the project")
        known = {path for change in produced for path in (change.path, change.was)} | self._written
        signal = self._results[EXECUTOR].completion

        def named(text: str) -> str:
            return PurePosixPath(self._relative(text)).as_posix()

        said = signal.files_changed if signal is not None else []
        # A model may write a path as in Markdown.
        claimed = dict.fromkeys(path if (path := named(text)) in known else named(text.strip("` ")) for text in said)
        # It may name a folder, or add a line number or a remark: `a.py:12`, `a.py (new)`.
        true = {text for path in known for text in claimed if text.startswith((f"{path}:", f"{path} "))}
        true |= {text for path in known for text in claimed if f"{path}/".startswith(f"{text}/")}
        doubted = [path for path in claimed if path not in true]
        inside = [path for path in doubted if not Path(path).is_absolute()]
        ignored = self.tracker.unseen(inside) if inside else []
        false = [path for path in doubted if path not in ignored]
        return [*problems, *(f"the executor says it changed {path!r}, but did not" for path in false)]

    def _decide(self, gate: Gate, summary: Callable[[str], str], problems: Sequence[str]) -> str | None:
        """Return the feedback of a rejection, or None if the gate is approved. Raises RunAborted.

        A gate with `problems` is not approved automatically. `summary` is called with the list of what changed.
        """
        changes = self.tracker.since_gate(gate.agent)
        head = "Changed since the last decision:" if self.gates.decided else "Changed since the start:"
        listed = "\n".join([head, list_changes(changes), *(f"⚠ {note}" for note in self.tracker.notes)])
        decision = self.gates.ask(gate, summary(listed), problems, changes)
        approved = decision.decision == "approve"
        self.tracker.note_decision(executes=gate.number == TASK_GATE and approved)
        return None if approved else decision.feedback or ""

    def _closing_summary(self, problems: Sequence[str], changed: str) -> str:
        parts, results = [changed], dict(self._results)
        produced = self.tracker.executed_changes()
        if LAST_GATE.number in self.gates.decided:
            # When the gate asks again, the changes since it asked last are not all of them.
            parts.append(f"Changed since the tasks were approved:\n{list_changes(produced)}")
        cost = dollars(self._effects.models.cost_usd or 0.0)
        parts += [list_tests(self.context.test_runs), f"Cost so far: {cost}"]
        completion = self._results[EXECUTOR].completion
        is_settled = completion is not None and completion.status == "success"
        for agent in [*GATE_OF_AGENT, *([EXECUTOR] if is_settled else [])]:
            results.pop(agent, None)
        return closing_summary(self._read_log(), results, self._skipped, parts, problems)

    def _changed_files(self) -> list[str]:
        """Return the files that changed since the tasks were approved, except for those in `spec/`."""
        return [change.path for change in self.tracker.executed_changes()]

    def _reason_to_skip(self, agent: str) -> str | None:
        if agent not in OPTIONAL:
            return None
        scope = self._effects.observe("scope", lambda: text_of(self._root, SCOPE_FILE))
        return skip_reason(agent, self.task, scope, self._changed_files())

    def _read_log(self) -> dict[str, str]:
        found: dict[str, str] = self._effects.observe("check_log", lambda: log_entries(text_of(self._root, LOG_FILE)))
        return found

    def _relative(self, path: str) -> str:
        return str(Path(path).relative_to(self._root)) if Path(path).is_relative_to(self._root) else path


class WorkflowProgram:
    """Runs the workflow, or the one agent, that the first record, `started`, describes."""

    def __init__(self, context: WorkflowContext, started: RunStarted, run_id: str) -> None:
        self._context, self._effects, self._started, self._run_id = context, context.effects, started, run_id
        self._options: Mapping[str, Any] = started.workflow or {}
        self.only: str | None = None
        """The only agent to work, without gates."""
        self.result: AgentResult | None = None
        self.error: BaseException | None = None
        """What ended it early; set by `run`."""
        try:
            if (invoked := self._options.get("invoke")) is not None:
                self.only, self._contract = str(invoked["agent"]), DelegationContract(**invoked["contract"])
        except (LookupError, TypeError):
            why = "its first record does not name an agent and its contract"
            raise UsageError(f"the journal {run_id!r} is damaged: {why}") from None

    def run(self) -> RunResult:
        """Run the workflow or agent; record and return how that ended.

        Raises ReplayMismatchError if it differs from what was recorded.
        """
        self._effects.emit(self._started)
        try:
            self._work()
        except (ReplayMismatchError, UnconfirmedCall):
            raise
        except AeonError as error:
            self.error = error
        except Exception as error:
            logger.exception("the workflow failed")
            self.error = AeonError(f"internal error: {type(error).__name__}: {error}")
        except BaseException as error:
            self.error = error
        if self.error is not None:
            self._effects.end_resumable()
        ending = self._ending(self.error)
        self._effects.emit(RunFinished(result=ending))
        return ending

    def _work(self) -> None:
        if self.only is not None:
            self.result = Delegation(self._context).work(self.only, self._contract)
            return
        effects, context = self._effects, self._context
        tracker = ChangeTracker(effects, context.store, _FILES)
        tracker.begin()
        before = effects.observe("documents", lambda: digests(context.project_root, _FILES))
        kept = self._kept_documents(before)
        Workflow(self._started.task, context, Delegation(context), Gates(context), tracker, before, kept).run()

    def _kept_documents(self, before: Mapping[str, str]) -> tuple[str, ...]:
        """Return the documents of an earlier workflow that this one builds on. Raises RunAborted."""
        present = set(before) & set(ARTIFACTS)
        if not present:
            return ()
        choice = self._options.get("spec")
        if choice is None:
            effects, context = self._effects, self._context
            transcripts = context.project_root / context.current.transcript_dir
            task = effects.observe("earlier_task", lambda: earlier_task(transcripts, self._run_id))
            asked_at = effects.next_seq
            question = spec_question(present, task)
            choice = context.choose(question)
            if choice == question.safe:
                effects.resumes_from(asked_at)
                raise RunAborted(UNDECIDED)
        return kept_documents(present) if choice == "continue" else ()

    def _ending(self, error: BaseException | None) -> RunResult:
        models = self._effects.models
        described: dict[str, Any] | None = None
        if error is not None:
            kind = type(error).__name__
            message = str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else kind)
            described = {"error_type": kind, "message": message}
            if isinstance(error, AeonError) and error.exit_code == 3:
                described["exit_code"] = 3
        nothing = TTLState(limit=0, allocated=0, spent=0, remaining=0)
        return RunResult(
            run_id=self._run_id,
            status=status_of(error),
            ttl=nothing,
            passes=0,
            usage=UsageTotals(**models.usage),
            cost_usd=models.cost_usd,
            model=self._started.model,
            simulated=self._started.simulated,
            error=described,
        )


def replay(path: Path) -> Replay:
    """Replay a workflow's journal, without a model, tool or file, and return whether the program still does the same.

    Raises UsageError if the file is not a sound workflow's journal.
    """
    first_record(path)
    lines = recorded_lines(path)
    started = RunStarted.model_validate(lines[0])
    assert started.workflow is not None
    cursor = ComparedLines(lines)
    journal = JournalWriter(None, lines[0]["run"])
    registry = recorded_tools(lines[0])
    spent: list[CostRecord] = []
    effects = Effects(
        journal,
        llm=RecordedModel(cursor),
        config=recorded_config(lines[0]),
        recorded=cursor,
        tools=registry,
        retries=RETRIES,
        on_cost=lambda *call: spent.append(CostRecord.of_call(*call)),
    )
    root, settings = Path(started.workflow["project_root"]), recorded_settings(started.workflow)
    context = WorkflowContext(root, settings, settings, effects, registry, spent)
    return replayed(cursor, WorkflowProgram(context, started, lines[0]["run"]).run)
