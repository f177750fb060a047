"""The workflow as a whole, for scripts, the command and the app (REQ-070…073). No terminal is read or written here."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from aeon_core.approval_inbox import RemoteApprover
from aeon_core.approvals import ApprovalRequest, Approver
from aeon_core.config.journal_trust import check_rules, foreign_rules
from aeon_core.config.loading import load_values
from aeon_core.config.schema import RunConfig, recorded_config
from aeon_core.config.trust import TrustMode
from aeon_core.effects.model_calls import Deltas, model_infos
from aeon_core.effects.port import Effects
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.effects.secret_recovery import RunSecrets
from aeon_core.entities import RunResult
from aeon_core.errors import JournalError, ReplayMismatchError, UsageError
from aeon_core.journal.reader import tail
from aeon_core.journal.records import RunResumed, RunStarted
from aeon_core.journal.recovery import reopen
from aeon_core.journal.summary import last_state
from aeon_core.journal.writer import LineListener, fan_out, new_run_id
from aeon_core.json_safe import clean_text, json_safe
from aeon_core.kernel.progress import RunProgress, run_started
from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.connect import find_url
from aeon_core.paths import default_runs_directory, expanded, real_path, working_directory
from aeon_core.policy import Policy, PolicyRules
from aeon_core.runs.batch_tasks import AUTO_APPROVE, BatchJob, has_begun, run_job, stopped_by
from aeon_core.runs.rate_limit import rate_limited
from aeon_core.runs.setup import run_vault
from aeon_core.suggest import check_type, nearest, shown
from system2.agents import AgentLibrary
from system2.changes import LIMITS
from system2.connect import connect_model, given_model, models_of_agents
from system2.context import WorkflowContext, own_files, project_tools
from system2.contracts import DelegationContract, check_contract
from system2.cost import CostRecord, prices_of
from system2.documents import SpecChoice
from system2.logs import Log, WorkflowProgress
from system2.policies import (
    AutoApproveGatePolicy,
    BashPolicy,
    GateDecision,
    GatePolicy,
    PolicyApprover,
    Question,
    QuestionPolicy,
    policy_of,
)
from system2.session import RETRIES, AgentResult
from system2.settings import WorkflowSettings, recorded_settings
from system2.snapshots import SnapshotStore
from system2.transcript import TranscriptFile
from system2.trust import applied_settings, trusted_agents
from system2.workflow import WorkflowProgram, WorkflowResult, WorkflowStatus
from system2.workflow_journal import (
    WorkflowJournal,
    find_workflow,
    first_record,
    free_path,
    journal_of,
    lock_project,
    resume_point,
)

logger: logging.Logger = logging.getLogger("aeon")
Lines = list[dict[str, Any]]
_RUN_ID = re.compile(r"(?!last\Z)[A-Za-z0-9][\w.-]{,149}", re.ASCII)


@dataclass
class _Opened:
    """A workflow that is about to run."""

    program: WorkflowProgram
    context: WorkflowContext
    progress: WorkflowProgress
    journal: WorkflowJournal
    remote: RemoteApprover | None
    """What waits for decisions from another terminal."""

    def stop(self) -> None:
        """Cancel the current model call, command and wait for a decision."""
        if self.remote is not None:
            self.remote.abort()
        self.context.effects.abort()
        self.context.registry.close()

    def close(self) -> None:
        for each in (self.journal, self.context.registry, self.progress.transcript):
            each.close()


class Orchestrator:
    """Runs workflows and single agents, one at a time.

    A policy is an object with the policy's method, or a function. A workflow needs a `gate_policy`, an `approver`, or
    `wait_for_decisions`. Without a `bash_policy` or `question_policy` the approver is asked; without an approver,
    commands are refused and the safe choice is made. `unsafe_bash` runs plain commands without asking. `model` is
    `PROVIDER:NAME` or an adapter; the default is the configured model on Bedrock.
    `on_agent_complete` gets each AgentResult, `listener` each line of the transcript, `on_line` each line of the
    journal, `on_delta` (purpose, agent, text) as a reply streams in, `on_call` (tool name, agent, part of the
    arguments' JSON) as a tool call does. `runs_dir` is the folder for journals; with `shares_rate`, all that use it
    wait when a provider tells one of them to. `trust` decides what happens to project settings that lack consent: they
    are ignored, applied with `apply`, or an error with `require`. The `policy:` rules of Aeon's configuration apply to
    the agents' calls too. Raises UsageError if the project root is not a folder or a policy is not valid.
    """

    def __init__(
        self,
        project_root: Path | str,
        config_path: Path | str | None = None,
        gate_policy: GatePolicy | Callable[[int, str, str], GateDecision] | None = None,
        bash_policy: BashPolicy | Callable[[str, bool], bool | str] | None = None,
        on_agent_complete: Callable[[AgentResult], Any] | None = None,
        *,
        question_policy: QuestionPolicy | Callable[[Question], str] | None = None,
        approver: Approver | None = None,
        unsafe_bash: bool = False,
        model: str | LLMAdapter | None = None,
        base_url: str | None = None,
        log: Log | None = None,
        listener: LineListener | None = None,
        on_line: LineListener | None = None,
        on_delta: Deltas | None = None,
        on_call: Deltas | None = None,
        sleep: Callable[[float], object] | None = None,
        trust: TrustMode = "ignore",
        runs_dir: Path | None = None,
        shares_rate: bool = False,
    ) -> None:
        callbacks = {"on_agent_complete": on_agent_complete, "listener": listener, "on_line": on_line}
        for name, given in {**callbacks, "on_delta": on_delta, "on_call": on_call, "sleep": sleep}.items():
            policy_of(given, "__call__", name)
        check_type(unsafe_bash, bool, "unsafe_bash")
        check_type(shares_rate, bool, "shares_rate")
        check_type(model, str | LLMAdapter | None, "the model")
        check_type(log, Log | None, "log")
        if trust not in get_args(TrustMode):
            raise UsageError(f"trust is {trust!r}{nearest(str(trust), get_args(TrustMode))}")
        self._root = real_path(working_directory() / expanded(project_root, "the project root"))
        if not self._root.is_dir():
            raise UsageError(f"the project root {str(project_root)!r} is not a folder; choose an existing one")
        self._log = log or Log(logger.info)
        config = expanded(config_path, "the config file") if config_path is not None else None
        settings, assessed = applied_settings(self._root, config, model, trust, self._log.warning)
        self.settings: WorkflowSettings = settings
        """The project's settings, as far as they apply."""
        rules = load_values({"project_root": str(self._root)}, trust="apply" if trust == "apply" else "ignore")
        self._policy: PolicyRules = rules.values.get("policy", PolicyRules())
        runs = expanded(runs_dir, "the runs directory") if runs_dir is not None else default_runs_directory(self._root)
        self.runs_dir: Path = runs.absolute()
        self._trusts = trust == "apply"
        self._may_use = trusted_agents(self._root, trust, assessed)
        self._gate_policy: GatePolicy | None = policy_of(gate_policy, "decide", "gate policy")
        self._bash_policy: BashPolicy | None = policy_of(bash_policy, "confirm", "Bash policy")
        self._question_policy: QuestionPolicy | None = policy_of(question_policy, "choose", "question policy")
        self._approver: Approver | None = policy_of(approver, "__call__", "approver")
        self._on_agent_complete, self._sleep = on_agent_complete, sleep
        self._unsafe_bash = unsafe_bash
        self._listener, self._on_line = listener, on_line
        self._on_delta, self._on_call = on_delta, on_call
        self._model, self._base_url, self._shares_rate = model, find_url(base_url), shares_rate
        self._wait: tuple[float, Callable[[str], None], Callable[[ApprovalRequest], None] | None] | None = None
        self._opened: _Opened | None = None
        self._aborted = False
        self._at_work = threading.Lock()

    @property
    def transcripts(self) -> Path:
        return self._root / self.settings.transcript_dir

    @property
    def journal(self) -> Path | None:
        """The journal of the current or last workflow; None if there is none yet, or it cannot be written."""
        return self._opened.journal.path if self._opened is not None else None

    def wait_for_decisions(
        self, seconds: float, say: Callable[[str], None], show: Callable[[ApprovalRequest], None] | None = None
    ) -> None:
        """Wait up to `seconds` for each decision from another terminal.

        `say` gets lines about what is waited for, `show` what is decided on.
        """
        check_type(seconds, int | float, "seconds")
        policy_of(say, "__call__", "say")
        policy_of(show, "__call__", "show")
        self._wait = (seconds, say, show)

    def run(
        self, task_description: str, *, spec: SpecChoice | None = None, run_id: str | None = None
    ) -> WorkflowResult:
        """Run the whole workflow and return how it ended, even if it failed.

        `spec` decides about the documents that an earlier workflow left in `spec/`; without it the question
        policy is asked. `run_id` names the journal, which must not exist yet.

        Raises before anything is written: UsageError for an empty task, without a gate policy or while another workflow
        runs, ModelUnavailableError (exit 3) without a usable model.
        """
        if not isinstance(task_description, str):
            raise UsageError(f"the task must be text, got {type(task_description).__name__}")
        if not (task := clean_text(task_description.strip())):
            raise UsageError("the task is empty; describe it")
        if run_id is not None and not (isinstance(run_id, str) and _RUN_ID.fullmatch(run_id)):
            raise UsageError(
                f"run_id is {shown(run_id)}; use up to 150 letters, digits, '-', '_' and '.', a letter or digit first, "
                "but not 'last'"
            )
        if run_id is not None and (self.runs_dir / f"{run_id}.jsonl").exists():
            raise UsageError(f"the journal of run_id {run_id!r} already exists; choose another, or resume it")
        if spec not in (None, *get_args(SpecChoice)):
            raise UsageError(f"spec is {spec!r}; write 'continue' to build on the documents in spec/, or 'replace'")
        more = {"spec": spec} if spec is not None else {}
        with self._reserve_project() as model:
            return self._finish(self._open_new(task, model, more, run_id or new_run_id()))

    def resume(self, run: Path | str) -> WorkflowResult:
        """Continue a workflow where its journal ends, and return how it ended; nothing is done twice.

        `run` is a run id, a unique prefix of one, a path to a journal or a transcript, or `last`. A person is asked
        about a tool call that started and did not end. Without a `model` the workflow keeps its own. Raises UsageError
        if there is no such workflow, or it is being written or completed, and ReplayMismatchError if this version does
        something other than was recorded.
        """
        path = journal_of(find_workflow(run, self._root, self.runs_dir, self.transcripts), self.runs_dir)
        first = first_record(path)
        own = given_model(first, self.settings, self._root) if self._model is None else None
        with self._reserve_project(own=own) as model:
            try:
                return self._finish(self._reopen(path, model))
            except ReplayMismatchError as error:
                why = "the workflow cannot be resumed: Aeon has changed since it was recorded"
                raise ReplayMismatchError(f"{why}; fork it at a gate instead ({error})") from error

    def invoke_agent(self, agent_name: str, contract: DelegationContract) -> AgentResult:
        """Have one agent work on a contract, without gates, and return how that ended (REQ-072).

        Raises UsageError for an unknown agent, ModelUnavailableError, and what a model's call raises.
        """
        check_type(agent_name, str, "the agent")
        check_type(contract, DelegationContract, "the contract")
        check_contract(contract)
        with self._reserve_project(agent_name) as model:
            invoked = {"agent": agent_name, "contract": contract.as_dict()}
            opened = self._open_new(clean_text(contract.objective), model, {"invoke": invoked}, new_run_id())
            error = self._run(opened)
            if error is not None:
                raise error
            assert opened.program.result is not None
            return opened.program.result

    def get_status(self) -> WorkflowStatus:
        """Return a snapshot of how far the workflow is; any thread may call this."""
        opened = self._opened
        if opened is None:
            return WorkflowStatus()
        view = opened.progress.view
        only = opened.program.only
        agents = {name: agent.state for name, agent in view.agents.items() if only in (None, name)}
        gate = view.open_gate
        return WorkflowStatus(
            state=view.end["status"] if view.end is not None else "waiting" if gate is not None else "running",
            task=view.task,
            agent=view.running if view.end is None else None,
            gate=gate.number if gate is not None and view.end is None else None,
            agents=agents,
            gate_decisions=[*view.decisions],
            cost_usd=view.cost_usd,
            transcript_path=opened.progress.transcript.path,
        )

    def abort(self) -> None:
        """End the workflow soon, from any thread: the current model call and command are cancelled.

        If none is running, the next one ends at once.
        """
        self._aborted = True
        if self._opened is not None:
            self._opened.stop()

    @contextmanager
    def _reserve_project(self, agent: str | None = None, own: str | None = None) -> Iterator[LLMAdapter]:
        """Reserve orchestrator and project for one piece of work, and yield its model; an abort ends only that work.

        `own` is the model that the work was started with, if that is not the settings' own.
        Raises UsageError and ModelUnavailableError before anything is written.
        """
        if not self._at_work.acquire(blocking=False):
            raise UsageError("this orchestrator is busy; create another one for a second workflow")
        try:
            if agent is not None:
                AgentLibrary(self._root, self._log.warning, self._may_use).get(agent)
            elif self._gate_policy is None and self._approver is None and self._wait is None:
                raise UsageError("no one can decide at the gates: pass a gate policy, or AutoApproveGatePolicy()")
            elif not os.access(self._root, os.W_OK):
                raise UsageError(f"the project {str(self._root)!r} cannot be written to; make it writable")
            known = AgentLibrary(self._root, lambda _: None).names() if self.settings.agents else []
            for name in self.settings.agents:
                if name not in known:
                    self._log.warning(
                        f"agent_overrides: {name!r} is ignored, there is no such agent{nearest(name, known)}"
                    )
            connected = connect_model(self._model or own, self.settings, self._base_url)
            model = models_of_agents(connected, self.settings)
            try:
                with lock_project(self._root, self.runs_dir, self._log.warning):
                    yield rate_limited(model, self.runs_dir, self._base_url) if self._shares_rate else model
            finally:
                if connected is not self._model:
                    model.close()
        finally:
            self._aborted = False
            self._at_work.release()

    def _config(self, model: LLMAdapter) -> tuple[RunConfig, list[str]]:
        """Return the options of the port, and the models whose price is assumed."""
        settings = self.settings
        names = [known.model for known in model_infos(model, RunConfig()) if not known.simulated]
        prices, assumed = prices_of(names, settings.prices)
        config = RunConfig(
            budget=settings.cost_ceiling_usd,
            budget_warning=settings.cost_warning_usd,
            prices=prices,
            project_root=self._root,
            on_unknown="ask",
        )
        return config, assumed

    def _open_new(self, task: str, model: LLMAdapter, more: Mapping[str, Any], run_id: str) -> _Opened:
        config, assumed = self._config(model)
        path = free_path(self.transcripts, run_id)
        options = {
            "project_root": clean_text(str(self._root)),
            "settings": self.settings.model_dump(mode="json", exclude={"bedrock"}),
            "transcript": clean_text(str(path)),
            **({"assumed_prices": assumed} if assumed else {}),
            **more,
        }
        progress = WorkflowProgress(self._log, self._listener, self._root)
        journal = WorkflowJournal(self.runs_dir / f"{run_id}.jsonl", run_id, fan_out([progress.on_line, self._on_line]))
        if journal.problem is not None:
            self._log.warning(f"{journal.problem}; the work continues, but it cannot be resumed")
        progress.restore((), TranscriptFile(path, self._log.warning))
        return self._assemble(journal, progress, model, config, task, options)

    def _reopen(self, path: Path, model: LLMAdapter) -> _Opened:
        lines: Lines = []
        progress = WorkflowProgress(self._log, self._listener, self._root)
        journal = reopen(path, fan_out([progress.on_line, self._on_line]), lines.append, WorkflowJournal)
        assert isinstance(journal, WorkflowJournal)
        try:
            first, ended = lines[0], resume_point(path, reversed(lines))
            if not self._trusts:
                check_rules(first, foreign_rules(lines, self._root), self._policy, self._root)
            options = first["workflow"]
            # A journal is data: it may not decide where files are written, or which.
            name = Path(options["transcript"]).stem
            place = self.transcripts / f"{name if _RUN_ID.fullmatch(name) else path.stem}.jsonl"
            transcript = TranscriptFile(place, self._log.warning)
            progress.restore(lines, transcript)
            config, (now, _) = recorded_config(first).model_copy(update={"policy": self._policy}), self._config(model)
            resumptions = [line for line in lines if line["type"] == "run_resumed"]
            budgets = [line["options"]["budget"] for line in resumptions if "budget" in line["options"]]
            described = [known.described() for known in model_infos(model, now)]
            models = [[], *filter(None, (line.get("models") for line in [first, *resumptions]))][-1]
            resumed = RunResumed(
                options={"budget": now.budget} if now.budget != [config.budget, *budgets][-1] else {},
                continues_at=ended if ended is not None else journal.seq,
                models=described if described != models else None,
            )
            recorded = ReplayCursor(line for line in lines if line["seq"] < resumed.continues_at)
            recorded.trusted = self._trusts
            return self._assemble(journal, progress, model, config, first["task"], options, recorded, resumed, lines)
        except BaseException:
            journal.close()
            raise

    def _assemble(
        self,
        journal: WorkflowJournal,
        progress: WorkflowProgress,
        model: LLMAdapter,
        config: RunConfig,
        task: str,
        options: Mapping[str, Any],
        recorded: ReplayCursor | None = None,
        resumed: RunResumed | None = None,
        lines: Lines | None = None,
    ) -> _Opened:
        journal.warn = self._log.warning
        hidden, rules = own_files(self._root, self.settings, self.runs_dir, self._log.path), Policy(self._policy)
        registry = project_tools(self._root, self.settings, lambda path: hidden(path) or rules.hides(path))
        secrets = RunSecrets(run_vault(model, registry, config), None if lines is None else lambda: lines)
        journal.redact = secrets.vault.redact_json
        policies = (self._gate_policy, self._bash_policy, self._question_policy)
        remote = None
        if self._wait is not None and journal.path is not None:
            remote = RemoteApprover(journal.path, *self._wait)
        approver = PolicyApprover(*policies, remote or self._approver, lambda: self._aborted)
        spent: list[CostRecord] = []
        effects = Effects(
            journal,
            llm=model,
            config=config,
            approver=approver,
            recorded=recorded,
            on_delta=self._on_delta,
            on_call=self._on_call,
            resumed=resumed,
            secrets=secrets,
            tools=registry,
            retries=RETRIES,
            on_cost=lambda *call: spent.append(CostRecord.of_call(*call)),
            sleep=self._sleep,
        )
        progress.assumed = list(options.get("assumed_prices") or ())
        progress.automatic = isinstance(self._gate_policy, AutoApproveGatePolicy)
        progress.journal_problem = lambda: journal.problem
        kept = journal.path.with_suffix(".files") if journal.path else None
        context = WorkflowContext(
            self._root,
            recorded_settings(options),
            self.settings,
            effects,
            registry,
            spent,
            unsafe_bash=self._unsafe_bash,
            limits=LIMITS if "invoke" not in options else {},
            policy=rules,
            library=AgentLibrary(self._root, self._log.warning, self._may_use),
            store=SnapshotStore(self._root, kept, hidden),
            on_complete=self._on_agent_complete,
            warn=self._log.warning,
            automatic=progress.automatic,
            resumed=recorded is not None,
        )
        if recorded is not None:
            started = RunStarted.model_validate(recorded.first)
        else:
            new = RunProgress(journal.run_id, None, model.model, model.simulated)
            more = {"workflow": secrets.conceal(json_safe(options))}
            started = run_started(secrets.conceal(task), config, effects, registry, new, more)
        program = WorkflowProgram(context, started, journal.run_id)
        self._opened = _Opened(program, context, progress, journal, remote)
        if self._aborted:
            self._opened.stop()
        return self._opened

    def _run(self, opened: _Opened) -> BaseException | None:
        try:
            opened.program.run()
        finally:
            opened.close()
        return opened.program.error

    def _finish(self, opened: _Opened) -> WorkflowResult:
        error = self._run(opened)
        if error is not None and not isinstance(error, Exception):
            raise error
        view, progress = opened.progress.view, opened.progress
        end = view.end or {}
        return WorkflowResult(
            agents_invoked=end["agents_invoked"],
            gate_decisions=[*view.decisions],
            total_cost=CostRecord(**end["total_cost"]),
            wall_clock_seconds=float(end["duration_s"]),
            transcript_path=progress.transcript.path,
            status=end["status"],
            exit_code=end["exit_code"],
            error=end.get("error"),
            summary=progress.summary,
            journal=opened.journal.path,
        )


def work(job: BatchJob) -> dict[str, Any]:
    """Run or continue one workflow of a batch, in any process, and return its summary; errors become part of it."""
    return run_job(job, _run_job)


def _run_job(job: BatchJob) -> RunResult:
    path, config = job.journal, job.config

    def say(line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"workflow {path.stem}: {line}\n")

    orchestrator = Orchestrator(
        config.root,
        gate_policy=AutoApproveGatePolicy() if job.task.workflow == AUTO_APPROVE else None,
        model=config.models[0] if config.models else None,
        base_url=config.base_url,
        log=Log(logger.info),
        trust="apply" if job.trusts_project else "require",
        runs_dir=path.parent,
        shares_rate=True,
    )
    if config.wait:
        orchestrator.wait_for_decisions(config.wait, say)
    with stopped_by(job.stop, orchestrator.abort):
        if has_begun(path):
            orchestrator.resume(path)
        else:
            orchestrator.run(job.task.task, run_id=path.stem)
    if orchestrator.journal is None:
        raise JournalError(f"the journal {str(path)!r} could not be written; see the workflow's transcript")
    return RunResult.model_validate(last_state(tail(path))["result"])
