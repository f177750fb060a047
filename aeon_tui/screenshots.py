"""Makes the pictures in `screenshots/` from runs on the simulated model: `python -m aeon_tui.screenshots [FOLDER]`.

The runs are real; only their ids and clock are set to fixed ones, so that the pictures change when the app does.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aeon_core.config import RunConfig
from aeon_core.errors import AeonError
from aeon_core.journal.reader import read_records
from aeon_core.journal.summary import RunSummary, summarise
from aeon_core.llm.connect import connect
from aeon_core.orchestrator import Orchestrator
from aeon_tui.app import AeonApp
from aeon_tui.feed import WholeViews
from aeon_tui.screens.browser import BrowserScreen
from aeon_tui.screens.run import RunScreen

OPEN_TASK = "design a REST API for invoices"
"""Open enough that the first pass does not do."""
TASK = "Count the words in 'the yearly cost of a member', add 1200 and 350, and multiply 1550 by 12"
RUNS = [
    ("default", OPEN_TASK),
    ("missing-tool", TASK),
    ("no-such-tool", TASK),
    ("down", "Summarise the report in two sentences"),
    ("stubborn", OPEN_TASK),
    ("malformed", "Translate the greeting, then count its words"),
]
START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
RECORD_TIME = timedelta(seconds=0.7)
"""What a record takes on the fixed clock."""
FONT_SOURCES = re.compile(r',\s*url\("[^"]*"\)\s*format\("[^"]*"\)')

Records = list[dict[str, Any]]


class RecordedFeed(WholeViews):
    """Records that are there already."""

    def __init__(self, records: Records, live: bool) -> None:
        self.error: AeonError | None = None
        self.damage: list[str] = []
        self.journal: Path | None = None
        self.live = live
        self.ended = not live
        self._records = records

    def take(self, seconds: float) -> Records:  # noqa: ARG002  # a feed is told how long it may take
        """Return all records, once."""
        records, self._records = self._records, []
        return records

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Picture:
    """One screen: its name, its size in cells, the keys pressed before it is taken."""

    name: str
    run: int
    size: tuple[int, int] = (120, 36)
    keys: tuple[str, ...] = ()
    until: str | None = None
    """Show the run as it was when the step of this id was being executed."""
    theme: str | None = None


PICTURES = [
    Picture("run-live", 0, until="s5.2"),
    Picture("run-finished", 0),
    Picture("run-changes", 0, keys=("1", "k", "k", "k", "k", "c")),
    Picture("run-not-converged", 4, size=(200, 50)),
    Picture("run-repair", 1, keys=("4", "enter")),
    Picture("run-prompt", 2, keys=("p",)),
    Picture("run-failed", 3),
    Picture("run-80x24", 4, size=(80, 24), keys=("7",)),
    Picture("run-light", 0, keys=("9", "enter"), theme="aeon-light"),
]


def record(folder: Path) -> list[tuple[Records, RunSummary]]:
    """Run every task and return its records and summary on the fixed clock."""
    recorded = []
    for number, (model, task) in enumerate(RUNS):
        start = START - timedelta(minutes=17 * number)
        path = folder / f"{start:%Y%m%d-%H%M%S}-a1b2c{number}.jsonl"
        Orchestrator(connect(f"simulated:{model}"), config=RunConfig(durability="off"), journal=path).run(task)
        records = [on_fixed_clock(item, start) for item in read_records(path)]
        summary = summarise(path)
        if summary is None:
            raise AeonError(f"the journal {path.name!r} could not be summarised")
        recorded.append((records, replace(summary, started=records[0]["ts"])))
    return recorded


def on_fixed_clock(item: dict[str, Any], start: datetime) -> dict[str, Any]:
    """Return the record with a time that depends on its `seq` alone, and fixed measures."""
    stamp = (start + item["seq"] * RECORD_TIME).isoformat(timespec="microseconds").replace("+00:00", "Z")
    fixed = {key: 412.0 if key == "latency_ms" else 1.2 for key in ("latency_ms", "duration_ms") if item.get(key)}
    return {**item, "ts": stamp, **fixed}


def up_to(records: Records, step_id: str) -> Records:
    """Return the records up to the model call or tool call that the step is in."""
    for index, item in enumerate(records):
        if item["type"] in ("llm", "tool") and item.get("state") == "started" and item.get("step_id") == step_id:
            return records[: index + 1]
    return records


async def take(app: AeonApp, size: tuple[int, int], keys: Sequence[str], target: Path) -> None:
    """Open the app, press the keys, and write what is to be seen as SVG."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        if isinstance(app.screen, RunScreen):
            app.screen.tick()
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        target.write_text(portable(app.export_screenshot(title="aeon-tui")), encoding="utf-8")


def portable(svg: str) -> str:
    """Return the picture without a random id, and without fonts that would be fetched from elsewhere."""
    return re.sub(r"terminal-\d+-", "terminal-", FONT_SOURCES.sub("", svg))


def run_app(picture: Picture, records: Records) -> AeonApp:
    """Return an app that shows one run."""
    shown = up_to(records, picture.until) if picture.until is not None else records
    last = datetime.fromisoformat(shown[-1]["ts"])
    app = AeonApp(Path("runs"))
    if picture.theme is not None:
        app.theme = picture.theme
    feed = RecordedFeed(shown, live=picture.until is not None)
    return _showing(app, RunScreen(feed, clock=lambda: last + RECORD_TIME))


def browser_app(runs: Sequence[RunSummary]) -> AeonApp:
    """Return an app that lists the runs."""
    return _showing(AeonApp(Path("runs")), BrowserScreen(Path(".aeon/runs"), lambda directory: runs))  # noqa: ARG005


def _showing(app: AeonApp, screen: RunScreen | BrowserScreen) -> AeonApp:
    app.first_screen = screen
    return app


async def make(folder: Path) -> list[Path]:
    """Write every picture into the folder and return the files."""
    with tempfile.TemporaryDirectory() as journals:
        recorded = record(Path(journals))
    made = []
    for picture in PICTURES:
        made.append(folder / f"{picture.name}.svg")
        await take(run_app(picture, recorded[picture.run][0]), picture.size, picture.keys, made[-1])
    made.append(folder / "browser.svg")
    await take(browser_app([summary for _, summary in recorded]), (120, 36), (), made[-1])
    return made


def main() -> int:
    """Make the pictures and say where they are."""
    default = Path(__file__).resolve().parent.parent / "screenshots"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = "UTC"
    os.environ.pop("NO_COLOR", None)
    time.tzset()
    for path in asyncio.run(make(folder)):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
