"""Runs for a client that drives this process: start them, follow them on an asyncio loop, answer their questions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.config.schema import RunConfig
from aeon_core.entities import RunResult, RunStatus
from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.reader import head
from aeon_core.journal.records import AllowedRule, Decision
from aeon_core.journal.summary import RunSummary, is_being_written
from aeon_core.journal.values import dict_of, str_of
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import apply
from aeon_core.memory import InMemoryStore, Memory
from aeon_core.paths import real_path, run_command
from aeon_core.units import count
from aeon_tui.sessions.run_jobs import NewRunJob, new_journal
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.stream import Stream
from aeon_tui.sources.base import read_journal
from aeon_widgets.run_question import ALWAYS, Choice, choices

if TYPE_CHECKING:
    from aeon_core import ToolRegistry
    from aeon_tui.sessions.run_jobs import RunJob


P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Delta:
    """A piece of a reply as it arrives."""

    purpose: str
    step_id: str | None
    text: str


ListedStatus = Literal[RunStatus, "running", "interrupted"]
"""The status of a run in a list."""
Event = dict[str, Any] | Delta
"""A record, or a piece of a reply."""


class StreamedRun(Runner):
    """Runs one job and forwards its events. Create it on the loop that reads them.

    With `tools`, the record of a call that starts has the `diff` that it will make to a file, in `preview`.
    """

    result: RunResult | None

    def __init__(self, job: RunJob, journal: Path, tools: ToolRegistry | None = None) -> None:
        super().__init__(job, journal)
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | Literal["asked", "ended"]] = asyncio.Queue()
        self._tools = tools
        self._shown: str | None = None
        """The digest of the question whose record was shown last."""
        self.stream = _Deltas(self)
        self.listen(lambda: self._post("ended" if self.ended else "asked"))

    def abort(self) -> None:
        """Request the end, also that of a command or an MCP server's call in progress; returns immediately."""
        super().abort()
        # Closing a server may take a while.
        self._loop.run_in_executor(None, self.job.discard)

    async def follow(
        self, show: Callable[[Event], Awaitable[object]], ask: Callable[[ApprovalRequest], Awaitable[T | None]]
    ) -> T | None:
        """Show the events from here on until the run has ended, and ask each question meanwhile.

        Asking is cancelled if somebody decides elsewhere. What `ask` returns, if anything, is returned immediately: the
        run keeps waiting and can be followed again. Raises what `show` or `ask` raise.
        """
        asking: asyncio.Future[T | None] | None = None
        asked: ApprovalRequest | None = None
        try:
            while (event := await self._events.get()) != "ended":
                if event != "asked":
                    await show(event)
                    if isinstance(event, dict) and event["type"] == "approval":
                        self._shown = event.get("digest")
                elif self.waiting is not asked:
                    if asking is not None:
                        asking.cancel()
                    asked, asking = self.waiting, None
                    if asked is not None and asked.digest != self._shown:
                        asked = None  # its record is still to come, and this event again after that
                    if asked is not None:
                        asking = asyncio.ensure_future(ask(asked))
                        asking.add_done_callback(lambda _: self._post("asked"))
                elif asking is not None and asking.done() and (found := asking.result()) is not None:
                    return found
            return None
        finally:
            if asking is not None:
                asking.cancel()

    def _post(self, event: Event | Literal["asked", "ended"]) -> None:
        """Post an event, a changed question or the end, from any thread. A closed loop needs none."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def _on_line(self, line: bytes) -> None:
        record = json.loads(line)
        if record["type"] == "tool" and record["state"] == "started" and (diff := self._preview(record)):
            record["preview"] = {"diff": diff}
        self._post(record)

    def _preview(self, record: dict[str, Any]) -> str | None:
        """Return the diff that a call would make. Runs on the kernel's thread, before the call changes the file."""
        with contextlib.suppress(Exception):  # the call itself will report what is wrong with it
            tool = self._tools.get(record["tool_name"]) if self._tools is not None else None
            return tool.preview(record["arguments"]) if tool is not None else None
        return None


class _Deltas(Stream):
    def __init__(self, run: StreamedRun) -> None:
        super().__init__()
        self._run = run

    def add(self, purpose: str, step_id: str | None, text: str) -> None:
        self._run._post(Delta(purpose, step_id, text))


ENDING_SECONDS = 3.0
"""Seconds that runs get to end after an abort; their journals can be resumed."""


def errors_as(
    translate: Callable[[Exception], Exception],
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Return a decorator that raises AeonErrors and OSErrors as the protocol's own error."""

    def decorate(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        @functools.wraps(method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return await method(*args, **kwargs)
            except (AeonError, OSError) as error:
                raise translate(error) from None

        return call

    return decorate


@dataclass
class ServedRuns:
    """Starts runs with a configuration, and finds past ones."""

    config: RunConfig
    runs_dir: Path
    live: dict[str, StreamedRun] = field(default_factory=dict)
    """Runs in this process whose end has not been read yet."""

    async def start(
        self, task: str, plan: Any = None, memory: Memory | None = None, journal: Path | None = None, **changes: Any
    ) -> StreamedRun:
        """Start a run, with changes to the configuration. Raises UsageError, ModelUnavailableError.

        If it is cancelled while the tools are still being loaded, they are closed as soon as they are.
        """
        job = NewRunJob(task, self.config.model_copy(update=changes), plan, memory=memory)
        loop = asyncio.get_running_loop()
        # Tools may take long to load, and lists wait for the threads of the loop.
        preparing = loop.run_in_executor(ThreadPoolExecutor(1), job.prepare)
        try:
            await asyncio.shield(preparing)
        except asyncio.CancelledError:
            preparing.add_done_callback(lambda done: done.exception() or loop.run_in_executor(None, job.discard))
            raise
        run = StreamedRun(job, journal or new_journal(self.runs_dir), job.tools)
        self.live[run.run_id] = run
        run.start()
        return run

    def offered(self, mcp_servers: dict[str, Any]) -> ServedRuns:
        """Return runs that also have a client's MCP servers as tools. Raises UsageError for invalid settings."""
        if not (servers := RunConfig(mcp_servers=mcp_servers).mcp_servers):
            return self
        update = {"mcp_servers": {**self.config.mcp_servers, **servers}, "tools": [*self.config.tools, "mcp"]}
        return replace(self, config=self.config.model_copy(update=update))

    async def past(self, status: ListedStatus | None = None) -> list[RunSummary]:
        """Return the runs in the directory, newest first, optionally only those with a status."""
        found = await asyncio.to_thread(list_runs, self.runs_dir)
        return [each for each in found if each.kind == "run" and status in (None, each.status)]

    async def past_here(self, most: int) -> list[RunSummary]:
        """Return the newest runs that are not of another project; the directory may hold those, too."""

        def is_here(run: RunSummary) -> bool:
            with contextlib.suppress(AeonError, ValueError):
                config = dict_of((head(Path(run.path)) or {}).get("config")) or {}
                root = str_of(config.get("project_root"))
                return not root or real_path(root) == here
            return False

        here, found = real_path(self.config.root), await self.past()
        return await asyncio.to_thread(lambda: list(itertools.islice(filter(is_here, found), most)))

    async def path(self, run: str) -> Path:
        """Return the journal of a run's id, a unique prefix of one, or `last`; no file elsewhere. Raises UsageError."""
        known = {each.run_id: each.path for each in await self.past()}
        found = [run] if run in known else [each for each in known if run and each.startswith(run)]
        found = list(known)[:1] if run == "last" else found
        if len(found) != 1:
            raise UsageError(f"{'several runs begin with' if found else 'there is no run'} {run!r}; `runs` lists them")
        return Path(known[found[0]])

    def is_live(self, run_id: str) -> bool:
        """Return whether a process is writing the run."""
        return is_being_written(self.runs_dir / f"{run_id}.jsonl")

    def command(self, verb: str, run_id: str, more: str = "") -> str:
        """Return the command, in backquotes, that does something with a run at a terminal."""
        return run_command(verb, self.runs_dir / f"{run_id}.jsonl", more)

    async def close(self) -> None:
        """End all runs."""
        for run in self.live.values():
            run.abort()
        await asyncio.gather(*(asyncio.to_thread(run.wait, ENDING_SECONDS) for run in self.live.values()))


PHASES = {
    "plan": "planning",
    "execute": "running the plan",
    "evaluate": "judging the result",
    "refine": "refining the plan",
}


class ProgressLines:
    """Folds the records of one run, in order, into `view`."""

    def __init__(self) -> None:
        self.view = RunView()

    def line(self, record: Mapping[str, Any]) -> str:
        """Return a line of progress for a record; usually empty."""
        apply(self.view, record)
        kind = record["type"]
        if kind == "phase" and record["state"] == "started":
            return f"pass {record['pass']}: {PHASES.get(record['phase'], record['phase'])}"
        if kind == "step" and record["status"] == "running":
            return f"{record['step_id']}: {self.view.steps[record['step_id']].description}"
        if kind == "convergence" and (found := self.view.assessments[-1].requirements):
            return f"{sum(each.met == 'yes' for each in found)} of {count(len(found), 'requirement')} met"
        return str(record["message"]) if kind == "notice" else ""


def answers(request: ApprovalRequest) -> list[Choice]:
    """Return the choices that need at most a reason, the one that continues first."""
    return [each for each in choices(request.point, request.subject, request.pass_number) if each.answer != "edit"]


def decision(request: ApprovalRequest, answer: str | None, reason: str = "") -> ApprovalDecision:
    """Return the decision of an answer. One that was not offered ends the run, which asks again if resumed."""
    if answer not in {each.answer for each in answers(request)}:
        return ApprovalDecision(decision="abort", feedback=f"the client answered {answer!r}" if answer else None)
    if answer == ALWAYS:
        rule = str_of((dict_of(request.subject.get("proposal")) or {}).get("rule"))
        return ApprovalDecision(decision="approve", allow=AllowedRule(rule=rule, scope="run"))
    feedback = reason.strip() if answer == "reject" else ""
    return ApprovalDecision(decision=cast("Decision", answer), feedback=feedback or None)


ConversationMode = Literal["passes", "single", "plan"]
"""Prompts run until the result converges, in one pass, or with a question about the plan first."""


@dataclass
class ServedConversation:
    """A conversation. Its first run has its id; later ones add a number."""

    id: str
    runs: ServedRuns
    mode: ConversationMode = field(init=False)
    turns: list[tuple[str, str]] = field(default_factory=list)
    """The prompts and answers so far."""
    allowed: list[str] = field(default_factory=list)
    """Rules that the user has allowed for the conversation."""
    run: StreamedRun | None = None
    """The run in progress, or the last one."""
    question: ApprovalRequest | None = None
    """The question that the next prompt answers."""
    notice: str = ""
    """A text to show once, before the updates of the prompt."""

    def __post_init__(self) -> None:
        self.mode = "single" if self.runs.config.single_pass else "passes"

    def past(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the records of each existing run, and add its prompt and answer to the turns."""
        for path in itertools.takewhile(Path.exists, self._journals()):
            records, task = list(read_journal(path, [])), ""
            for record in records:
                if record["type"] == "run_started":
                    task = str(record["task"])
                elif record["type"] == "run_finished":
                    self.turns.append((task, str(record["result"].get("answer") or "")))
            yield records

    async def prompt(self, text: str) -> StreamedRun:
        """Start the next run, or pass the prompt to the waiting one. Raises UsageError, ModelUnavailableError."""
        question, self.question = self.question, None
        if self.run is not None and self.run.aborting:
            await asyncio.to_thread(self.run.wait, ENDING_SECONDS)
        if self.run is None or self.run.ended:
            self.run = await self._start(text)
        elif question is not None:
            if not self.decide(question, ApprovalDecision(decision="reject", feedback=text)):
                self.notice = "Decided elsewhere: your message was not used. Send it again once the run has ended."
        else:
            raise UsageError("the last run is still in a tool call; send your message again when it has ended")
        return self.run

    async def follow(
        self,
        run: StreamedRun,
        show: Callable[[Event], Awaitable[object]],
        ask: Callable[[ApprovalRequest], Awaitable[ApprovalRequest | None]],
    ) -> RunResult | None:
        """Return the run's result; None if it waits for the next prompt, or was aborted during a call.

        `ask` returns the question if the next prompt is to answer it. Raises the error of a run that could not start.
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
            self.turns.append((run.job.task, run.result.answer or ""))
        return run.result

    def decide(self, request: ApprovalRequest, decision: ApprovalDecision) -> bool:
        """Answer the run's question; a rule in the decision applies from here on.

        Return whether the run was still waiting for it.
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
