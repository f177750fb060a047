"""The agent. A session is a conversation; each prompt in it is a run with its own journal."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
from acp import Client, RequestError, schema

from aeon_core import ApprovalRequest
from aeon_tui.acp.updates import Updates
from aeon_tui.sessions.run_jobs import new_journal
from aeon_tui.sessions.served_runs import (
    ENDING_SECONDS,
    Conversation,
    ConversationMode,
    ServedRuns,
    answers,
    decision,
    errors_as,
)
from aeon_widgets.run_question import ALWAYS, REVIEWED
from aeon_widgets.text import one_line

MODES: dict[ConversationMode, tuple[str, str]] = {
    "passes": ("Passes", "Refine the result until it converges; ask after each pass"),
    "single": ("Single pass", "One plan, one pass, one answer; nothing is judged"),
    "plan": ("Plan first", "Ask about the plan before it runs, and after each pass"),
}
KINDS: dict[str, Any] = {ALWAYS: "allow_always", "reject": "reject_once", "abort": "reject_once"}
LISTED = 50
"""How many sessions are listed, newest first."""
WHAT_TO_CHANGE = "\n\nWhat should change? The run is waiting for your next message."
NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32002, -32600, -32602, -32603


@dataclass
class Session(Conversation):
    """A conversation in an editor."""

    cwd: Path = field(default_factory=Path)
    updates: Updates = field(init=False)
    """Of the run."""
    turn: asyncio.Task[schema.StopReason] | None = None
    """The prompt under way, or the last one."""

    def modes(self) -> schema.SessionModeState:
        """Return the current mode and those there are."""
        modes = [schema.SessionMode(id=mode, name=name, description=about) for mode, (name, about) in MODES.items()]
        return schema.SessionModeState(current_mode_id=self.mode, available_modes=modes)


reported = errors_as(
    lambda error: RequestError(INVALID_PARAMS if getattr(error, "exit_code", 1) == 2 else INTERNAL_ERROR, str(error))
)


class AeonAgent:
    """The methods of the protocol that an editor calls. `load` returns a folder's runs, and a notice to show first."""

    def __init__(self, load: Callable[[Path], tuple[ServedRuns, str]], version: str) -> None:
        self._load = load
        self._version = version
        self._sessions: dict[str, Session] = {}
        self._client: Client

    def on_connect(self, conn: Client) -> None:
        """Keep the connection to the editor."""
        self._client = conn

    async def serve(self, transport: Any) -> None:
        """Serve an editor until it hangs up."""
        await acp.run_agent(cast("Any", self), transport)

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        """Return this agent's capabilities."""
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION) or acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True),
                session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
            ),
            agent_info=schema.Implementation(name="aeon", title="Aeon", version=self._version),
        )

    @reported
    async def new_session(self, cwd: str, mcp_servers: Iterable[Any] = (), **_: Any) -> schema.NewSessionResponse:
        """Start a conversation in a folder."""
        runs, notice = await self._runs(cwd, mcp_servers)
        mode: ConversationMode = "single" if runs.config.single_pass else "passes"
        session = Session(new_journal(runs.runs_dir).stem, runs, mode, cwd=Path(cwd), notice=notice)
        self._sessions[session.id] = session
        return schema.NewSessionResponse(session_id=session.id, modes=session.modes())

    @reported
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Iterable[Any] = (), **_: Any
    ) -> schema.LoadSessionResponse:
        """Show a past run, and those that followed it in its conversation."""
        if session_id in self._sessions:
            await self._session(session_id, idle=True).runs.close()
        runs, notice = await self._runs(cwd, mcp_servers)
        if session_id not in {run.run_id for run in await runs.past()}:
            raise RequestError(NOT_FOUND, f"there is no session {session_id!r}")
        session = Session(session_id, runs, cwd=Path(cwd), notice=notice)
        for records in await asyncio.to_thread(lambda: list(session.past())):
            updates = Updates(session.cwd)
            for record in records:
                if record["type"] == "run_started":
                    await self._send(session, [acp.update_user_message_text(str(record["task"]))])
                await self._send(session, updates.of(record))
        self._sessions[session_id] = session
        return schema.LoadSessionResponse(modes=session.modes())

    @reported
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        """List the newest runs of a folder."""
        folder = cwd or str(Path.cwd())
        runs, _notice = await self._runs(folder)
        found = [
            schema.SessionInfo(session_id=run.run_id, cwd=folder, title=one_line(run.task, 200), updated_at=run.started)
            for run in (await runs.past())[:LISTED]
        ]
        return schema.ListSessionsResponse(sessions=found)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        """Choose how the next prompts run."""
        if mode_id not in MODES:
            raise RequestError(INVALID_PARAMS, f"unknown mode {mode_id!r}; choose from {', '.join(MODES)}")
        self._session(session_id).mode = mode_id

    @reported
    async def prompt(self, session_id: str, prompt: Iterable[Any], **_: Any) -> schema.PromptResponse:
        """Run a task, or pass feedback to the waiting run, until the run ends or needs a message."""
        session = self._session(session_id, idle=True)
        session.turn = asyncio.create_task(self._turn(session, text_of(prompt)))
        await asyncio.wait({session.turn})
        return schema.PromptResponse(stop_reason="cancelled" if session.turn.cancelled() else session.turn.result())

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End a session's run, whether a prompt waits for it or it waits for a message."""
        if (session := self._sessions.get(session_id)) is None or session.turn is None:
            return
        run, seconds, session.question = session.run, 0.0, None
        if run is not None and not run.ended:
            run.abort()
            seconds = ENDING_SECONDS
        asyncio.get_running_loop().call_later(seconds, session.turn.cancel)

    async def close(self) -> None:
        """End all runs; their journals can be resumed."""
        await asyncio.gather(*(session.runs.close() for session in self._sessions.values()))

    async def _runs(self, cwd: str, mcp_servers: Iterable[Any] | None = ()) -> tuple[ServedRuns, str]:
        """Return the runs of a folder, with the editor's MCP servers as tools, and a notice."""
        if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
            raise RequestError(INVALID_PARAMS, f"cwd is {cwd!r}; expected the absolute path of a folder")
        runs, notice = await asyncio.to_thread(self._load, Path(cwd))
        return runs.offered(_servers(mcp_servers)), notice

    def _session(self, session_id: str, *, idle: bool = False) -> Session:
        if (session := self._sessions.get(session_id)) is None:
            raise RequestError(NOT_FOUND, f"there is no session {session_id!r}")
        if idle and session.turn is not None and not session.turn.done():
            raise RequestError(INVALID_REQUEST, "a prompt is under way in this session; cancel it first")
        return session

    async def _turn(self, session: Session, text: str) -> schema.StopReason:
        before, run = session.run, await session.prompt(text)
        if run is not before:
            session.updates = Updates(session.cwd)
        if session.notice:
            await self._send(session, [acp.update_agent_message_text(f"{session.notice}\n\n")])
            session.notice = ""
        result = await session.follow(
            run,
            lambda event: self._send(session, session.updates.of(event)),
            lambda request: self._ask(session, request),
        )
        if run.aborting:
            return "cancelled"
        return "max_turn_requests" if result is not None and result.status == "ttl_expired" else "end_turn"

    async def _ask(self, session: Session, request: ApprovalRequest) -> ApprovalRequest | None:
        """Ask the user in the editor. Return the question if their next message answers it."""
        options = [
            schema.PermissionOption(
                option_id=choice.answer,
                name=choice.words.removesuffix(", and say why"),
                kind=KINDS.get(choice.answer, "allow_once"),
            )
            for choice in answers(request)
        ]
        chosen = None
        with contextlib.suppress(RequestError, ConnectionError, ValueError):
            call = schema.ToolCallUpdate(tool_call_id=session.updates.call)
            reply = await self._client.request_permission(session_id=session.id, tool_call=call, options=options)
            chosen = getattr(reply.outcome, "option_id", None)
        if chosen == "reject" and request.point in REVIEWED:
            await self._send(session, [acp.update_agent_message_text(WHAT_TO_CHANGE)])
            return request
        session.decide(request, decision(request, chosen))
        return None

    async def _send(self, session: Session, updates: Iterable[Any]) -> None:
        with contextlib.suppress(ConnectionError):
            for update in updates:
                await self._client.session_update(session_id=session.id, update=update)


def _servers(offered: Iterable[Any] | None) -> dict[str, Any]:
    """Return the MCP servers that an editor offers, as the configuration names them."""
    found: dict[str, Any] = {}
    for each in offered or ():
        name = re.sub("[^A-Za-z0-9]", "-", each.name).strip("-")[:32]
        pairs = {pair.name: pair.value for pair in getattr(each, "env", None) or getattr(each, "headers", None) or ()}
        if isinstance(each, schema.McpServerStdio):
            found[name] = {"command": each.command, "args": list(each.args), "env": pairs}
        elif getattr(each, "type", None) == "http":
            found[name] = {"url": each.url, "headers": pairs}
    return found


def text_of(prompt: Iterable[Any]) -> str:
    """Return a prompt as text: the message, then the files that it attaches or names."""
    prompt_text, files = "", ""
    for block in prompt:
        if block.type == "text":
            prompt_text += block.text
        elif block.type == "resource_link":
            prompt_text += block.uri.removeprefix("file://")
        elif block.type == "resource" and (text := getattr(block.resource, "text", None)) is not None:
            path = block.resource.uri.removeprefix("file://")
            prompt_text, files = f"{prompt_text}{path}", f"{files}\n\nContent of {path}:\n{text}"
        else:
            raise RequestError(INVALID_PARAMS, f"a prompt cannot hold {block.type!r}; text and files are supported")
    return prompt_text + files
