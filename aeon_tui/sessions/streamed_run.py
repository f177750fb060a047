"""A run whose records, replies and questions arrive in order on an asyncio loop: for a client at the end of a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from aeon_tui.sessions.runner import Runner, Stream

if TYPE_CHECKING:
    from aeon_core import ApprovalRequest, ToolRegistry
    from aeon_tui.sessions.run_jobs import RunJob


T = TypeVar("T")


@dataclass(frozen=True)
class Delta:
    """A piece of a reply as it arrives."""

    purpose: str
    step_id: str | None
    text: str


Event = dict[str, Any] | Delta
"""A record, or a piece of a reply."""


class StreamedRun(Runner):
    """Runs one job, and passes on its events. Made on the loop that reads them.

    With `tools`, the record of a call that starts has in `preview` the `diff` it is about to make to a file.
    """

    def __init__(self, job: RunJob, journal: Path, tools: ToolRegistry | None = None) -> None:
        super().__init__(job, journal)
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | Literal["asked", "ended"]] = asyncio.Queue()
        self._tools = tools
        self._shown: str | None = None
        """The digest of the question whose record was shown last."""
        self.stream = _Deltas(self)
        self.listen(lambda: self._post("ended" if self.ended else "asked"))

    async def follow(
        self, show: Callable[[Event], Awaitable[object]], ask: Callable[[ApprovalRequest], Awaitable[T | None]]
    ) -> T | None:
        """Show the events from here on until the run has ended, and have each question asked meanwhile.

        Asking is cancelled where somebody decides elsewhere. What `ask` returns, if anything, is returned at once: the
        run waits on, and can be followed again. Raises what `show` or `ask` raise.
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
                        asked = None  # its record is still to come, and this event once more after that
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
        """Append an event, a change of what is asked or the end, from any thread. A closed loop needs none."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def _on_line(self, line: bytes) -> None:
        record = json.loads(line)
        if record["type"] == "tool" and record["state"] == "started" and (diff := self._preview(record)):
            record["preview"] = {"diff": diff}
        self._post(record)

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
        self._run._post(Delta(purpose, step_id, text))
