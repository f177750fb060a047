"""A workflow as a program over its port: the same for a live, a resumed and a replayed one (Decision 2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from aeon_core.entities import RunResult, TTLState, UsageTotals
from aeon_core.errors import AeonError, ReplayMismatchError, RunAborted
from aeon_core.journal.records import RunFinished, RunStarted
from system2.change_tracker import LIMITS, ChangeTracker
from system2.constants import LOG_FILE
from system2.context import WorkflowContext
from system2.contracts import DOCUMENTS, DelegationContract
from system2.delegation import Delegation
from system2.documents import ARTIFACTS, UNDECIDED, Documents, digests, earlier_task, kept_documents, spec_question
from system2.gates import Gates
from system2.policies import GateDecision
from system2.session import AgentResult
from system2.workflow import Workflow
from system2.workflow_result import exit_code_of, message_of, status_of

logger: logging.Logger = logging.getLogger("aeon")
_FILES = (*DOCUMENTS.values(), LOG_FILE)


class Program:
    """Runs the workflow that the first record, `started`, describes."""

    def __init__(self, context: WorkflowContext, started: RunStarted, run_id: str) -> None:
        self._context, self._effects, self._started, self._run_id = context, context.effects, started, run_id
        self._options: Mapping[str, Any] = started.workflow or {}
        self._gates = Gates(context)
        invoked = self._options.get("invoke")
        self._delegation = Delegation(context, LIMITS if invoked is None else {})
        self.only: str | None = invoked["agent"] if invoked is not None else None
        """The one agent that is to work, without gates."""
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
        effects, root = self._effects, self._context.project_root
        tracker = ChangeTracker(effects, self._context.store, _FILES)
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
