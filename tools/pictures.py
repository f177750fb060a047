"""The content of the pictures in `screenshots/`: runs on the simulated model, and each screen that shows them.

The runs are real; only their ids and times are fixed, so that the pictures change only when the app does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aeon_core.approvals import ApprovalDecision, PendingApproval
from aeon_core.config.loading import LoadedConfig
from aeon_core.config.schema import RunConfig
from aeon_core.config.trust import ProjectTrust, TrustItem
from aeon_core.errors import AeonError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.reader import read_records
from aeon_core.runs.orchestrator import Orchestrator
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.compare import CompareScreen
from aeon_tui.screens.keys import KeySettingsScreen
from aeon_tui.screens.new_run import NewRunScreen
from aeon_tui.screens.replay import replay_screen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.settings import SettingsScreen
from aeon_tui.screens.trust import TrustGate
from aeon_tui.sessions.approval_broker import ApprovalBroker, approval_request
from aeon_tui.sessions.run_jobs import NewRunForm
from aeon_tui.sources.base import RecordSource, V

OPEN_TASK = "design a REST API for invoices"
"""A task so open that one pass is not enough."""
TASK = "Count the words in 'the yearly cost of a member', add 1200 and 350, and multiply 1550 by 12"
FILES_TASK = "write the file notes.md with the text 'the quarter was good'"
RUNS_DIR = Path(".aeon/runs")
"""Relative to the working directory during the recording."""
START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
RECORD_TIME = timedelta(seconds=0.7)
"""Time per record on the fixed clock."""

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """A run to be recorded."""

    model: str
    text: str
    options: dict[str, Any] = field(default_factory=dict)


RUNS = {
    "open": Task("default", OPEN_TASK),
    "missing-tool": Task("missing-tool", TASK),
    "no-such-tool": Task("no-such-tool", TASK),
    "down": Task("down", "Summarise the report in two sentences"),
    "stubborn": Task("stubborn", OPEN_TASK),
    "malformed": Task("malformed", "Translate the greeting, then count its words"),
    "asked": Task("default", OPEN_TASK, {"approve": ["plan", "pass"]}),
    "tool": Task("default", FILES_TASK, {"approve": ["tool"], "tools": ["files"]}),
}
"""By the name that pictures use; newest first."""
LISTED = ("open", "missing-tool", "no-such-tool", "down", "stubborn", "malformed")
"""The runs of the browser's picture."""


class RecordedSource(RecordSource[V]):
    """A source whose records are all known; `journal` is for screens that read more of it."""

    live = ended = False

    def __init__(self, records: Records, live: bool, journal: Path | None = None) -> None:
        super().__init__(journal)
        self.live, self.ended = live, not live
        self._records = records

    def take(self, seconds: float) -> Records:  # noqa: ARG002  # a source is given a time limit
        """Return all records, once."""
        records, self._records = self._records, []
        return records

    def close(self) -> None:
        """Do nothing: nothing is open."""


class OpenQuestion(ApprovalBroker):
    """A broker whose question, the one in a record, nobody answers."""

    def __init__(self, asked: dict[str, Any]) -> None:
        super().__init__()
        self._waiting = approval_request(PendingApproval.model_validate(asked))


@dataclass
class Picture:
    """One screen: its name, how to create its app, its size in cells, and the keys to press first."""

    name: str
    app: Callable[[], AeonApp]
    size: tuple[int, int] = (120, 36)
    keys: tuple[str, ...] = ()
    theme: str | None = None


def journal_of(run: str) -> Path:
    """Return the journal of a recorded run."""
    number = list(RUNS).index(run)
    start = START - timedelta(minutes=17 * number)
    return RUNS_DIR / f"{start:%Y%m%d-%H%M%S}-a1b2c{number}.jsonl"


def record(run: str) -> None:
    """Run a task, and replace the times in its journal by fixed ones."""
    task, path = RUNS[run], journal_of(run)
    config = RunConfig(durability="off", project_root=Path.cwd(), **task.options)
    approve = ApprovalDecision(decision="approve")
    Orchestrator(f"simulated:{task.model}", config=config, journal=path, approver=lambda _: approve).run(task.text)
    start = START - timedelta(minutes=17 * list(RUNS).index(run))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    fixed = (on_fixed_clock(line, start) for line in lines)
    text = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in fixed)
    path.write_text(text, encoding="utf-8")


def on_fixed_clock(item: dict[str, Any], start: datetime) -> dict[str, Any]:
    """Return the record with fixed durations and a time that depends only on its `seq`."""
    stamp = (start + item["seq"] * RECORD_TIME).isoformat(timespec="microseconds").replace("+00:00", "Z")
    fixed = {key: 412.0 if key == "latency_ms" else 1.2 for key in ("latency_ms", "duration_ms") if item.get(key)}
    return {**item, "ts": stamp, **fixed}


def up_to(records: Records, step_id: str) -> Records:
    """Return the records up to the step's current model call or tool call."""
    for index, item in enumerate(records):
        if item["type"] in ("llm", "tool") and item.get("state") == "started" and item.get("step_id") == step_id:
            return records[: index + 1]
    return records


def up_to_question(records: Records, point: str) -> Records:
    """Return the records up to the first question about that point."""
    for index, item in enumerate(records):
        if item["type"] == "approval" and item["state"] == "asked" and item["point"] == point:
            return records[: index + 1]
    raise AeonError(f"no run of the pictures asks about a {point}")


def run_screen(records: Records, *, live: bool = False, journal: Path | None = None) -> AeonApp:
    """Return an app that shows one run."""
    last = datetime.fromisoformat(records[-1]["ts"])
    broker = OpenQuestion(records[-1]) if records[-1]["type"] == "approval" else None
    source = RecordedSource(records, live or broker is not None, journal)
    return showing(RunScreen(source, clock=lambda: last + RECORD_TIME, broker=broker))


def showing(screen: Any) -> AeonApp:
    """Return an app that opens on a screen, with default settings."""
    app = AeonApp(RUNS_DIR, today=today)
    app.first_screen = screen
    return app


def _past(run: str) -> Callable[[], AeonApp]:
    return lambda: run_screen(list(read_records(journal_of(run))), journal=journal_of(run))


def _asks(run: str, point: str) -> Callable[[], AeonApp]:
    return lambda: run_screen(up_to_question(list(read_records(journal_of(run))), point))


def _browser() -> AeonApp:
    return showing(BrowserScreen(RUNS_DIR, listed, clock=lambda: START + timedelta(minutes=3)))


def listed(folder: Path) -> Sequence[Any]:
    """Return the runs that the browser's picture lists."""
    names = {journal_of(run).stem for run in LISTED}
    return [run for run in list_runs(folder) if run.run_id in names]


def _compare() -> AeonApp:
    return showing(CompareScreen(journal_of("open"), journal_of("stubborn")))


def _new_run() -> AeonApp:
    task = "Design a REST API for invoices.\nA good one has an OpenAPI file."
    return showing(NewRunScreen(NewRunForm(task=task, model="simulated:default")))


def _trust() -> AeonApp:
    root = Path("/home/ann/invoices")
    items = (
        TrustItem("tools", "let the model read, search and change the project's files"),
        TrustItem("tools", "run the project's tools/stock.py for the tools tools.stock", (root / "tools/stock.py",)),
        TrustItem("mcp_servers.docs", "start the program `python3 docs/server.py`", (root / "docs/server.py",)),
        TrustItem("base_url", "send every request to a model, with your key, to http://10.0.0.7:8000/v1"),
        TrustItem("policy.allow", "allow calls without asking: Bash(git status*)"),
    )
    return showing(TrustGate(ProjectTrust(root, items, "d", "untrusted")))


PICTURES = [
    Picture("run-live", lambda: run_screen(up_to(list(read_records(journal_of("open"))), "s5.2"), live=True)),
    Picture("run-finished", _past("open")),
    Picture("run-changes", _past("open"), keys=("1", "k", "k", "k", "k", "2", "left")),
    Picture("run-not-converged", _past("stubborn"), size=(200, 50)),
    Picture("run-repair", _past("no-such-tool"), keys=("6", "enter")),
    Picture("run-prompt", _past("no-such-tool"), keys=("p",)),
    Picture("run-failed", _past("down")),
    Picture("run-80x24", _past("stubborn"), size=(80, 24), keys=("5",)),
    Picture("run-past-moment", _past("open"), keys=("[", "[")),
    Picture("run-differences", _past("open"), keys=("d",)),
    Picture("run-search", _past("open"), keys=("slash", *"invoice", "enter")),
    Picture("approve-plan", _asks("asked", "plan")),
    Picture("approve-pass", _asks("asked", "pass")),
    Picture("approve-tool", _asks("tool", "tool"), size=(100, 30)),
    Picture("browser", _browser),
    Picture("browser-80x24", _browser, size=(80, 24)),
    Picture("browser-filter", _browser, keys=("slash", *"-status:converged invoices")),
    Picture("first-start", lambda: showing(BrowserScreen(RUNS_DIR, lambda _: []))),
    Picture("new-run", _new_run),
    Picture("compare", _compare, size=(140, 40), keys=("n",)),
    Picture("replay", lambda: showing(replay_screen(journal_of("open"), 0.25)), keys=("space", *["."] * 60)),
    Picture("settings", lambda: showing(SettingsScreen())),
    Picture("trust", _trust, size=(100, 30)),
    Picture("keys", lambda: showing(KeySettingsScreen())),
    Picture("help", _past("open"), keys=("question_mark",)),
    Picture("palette", _past("open"), keys=("ctrl+p",)),
    *(
        Picture(f"{what}-{theme}", app, theme=f"aeon-{theme}", keys=keys)
        for theme in ("light", "high-contrast", "colour-blind")
        for what, app, keys in (("run", _past("open"), ("3", "enter")), ("browser", _browser, ()))
    ),
]


def today() -> LoadedConfig:
    """Return default settings."""
    config = RunConfig(model="simulated:default", ttl=30, project_root=Path("/home/ann/invoices"))
    file = "the file '/home/ann/invoices/.aeon/config.yml'"
    return LoadedConfig(config, {"model": file, "ttl": file})
