"""The runs of a client that drives this process over a protocol of its own."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from aeon_core.config.schema import RunConfig
from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.summary import RunSummary
from aeon_core.memory import Memory
from aeon_tui.sessions.run_jobs import NewRunJob, new_journal
from aeon_tui.sessions.streamed_run import StreamedRun

P = ParamSpec("P")
T = TypeVar("T")

ENDING_SECONDS = 3.0
"""Seconds that runs get to end after they were asked to; their journals can be resumed."""


def errors_as(
    translate: Callable[[Exception], Exception],
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Return a decorator that raises what is wrong, an AeonError or an OSError, as the protocol's own error."""

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
    """Those that are running here, and those whose end nobody has taken yet."""

    async def start(
        self, task: str, plan: Any = None, memory: Memory | None = None, journal: Path | None = None, **changes: Any
    ) -> StreamedRun:
        """Start a run, with changes to the configuration. Raises UsageError, ModelUnavailableError."""
        job = NewRunJob(task, self.config.model_copy(update=changes), plan, memory=memory)
        await asyncio.to_thread(job.prepare)
        run = StreamedRun(job, journal or new_journal(self.runs_dir), job.tools)
        self.live[run.run_id] = run
        run.start()
        return run

    def offered(self, mcp_servers: dict[str, Any]) -> ServedRuns:
        """Return runs with a client's MCP servers as tools, too. Raises UsageError for settings that are none."""
        if not (servers := RunConfig(mcp_servers=mcp_servers).mcp_servers):
            return self
        update = {"mcp_servers": {**self.config.mcp_servers, **servers}, "tools": [*self.config.tools, "mcp"]}
        return replace(self, config=self.config.model_copy(update=update))

    async def past(self, status: str | None = None) -> list[RunSummary]:
        """Return the runs in the directory, of a status where one is given, the newest first."""
        found = await asyncio.to_thread(list_runs, self.runs_dir)
        return [each for each in found if each.kind == "run" and status in (None, each.status)]

    async def path(self, run: str) -> Path:
        """Return the journal of a run's id, a unique prefix of one, or `last`; no file elsewhere. Raises UsageError."""
        known = {each.run_id: each.path for each in await self.past()}
        found = [run] if run in known else [each for each in known if run and each.startswith(run)]
        found = list(known)[:1] if run == "last" else found
        if len(found) != 1:
            raise UsageError(f"{'several runs begin with' if found else 'there is no run'} {run!r}; `runs` lists them")
        return Path(known[found[0]])

    async def close(self) -> None:
        """End all runs."""
        for run in self.live.values():
            run.abort()
        await asyncio.gather(*(asyncio.to_thread(run.wait, ENDING_SECONDS) for run in self.live.values()))
