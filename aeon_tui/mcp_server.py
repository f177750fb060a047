"""A server of the Model Context Protocol: other agents run, check and read runs (`aeon-tui mcp-serve`).

A run lives in this process. Its questions go to a person, never to the client's model: no tool takes a decision as an
argument, since what a model says approves nothing. A question travels as an elicitation, a form that the client shows
to its user, and never through the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal, cast

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCRequest,
    Resource,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from pydantic import Field, ValidationError

from aeon_core import AeonError, ApprovalDecision, ApprovalRequest, ToolRegistry, lint_plan, open_history, replay
from aeon_tui.platform.stdio_server import content_of, not_a_message
from aeon_tui.sessions import served_runs
from aeon_tui.sessions.approval_broker import approval_request, pending_question, submit
from aeon_tui.sessions.served_runs import (
    ENDING_SECONDS,
    Event,
    ListedStatus,
    ProgressLines,
    ServedRuns,
    StreamedRun,
    errors_as,
)
from aeon_widgets.run_question import ALWAYS, ApprovalQuestion, run_question
from aeon_widgets.text import one_line

Json = dict[str, Any]

RETURNED = "2026-07-28"
"""From this protocol version on, a tool returns its question, and the client calls again with the answer."""
SCHEME = "aeon://runs/"
JSONL = "application/jsonl"
LISTED = 100
MAX_RESOURCE = 10_000_000
"""The largest journal to send, in bytes; `show` returns the parts of a larger one."""
HEARTBEAT_SECONDS = 10.0
"""Seconds between messages while nothing happens in a run: some clients give up on a silent call."""
INSTRUCTIONS = (
    "Aeon runs a task as a plan of steps, judges the result and refines it. `run` returns when the run has ended, which"
    " may take minutes. Questions of a run are for a person: no tool can answer them, and you must not try to."
)
ANSWER, REASON = "answer", "reason"
MAX_MESSAGE = 20_000
"""The longest question in characters; a longer one is decided where all of it can be seen."""
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
reported = errors_as(lambda error: ToolError(str(error)))


class AeonServer(MCPServer[None]):
    """The server."""

    def __init__(
        self,
        runs: ServedRuns,
        tools: Callable[[], ToolRegistry],
        calibrate: Callable[[int | None], list[str]],
        version: str,
        *,
        debug: bool = False,
    ) -> None:
        """Serve runs. `tools` returns what plans are checked against, for the caller to close.

        `calibrate` returns the command that measures the judge on so many outcomes, or with None on past verdicts.
        """
        level: Literal["DEBUG", "CRITICAL"] = "DEBUG" if debug else "CRITICAL"
        super().__init__("aeon", title="Aeon", instructions=INSTRUCTIONS, version=version, log_level=level)
        self._served, self._tools, self._calibrate = runs, tools, calibrate
        for tool in (self.lint, self.show, self.runs, self.replay_check):
            self.add_tool(reported(tool), description=inspect.getdoc(tool), annotations=READS)
        self.add_tool(reported(self.run_task), "run", description=inspect.getdoc(self.run_task))
        self.add_tool(reported(self.decide), description=inspect.getdoc(self.decide))
        self.add_tool(reported(self.calibrate), description=inspect.getdoc(self.calibrate))
        about = "A run's journal, one record per line"
        self.resource(f"{SCHEME}{{run_id}}", name="journal", description=about, mime_type=JSONL)(self._journal)

    async def call_tool(
        self, name: str, arguments: Json, context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. An argument that it does not have is refused: it may be a limit that the model relies on."""
        for tool in await self.list_tools():
            known = tool.input_schema["properties"]
            if tool.name == name and (unknown := [each for each in arguments if each not in known]):
                raise ToolError(f"{name} has no argument {unknown[0]!r}; the known ones are {', '.join(known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                wrong = error.__cause__.errors()[0]
                place = ".".join(map(str, wrong["loc"]))
                raise ToolError(f"wrong argument of {name}: {place}: {wrong['msg']}") from None
            raise

    async def run_stdio_async(self) -> None:
        """Serve on standard input and output. What is not a message is answered with an error.

        A client that hangs up ends its runs, but still gets a reply to each request.
        """
        forward, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        replies, replied = anyio.create_memory_object_stream[SessionMessage]()
        unanswered: dict[int | str, anyio.Event] = {}
        try:
            async with stdio_server() as (received, sent), anyio.create_task_group() as group:

                async def sort() -> None:
                    async with forward:
                        async for each in received:
                            try:
                                each = _message(each)
                            except Exception as error:
                                wrong = JSONRPCError.model_validate(not_a_message(error))
                                await sent.send(SessionMessage(wrong))
                                continue
                            if isinstance(each.message, JSONRPCRequest):
                                unanswered[each.message.id] = anyio.Event()
                            await forward.send(each)
                        with anyio.move_on_after(ENDING_SECONDS):
                            await self._served.close()
                            for answered in list(unanswered.values()):
                                await answered.wait()

                async def reply() -> None:
                    async with sent, replied:
                        async for each in replied:
                            await sent.send(each)
                            number = getattr(each.message, "id", None)
                            if number in unanswered and not isinstance(each.message, JSONRPCRequest):
                                unanswered.pop(number).set()

                group.start_soon(sort)
                group.start_soon(reply)
                options = self._lowlevel_server.create_initialization_options()
                await self._lowlevel_server.run(messages, replies, options)
        except* anyio.BrokenResourceError:
            pass  # a reply came after another could not be written; that error says why

    async def list_resources(self) -> list[Resource]:
        """List the newest runs."""
        return [
            Resource(
                uri=f"{SCHEME}{each.run_id}",
                name=each.run_id,
                title=one_line(each.task, 200),
                description=f"{each.status}, {each.model}",
                mime_type=JSONL,
            )
            for each in (await self._served.past())[:LISTED]
        ]

    async def _journal(self, run_id: str) -> str:
        """Return the current content of a journal."""
        try:
            path = await self._served.path(run_id)
            if path.stat().st_size > MAX_RESOURCE:
                raise ResourceError(f"the journal of {run_id!r} is larger than {MAX_RESOURCE:,} bytes; use `show`")
            return await asyncio.to_thread(path.read_text, "utf-8", "replace")
        except AeonError as error:
            raise ResourceNotFoundError(str(error)) from None
        except OSError as error:
            raise ResourceError(str(error)) from None

    async def run_task(
        self,
        task: str,
        ctx: Context[Any, Any],
        plan: Json | None = None,
        ttl: Annotated[int, Field(ge=1)] | None = None,
        single_pass: bool = False,
    ) -> Json | InputRequiredResult:
        """Run a task as a plan: plan, execute step by step, judge, refine until the result converges.

        `plan` skips planning (`lint` checks one). `ttl` lowers the maximum number of cycles. `single_pass` runs one
        pass and judges nothing. Model, tools, budget and what needs a person's approval are the server's. Returns how
        the run ended: `status`, `answer`, `steps`, `convergence`, `cost_usd`, `run_id`. If the run asks a person
        something, this call waits for them.
        """
        if ctx.request_state is not None:
            run_id, _, digest = ctx.request_state.partition(" ")
            if (run := self._served.live.get(run_id)) is None:
                raise ToolError("the run that asked has ended; `show` has its result")
            if run.waiting is not None:
                run.broker.decide(digest, _decision(run.waiting, _reply(ctx)))
        else:
            config = self._served.config
            limit, single_pass = min(ttl or config.ttl, config.ttl), single_pass or config.single_pass
            run = await self._served.start(task, plan, ttl=limit, single_pass=single_pass)
        progress = _Progress(ctx)
        beating = asyncio.create_task(progress.beat())
        try:
            asked = await run.follow(progress.show, lambda request: self._ask(run, request, progress, ctx))
        except BaseException:
            run.abort()
            raise
        finally:
            beating.cancel()
        if asked is not None:
            return asked
        self._served.live.pop(run.run_id, None)
        if run.error is not None:
            raise run.error
        assert run.result is not None
        return _brief(run.result.model_dump(mode="json"))

    async def lint(self, plan: Json) -> Json:
        """Check a plan by exact rules: unknown tools, wrong arguments, dependencies, contradictions. Calls no model."""

        def check() -> Json:
            registry = self._tools()
            try:
                return lint_plan(plan, registry).model_dump(mode="json")
            finally:
                registry.close()

        return await asyncio.to_thread(check)

    async def show(self, run: str, pass_number: int | None = None) -> Json:
        """Return a run's history by its id, a unique prefix of it, or `last`: result, passes, verdicts, refinements.

        Plans and outputs are left out; `pass_number` gives one pass in full.
        """
        history = await asyncio.to_thread(open_history, await self._served.path(run))
        found = history.model_dump(mode="json")
        if pass_number is not None:
            passes = [each for each in found["passes"] if each["pass_number"] == pass_number]
            if not passes:
                raise ToolError(f"the run has no pass {pass_number} that has ended; it has {len(found['passes'])}")
            return cast("Json", passes[0])
        large = ("plan_state", "final_plan_state", "execution_results", "validation_reports")
        found["passes"] = [{key: value for key, value in each.items() if key not in large} for each in found["passes"]]
        if found["final_result"] is not None:
            found["final_result"] = _brief(found["final_result"])
        return found

    async def runs(self, limit: Annotated[int, Field(ge=1)] = 20, status: ListedStatus | None = None) -> list[Json]:
        """List runs, the newest first, or only those with a status."""
        found = (await self._served.past(status))[:limit]
        return [{**each.as_dict(), "waits_for": each.waits_for or None} for each in found]

    async def replay_check(self, run: str) -> Json:
        """Check that this version of Aeon does exactly what a run's journal recorded. Calls no model and no tool."""
        done = await asyncio.to_thread(replay, await self._served.path(run))
        found = asdict(done.difference) if done.difference is not None else None
        status = done.result.status if done.result is not None else None
        return {"identical": found is None, "records": done.records, "status": status, "difference": found}

    async def decide(self, run: str, ctx: Context[Any, Any]) -> Json | InputRequiredResult:
        """Show the person at this client what a run waits for, and pass on what they decide.

        You cannot decide yourself. If this client cannot ask its user, the result says how a person decides elsewhere.
        """
        path = await self._served.path(run)
        question = await asyncio.to_thread(pending_question, path)
        if question is None:
            raise ToolError(f"the run {path.stem!r} is not waiting for a decision")
        request = approval_request(question)
        if (form := _form(path.stem, request, ctx.client_capabilities)) is None:
            return {"waits_for": _text(request), "how": self._how(path.stem, request)}
        if not _returns(ctx):
            reply = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
        elif ctx.request_state == request.digest:
            reply = _reply(ctx)
        else:
            return _returned(form, request.digest)
        decision = _decision(request, reply)
        done = await asyncio.to_thread(submit, path, question, decision)
        return {"decision": decision.decision, "taken": not done.problem, "problem": done.problem or None}

    async def calibrate(
        self, ctx: Context[Any, Any], limit: Annotated[int, Field(ge=1)] = 20, history: bool = False
    ) -> Json:
        """Measure how well the judge agrees with labelled outcomes: `limit` of them, each a call of the judge's model.

        With `history`, compare past verdicts with the labels that people gave to their runs; that calls no model.
        """
        command = self._calibrate(None if history else limit)
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe)
        assert process.stdout is not None
        assert process.stderr is not None
        out, progress = asyncio.ensure_future(process.stdout.read()), _Progress(ctx)
        try:
            async for line in process.stderr:
                await progress.say(line.decode(errors="replace").strip())
            printed = await out
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            code = await process.wait()
        if not printed:
            raise ToolError(progress.last.removeprefix("aeon-tui: ") or f"calibrate ended with exit code {code}")
        return cast("Json", json.loads(printed))

    def _how(self, run_id: str, request: ApprovalRequest) -> str:
        """Return how a person decides elsewhere, with the command for it."""
        command = self._served.command("decide", run_id, "DECISION")
        decisions = ", ".join(dict.fromkeys(_answers(request).values()))
        return f"a person decides in the app, or with {command} ({decisions})"

    async def _ask(
        self, run: StreamedRun, request: ApprovalRequest, progress: _Progress, ctx: Context[Any, Any]
    ) -> InputRequiredResult | None:
        """Ask the user of the client in the middle of the call, or return the question from it."""
        await progress.say(f"waiting: {_question(request).headline}; {self._how(run.run_id, request)}")
        form = _form(run.run_id, request, ctx.client_capabilities)
        if form is not None and _returns(ctx):
            return _returned(form, f"{run.run_id} {request.digest}")
        try:
            async with asyncio.timeout(self._served.config.wait or None):
                # A client that fails to ask leaves the question to a person elsewhere.
                with contextlib.suppress(MCPError, ConnectionError, ValueError):
                    if form is not None:
                        reply = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
                        run.broker.decide(request.digest, _decision(request, reply))
                await asyncio.Event().wait()
        except TimeoutError:
            run.abort()
        return None


def _message(received: SessionMessage | Exception) -> SessionMessage:
    if isinstance(received, SessionMessage):
        return received
    return SessionMessage(jsonrpc_message_adapter.validate_python(content_of(received), by_name=False))


class _Progress:
    """Reports what a run does, one line at a time."""

    def __init__(self, ctx: Context[Any, Any]) -> None:
        self._ctx = ctx
        self._count = 0
        self._lines = ProgressLines()
        self.last = "starting"

    async def show(self, event: Event) -> None:
        if isinstance(event, dict) and (line := self._lines.line(event)):
            await self.say(line[:200])

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.say(self.last)

    async def say(self, text: str) -> None:
        self._count, self.last = self._count + 1, text
        await self._ctx.report_progress(self._count, None, text)


def _returns(ctx: Context[Any, Any]) -> bool:
    """Return whether a question is returned from the call, rather than asked in the middle of it."""
    return (ctx.protocol_version or "") >= RETURNED


def _returned(shown: Any, state: str) -> InputRequiredResult:
    return InputRequiredResult(input_requests={ANSWER: ElicitRequest(params=shown)}, request_state=state)


def _reply(ctx: Context[Any, Any]) -> ElicitResult:
    found = (ctx.input_responses or {}).get(ANSWER)
    return found if isinstance(found, ElicitResult) else ElicitResult(action="cancel")


def _question(request: ApprovalRequest) -> ApprovalQuestion:
    return run_question(request.point, request.subject, request.pass_number)


def _text(request: ApprovalRequest) -> str:
    question = _question(request)
    return f"{question.headline}\n\n{question.text}"


def _form(
    run_id: str, request: ApprovalRequest, capabilities: ClientCapabilities | None
) -> ElicitRequestFormParams | None:
    """Return the form; None if the client shows none to its user, and where the question is too long for one."""
    asks = capabilities.elicitation if capabilities is not None else None
    message = f"Run {run_id}: {_text(request)}"
    if asks is None or (asks.form is None and asks.url is not None) or len(message) > MAX_MESSAGE:
        return None
    answer = {"type": "string", "title": "Decision", "enum": list(_answers(request))}
    reason = {"type": "string", "title": "Reason", "description": "What should change, or why not"}
    schema = {"type": "object", "properties": {ANSWER: answer, REASON: reason}, "required": [ANSWER]}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def _decision(request: ApprovalRequest, reply: ElicitResult) -> ApprovalDecision:
    """Return the decision in a form. Dismissing the form ends the run, which asks again when it is resumed."""
    content = reply.content or {}
    answer = _answers(request).get(str(content.get(ANSWER))) if reply.action == "accept" else None
    return served_runs.decision(request, answer, str(content.get(REASON) or ""))


def _answers(request: ApprovalRequest) -> dict[str, str]:
    """Return the answers by what they do, as the app names them. A rule needs more than a form."""
    return {each.words: each.answer for each in served_runs.answers(request) if each.answer != ALWAYS}


def _brief(result: Json) -> Json:
    """Return a result without its plan; the steps have the outcome."""
    return {key: value for key, value in result.items() if key != "plan"}
