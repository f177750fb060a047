"""Prompts that are runs, each with its own journal; a later one knows the earlier ones and their answers."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aeon_core.approvals.pending import ApprovalDecision, ApprovalRequest
from aeon_core.entities import RunResult
from aeon_core.errors import UsageError
from aeon_core.memory import InMemoryStore
from aeon_tui.sessions.served_runs import Event, ServedRuns, StreamedRun
from aeon_tui.sources.base import read_journal

Mode = Literal["passes", "single", "plan"]
"""Prompts run until the result converges, in one pass, or with a question about the plan first."""


@dataclass
class Conversation:
    """A conversation. Its first run has its id, the others that and a number."""

    id: str
    runs: ServedRuns
    mode: Mode = "passes"
    turns: list[tuple[str, str]] = field(default_factory=list)
    """What was asked and answered."""
    allowed: list[str] = field(default_factory=list)
    """Rules that a person has allowed for the conversation."""
    run: StreamedRun | None = None
    """The run in progress, or the last one."""
    question: ApprovalRequest | None = None
    """The question that the next prompt answers."""
    notice: str = ""
    """What to show once, before what follows the prompt."""

    def past(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the records of each run that there is, and take in what was asked and answered."""
        for path in itertools.takewhile(Path.exists, self._journals()):
            records, task = list(read_journal(path, [])), ""
            for record in records:
                if record["type"] == "run_started":
                    task = str(record["task"])
                elif record["type"] == "run_finished":
                    self.turns.append((task, str(record["result"].get("answer") or "")))
            yield records

    async def prompt(self, text: str) -> StreamedRun:
        """Start the next run, or tell the one that waits for words. Raises UsageError, ModelUnavailableError."""
        question, self.question = self.question, None
        if self.run is None or self.run.ended:
            self.run = await self._start(text)
        elif question is not None:
            if not self.decide(question, ApprovalDecision(decision="reject", feedback=text)):
                self.notice = "Decided elsewhere: your message was not used. Send it again once the run has ended."
        else:
            raise UsageError("the last run of this session has not ended yet")
        return self.run

    async def follow(
        self,
        run: StreamedRun,
        show: Callable[[Event], Awaitable[object]],
        ask: Callable[[ApprovalRequest], Awaitable[ApprovalRequest | None]],
    ) -> RunResult | None:
        """Return the run's result; None where it waits for the next prompt, or was aborted during a call.

        `ask` returns the question if the next prompt is to answer it. Raises what the run could not start for.
        """
        try:
            self.question = await run.follow(show, ask)
        except BaseException:
            run.abort()
            raise
        if run.ended:
            self.runs.live.pop(run.run_id, None)
        if run.error is not None:
            raise run.error
        if run.result is not None:
            self.turns.append((run.task, run.result.answer or ""))
        return run.result

    def decide(self, request: ApprovalRequest, decision: ApprovalDecision) -> bool:
        """Answer the run's question; a rule that is allowed with it is allowed from here on.

        Return whether the run still waited for that.
        """
        if decision.allow is not None:
            self.allowed.append(decision.allow.rule)
        return self.run is not None and self.run.broker.decide(request.digest, decision)

    def _journals(self) -> Iterator[Path]:
        for number in itertools.count(1):
            yield self.runs.runs_dir / f"{self.id if number == 1 else f'{self.id}-{number}'}.jsonl"

    async def _start(self, task: str) -> StreamedRun:
        if not task.strip():
            raise UsageError("the prompt has no text")
        config, memory = self.runs.config, InMemoryStore()
        for number, (asked, answered) in enumerate(self.turns, 1):
            memory.write(f"earlier-prompt-{number}", {"asked": asked, "answered": answered})
        asks = {*config.approve, *(["plan"] if self.mode == "plan" else [])} - {"none"}
        asks -= {"plan", "pass"} if self.mode == "single" else set()
        return await self.runs.start(
            task,
            memory=memory,
            journal=next(itertools.dropwhile(Path.exists, self._journals())),
            single_pass=self.mode == "single",
            approve=sorted(asks) or ["none"],
            policy=config.policy.model_copy(update={"allow": (*config.policy.allow, *self.allowed)}),
        )
