"""A workflow as a program over its port: the same for a live, a resumed and a replayed one (Decision 2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
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
from system2.change_tracker import ChangeTracker
from system2.constants import LOG_FILE
from system2.context import WorkflowContext
from system2.contracts import DelegationContract
from system2.cost import Costs, dollars
from system2.delegation import Delegation, OnAgentComplete
from system2.documents import Documents, digests
from system2.earlier_spec import ARTIFACTS, UNDECIDED, earlier_task, kept_documents, spec_question
from system2.gates import Gates
from system2.policies import GateDecision
from system2.session import AgentResult
from system2.settings import WorkflowSettings
from system2.snapshots import SnapshotStore
from system2.suite_runs import list_tests
from system2.workflow import MAX_FLAGGED, Workflow
from system2.workflow_end import exit_code_of, message_of, status_of
from system2.write_limits import LIMITS

logger: logging.Logger = logging.getLogger("aeon")
_FILES = (*DOCUMENTS.values(), LOG_FILE)


@dataclass
class World:
    """What only a live workflow has: its agents' files, its snapshots, its listener for results."""

    root: Path
    settings: WorkflowSettings
    """Those that hold now: what an earlier process had is in the journal."""
    library: AgentLibrary
    store: SnapshotStore
    transcripts: Path
    warn: Callable[[str], object]
    on_complete: OnAgentComplete | None = None
    policy: PolicyRules = field(default_factory=PolicyRules)
    """The rules of the person's configuration and the project's."""
    unsafe_bash: bool = False
    automatic: bool = False
    """Whether gates are approved without a person."""
    resumed: bool = False


class Program:
    """Runs the workflow that the first record, `started`, describes. `world` is None in a replay."""

    def __init__(
        self,
        effects: Effects,
        started: RunStarted,
        registry: ToolRegistry,
        costs: Costs,
        world: World | None,
        run_id: str,
    ) -> None:
        self._effects, self._started, self._world, self._run_id = effects, started, world, run_id
        self._options: Mapping[str, Any] = started.workflow or {}
        self._root = world.root if world is not None else Path(self._options["project_root"])
        self._context = WorkflowContext(
            self._root,
            WorkflowSettings(**self._options["settings"]),
            effects,
            registry,
            costs,
            self._model_of,
            self._window_of,
            rules=world.settings if world is not None else None,
            unsafe_bash=world.unsafe_bash if world is not None else False,
            policy=world.policy if world is not None else PolicyRules(),
        )
        self._gates = Gates(
            effects,
            self._root,
            automatic=world.automatic if world is not None else False,
            resumed=world.resumed if world is not None else False,
        )
        self._delegation = Delegation(
            self._context,
            world.library if world is not None else None,
            on_complete=world.on_complete if world is not None else None,
            warn=world.warn if world is not None else logger.warning,
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
        effects, world, root = self._effects, self._world, self._root
        tracker = ChangeTracker(effects, world.store if world is not None else None, _FILES)
        tracker.begin()
        before = effects.observe("documents", lambda: digests(root, _FILES))

        def facts() -> list[str]:
            return [list_tests(self._context.test_runs), f"Cost so far: {dollars(self._context.costs.cumulative)}"]

        Workflow(
            self._started.task,
            root,
            effects,
            self._delegation,
            self._gates,
            tracker,
            Documents(effects, root, before),
            facts,
            partial(_flag, self._context),
            self._kept_documents(before),
        ).run()

    def _kept_documents(self, before: Mapping[str, str]) -> tuple[str, ...]:
        """Return the documents of an earlier workflow that this one builds on. Raises RunAborted."""
        present = set(before) & set(ARTIFACTS)
        if not present:
            return ()
        choice = self._options.get("spec")
        if choice is None:
            effects, world = self._effects, self._world
            transcripts = world.transcripts if world is not None else self._root
            task = effects.observe("earlier_task", lambda: earlier_task(transcripts, self._run_id))
            asked_at = effects.next_seq
            question = spec_question(present, task)
            choice = self._context.choose(question)
            if choice == question.safe:
                effects.resumes_from(asked_at)
                raise RunAborted(UNDECIDED)
        return kept_documents(present) if choice == "continue" else ()

    def _model_of(self, agent: str) -> str:
        models = self._effects.models
        return next((known.model for known in models.known if agent in known.agents), models.model.model)

    def _window_of(self, agent: str) -> int | None:
        models = self._effects.models
        return next((each.context_window for each in models.known if agent in each.agents), models.model.context_window)

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


def _flag(context: WorkflowContext, agent: str, paths: list[str]) -> None:
    told = ", ".join(map(repr, paths[:MAX_FLAGGED])) + (", …" if len(paths) > MAX_FLAGGED else "")
    context.note("flagged", agent, f"{agent!r} changed files that it may not change: {told}", paths=list(paths))
