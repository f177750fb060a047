"""A run whose records, replies and questions arrive in order on an asyncio loop: for a client at the end of a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aeon_tui.sessions.runner import Runner, Stream

if TYPE_CHECKING:
    from aeon_core import ToolRegistry
    from aeon_tui.sessions.run_jobs import RunJob


PHASES = {
    "plan": "planning",
    "execute": "running the plan",
    "evaluate": "judging the result",
    "refine": "refining the plan",
}
"""What a run does in a phase, for a person."""


@dataclass(frozen=True)
class Delta:
    """A piece of a reply as it arrives."""

    purpose: str
    step_id: str | None
    text: str


Event = dict[str, Any] | Delta | Literal["asked", "ended"]
"""A record, a piece of a reply; `asked` where a question has come or was answered, `ended` once, as the last."""


class StreamedRun(Runner):
    """Runs one job, and passes on its events. Made on the loop that reads them.

    With `tools`, the record of a call that starts has in `preview` the change it is about to make to a file.
    """

    def __init__(self, job: RunJob, journal: Path, tools: ToolRegistry | None = None) -> None:
        super().__init__(job, journal)
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._tools = tools
        self.stream = _Deltas(self)
        self.listen(lambda: self.post("ended" if self.ended else "asked"))

    def post(self, event: Event) -> None:
        """Append an event, from any thread. A loop that has closed needs none."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def next_event(self) -> Event:
        """Return the next event; nothing comes after `ended`."""
        return await self._events.get()

    def _on_line(self, line: bytes) -> None:
        record = json.loads(line)
        if record["type"] == "tool" and record["state"] == "started" and (diff := self._preview(record)):
            record["preview"] = diff
        self.post(record)

    def _preview(self, record: dict[str, Any]) -> str | None:
        """Return the diff that a call would make. On the kernel's thread: once that continues, the file has changed."""
        with contextlib.suppress(Exception):  # the call itself will say what is wrong with it
            tool = self._tools.get(record["tool_name"]) if self._tools is not None else None
            return tool.preview(record["arguments"]) if tool is not None else None
        return None


class _Deltas(Stream):
    def __init__(self, run: StreamedRun) -> None:
        super().__init__()
        self._run = run

    def add(self, purpose: str, step_id: str | None, text: str) -> None:
        """Pass on what has arrived."""
        self._run.post(Delta(purpose, step_id, text))
