"""The Orchestrator: opens a run, and hands it to the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aeon_core.config import RunConfig, runs_directory
from aeon_core.convergence.criteria import ConvergenceCriteria, load_criteria
from aeon_core.effects.approval import Approver
from aeon_core.effects.cursor import Cursor, RecordedModel
from aeon_core.effects.port import Effects
from aeon_core.entities import RunResult
from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.listening import as_dicts, fan_out
from aeon_core.journal.opening import open_journal
from aeon_core.journal.records import RunResumed
from aeon_core.journal.writer import JournalWriter, LineListener
from aeon_core.kernel.checkpoint import Checkpoint
from aeon_core.kernel.executor import Executor
from aeon_core.kernel.orchestrator import Loop
from aeon_core.kernel.result import Progress, located, run_started, shown
from aeon_core.kernel.state import OrchestrationState
from aeon_core.llm.base import LLMAdapter, as_adapter
from aeon_core.memory.base import Memory
from aeon_core.memory.store import InMemoryStore
from aeon_core.plain import clean_text, plain
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan, given_plan
from aeon_core.redaction import holds_secret, redact
from aeon_core.tools.registry import ToolRegistry, default_registry


@dataclass(frozen=True)
class Start:
    """Where a run begins that does not begin at its task: a fork, or a resumed run behind a pass (Decision 2).

    `parent` is there in a fork: `run_id`, `pass`, and whether its plan was `edited`; `behind` in a resumed run: the
    line of its last pass.
    """

    checkpoint: Checkpoint | None
    memory: dict[str, Any] = field(default_factory=dict)
    parent: dict[str, Any] | None = None
    behind: Mapping[str, Any] | None = None

    def told(self) -> dict[str, Any]:
        """Return what `run_started` says of it."""
        checkpoint = self.checkpoint
        start = checkpoint.model_dump(mode="json", exclude_none=True) if checkpoint is not None else None
        return {"parent": self.parent, "start": start}


class Orchestrator:
    """Runs tasks. One run at a time; `abort` and `state` may be used from another thread.

    `tools` defaults to echo and calculator, `memory` to a store of the run's own, `journal` to a new file in the runs
    directory (a path names the file, False keeps none). `approver` is asked before tools that need approval.
    `on_record` gets every record as a dict, long texts in full, on the kernel's thread after it was written; `on_line`
    the same as one line of JSON; `on_delta` gets (step_id, text) while a reply streams in, on the thread of the call.
    `criteria` of convergence come before the file that the configuration names.
    `recorded` makes the run go over recorded lines; `llm=None` with it is a replay, which performs nothing. With a
    `journal` that is open already the run goes on behind them, and says how in `resumed`. `start` is where it begins.
    """

    def __init__(
        self,
        llm: LLMAdapter | None,
        tools: ToolRegistry | None = None,
        memory: Memory | None = None,
        config: RunConfig | None = None,
        approver: Approver | None = None,
        journal: JournalWriter | Path | str | Literal[False] | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        on_line: LineListener | None = None,
        on_delta: Callable[[str | None, str], None] | None = None,
        recorded: Cursor | None = None,
        criteria: ConvergenceCriteria | None = None,
        resumed: RunResumed | None = None,
        start: Start | None = None,
    ) -> None:
        self.llm = as_adapter(llm) if llm is not None else _recorded_model(recorded)
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
        self._criteria = criteria
        self._resumed = resumed
        self._start = start
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
        criteria, recorded = self._criteria, self._recorded
        if criteria is None and recorded is None and self.config.criteria is not None:
            criteria = load_criteria(self.config.criteria)
        journal = self._open_journal()
        told, start = dump_plan(given) if given is not None else None, self._start
        plans = [told, start.told()["start"] if start is not None else None]
        journal.redacts = holds_secret(f"{task} {self.config!r}") or redact(plans) != plans
        try:
            if start is not None and start.parent is not None and recorded is None:
                self._begin_with(start.memory)
            effects = Effects(
                journal,
                llm=self.llm,
                memory=self.memory,
                approver=self._approver,
                recorded=recorded,
                config=self.config,
                on_delta=self._on_delta,
                resumed=self._resumed,
            )
            self._effects = effects
            if self._abort_asked:
                effects.abort()
            if start is not None and start.behind is not None:
                effects.go_on_behind(start.behind, start.memory)
            self.state = OrchestrationState(
                ttl_limit=self.config.ttl, ttl_allocated=self.config.ttl, ttl_remaining=self.config.ttl
            )
            executor = Executor(effects, self.state, self.tools, self.config)
            progress = Progress(
                run_id=journal.run_id,
                journal=shown(journal.path) if recorded is None or journal.path is not None else recorded.journal,
                model=self.llm.model if recorded is None else recorded.first["model"],
                simulated=self.llm.simulated if recorded is None else recorded.first.get("simulated") is True,
                criteria=criteria.model_dump(mode="json") if criteria is not None else None,
                given_plan=told,
            )
            self._announce(task, executor, progress)
            checkpoint = start.checkpoint if start is not None else None
            return located(Loop(task, given, executor, progress, criteria, checkpoint).run(), journal)
        finally:
            journal.close()
            self._effects, self._abort_asked = None, False

    def _announce(self, task: str, executor: Executor, progress: Progress) -> None:
        """Write the run's first record, and put the run where it starts. Raises UsageError where it cannot be written.

        A run that goes on behind one of its passes has its first record.
        """
        start = self._start
        if start is None or start.parent is not None:
            fork = start.told() if start is not None else {}
            try:
                executor.effects.emit(run_started(task, self.config, executor.effects, self.tools, progress, fork))
            except JournalError as failure:
                raise UsageError(failure.message) from None
        if start is not None and start.checkpoint is not None:
            start.checkpoint.restore(executor.state, progress, executor)
            if start.parent is not None:
                progress.forked = "edited" if start.parent.get("edited") else "given"

    def _begin_with(self, memory: Mapping[str, Any]) -> None:
        """Put into the memory what it starts with. Raises UsageError where the store refuses.

        What it holds already is left alone: a journal shows it without its secrets.
        """
        try:
            for key, value in memory.items():
                if redact({key: plain(self.memory.read(key))}) != {key: value}:
                    self.memory.write(key, plain(value))
        except Exception as error:
            raise UsageError(f"the memory does not take what the fork starts with: {error}") from None

    def _open_journal(self) -> JournalWriter:
        if isinstance(self._journal, JournalWriter):
            return self._journal
        if self._recorded is not None:
            return JournalWriter(None, self._recorded.first["run"], self._listener)
        return open_journal(self._journal, runs_directory(self.config), self._listener)


def _recorded_model(recorded: Cursor | None) -> LLMAdapter:
    if recorded is None:
        raise UsageError("an Orchestrator needs a model; make one with connect('PROVIDER:NAME')")
    return RecordedModel(recorded)
