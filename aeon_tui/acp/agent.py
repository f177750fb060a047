"""The agent. A session is a conversation; each prompt in it is a run with its own journal."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar, cast

from acp import PROTOCOL_VERSION, Client, RequestError, run_agent, update_agent_message_text
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    StopReason,
    ToolCallUpdate,
)

from aeon_core import AeonError, ApprovalDecision, ApprovalRequest, InMemoryStore, RunConfig, list_runs
from aeon_tui.acp import permissions
from aeon_tui.acp.transport import LineTransport
from aeon_tui.acp.updates import Updates
from aeon_tui.sessions.run_jobs import NewRunJob, new_journal
from aeon_tui.sessions.streamed_run import Delta, StreamedRun
from aeon_tui.sources.base import read_journal
from aeon_widgets.run_question import ALWAYS

P = ParamSpec("P")
T = TypeVar("T")
logger = logging.getLogger("aeon")

MODES = [
    SessionMode(id="passes", name="Passes", description="Refine the result until it converges; ask after each pass"),
    SessionMode(id="single", name="Single pass", description="One plan, one pass, one answer; nothing is judged"),
    SessionMode(id="plan", name="Plan first", description="Ask about the plan before it runs, and after each pass"),
]
ENDING_SECONDS = 3.0
"""Seconds a run gets to end after a cancel or a disconnect; its journal can be resumed."""
LISTED = 50
"""How many sessions are listed, newest first."""
WHAT_TO_CHANGE = "\n\nWhat should change? The run is waiting for your next message."


@dataclass(frozen=True)
class SessionConfig:
    """The settings of a session's runs, from the configuration of its folder."""

    config: RunConfig
    runs_dir: Path
    asks: frozenset[str]
    """What a person is asked about in the mode `passes`."""
    notice: str = ""
    """A notice to show at the start of the first run."""


LoadConfig = Callable[[Path], SessionConfig]
"""Returns it for a folder. Raises AeonError."""


@dataclass
class Session:
    """A conversation. `run` is the run in progress, or waiting for a message."""

    id: str
    cwd: Path
    setup: SessionConfig
    mode: str = "passes"
    turns: list[tuple[str, str]] = field(default_factory=list)
    """What was asked and answered."""
    allowed: list[str] = field(default_factory=list)
    """Rules that a person has allowed for the session."""
    run: StreamedRun | None = None
    updates: Updates | None = None
    needs_words: ApprovalRequest | None = None
    """The question that the next message answers."""
    prompting: bool = False
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def config(self) -> RunConfig:
        """Return the options of the next run."""
        setup = self.setup
        asks = set(setup.asks) | ({"plan"} if self.mode == "plan" else set())
        asks -= {"plan", "pass"} if self.mode == "single" else set()
        policy = setup.config.policy
        return setup.config.model_copy(
            update={
                "single_pass": self.mode == "single",
                "approve": sorted(asks) or ["none"],
                "policy": policy.model_copy(update={"allow": (*policy.allow, *self.allowed)}),
            }
        )

    def memory(self) -> InMemoryStore:
        """Return the initial memory of the next run: earlier prompts and their answers."""
        memory = InMemoryStore()
        for number, (asked, answered) in enumerate(self.turns, 1):
            memory.write(f"earlier-prompt-{number}", {"asked": asked, "answered": answered})
        return memory

    def journals(self) -> Iterator[Path]:
        """Yield the journal path of each run, existing or future; the first is named after the session."""
        for number in itertools.count(1):
            yield self.setup.runs_dir / f"{self.id if number == 1 else f'{self.id}-{number}'}.jsonl"


def reported(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Turn exceptions into protocol errors of one line."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except AeonError as error:
            raise RequestError(-32602 if error.exit_code == 2 else -32603, error.message) from None
        except (RequestError, asyncio.CancelledError):
            raise
        except Exception as error:
            logger.exception("an internal error in the agent")
            raise RequestError(-32603, f"internal error: {type(error).__name__}: {error}") from None

    return call


class AeonAgent:
    """The methods of the protocol that an editor calls."""

    def __init__(self, load: LoadConfig, version: str) -> None:
        self._load = load
        self._version = version
        self._sessions: dict[str, Session] = {}
        self._client: Client | None = None

    def on_connect(self, conn: Client) -> None:
        """Keep the connection to the editor."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Return this agent's capabilities."""
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION) or PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
            agent_info=Implementation(name="aeon", title="Aeon", version=self._version),
        )

    @reported
    async def new_session(self, cwd: str, mcp_servers: Iterable[Any] | None = None, **_: Any) -> NewSessionResponse:
        """Start a conversation in a folder."""
        setup = await self._setup(cwd, mcp_servers)
        mode = "single" if setup.config.single_pass else "passes"
        session = Session(new_journal(setup.runs_dir).stem, Path(cwd), setup, mode)
        self._sessions[session.id] = session
        return NewSessionResponse(session_id=session.id, modes=_modes(session))

    @reported
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Iterable[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Show a past run, and those that followed it in its conversation."""
        if (known := self._sessions.get(session_id)) is not None and known.prompting:
            raise RequestError(-32600, f"the session {session_id!r} has a prompt under way")
        setup = await self._setup(cwd, mcp_servers)
        if session_id not in {run.run_id for run in await asyncio.to_thread(list_runs, setup.runs_dir)}:
            raise RequestError.resource_not_found(session_id)
        session = Session(session_id, Path(cwd), setup)
        for journal in itertools.takewhile(Path.exists, session.journals()):
            await self._show(session, journal)
        self._sessions[session_id] = session
        return LoadSessionResponse(modes=_modes(session))

    async def _show(self, session: Session, path: Path) -> None:
        updates, task = Updates(session.cwd), ""
        records = await asyncio.to_thread(lambda: list(read_journal(path, [])))
        for record in records:
            if record["type"] == "run_started":
                task = str(record["task"])
            elif record["type"] == "run_finished":
                session.turns.append((task, str(record["result"].get("answer") or "")))
            await self._send(session, updates.of(record))

    @reported
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the newest runs of a folder."""
        folder = cwd or str(Path.cwd())
        setup = await self._setup(folder, None)
        runs = await asyncio.to_thread(list_runs, setup.runs_dir)
        found = (
            SessionInfo(
                session_id=run.run_id, cwd=folder, title=run.task.partition("\n")[0][:200], updated_at=run.started
            )
            for run in runs
            if run.kind == "run"
        )
        return ListSessionsResponse(sessions=list(itertools.islice(found, LISTED)))

    @reported
    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        """Choose how the next prompts run."""
        if mode_id not in {mode.id for mode in MODES}:
            raise RequestError(-32602, f"unknown mode {mode_id!r}; choose from {', '.join(each.id for each in MODES)}")
        self._session(session_id).mode = mode_id

    @reported
    async def prompt(self, session_id: str, prompt: Iterable[Any], **_: Any) -> PromptResponse:
        """Run a task, or pass feedback to the waiting run, until the run ends or needs a message."""
        session = self._session(session_id)
        if session.prompting:
            raise RequestError(-32600, "a prompt is under way in this session; cancel it first")
        session.prompting = True
        session.cancelled.clear()
        try:
            return PromptResponse(stop_reason=await self._turn(session, text_of(prompt)))
        finally:
            session.prompting = False

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End a session's run, whether a prompt waits for it or it waits for a message."""
        if (session := self._sessions.get(session_id)) is not None:
            session.needs_words = None
            session.cancelled.set()
            if session.run is not None:
                session.run.abort()

    async def close(self) -> None:
        """End all runs; their journals can be resumed."""
        runs = [session.run for session in self._sessions.values() if session.run is not None]
        for run in runs:
            run.abort()
        await asyncio.gather(*(asyncio.to_thread(run.wait, ENDING_SECONDS) for run in runs))

    async def _setup(self, cwd: str, mcp_servers: Iterable[Any] | None) -> SessionConfig:
        if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
            raise RequestError(-32602, f"cwd is {cwd!r}; expected the absolute path of a folder")
        setup = await asyncio.to_thread(self._load, Path(cwd))
        if offered := RunConfig(mcp_servers=_servers(mcp_servers or ())).mcp_servers:
            config = setup.config
            update = {"mcp_servers": {**config.mcp_servers, **offered}, "tools": [*config.tools, "mcp"]}
            return replace(setup, config=config.model_copy(update=update))
        return setup

    def _session(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            raise RequestError.resource_not_found(session_id)
        return self._sessions[session_id]

    async def _turn(self, session: Session, text: str) -> StopReason:
        question, session.needs_words = session.needs_words, None
        if session.run is not None and not session.run.ended and question is not None:
            session.run.broker.decide(question.digest, ApprovalDecision(decision="reject", feedback=text))
        else:
            await self._start(session, text)
        following = asyncio.create_task(self._follow(session))
        cancelling = asyncio.create_task(session.cancelled.wait())
        await asyncio.wait({following, cancelling}, return_when=asyncio.FIRST_COMPLETED)
        cancelling.cancel()
        run = session.run
        assert run is not None
        if session.cancelled.is_set() or following.exception() is not None:
            run.abort()
        if session.cancelled.is_set():
            await asyncio.wait({following}, timeout=ENDING_SECONDS)
            following.cancel()
            return "cancelled"
        await following
        if not run.ended:
            return "end_turn"
        if run.result is not None:
            session.turns.append((run.task, run.result.answer or ""))
        if run.error is not None:
            raise run.error
        return "max_turn_requests" if run.result is not None and run.result.status == "ttl_expired" else "end_turn"

    async def _start(self, session: Session, text: str) -> None:
        if session.run is not None and not session.run.ended:
            raise RequestError(-32600, "the last run of this session has not ended yet")
        if not text.strip():
            raise RequestError(-32602, "the prompt has no text")
        job = NewRunJob(text, session.config(), memory=session.memory())
        await asyncio.to_thread(job.prepare)
        if not session.turns and session.setup.notice:
            await self._send(session, [update_agent_message_text(f"{session.setup.notice}\n\n")])
        session.updates = Updates(session.cwd)
        session.run = StreamedRun(job, next(itertools.dropwhile(Path.exists, session.journals())), job.tools)
        session.run.start()

    async def _follow(self, session: Session) -> None:
        """Send updates until the run ends, or waits for a message that says what should change."""
        run, updates = session.run, session.updates
        assert run is not None
        assert updates is not None
        asking: asyncio.Task[None] | None = None
        asked: ApprovalRequest | None = None
        try:
            while session.needs_words is None:
                event = await run.next_event()
                if event == "ended":
                    return
                if isinstance(event, Delta):
                    await self._send(session, updates.delta(event.purpose, event.text))
                elif isinstance(event, dict):
                    if event["type"] != "run_started":
                        await self._send(session, updates.of(event))
                elif run.waiting is not asked:
                    if asking is not None:
                        asking.cancel()
                    asked = run.waiting
                    asking = asyncio.create_task(self._ask(session, run, asked)) if asked is not None else None
        finally:
            if asking is not None:
                asking.cancel()

    async def _ask(self, session: Session, run: StreamedRun, request: ApprovalRequest) -> None:
        """Ask the user in the editor; somebody may decide elsewhere in the meantime."""
        assert self._client is not None
        assert session.updates is not None
        call = ToolCallUpdate(tool_call_id=session.updates.question)
        try:
            reply = await self._client.request_permission(
                session_id=session.id, tool_call=call, options=permissions.options(request)
            )
        except (RequestError, ConnectionError, ValueError):
            run.abort()
            return
        chosen = getattr(reply.outcome, "option_id", None)
        if chosen is None:
            run.abort()
        elif chosen == permissions.WORDS:
            session.needs_words = request
            await self._send(session, [update_agent_message_text(WHAT_TO_CHANGE)])
            run.post("asked")
        else:
            if chosen == ALWAYS and (rule := permissions.rule(request)):
                session.allowed.append(rule)
            run.broker.decide(request.digest, permissions.decision(request, chosen))

    async def _send(self, session: Session, updates: Iterable[Any]) -> None:
        assert self._client is not None
        with contextlib.suppress(ConnectionError):
            for update in updates:
                await self._client.session_update(session_id=session.id, update=update)


async def serve(agent: AeonAgent, reader: BinaryIO, writer: BinaryIO) -> None:
    """Serve an editor until it closes the connection, or a signal ends this process."""
    transport = LineTransport(reader, writer)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, transport.end)
    try:
        await run_agent(cast("Any", agent), transport)
    finally:
        await agent.close()


def _modes(session: Session) -> SessionModeState:
    return SessionModeState(current_mode_id=session.mode, available_modes=MODES)


def _servers(offered: Iterable[Any]) -> dict[str, Any]:
    """Return the MCP servers that an editor offers, as the configuration names them."""
    found: dict[str, Any] = {}
    for each in offered:
        name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in each.name).strip("-")[:32]
        if isinstance(each, McpServerStdio):
            environ = {pair.name: pair.value for pair in each.env}
            found[name] = {"command": each.command, "args": list(each.args), "env": environ}
        elif getattr(each, "type", None) == "http":
            found[name] = {"url": each.url, "headers": {pair.name: pair.value for pair in each.headers}}
    return found


def text_of(prompt: Iterable[Any]) -> str:
    """Return a prompt as text: the message, then the files that it attaches or names."""
    said, files = "", ""
    for block in prompt:
        if block.type == "text":
            said += block.text
        elif block.type == "resource_link":
            said += _path(block.uri)
        elif block.type == "resource" and (text := getattr(block.resource, "text", None)) is not None:
            said += _path(block.resource.uri)
            files += f"\n\nContent of {_path(block.resource.uri)}:\n{text}"
        else:
            raise RequestError(-32602, f"a prompt cannot hold {block.type!r}; text and files are supported")
    return said + files


def _path(uri: str) -> str:
    return uri.removeprefix("file://")
