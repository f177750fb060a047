"""The loop: plan → execute → answer (core FR-001 to FR-005). Straight-line; everything outside passes the port."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from aeon_core.budget import CostCeilingReached
from aeon_core.config import RunConfig, runs_directory
from aeon_core.effects.approval import Approver
from aeon_core.effects.cursor import Cursor, RecordedModel
from aeon_core.effects.port import Effects
from aeon_core.entities import RunResult, RunStatus
from aeon_core.errors import AeonError, JournalError, ReplayMismatchError, RunAborted, RunEnding, UsageError
from aeon_core.journal.listening import as_dicts, fan_out
from aeon_core.journal.records import Phase, PhaseRecord, RunFinished, RunStarted
from aeon_core.journal.writer import JournalWriter, LineListener, new_run_id
from aeon_core.kernel.executor import Executor, TTLExpired
from aeon_core.kernel.result import Progress, pass_record, run_result
from aeon_core.kernel.state import OrchestrationState
from aeon_core.llm.base import LLMAdapter
from aeon_core.memory.base import Memory
from aeon_core.memory.store import InMemoryStore
from aeon_core.plain import clean_text, plain
from aeon_core.plan.generation import plan_request
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import given_plan
from aeon_core.reasoning import reply_text
from aeon_core.redaction import holds_secret
from aeon_core.timing import milliseconds_between
from aeon_core.tools.registry import ToolRegistry, default_registry
from aeon_core.validation.structural import validate_plan_tools
from aeon_core.versions import versions

logger = logging.getLogger("aeon")


class Orchestrator:
    """Runs tasks. One run at a time; `abort` and `state` may be used from another thread.

    `tools` defaults to echo and calculator, `memory` to a store of the run's own, `journal` to a new file in the runs
    directory (a path names the file, False keeps none). `approver` is asked before tools that need approval.
    `on_record` gets every record as a dict, long texts in full, on the kernel's thread after it was written; `on_line`
    the same as one line of JSON; `on_delta` gets (step_id, text) while a reply streams in, on the thread of the call.
    `recorded` makes the run go over recorded lines; `llm=None` with it is a replay, which performs nothing.
    """

    def __init__(
        self,
        llm: LLMAdapter | None,
        tools: ToolRegistry | None = None,
        memory: Memory | None = None,
        config: RunConfig | None = None,
        approver: Approver | None = None,
        journal: Path | str | Literal[False] | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        on_line: LineListener | None = None,
        on_delta: Callable[[str | None, str], None] | None = None,
        recorded: Cursor | None = None,
    ) -> None:
        self.llm = llm if llm is not None else _recorded_model(recorded)
        self.tools = tools if tools is not None else default_registry()
        self.memory = memory if memory is not None else InMemoryStore()
        self.config = config if config is not None else RunConfig()
        self.state: OrchestrationState | None = None
        """The state of the current or last run (core FR-011)."""
        self._approver = approver
        self._journal = journal
        self._on_record = on_record
        self._listener = fan_out([on_line, as_dicts(on_record)])
        self._on_delta = on_delta
        self._recorded = recorded
        self._effects: Effects | None = None
        self._abort_asked = False

    def abort(self) -> None:
        """End the run from another thread: at the next cycle, or within a second where a model call is in flight."""
        self._abort_asked = True
        if self._effects is not None:
            self._effects.abort()

    def close(self) -> None:
        """Release the model's connections, what the tools hold open, and a listener that can be closed."""
        for held in (self.llm, self.tools, self._on_record):
            if close := getattr(held, "close", None):
                close()

    def run(self, task: str, plan: Plan | Mapping[str, Any] | None = None) -> RunResult:
        """Run a task, with a given plan or one the model makes, and return how it ended, whatever happens.

        A given Plan object is executed itself: its steps carry the outcome afterwards. Raises AeonError only before
        the run has started: for a blank task, an unsound or already executed plan, a journal that cannot be created;
        and ReplayMismatchError where what was recorded is not what the kernel does.
        """
        if not isinstance(task, str) or not task.strip():
            raise UsageError(f"the task is {task!r}, expected a text that says what is to be done")
        task = clean_text(task)
        given = given_plan(plan)
        journal = self._open_journal()
        journal.redacts = holds_secret(f"{task} {self.config!r} {given.model_dump_json() if given else ''}")
        try:
            effects = Effects(
                journal,
                llm=self.llm,
                memory=self.memory,
                approver=self._approver,
                recorded=self._recorded,
                config=self.config,
                on_delta=self._on_delta,
            )
            self._effects = effects
            if self._abort_asked:
                effects.abort()
            self.state = OrchestrationState(
                ttl_limit=self.config.ttl, ttl_allocated=self.config.ttl, ttl_remaining=self.config.ttl
            )
            executor = Executor(effects, self.state, self.tools, self.config)
            progress = Progress(
                run_id=journal.run_id,
                journal=_shown(journal.path) if self._recorded is None else self._recorded.journal,
                model=self.llm.model,
                simulated=self.llm.simulated,
            )
            return _Run(task, given, executor, progress).run()
        finally:
            journal.close()
            self._effects, self._abort_asked = None, False

    def _open_journal(self) -> JournalWriter:
        listener = self._listener
        if self._recorded is not None:
            return JournalWriter(None, self._recorded.first["run"], listener)
        if self._journal is False:
            return JournalWriter(None, new_run_id(), listener)
        if self._journal is not None:
            path = Path(self._journal)
            return JournalWriter(path, clean_text(path.stem), listener)
        run_id = new_run_id()
        return JournalWriter(runs_directory(self.config) / f"{run_id}.jsonl", run_id, listener)


class _Run:
    """One run, from its first record to its last."""

    def __init__(self, task: str, given: Plan | None, executor: Executor, progress: Progress) -> None:
        self.task = task
        self.given = given
        self.executor = executor
        self.effects = executor.effects
        self.state = executor.state
        self.config = executor.config
        self.progress = progress

    def run(self) -> RunResult:
        config = {key: _shown(value) for key, value in self.config.model_dump(exclude_none=True).items()}
        started = RunStarted(
            task=self.task,
            config=plain(config),
            model=self.progress.model,
            simulated=self.progress.simulated,
            models=[known.described() for known in self.effects.models.known],
            prices=self.effects.models.prices,
            tools=self.executor.registry.export_tools_for_llm(),
            versions=versions(),
            memory=self.effects.memory,
        )
        try:
            self.effects.emit(started)
        except JournalError as failure:
            raise UsageError(failure.message) from None
        status, error = self._ending()
        result = self._result(status, error)
        try:
            self.effects.emit(RunFinished(result=result))
        except JournalError as failure:
            return self._result("failed", failure)
        return result

    def _result(self, status: RunStatus, error: AeonError | None) -> RunResult:
        self._count()
        return run_result(self.state, self.progress, status, error)

    def _count(self) -> None:
        models = self.effects.models
        self.progress.usage, self.progress.cost_usd = dict(models.usage), models.cost_usd
        self.progress.model, self.progress.simulated = models.model.model, models.simulated

    def _ending(self) -> tuple[RunStatus, AeonError | None]:
        try:
            self._pass()
        except TTLExpired:
            return "ttl_expired", None
        except ReplayMismatchError:
            raise
        except RunAborted as abort:
            return "aborted", self._cut_cycle(abort)
        except CostCeilingReached as ceiling:
            return "cost_ceiling", self._cut_cycle(ceiling)
        except KeyboardInterrupt:
            return "aborted", self._cut_cycle(RunAborted("the run was interrupted"))
        except AeonError as error:
            return "failed", error
        except Exception as error:
            logger.exception("the run failed on an error in Aeon itself")
            message = f"internal error: {type(error).__name__}: {error}"
            return "failed", self._cut_cycle(AeonError(message, error_type="InternalError"))
        complete = all(step.status == "complete" for step in self.executor.plan.walk())
        return ("completed" if complete else "not_converged"), None

    def _cut_cycle(self, error: AeonError) -> AeonError:
        """Write the cycle that did not come to its end; return why (core FR-039)."""
        if self.executor.cycle.open:
            self.executor.cycle.errors.append(error.as_dict())
            try:
                self.executor.end_cycle()
            except JournalError as failure:
                return failure
        return error

    def _pass(self) -> None:
        self.progress.started = self.effects.now
        self.executor.emit_ttl("allocated")
        self._phase("plan", self._plan)
        self._phase("execute", self._execute)
        self.progress.passes = self.state.pass_number
        try:
            self._answer()
        except TTLExpired:
            self._end_pass()
            raise
        self._end_pass()

    def _end_pass(self) -> None:
        self._count()
        snapshot = {"memory": self.effects.memory, "cycles": self.executor.cycles}
        self.effects.emit(pass_record(self.state, self.progress, self.effects.now, snapshot))

    def _phase(self, phase: Phase, work: Callable[[], None]) -> None:
        number, started = self.state.pass_number, self.effects.now
        self.effects.emit(PhaseRecord(pass_number=number, phase=phase, state="started"))
        try:
            work()
        except RunEnding:
            raise
        except Exception:
            self._end_phase(phase, started)
            raise
        self._end_phase(phase, started)

    def _end_phase(self, phase: Phase, started: str) -> None:
        number = self.state.pass_number
        duration_ms = milliseconds_between(started, self.effects.now)
        self.effects.emit(PhaseRecord(pass_number=number, phase=phase, state="finished", duration_ms=duration_ms))
        self.progress.phases.append({"phase": phase, "duration_ms": duration_ms})

    def _plan(self) -> None:
        """Take the plan that was given, else let the model make one (core FR-006); mark missing tools (core FR-063)."""
        executor = self.executor
        if self.given is not None:
            self.state.plan = self.given
            validate_plan_tools(self.given, executor.registry)
            executor.emit_plan("given")
            return
        executor.begin_cycle()
        request = plan_request(
            self.task,
            executor.registry.export_tools_for_llm(),
            ttl_remaining=self.state.ttl_remaining,
            ttl_limit=self.state.ttl_limit,
            max_tokens=self.config.max_tokens,
            prompts_dir=self.config.prompts_dir,
        )
        with executor.failing_cycle():
            reply = executor.llm.complete(request)
            plan = executor.supervisor.read_plan(reply, executor.registry, task=self.task)
        self.state.plan = plan
        validate_plan_tools(plan, executor.registry)
        executor.emit_plan("generated")
        executor.cycle.plan_state = executor.recorder.at_cycle_start()
        executor.end_cycle()

    def _execute(self) -> None:
        """Run every step in strict order (core FR-052, FR-053)."""
        self.executor.recorder.new_pass()
        steps = self.executor.plan.steps
        for index in range(len(steps)):
            self.executor.execute(steps[index], steps)

    def _answer(self) -> None:
        """Let the model answer the task from the steps' outputs. A refused or empty answer fails the run."""
        executor = self.executor
        executor.begin_cycle()
        with executor.failing_cycle():
            self.progress.answer = reply_text(executor.llm.complete(executor.request("answer", task=self.task)))
        executor.end_cycle()


def _shown(value: Any) -> Any:
    """Return a path as text that can be written as UTF-8, anything else as it is."""
    return clean_text(str(value)) if isinstance(value, Path) else value


def _recorded_model(recorded: Cursor | None) -> LLMAdapter:
    if recorded is None:
        raise UsageError("an Orchestrator needs a model; make one with connect('PROVIDER:NAME')")
    return RecordedModel(recorded)
