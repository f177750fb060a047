"""Two journals to compare: written by hand, under names of their own."""

from __future__ import annotations

import atexit
import json
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from aeon_tui.app import AeonApp
from aeon_tui.screens.compare import CompareScreen
from aeon_widgets.compare_view import CompareView
from tests.aeon_tui.passes import converged_run, given_up_run
from tests.aeon_tui.recordings import Recording
from tests.waiting import until

LEFT, RIGHT = "20261120-093000-a1b2c3", "20261120-101500-d4e5f6"

_FOLDER = tempfile.TemporaryDirectory(prefix="aeon-compared-")
atexit.register(_FOLDER.cleanup)


def written(folder: Path, name: str, recording: Recording) -> Path:
    """Write a journal of that run and return its path."""
    path = folder / f"{name}.jsonl"
    lines = (json.dumps({**record, "run": name}, separators=(",", ":")) for record in recording.records)
    # A journal holds no lone surrogate: the writer takes them out.
    path.write_text("".join(f"{line}\n" for line in lines).replace("\\ud800", "?"))
    return path


def app_on(left: Path, right: Path) -> AeonApp:
    """Return the app, opened on the comparison."""
    app = AeonApp(left.parent)
    app.first_screen = CompareScreen(left, right)
    return app


def two_runs() -> AeonApp:
    """Return the app on a run that converged and one that did not."""
    folder = Path(_FOLDER.name)
    return app_on(written(folder, LEFT, converged_run()), written(folder, RIGHT, given_up_run()))


def one_run() -> AeonApp:
    """Return the app on a run and a journal that is not there."""
    folder = Path(_FOLDER.name)
    return app_on(written(folder, LEFT, converged_run()), folder / "gone.jsonl")


async def compared(pilot: Pilot[None]) -> CompareView:
    """Return the view once the comparison is there."""
    view = (await until(pilot, lambda: pilot.app.screen.query(CompareView))).first()
    await until(pilot, lambda: view.line_count)
    await pilot.pause()
    return view
