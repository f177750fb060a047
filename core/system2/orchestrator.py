"""The workflow as a whole, for scripts, the command and the app (REQ-070…073). No terminal is read or written here."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aeon_core.config.trust import TrustMode, refusal
from aeon_core.errors import AeonError, RunAborted, UsageError
from aeon_core.json_safe import clean_text
from aeon_core.llm.base import LLMAdapter
from aeon_core.versions import versions
from system2.agent_contracts import DOCUMENTS
from system2.agents.library import AgentLibrary
from system2.change_tracker import ChangeTracker
from system2.connect import connect_model, models_of_agents
from system2.constants import DELEGATION_MAP, LOG_FILE, Gate
from system2.context import WorkflowContext, own_files
from system2.contracts import DelegationContract
from system2.converse import Turn
from system2.cost import CostTracker, dollars
from system2.delegation import Delegation, OnAgentComplete
from system2.documents import digests
from system2.earlier_spec import UNDECIDED, SpecChoice, earlier_documents, kept_documents, spec_question
from system2.entries import Notice, WorkflowResumed, WorkflowStart
from system2.gates import Gates
from system2.logs import Log
from system2.lookup import unfinished
from system2.policies import (
    BashFunction,
    BashPolicy,
    GateFunction,
    GatePolicy,
    QuestionFunction,
    QuestionPolicy,
    policy_of,
)
from system2.project_lock import lock_project
from system2.replay_log import ReplayLog
from system2.secret_tokens import restore_secrets
from system2.session import AgentResult
from system2.settings import WorkflowSettings
from system2.snapshots import SnapshotStore
from system2.suite_runs import list_tests
from system2.transcript import Transcript
from system2.trust import assess_workflow, said, trusted_agents, trusted_settings
from system2.view import AgentState, WorkflowView
from system2.workflow import Workflow
from system2.workflow_end import end_workflow
from system2.workflow_result import WorkflowResult, WorkflowStatus
from system2.write_limits import LIMITS

logger = logging.getLogger("aeon")
_MAX_FLAGGED = 5


class Orchestrator:
    """Runs one workflow, or one agent, at a time; one after the other where it is used again.

    A policy is an object with its method, or a function in its place. Where no `gate_policy` is given, a workflow
    cannot start; where no `bash_policy` or `question_policy` is given, commands are refused and the safe choice is
    made. `model` is `PROVIDER:NAME` or an adapter; without one Bedrock is used, with the model that the configuration
    names. `on_agent_complete` gets each AgentResult, `listener` each line of the transcript. `trust` says what becomes
    of what the project asks for without consent: it is left out, or with `require` an error. Raises UsageError where
    the project root is no folder, or a policy is none.
    """

    def __init__(
        self,
        project_root: Path | str,
        config_path: Path | str | None = None,
        gate_policy: GatePolicy | GateFunction | None = None,
        bash_policy: BashPolicy | BashFunction | None = None,
        on_agent_complete: OnAgentComplete | None = None,
        *,
        question_policy: QuestionPolicy | QuestionFunction | None = None,
        model: str | LLMAdapter | None = None,
        base_url: str | None = None,
        log: Log | None = None,
        listener: Callable[[bytes], None] | None = None,
        sleep: Callable[[float], object] | None = None,
        trust: TrustMode = "ignore",
    ) -> None:
        self._root = Path(project_root).absolute()
        if not self._root.is_dir():
            raise UsageError(f"the project root {str(project_root)!r} is not a folder; choose an existing one")
        self._log = log or Log(logger.info)
        config = Path(config_path) if config_path is not None else None
        assessed = assess_workflow(self._root)
        if trust == "require" and (error := refusal(assessed, said(config, model))) is not None:
            raise error
        self.settings: WorkflowSettings = trusted_settings(self._root, config, trust, self._log.warning, assessed)
        """The project's settings, as far as they apply."""
        self._may_use = trusted_agents(self._root, trust, assessed)
        self._gate_policy: GatePolicy | None = policy_of(gate_policy, "decide", "gate policy")
        self._bash_policy: BashPolicy | None = policy_of(bash_policy, "confirm", "Bash policy")
        self._question_policy: QuestionPolicy | None = policy_of(question_policy, "choose", "question policy")
        self._on_agent_complete, self._listener, self._sleep = on_agent_complete, listener, sleep
        self._model, self._base_url = model, base_url
        self._context: WorkflowContext | None = None
        self._aborted = False
        self._at_work = threading.Lock()
        self._status = WorkflowStatus()

    @property
    def transcripts(self) -> Path:
        """The folder of the transcripts."""
        return self._root / self.settings.transcript_dir

    def run(self, task_description: str, *, spec: SpecChoice | None = None) -> WorkflowResult:
        """Do the whole workflow, and return how it ended, whatever that is.

        `spec` says what becomes of the documents that an earlier workflow left in `spec/`; without it the question
        policy is asked.

        Raises before anything is written: UsageError for an empty task, a missing gate policy or while another workflow
        goes on, ModelUnavailableError (exit 3) without a usable model.
        """
        task = _checked_task(task_description)
        with self._working():
            policy, model = self._gates_policy(), self._usable_model()
            context = self._opened(model, Transcript(self.transcripts, self._log.warning, self._listener))
            tracker = self._tracker(context)
            start = self._write_start(context, task, tracker.begin())
            replay_log = ReplayLog()
            replay_log.documents, replay_log.spec = start.documents, spec
            return self._run(context, task, policy, replay_log, WorkflowView(), tracker)

    def resume(self, transcript: Path | str) -> WorkflowResult:
        """Go on with a workflow at the last gate that was approved, from its transcript, and return how it ended.

        Raises UsageError where the file is no transcript of a workflow, is being written, or is of a completed one.
        """
        with self._working():
            policy, model = self._gates_policy(), self._usable_model()
            records: list[dict[str, Any]] = []
            path = Path(transcript)
            context = self._opened(model, Transcript.reopened(path, self._log.warning, self._listener, records.append))
            try:
                view, replay_log = unfinished(path, restore_secrets(path, records))
            except UsageError:
                self._close(context)
                raise
            context.costs.restore(view.spent, replay_log.lifted)
            context.test_runs += replay_log.commands
            tracker = self._tracker(context)
            if not tracker.restore(replay_log.gate_snapshot, replay_log.execution_snapshot, replay_log.flagged):
                self._log.warning("what changed before the resume is not known: the earlier snapshots are gone")
            context.transcript.write(
                WorkflowResumed(config=self._config(), model=model.model, simulated=model.simulated)
            )
            return self._run(context, replay_log.task, policy, replay_log, view, tracker)

    def invoke_agent(self, agent_name: str, contract: DelegationContract) -> AgentResult:
        """Have one agent do one thing, without gates, and return how that ended (REQ-072).

        Raises UsageError for an unknown agent, ModelUnavailableError, and what a model's call raises.
        """
        with self._working():
            return self._invoke(agent_name, contract)

    def _invoke(self, agent_name: str, contract: DelegationContract) -> AgentResult:
        AgentLibrary(self._root, self._log.warning, self._may_use).get(agent_name)
        model = self._usable_model()
        context = self._opened(model, Transcript(self.transcripts, self._log.warning, self._listener))
        self._write_start(context, contract.objective)
        self._status.agents = {agent_name: "waiting"}
        delegation, started = self._delegation(context), time.monotonic()
        error: BaseException | None = None
        try:
            return delegation.work(agent_name, contract)
        except BaseException as failure:
            error = failure
            raise
        finally:
            self._end(context, delegation, [], time.monotonic() - started, error)

    def get_status(self) -> WorkflowStatus:
        """Return where the workflow stands now, from any thread; what is returned does not change any more."""
        status, context = self._status, self._context
        return replace(
            status,
            agents=dict(status.agents),
            gate_decisions=list(status.gate_decisions),
            cost_usd=context.costs.cumulative if context is not None else 0.0,
        )

    def abort(self) -> None:
        """End the workflow soon, from any thread: a model's call is given up, a command is ended.

        Where none goes on, the next one ends at once.
        """
        self._aborted = True
        if self._context is not None:
            self._context.stop()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Hold orchestrator and project for one piece of work; an abort is of that piece alone. Raises UsageError."""
        if not self._at_work.acquire(blocking=False):
            raise UsageError("this orchestrator is busy; create another one for a second workflow")
        try:
            with lock_project(self._root, self.transcripts, self._log.warning):
                yield
        finally:
            self._aborted = False
            self._at_work.release()

    def _run(
        self,
        context: WorkflowContext,
        task: str,
        policy: GatePolicy,
        replay_log: ReplayLog,
        view: WorkflowView,
        tracker: ChangeTracker,
    ) -> WorkflowResult:
        def history(agent: str) -> tuple[list[Turn], int]:
            known = view.agents.get(agent)
            return (known.history, known.rounds) if known is not None else ([], 0)

        self._status.task = task
        self._status.agents = dict.fromkeys(DELEGATION_MAP, "waiting")
        delegation = self._delegation(context, replay_log, history, LIMITS)
        gates = Gates(context, policy, self._gate_waits)
        self._status.gate_decisions = gates.decisions

        def facts() -> list[str]:
            return [list_tests(context.test_runs), f"Cost so far: {dollars(context.costs.cumulative)}"]

        workflow = Workflow(
            task, self._root, delegation, gates, tracker, partial(_flag, context), facts, replay_log=replay_log
        )
        started = time.monotonic()
        error: AeonError | None = None
        try:
            workflow.keep(self._kept_documents(context, replay_log))
            workflow.run()
        except AeonError as failure:
            error = failure
        except Exception as failure:
            logger.exception("the workflow failed")
            error = AeonError(f"internal error: {type(failure).__name__}: {failure}")
        except BaseException as failure:
            self._end(context, delegation, [], time.monotonic() - started, failure)
            raise
        if error is None:
            tracker.finish()
        return self._end(context, delegation, list(gates.decisions), time.monotonic() - started, error)

    def _kept_documents(self, context: WorkflowContext, replay_log: ReplayLog) -> tuple[str, ...]:
        """Return the documents of an earlier workflow that this one builds on. Raises RunAborted."""
        present = set(replay_log.documents) & set(earlier_documents(self._root))
        known, began = replay_log.spec, not replay_log.over
        if not present or (began and known is None):
            return ()
        question = spec_question(present, self.transcripts, context.transcript.path)
        choice = known or context.human_input.choose(question)
        if known is not None and not began:
            context.human_input.decided(question, choice)
        if choice == question.safe:
            raise RunAborted(UNDECIDED)
        return kept_documents(present) if choice == "continue" else ()

    def _tracker(self, context: WorkflowContext) -> ChangeTracker:
        path, is_own = context.transcript.path, own_files(self.settings)
        ours = [self.settings.log_destination, *([str(self._log.path)] if self._log.path is not None else [])]
        logs = {os.path.relpath(self._root / each, self._root) for each in ours}

        def hidden(place: str) -> bool:
            return is_own(place) or place in logs

        kept = path.with_suffix(".files") if path is not None else None
        return ChangeTracker(SnapshotStore(self._root, kept, hidden), [*DOCUMENTS.values(), LOG_FILE])

    def _end(
        self,
        context: WorkflowContext,
        delegation: Delegation,
        decisions: list[Any],
        seconds: float,
        error: BaseException | None,
    ) -> WorkflowResult:
        result = end_workflow(context, delegation.invoked, decisions, seconds, error)
        self._close(context)
        self._status.state, self._status.agent, self._status.gate = result.status, None, None
        return result

    def _gates_policy(self) -> GatePolicy:
        if self._gate_policy is None:
            raise UsageError("no one can decide at the gates: pass a gate policy, or AutoApproveGates()")
        return self._gate_policy

    def _usable_model(self) -> LLMAdapter:
        model = connect_model(self._model, self.settings, self._base_url)
        model.check()
        return model

    def _opened(self, model: LLMAdapter, transcript: Transcript) -> WorkflowContext:
        settings = self.settings
        costs = CostTracker(
            model.model,
            warning_usd=settings.cost_warning_usd,
            ceiling_usd=settings.cost_ceiling_usd,
            prices=settings.prices,
        )
        self._context = context = WorkflowContext(
            self._root,
            settings,
            model,
            models=models_of_agents(model, settings),
            costs=costs,
            transcript=transcript,
            log=self._log,
            bash=self._bash_policy,
            questions=self._question_policy,
            sleep=self._sleep,
        )
        if self._aborted:
            context.stop()
        self._status = WorkflowStatus(state="running", transcript_path=transcript.path)
        return context

    def _write_start(self, context: WorkflowContext, task: str, snapshot: str | None = None) -> WorkflowStart:
        price = context.costs.price
        start = WorkflowStart(
            task=task,
            config=self._config(),
            model=context.model.model,
            simulated=context.model.simulated,
            price={"input": price.input, "output": price.output, "source": price.source},
            versions=versions(),
            documents=digests(self._root, [*DOCUMENTS.values(), LOG_FILE]),
            snapshot=snapshot,
        )
        context.transcript.write(start)
        return start

    def _config(self) -> dict[str, Any]:
        return {
            "project_root": clean_text(str(self._root)),
            **self.settings.model_dump(mode="json", exclude={"bedrock"}),
        }

    def _delegation(
        self,
        context: WorkflowContext,
        replay_log: ReplayLog | None = None,
        history: Callable[[str], tuple[list[Turn], int]] = lambda _: ([], 0),
        limits: Mapping[str, Collection[str]] | None = None,
    ) -> Delegation:
        return Delegation(
            context,
            AgentLibrary(self._root, self._log.warning, self._may_use),
            on_state=self._agent_is,
            on_complete=self._on_agent_complete,
            replay_log=replay_log,
            history=history,
            limits=limits,
        )

    def _agent_is(self, agent: str, state: AgentState) -> None:
        self._status.agents[agent] = state
        self._status.agent = agent if state == "running" else None

    def _gate_waits(self, gate: Gate | None) -> None:
        self._status.gate = gate.number if gate is not None else None
        self._status.state = "waiting" if gate is not None else "running"

    def _close(self, context: WorkflowContext) -> None:
        context.transcript.close()
        context.close()


def _flag(context: WorkflowContext, agent: str, paths: Sequence[str]) -> None:
    told = ", ".join(map(repr, paths[:_MAX_FLAGGED])) + (", …" if len(paths) > _MAX_FLAGGED else "")
    message = f"{agent!r} changed what is not its to change: {told}"
    context.transcript.write(Notice(kind="flagged", agent=agent, message=message, paths=list(paths)))
    context.log.warning(message)


def _checked_task(given: str) -> str:
    if not isinstance(given, str):
        raise UsageError(f"the task must be text, got {type(given).__name__}")
    if not given.strip():
        raise UsageError("the task is empty; describe it")
    return clean_text(given.strip())
