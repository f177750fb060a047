"""The app under a flood, in a process of its own: it watches a journal, or its own worker thread writes one.

What its view says in the end, and how the writing went, is left in a file. Without a screen only the thread runs.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config.schema import RunConfig
from aeon_core.entities import RunResult
from aeon_core.journal.view.model import RunView
from aeon_tui.sessions.run_jobs import RunnerJob
from aeon_tui.sources.live import LiveSource
from tests.benchmarks import flood_source

if TYPE_CHECKING:
    from aeon_tui.screens.run.screen import RunScreen

WARM_SECONDS = 1.5
"""How long the first screen has, before the flood begins."""


def said(view: RunView) -> dict[str, Any]:
    """Return what a view says of the run, in numbers that can be counted from its journal."""
    calls = [call for attempts in view.calls.values() for call in attempts]
    return {
        "last_seq": view.last_seq,
        "whole_from": view.whole_from,
        "status": view.status,
        "steps": {step.step_id: step.status for step in view.steps.values()},
        "step_calls": {step.step_id: len(step.calls) for step in view.steps.values()},
        "calls": len(calls),
        "calls_finished": sum(call.finished for call in calls),
        "tool_calls": len(view.tool_calls),
        "log_lines": view.log_count,
        "spent": view.ttl_spent,
        "cycles": view.cycles,
        "memory": sorted(view.memory),
        "problems": len(view.damage),
    }


@dataclass
class FloodWork(RunnerJob):
    """A run whose kernel does nothing but write records."""

    path: Path
    rate: float
    seconds: float
    written: flood_source.Written | None = None
    task = "a flood"
    config = RunConfig(ttl=flood_source.LIMIT)
    guide = ""

    def journal_in(self, runs_dir: Path) -> Path:
        del runs_dir
        return self.path

    def prepare(self) -> None: ...

    def continues_after(self, result: RunResult) -> bool:
        del result
        return False

    def source(self, journal: Path) -> LiveSource:
        return LiveSource(journal)

    def build(self, journal: Path, on_line: Callable[[bytes], None], *_: object) -> FloodWork:
        self.on_line = on_line
        return self

    def run(self) -> RunResult:
        time.sleep(WARM_SECONDS)
        self.written = flood_source.write_journal(self.path, self.rate, self.seconds, self.on_line)
        return RunResult.model_validate(flood_source.result())

    def abort(self) -> None: ...

    def close(self) -> None: ...


def _leave(screen: RunScreen, work: FloodWork | None, out: Path) -> None:
    """Write what the view says once it is whole and the run has ended."""
    while screen.view.result is None or screen.view.whole_from or not screen._source.ended:
        time.sleep(0.02)
    done = time.monotonic()
    written = asdict(work.written) if work is not None and work.written is not None else None
    out.with_suffix(".part").write_text(json.dumps({"view": said(screen.view), "whole_at": done, "written": written}))
    out.with_suffix(".part").rename(out)


def _show(path: Path, out: Path, work: FloodWork | None) -> None:
    from aeon_core.journal.listing import Awaited
    from aeon_tui.app import AeonApp
    from aeon_tui.screens.run.screen import RunScreen
    from aeon_tui.sessions.runner import Runner
    from aeon_tui.sources.journal import FollowedSource

    runner = Runner(work, path) if work is not None else None
    app = AeonApp(path.parent, runner)
    screen = app.first_screen = app.first_screen or RunScreen(FollowedSource(Awaited(path, path.parent)))
    gc.set_threshold(20_000, 20, 20)  # as the command line has it
    threading.Thread(target=_leave, args=(screen, work, out), daemon=True).start()
    app.run()


def main() -> None:
    """`watch PATH OUT`, `thread PATH OUT RATE SECONDS`, or `alone PATH OUT RATE SECONDS`."""
    how, path, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    work = None if how == "watch" else FloodWork(path, float(sys.argv[4]), float(sys.argv[5]))
    if how == "alone" and work is not None:
        work.build(path, LiveSource(path).put).run()
        out.write_text(json.dumps({"written": asdict(work.written) if work.written is not None else None}))
    else:
        _show(path, out, work)


if __name__ == "__main__":
    main()
