"""A workflow as a program over its port: the same for a live, a resumed and a replayed one (Decision 2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon_core.effects.port import Effects
from aeon_core.entities import RunResult, TTLState, UsageTotals
from aeon_core.errors import AeonError, ReplayMismatchError, RunAborted
from aeon_core.journal.records import RunFinished, RunStarted
from aeon_core.policy import PolicyRules
from aeon_core.tools.registry import ToolRegistry
from system2.agent_contracts import DOCUMENTS
from system2.agents.library import AgentLibrary
from system2.change_tracker import LIMITS, ChangeTracker
from system2.constants import LOG_FILE
from system2.context import WorkflowContext
from system2.contracts import DelegationContract
from system2.cost import Costs
from system2.delegation import Delegation, OnAgentComplete
from system2.documents import ARTIFACTS, UNDECIDED, Documents, digests, earlier_task, kept_documents, spec_question
from system2.gates import Gates
from system2.policies import GateDecision
from system2.session import AgentResult
from system2.settings import WorkflowSettings
from system2.snapshots import SnapshotStore
from system2.workflow import Workflow
from system2.workflow_result import exit_code_of, message_of, status_of

logger: logging.Logger = logging.getLogger("aeon")
_FILES = (*DOCUMENTS.values(), LOG_FILE)


@dataclass
class World:
    """What only a live workflow has, besides its folder; a replay has none of it."""

    root: Path
    settings: WorkflowSettings | None = None
    """Those that hold now: what an earlier process had is in the journal."""
    library: AgentLibrary | None = None
    store: SnapshotStore | None = None
    transcripts: Path = Path()
    warn: Callable[[str], object] = logger.warning
    on_complete: OnAgentComplete | None = None
    policy: PolicyRules = field(default_factory=PolicyRules)
    """The rules of the person's configuration and the project's."""
    unsafe_bash: bool = False
    automatic: bool = False
    """Whether gates are approved without a person."""
    resumed: bool = False


class Program:
    """Runs the workflow that the first record, `started`, describes."""

    def __init__(
        self, effects: Effects, started: RunStarted, registry: ToolRegistry, costs: Costs, world: World, run_id: str
    ) -> None:
        self._effects, self._started, self._world, self._run_id = effects, started, world, run_id
        self._options: Mapping[str, Any] = started.workflow or {}
        self._context = WorkflowContext(
            world.root,
            WorkflowSettings(**self._options["settings"]),
            effects,
            registry,
            costs,
            rules=world.settings,
            unsafe_bash=world.unsafe_bash,
            policy=world.policy,
        )
        self._gates = Gates(effects, world.root, automatic=world.automatic, resumed=world.resumed)
        self._delegation = Delegation(
            self._context,
            world.library,
            on_complete=world.on_complete,
            warn=world.warn,
            limits=LIMITS if self._options.get("invoke") is None else None,
        )
        self.result: AgentResult | None = None
        """How the work of the one requested agent ended."""

    @property
    def agents_invoked(self) -> list[str]:
        """Who has worked, each once, in the order of their first work."""
        return self._delegation.invoked

    @property
    def decisions(self) -> list[GateDecision]:
        """What was decided at the gates, in order."""
        return self._gates.decisions

    def run(self) -> BaseException | None:
        """Run the whole workflow, and record how it ended; return why it did not complete.

        Raises ReplayMismatchError where it is not what was recorded.
        """
        error: BaseException | None = None
        self._effects.emit(self._started)
        try:
            self._work()
        except ReplayMismatchError:
            raise
        except AeonError as failure:
            error = failure
        except Exception as failure:
            logger.exception("the workflow failed")
            error = AeonError(f"internal error: {type(failure).__name__}: {failure}")
        except BaseException as failure:
            error = failure
        if error is not None:
            self._effects.end_resumable()
        self._effects.emit(RunFinished(result=self._result(error)))
        return error

    def _work(self) -> None:
        invoked = self._options.get("invoke")
        if invoked is not None:
            self.result = self._delegation.work(invoked["agent"], DelegationContract(**invoked["contract"]))
            return
        effects, root = self._effects, self._world.root
        tracker = ChangeTracker(effects, self._world.store, _FILES)
        tracker.begin()
        before = effects.observe("documents", lambda: digests(root, _FILES))
        documents, kept = Documents(effects, root, before), self._kept_documents(before)
        Workflow(self._started.task, self._context, self._delegation, self._gates, tracker, documents, kept).run()

    def _kept_documents(self, before: Mapping[str, str]) -> tuple[str, ...]:
        """Return the documents of an earlier workflow that this one builds on. Raises RunAborted."""
        present = set(before) & set(ARTIFACTS)
        if not present:
            return ()
        choice = self._options.get("spec")
        if choice is None:
            effects, transcripts = self._effects, self._world.transcripts
            task = effects.observe("earlier_task", lambda: earlier_task(transcripts, self._run_id))
            asked_at = effects.next_seq
            question = spec_question(present, task)
            choice = self._context.choose(question)
            if choice == question.safe:
                effects.resumes_from(asked_at)
                raise RunAborted(UNDECIDED)
        return kept_documents(present) if choice == "continue" else ()

    def _result(self, error: BaseException | None) -> RunResult:
        models = self._effects.models
        described: dict[str, Any] | None = None
        if error is not None:
            described = {"error_type": type(error).__name__, "message": message_of(error)}
            if (code := exit_code_of(error)) == 3:
                described["exit_code"] = code
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
