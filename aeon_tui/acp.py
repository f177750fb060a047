"""An agent of the Agent Client Protocol (`aeon-tui acp`): an editor starts runs and shows their plan, calls and text.

A session is a conversation; each prompt in it is a run with its own journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import acp
from acp import Client, RequestError, schema
from acp.schema import PlanEntry, PlanEntryStatus, ToolCallLocation, ToolCallStatus, ToolKind

from aeon_core import ApprovalRequest, RunResult, UsageError
from aeon_tui.reports.exit_summary import details, ending, why_not_usable
from aeon_tui.reports.run_report import readable
from aeon_tui.sessions.run_jobs import new_journal
from aeon_tui.sessions.served_runs import (
    ENDING_SECONDS,
    ConversationMode,
    Delta,
    Event,
    ProgressLines,
    ServedConversation,
    ServedRuns,
    StreamedRun,
    answers,
    decision,
    errors_as,
)
from aeon_widgets.run_list import cost
from aeon_widgets.run_question import ALWAYS, CUT_AT, REVIEWED, headline, run_question
from aeon_widgets.text import exact, fit, one_line

Record = Mapping[str, Any]
TOOL_KINDS: dict[str, ToolKind] = {
    "Read": "read",
    "Write": "edit",
    "Edit": "edit",
    "Grep": "search",
    "Glob": "search",
    "Bash": "execute",
}
STATUSES: dict[str, PlanEntryStatus] = {"pending": "pending", "running": "in_progress"}
"""Statuses of steps that have not ended."""
MESSAGES = {
    "answer": acp.update_agent_message_text,
    "reason": acp.update_agent_thought_text,
    "fallback": acp.update_agent_thought_text,
}
"""How a reply is shown, by the call's purpose. Plans and verdicts are shown once they are complete."""
MAX_OUTPUT = 20_000
"""The most characters shown of a tool's result."""
MAX_TITLE = 200
"""The most cells of a command in a call's title."""
_SESSION = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_HUNK = re.compile(r"^@@ .*\n", re.MULTILINE)


class Updates:
    """Turns the events of one run, in order, into the updates of a session."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._progress = ProgressLines()
        self._entries: list[PlanEntry] = []
        self._streams = self._has_diff = False
        self._answer = ""
        """The answer that the editor shows last."""
        self.call = ""
        """The tool call in progress or waiting for approval; empty if none."""

    def of(self, event: Event) -> Iterator[Any]:
        """Yield the updates for an event."""
        if isinstance(event, Delta):
            if event.purpose in MESSAGES:
                self._streams = True
                yield MESSAGES[event.purpose](event.text)
            return
        line, kind = self._progress.line(event), event["type"]
        if kind in ("plan", "step"):
            before, self._entries = self._entries, [_entry(step) for step in self._progress.view.steps.values()]
            if self._entries != before:
                yield acp.update_plan(self._entries)
        elif line:
            yield acp.update_agent_thought_text(f"\n\n{line}\n\n")
        elif handler := getattr(self, f"_{kind}", None):
            yield from handler(event)

    def interrupted(self, note: str) -> Iterator[Any]:
        """Yield the end of the call or question that was open when the run's process died."""
        if self.call:
            yield self._ended("failed", content=[_text(note)])

    def _llm(self, record: Record) -> Iterator[Any]:
        purpose, streamed, self._streams = record["purpose"], self._streams, False
        text = str((record.get("response") or {}).get("text") or "")
        if text and purpose in MESSAGES and not streamed:
            yield MESSAGES[purpose](text)
        if text and purpose == "answer":
            self._answer = text

    def _approval(self, record: Record) -> Iterator[Any]:
        point, is_approved = record["point"], record.get("decision") not in ("reject", "abort")
        if self.call and (record["state"] == "asked" or not (point == "tool" and is_approved)):
            yield self._ended("completed" if is_approved or point in REVIEWED else "failed")
        if record["state"] == "asked" and point == "tool":
            yield self._begun(record, record["subject"], "pending")
        elif record["state"] == "asked":
            self.call, question = (
                f"{record['run']}-{record['seq']}",
                run_question(point, record["subject"], record["pass"]),
            )
            content = [_text(question.text)]
            yield acp.start_tool_call(self.call, question.headline, kind="think", status="pending", content=content)

    def _tool(self, record: Record) -> Iterator[Any]:
        if record["state"] == "started" and self.call:
            yield acp.update_tool_call(self.call, status="in_progress", raw_input=record["arguments"])
        elif record["state"] == "started":
            yield self._begun(record, record, "in_progress")
        elif self.call:
            error = record.get("error")
            result = error or record.get("result") or {}
            content = None if self._has_diff and not error else [_text(readable(result)[:MAX_OUTPUT])]
            yield self._ended("failed" if error else "completed", content=content, raw_output=result)

    def _begun(self, record: Record, about: Record, status: ToolCallStatus) -> Any:
        """Return the start of a call of `tool_name` with `arguments`."""
        name, arguments, preview = about["tool_name"], about.get("arguments") or {}, about.get("preview") or {}
        path, text, command = (arguments.get(key) for key in ("file_path", "content", "command"))
        place = str(self._cwd / path) if isinstance(path, str) else ""
        content: list[Any] = [acp.tool_diff_content(place, new, old) for old, new in hunks(preview.get("diff") or "")]
        if name == "Write" and isinstance(text, str) and not content:
            content = [acp.tool_diff_content(place, text)]
        self.call, self._has_diff = f"{record['run']}-{record['seq']}", bool(content)
        title = fit(exact(str(command), MAX_OUTPUT), MAX_TITLE)
        if name == "Bash" and title != command:
            content.append(_code(str(command)))
        content += [_text(line) for line in (preview.get("diff") or "").split("\n") if line.startswith(CUT_AT)]
        if reason := preview.get("problem") or preview.get("warning") or about.get("reason"):
            content.append(_text(str(reason)))
        return acp.start_tool_call(
            self.call,
            title if name == "Bash" else headline("tool", about).removesuffix("?"),
            kind=TOOL_KINDS.get(name, "other"),
            status=status,
            content=content or None,
            locations=[ToolCallLocation(path=place)] if place else None,
            raw_input=arguments,
        )

    def _ended(self, status: ToolCallStatus, **more: Any) -> Any:
        call, self.call = self.call, ""
        return acp.update_tool_call(call, status=status, **more)

    def _run_finished(self, record: Record) -> Iterator[Any]:
        result = RunResult.model_validate(record["result"], extra="ignore")
        if result.answer and result.answer != self._answer:
            yield acp.update_agent_message_text(result.answer)
        summary = [ending(result, scores=False), cost(result.cost_usd) if result.cost_usd else ""]
        summary += ["simulated model" if result.simulated else "", details(result)]
        questions = "\n- ".join(["Open questions:", *result.follow_up_questions]) if result.follow_up_questions else ""
        parts = filter(None, (questions, f"---\n{' · '.join(filter(None, summary))}", why_not_usable(result)))
        yield acp.update_agent_message_text("".join(f"\n\n{part}" for part in parts))


def _entry(step: Any) -> PlanEntry:
    suffix = f" ({step.status})" if step.status in ("failed", "invalid") else ""
    words = f"{'  ' * step.depth}{step.description}{suffix}"
    return acp.plan_entry(words, status=STATUSES.get(step.status, "completed"))


def _text(text: str) -> Any:
    return acp.tool_content(acp.text_block(text))


def _code(command: str) -> Any:
    """Return all of a command; as Markdown, a part of it could be hidden."""
    fence = max([*re.findall("`+", command), "``"], key=len) + "`"
    lines = [exact(line, len(line)) for line in command.split("\n")]
    return _text("\n".join([f"{fence}sh", *lines, fence]))


def hunks(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each hunk of a unified diff of one file."""
    for part in _HUNK.split(diff)[1:]:
        lines = part.removesuffix("\n").split("\n")
        old, new = ("\n".join(line[1:] for line in lines if line[:1] in (" ", sign)) for sign in "-+")
        yield old, new


MODES: dict[ConversationMode, tuple[str, str]] = {
    "passes": ("Passes", "Refine the result until it converges; ask after each pass"),
    "single": ("Single pass", "One plan, one pass, one answer; nothing is judged"),
    "plan": ("Plan first", "Ask about the plan before it runs, and after each pass"),
}
KINDS: dict[str, Any] = {ALWAYS: "allow_always", "reject": "reject_once", "abort": "reject_once"}
LISTED = 50
"""The most sessions listed, newest first."""
STILL_RUNNING = "The call has not ended yet; the run's journal will hold its outcome."
NO_RUNS = "Nothing has been run in this conversation."
WHAT_TO_CHANGE = "\n\nWhat should change? The run is waiting for your next message."
NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32002, -32600, -32602, -32603


@dataclass
class Session(ServedConversation):
    """A conversation in an editor."""

    cwd: Path = field(kw_only=True)
    plain: ServedRuns = field(kw_only=True)
    """The runs without the editor's MCP servers."""
    servers: dict[str, Any] = field(kw_only=True)
    """The editor's MCP servers, in the form of the configuration."""
    updates: Updates = field(default_factory=lambda: Updates(Path()))
    """The part of the run that the editor has seen."""
    turn: asyncio.Task[schema.StopReason] | None = None
    """The prompt in progress, or the last one."""

    def modes(self) -> schema.SessionModeState:
        """Return the current mode and all modes."""
        modes = [schema.SessionMode(id=mode, name=name, description=about) for mode, (name, about) in MODES.items()]
        return schema.SessionModeState(current_mode_id=self.mode, available_modes=modes)

    async def _start(self, task: str) -> StreamedRun:
        """Start a run. A server of the editor that cannot be used is left out from then on, with a notice."""
        try:
            return await super()._start(task)
        except UsageError as error:
            if self.servers.pop(error.context.get("server", ""), None) is None:
                raise
            self.runs = self.plain.offered(self.servers)
            notice = f"Continuing without an MCP server of the editor: {error.message}"
            self.notice = f"{self.notice}\n\n{notice}" if self.notice else notice
            return await self._start(task)


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
        runs, notice = await self._runs(cwd)
        session = _session(new_journal(runs.runs_dir).stem, runs, cwd, mcp_servers, notice)
        self._sessions[session.id] = session
        return schema.NewSessionResponse(session_id=session.id, modes=session.modes())

    @reported
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Iterable[Any] = (), **_: Any
    ) -> schema.LoadSessionResponse:
        """Show a past run, and later runs of its conversation."""
        if session_id in self._sessions:
            await self._session(session_id, idle=True).runs.close()
        runs, notice = await self._runs(cwd)
        session = _session(session_id, runs, cwd, mcp_servers, notice)
        if session_id not in {run.run_id for run in await runs.past()}:
            # The process may have ended before the first prompt, which makes the journal.
            if not _SESSION.fullmatch(session_id) or (runs.runs_dir / f"{session_id}.jsonl").exists():
                raise RequestError(NOT_FOUND, f"there is no session {session_id!r}")
            await self._send(session, [acp.update_agent_message_text(NO_RUNS)])
        for records in await asyncio.to_thread(lambda: list(session.past())):
            updates = Updates(session.cwd)
            for record in records:
                if record["type"] == "run_started":
                    await self._send(session, [acp.update_user_message_text(str(record["task"]))])
                await self._send(session, updates.of(record))
            run_id = str(records[-1]["run"])
            if not runs.is_live(run_id):
                note = f"The run's process has ended; continue it with {runs.command('resume', run_id)}."
                await self._send(session, updates.interrupted(note))
        self._sessions[session_id] = session
        return schema.LoadSessionResponse(modes=session.modes())

    @reported
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        """List the newest runs of a folder."""
        folder = cwd or str(Path.cwd())
        runs, _notice = await self._runs(folder)
        found = [
            schema.SessionInfo(session_id=run.run_id, cwd=folder, title=one_line(run.task, 200), updated_at=run.started)
            for run in await runs.past_here(LISTED)
        ]
        return schema.ListSessionsResponse(sessions=found)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        """Set how the next prompts run."""
        if mode_id not in MODES:
            raise RequestError(INVALID_PARAMS, f"unknown mode {mode_id!r}; choose from {', '.join(MODES)}")
        self._session(session_id).mode = mode_id

    @reported
    async def prompt(self, session_id: str, prompt: Iterable[Any], **_: Any) -> schema.PromptResponse:
        """Run a task, or pass feedback to the waiting run, until the run ends or needs a message."""
        session = self._session(session_id, idle=True)
        session.turn = asyncio.create_task(self._turn(session, text_of(prompt)))
        await asyncio.wait({session.turn})
        if session.turn.cancelled():
            await self._send(session, session.updates.interrupted(STILL_RUNNING))
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

    async def _runs(self, cwd: str) -> tuple[ServedRuns, str]:
        """Return the runs of a folder, and a notice."""
        if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
            raise RequestError(INVALID_PARAMS, f"cwd is {cwd!r}; expected the absolute path of a folder")
        return await asyncio.to_thread(self._load, Path(cwd))

    def _session(self, session_id: str, *, idle: bool = False) -> Session:
        if (session := self._sessions.get(session_id)) is None:
            raise RequestError(NOT_FOUND, f"there is no session {session_id!r}")
        if idle and session.turn is not None and not session.turn.done():
            raise RequestError(INVALID_REQUEST, "a prompt is in progress in this session; cancel it first")
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


def _session(name: str, runs: ServedRuns, cwd: str, mcp_servers: Iterable[Any] | None, notice: str) -> Session:
    servers = _servers(mcp_servers)
    return Session(name, runs.offered(servers), cwd=Path(cwd), plain=runs, servers=servers, notice=notice)


def _servers(offered: Iterable[Any] | None) -> dict[str, Any]:
    """Return an editor's MCP servers in the form of the configuration."""
    found: dict[str, Any] = {}
    for each in offered or ():
        short = re.sub("[^A-Za-z0-9]", "-", each.name).strip("-")[:28] or "server"
        name = next(name for n in count(1) if (name := short if n == 1 else f"{short}-{n}") not in found)
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
            prompt_text += _path(block.uri)
        elif block.type == "resource" and (text := getattr(block.resource, "text", None)) is not None:
            path = _path(block.resource.uri)
            prompt_text, files = f"{prompt_text}{path}", f"{files}\n\nContent of {path}:\n{text}"
        else:
            what = f"{_path(block.resource.uri)!r}, which is not text" if block.type == "resource" else repr(block.type)
            raise RequestError(INVALID_PARAMS, f"a prompt cannot hold {what}; text and text files are supported")
    return prompt_text + files


def _path(uri: str) -> str:
    return unquote(path) if (path := uri.removeprefix("file://")) != uri else uri
