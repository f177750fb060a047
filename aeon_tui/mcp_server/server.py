"""The tools and resources. A run lives in this process; its questions go to a person, never to the client's model."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, cast

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    Resource,
    ToolAnnotations,
)
from pydantic import Field

from aeon_core import (
    AeonError,
    ApprovalRequest,
    RunConfig,
    ToolRegistry,
    lint_plan,
    list_runs,
    open_history,
    replay,
)
from aeon_tui.mcp_server import questions
from aeon_tui.sessions.pending_approval import approval_request, pending_question, submit
from aeon_tui.sessions.run_jobs import NewRunJob, new_journal
from aeon_tui.sessions.streamed_run import PHASES, Delta, Event, StreamedRun

P = ParamSpec("P")
T = TypeVar("T")
Json = dict[str, Any]

RETURNED = "2026-07-28"
"""From this protocol version on, a tool returns its question, and the client calls again with the answer."""
SCHEME = "aeon://runs/"
JSONL = "application/jsonl"
LISTED = 100
MAX_RESOURCE = 10_000_000
"""The largest journal to send, in bytes; `show` returns the parts of a larger one."""
ENDING_SECONDS = 3.0
HEARTBEAT_SECONDS = 10.0
"""Seconds between messages while nothing happens in a run: some clients give up on a silent call."""
INSTRUCTIONS = (
    "Aeon runs a task as a plan of steps, judges the result and refines it. `run` returns when the run has ended, which"
    " may take minutes. Questions of a run are for a person: no tool can answer them, and you must not try to."
)
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


@dataclass(frozen=True)
class Setup:
    """What the command line and the configuration say."""

    config: RunConfig
    runs_dir: Path
    tools: Callable[[], ToolRegistry]
    """Returns the tools that a plan is checked against; the caller closes them."""
    calibrate: list[str]
    """The command that measures the judge, without its own options."""
    version: str


def reported(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Report an AeonError to the client's model in one line."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except (AeonError, OSError) as error:
            raise ToolError(str(error)) from None

    return call


class AeonServer(MCPServer[None]):
    """The server; `close` ends the runs that it started."""

    def __init__(self, setup: Setup, *, debug: bool = False) -> None:
        level: Literal["DEBUG", "CRITICAL"] = "DEBUG" if debug else "CRITICAL"
        super().__init__("aeon", title="Aeon", instructions=INSTRUCTIONS, version=setup.version, log_level=level)
        self._setup = setup
        self._runs: dict[str, StreamedRun] = {}
        for tool in (self.lint, self.show, self.runs, self.replay_check):
            self.add_tool(reported(tool), annotations=READS)
        self.add_tool(reported(self.run_task), name="run")
        self.add_tool(reported(self.decide))
        self.add_tool(reported(self.calibrate))
        about = "A run's journal, one record per line"
        self.resource(f"{SCHEME}{{run_id}}", name="journal", description=about, mime_type=JSONL)(self._journal)

    async def close(self) -> None:
        """End all runs; their journals can be resumed."""
        for run in self._runs.values():
            run.abort()
        await asyncio.gather(*(asyncio.to_thread(run.wait, ENDING_SECONDS) for run in self._runs.values()))

    async def list_resources(self) -> list[Resource]:
        """List the newest runs."""
        found = await asyncio.to_thread(list_runs, self._setup.runs_dir)
        return [
            Resource(
                uri=f"{SCHEME}{each.run_id}",
                name=each.run_id,
                title=each.task.split("\n")[0][:200],
                description=f"{each.status}, {each.model}",
                mime_type=JSONL,
            )
            for each in found[:LISTED]
            if each.kind == "run"
        ]

    async def _journal(self, run_id: str) -> str:
        """Return the current content of a journal."""
        try:
            path = self._path(run_id)
            if path.stat().st_size > MAX_RESOURCE:
                raise ResourceError(f"the journal of {run_id!r} is larger than {MAX_RESOURCE:,} bytes; use `show`")
            return await asyncio.to_thread(path.read_text, "utf-8", "replace")
        except (ToolError, OSError) as error:
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
            run_id, digest = ctx.request_state.split()
            run = self._runs.get(run_id)
            if run is None:
                raise ToolError("the run that asked has ended; `show` has its result")
            self._answer(run, digest, ctx)
        else:
            config = self._setup.config
            limits = {"ttl": min(ttl, config.ttl) if ttl is not None else config.ttl}
            limits["single_pass"] = single_pass or config.single_pass
            job = NewRunJob(task, config.model_copy(update=limits), cast("Any", plan))
            await asyncio.to_thread(job.prepare)
            run = StreamedRun(job, new_journal(self._setup.runs_dir))
            self._runs[run.run_id] = run
            run.start()
        try:
            return await self._followed(run, ctx)
        except BaseException:
            run.abort()
            raise

    async def lint(self, plan: Json) -> Json:
        """Check a plan by exact rules: unknown tools, wrong arguments, dependencies, contradictions. Calls no model."""

        def check() -> Json:
            registry = self._setup.tools()
            try:
                return lint_plan(plan, registry).model_dump(mode="json")
            finally:
                registry.close()

        return await asyncio.to_thread(check)

    async def show(self, run: str, pass_number: int | None = None) -> Json:
        """Return a run's history by its id, a unique prefix of it, or `last`: result, passes, verdicts, refinements.

        Plans and outputs are left out; `pass_number` gives one pass in full.
        """
        history = await asyncio.to_thread(open_history, self._path(run))
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

    async def runs(self, limit: Annotated[int, Field(ge=1)] = 20, status: str | None = None) -> list[Json]:
        """List runs, the newest first. `status`: `running`, `interrupted`, `converged`, `not_converged`, `failed`, …"""
        found = await asyncio.to_thread(list_runs, self._setup.runs_dir)
        wanted = [each for each in found if each.kind == "run" and status in (None, each.status)]
        return [{**each.as_dict(), "waits_for": each.waits_for or None} for each in wanted[:limit]]

    async def replay_check(self, run: str) -> Json:
        """Check that this version of Aeon does exactly what a run's journal recorded. Calls no model and no tool."""
        done = await asyncio.to_thread(replay, self._path(run))
        found = asdict(done.difference) if done.difference is not None else None
        status = done.result.status if done.result is not None else None
        return {"identical": found is None, "records": done.records, "status": status, "difference": found}

    async def decide(self, run: str, ctx: Context[Any, Any]) -> Json | InputRequiredResult:
        """Show the person at this client what a run waits for, and pass on what they decide.

        You cannot decide yourself. If this client cannot ask its user, the result says how a person decides elsewhere.
        """
        path = self._path(run)
        own = self._runs.get(path.stem)
        question = None if own is not None else await asyncio.to_thread(pending_question, path)
        request = own.waiting if own is not None else approval_request(question) if question is not None else None
        if request is None:
            raise ToolError(f"the run {path.stem!r} is not waiting for a decision")
        if (shown := _form(ctx, path.stem, request)) is None:
            return {"waits_for": questions.text(request), "how": questions.how(path.stem, request)}
        if _returns(ctx):
            if ctx.request_state != request.digest:
                return _returned(shown, request.digest)
            reply = _reply(ctx)
        else:
            reply = await ctx.session.elicit_form(shown.message, shown.requested_schema, ctx.request_id)
        decision = questions.decision(request, reply.action, reply.content)
        if question is not None:
            done = await asyncio.to_thread(submit, path, question, decision)
            return {"decision": decision.decision, "taken": not done.problem, "problem": done.problem or None}
        taken = own is not None and own.broker.decide(request.digest, decision)
        return {"decision": decision.decision, "taken": taken, "problem": None}

    async def calibrate(
        self, ctx: Context[Any, Any], limit: Annotated[int, Field(ge=1)] = 20, history: bool = False
    ) -> Json:
        """Measure how well the judge agrees with labelled outcomes: `limit` of them, each a call of the judge's model.

        With `history`, compare past verdicts with the labels that people gave to their runs; that calls no model.
        """
        command = [*self._setup.calibrate, *(["--history"] if history else ["--limit", str(limit)])]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        assert process.stdout is not None
        assert process.stderr is not None
        out, said = asyncio.ensure_future(process.stdout.read()), ""
        try:
            number = 0
            async for line in process.stderr:
                number, said = number + 1, line.decode(errors="replace").strip()
                await ctx.report_progress(number, None, said)
            printed = await out
            if not printed:
                raise ToolError(
                    said.removeprefix("aeon-tui: ") or f"calibrate ended with exit code {await process.wait()}"
                )
            return cast("Json", json.loads(printed))
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await process.wait()

    def _path(self, run: str) -> Path:
        """Return the journal of a run in the runs directory, never a file elsewhere. Raises ToolError."""
        known = {each.run_id: each.path for each in list_runs(self._setup.runs_dir) if each.kind == "run"}
        found = [run] if run in known else [each for each in known if run and each.startswith(run)]
        found = list(known)[:1] if run == "last" else found
        if len(found) != 1:
            raise ToolError(f"{'several runs begin with' if found else 'there is no run'} {run!r}; `runs` lists them")
        return Path(known[found[0]])

    async def _followed(self, run: StreamedRun, ctx: Context[Any, Any]) -> Json | InputRequiredResult:
        """Report what the run does until it has ended, or until the client has to ask its user."""
        told, asking, asked = _Progress(ctx), contextlib.ExitStack(), None
        loop, since, patience = asyncio.get_running_loop(), 0.0, self._setup.config.wait or HEARTBEAT_SECONDS
        with asking:
            while (event := await _next(run, min(patience, HEARTBEAT_SECONDS))) != "ended":
                if event is None:
                    await told.say(told.last)
                    if asked is not None and 0 < self._setup.config.wait <= loop.time() - since:
                        run.abort()
                elif isinstance(event, dict):
                    await told.record(event)
                elif not isinstance(event, Delta) and run.waiting is not asked:
                    asking.close()
                    asked, since = run.waiting, loop.time()
                    if asked is None:
                        continue
                    await told.say(f"waiting: {questions.headline(asked)}; {questions.how(run.run_id, asked)}")
                    if (shown := _form(ctx, run.run_id, asked)) is None:
                        continue
                    if _returns(ctx):
                        return _returned(shown, f"{run.run_id} {asked.digest}")
                    asking.callback(asyncio.create_task(self._ask(run, asked, shown, ctx)).cancel)
        del self._runs[run.run_id]
        if run.error is not None:
            raise run.error
        assert run.result is not None
        return _brief(run.result.model_dump(mode="json"))

    async def _ask(self, run: StreamedRun, request: ApprovalRequest, shown: Any, ctx: Context[Any, Any]) -> None:
        """Ask in the middle of the call, as earlier versions of the protocol do."""
        try:
            reply = await ctx.session.elicit_form(shown.message, shown.requested_schema, ctx.request_id)
        except Exception:
            return  # a client that fails to ask leaves the question to a person elsewhere
        run.broker.decide(request.digest, questions.decision(request, reply.action, reply.content))

    def _answer(self, run: StreamedRun, digest: str, ctx: Context[Any, Any]) -> None:
        """Pass on the answer in a repeated call, if the run is still waiting with that question."""
        if (request := run.waiting) is not None and request.digest == digest:
            reply = _reply(ctx)
            run.broker.decide(request.digest, questions.decision(request, reply.action, reply.content))


class _Progress:
    """Reports what a run does, one line at a time."""

    def __init__(self, ctx: Context[Any, Any]) -> None:
        self._ctx = ctx
        self._count = 0
        self.last = "starting"
        self._steps: dict[str, str] = {}

    async def record(self, record: Json) -> None:
        kind = record["type"]
        if kind == "plan":
            nodes = list(record["plan"].get("steps") or [])
            while nodes:
                node = nodes.pop()
                self._steps[node["step_id"]] = node["description"]
                nodes += (node.get("subplan") or {}).get("substeps") or []
        elif kind == "phase" and record["state"] == "started":
            await self.say(f"pass {record['pass']}: {PHASES[record['phase']]}")
        elif kind == "step" and record["status"] == "running":
            await self.say(f"{record['step_id']}: {self._steps.get(record['step_id'], '')}"[:200])
        elif kind == "notice":
            await self.say(record["message"])

    async def say(self, text: str) -> None:
        self._count, self.last = self._count + 1, text
        await self._ctx.report_progress(self._count, None, text)


async def _next(run: StreamedRun, seconds: float) -> Event | None:
    """Return the run's next event, None where none comes within some seconds."""
    try:
        return await asyncio.wait_for(run.next_event(), seconds)
    except TimeoutError:
        return None


def _form(ctx: Context[Any, Any], run_id: str, request: ApprovalRequest) -> ElicitRequestFormParams | None:
    """Return the form to show to the client's user; None where it cannot show one."""
    return questions.form(run_id, request) if questions.can_ask(ctx.client_capabilities) else None


def _returns(ctx: Context[Any, Any]) -> bool:
    """Return whether a question is returned from the call, rather than asked in the middle of it."""
    return (ctx.protocol_version or "") >= RETURNED


def _returned(shown: Any, state: str) -> InputRequiredResult:
    return InputRequiredResult(input_requests={questions.ANSWER: ElicitRequest(params=shown)}, request_state=state)


def _reply(ctx: Context[Any, Any]) -> ElicitResult:
    found = (ctx.input_responses or {}).get(questions.ANSWER)
    return found if isinstance(found, ElicitResult) else ElicitResult(action="cancel")


def _brief(result: Json) -> Json:
    """Return a result without its plan; the steps have the outcome."""
    return {key: value for key, value in result.items() if key != "plan"}
