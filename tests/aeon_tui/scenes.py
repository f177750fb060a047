"""Screens in the states that a person meets them in, to be looked at in every theme."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import ModalScreen

from aeon_core.approvals import ApprovalRequest
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import ApprovalPoint
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.preview import PreviewPane
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.dialogs import ConfirmDialog, ExportDialog
from aeon_tui.screens.fork import ForkDialog, Parent
from aeon_tui.screens.replay import replay_screen
from aeon_tui.screens.run.approval_controller import ApprovalController
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.approval_broker import ApprovalBroker
from tests.aeon_tui.compared import one_run, two_runs
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.frame import frame_app
from tests.aeon_tui.passes import converged_run, first_pass, given_up_run
from tests.aeon_tui.recordings import START, Recording, failed_run, finished_run, live_run
from tests.aeon_tui.screens.browser.test_screen import NOW, summary
from tests.aeon_tui.screens.test_trust import ASKED, CHANGED, opened_on
from tests.aeon_tui.workflows import BLOCKLISTED, CEILING, GATE, app_on, at_a_gate, at_work, failed
from tests.waiting import until
from tools.widget_demos.demos import RECORDING

NO_TEXT = re.compile(r"[\s─-▟⠀-⣿🔎]*")
"""Borders, bars and gauges, and what has colours of its own."""
RUNS = [
    summary(50 - number, f"task {number}", status)
    for number, status in enumerate(
        ("running", "converged", "failed", "ttl_expired", "aborted", "interrupted", "not_converged", "cost_ceiling")
    )
]

CALL = {
    "tool_name": "edit_file",
    "arguments": {"file_path": "sums.py", "old_string": "x = 1\ny = 2", "new_string": "x = 1\ny = 3"},
    "description": "mend the sum",
    "reason": "a rule",
}
MONEY = {"spent_usd": 1.1, "held_usd": 0.04, "reserved_usd": 0.31, "limit_usd": 1.2, "proposed_usd": 2.4}
PASS = {
    "plan": {"goal": "sums", "steps": [{"step_id": "s1", "description": "Add", "status": "complete"}]},
    "issues": [{"issue_id": "i", "type": "specificity", "severity": "high", "description": "too vague"}],
    "questions": ["For whom?"],
    "ttl": {"remaining": 20},
    "answer": "15",
    "convergence": {"converged": False, "completeness_score": 0.6, "coherence_score": 0.9, "reason_codes": []},
    "ended": None,
}


@dataclass(frozen=True)
class Text:
    """A text on the screen and its two colours, as `#rrggbb`."""

    text: str
    color: str
    background: str


@dataclass(frozen=True)
class Scene:
    """One state of one screen."""

    name: str
    app: Callable[[], AeonApp]
    keys: tuple[str, ...] = ()
    then: Callable[[AeonApp], Awaitable[object] | None] | None = None
    size: tuple[int, int] = (120, 40)
    needs_restart: bool = False
    """Whether it does not follow a change of the theme: nobody can change it there."""
    shows: str | None = None
    """What has to be laid out before the scene is complete, as a selector."""

    async def settle(self, app: AeonApp, pilot: Pilot[None]) -> None:
        """Lead an app that was opened into this state."""
        await pilot.pause()
        if isinstance(app.screen, RunScreen):
            app.screen.tick()
        await app.workers.wait_for_complete()
        if self.then is not None and (wait := self.then(app)) is not None:
            await wait
        await pilot.pause()
        await pilot.press(*self.keys)
        await pilot.pause()
        if (shows := self.shows) is not None:
            await until(pilot, lambda: any(widget.region for widget in app.screen.query(shows)), shows)


def run(recording: Callable[[], Recording], live: bool = False) -> Callable[[], AeonApp]:
    def make() -> AeonApp:
        app = AeonApp(Path("runs"))
        source = ListSource(recording().records, live)
        app.first_screen = RunScreen(source, clock=lambda: START + timedelta(seconds=41))
        return app

    return make


def with_a_past() -> AeonApp:
    """Make the app on a run whose journal is there."""
    app, journal = AeonApp(Path("runs")), RECORDING
    source = ListSource(list(read_records(journal)))
    source.journal = journal
    app.first_screen = RunScreen(source, clock=lambda: START)
    return app


def replays() -> AeonApp:
    """Make the app on a replayed run."""
    app = AeonApp(Path("runs"))
    app.first_screen = replay_screen(RECORDING)
    return app


async def go_back(app: AeonApp) -> None:
    assert isinstance(app.screen, RunScreen)
    app.screen.action_pass_moment(-1)
    app.screen.action_pass_moment(-1)
    await app.workers.wait_for_complete()


async def differ(app: AeonApp) -> None:
    assert isinstance(app.screen, RunScreen)
    app.screen.action_changes_of_plan()
    await app.workers.wait_for_complete()


def asks(point: ApprovalPoint, subject: dict[str, Any]) -> Callable[[], AeonApp]:
    """Make the app on a run that waits with a question."""

    def make() -> AeonApp:
        app, broker = AeonApp(Path("runs")), ApprovalBroker()
        broker._waiting = ApprovalRequest(point=point, pass_number=1, subject=subject, digest="d")
        records = first_pass().records[:-2]
        asked = {**records[-1], "type": "approval", "point": point, "pass": 1, "state": "asked", "subject": subject}
        source = ListSource([*records, {**asked, "seq": records[-1]["seq"] + 1, "digest": "d"}], live=True)
        screen = RunScreen(source, clock=lambda: START + timedelta(seconds=41))
        screen.asking = ApprovalController(screen, broker, screen._place_of_question)
        app.first_screen = screen
        return app

    return make


def browser(runs: list[object]) -> Callable[[], AeonApp]:
    def make() -> AeonApp:
        app = AeonApp(Path("runs"))
        app.first_screen = BrowserScreen(Path("runs"), lambda directory: runs, lambda: NOW)  # type: ignore[arg-type]
        return app

    return make


def show_a_preview(app: AeonApp) -> None:
    """Show a text in every style that a preview has."""
    pane = app.screen.query_one(PreviewPane)
    pane.forget()
    styles = ("bold", "accent", "muted", "medium", "high", "running", "complete", "failed")
    pane.start([("", "plain"), *((style, f"in {style}") for style in styles)], follow=False)


def ask_to_delete(app: AeonApp) -> Awaitable[object]:
    return app.push_screen(ConfirmDialog("Delete this run?", ["add 5 and 10", "1 kB"], "Delete", no="Keep"))


def ask_for_a_file(app: AeonApp) -> Awaitable[object]:
    return app.push_screen(ExportDialog("20261121-120000-a1b2c3", Path("/home/ann")))


def ask_for_a_fork(app: AeonApp) -> Awaitable[object]:
    return app.push_screen(ForkDialog(Parent(Path("20261121-120000-a1b2c3.jsonl"), "simulated:default", 50, 2)))


def notify(app: AeonApp) -> None:
    app.notify("It is said.", title="A title", markup=False)
    app.notify("It is a warning.", severity="warning", title="A title", markup=False)
    app.notify("It is an error.", severity="error", title="A title", markup=False)


SCENES = [
    Scene("live", run(live_run, live=True)),
    Scene("finished", run(finished_run), ("g", "j", "j")),
    Scene("failed", run(failed_run)),
    Scene("prompt", run(finished_run), ("g", "p")),
    Scene("repair", run(finished_run), ("6", "enter")),
    Scene("log", run(finished_run), ("8",)),
    Scene("changes", run(converged_run), ("1", "up", "2", "left")),
    Scene("issues", run(first_pass, live=True), ("5", "v")),
    Scene("given-up", run(given_up_run), ("4",)),
    Scene("narrow", run(first_pass), size=(60, 20)),
    Scene("decide-a-call", asks("tool", CALL), shows="ApprovalText"),
    Scene("decide-a-pass", asks("pass", PASS), shows="ApprovalText"),
    Scene("decide-a-plan", asks("plan", PASS), shows="ApprovalText"),
    Scene("search", with_a_past, ("slash", *"invoices", "enter"), shows="MatchList"),
    Scene("replay", replays, ("space", "end"), shows="PlanTree"),
    Scene("decide-the-budget", asks("budget", MONEY), ("1",), size=(60, 20), shows="ApprovalText"),
    Scene("past", with_a_past, (), go_back),
    Scene("differences", with_a_past, (), differ),
    Scene("runs", browser(list(RUNS))),
    Scene("runs-filter", browser(list(RUNS)), ("slash", *"status:f")),
    Scene("runs-problem", browser(list(RUNS)), ("slash", *"is:blue")),
    Scene("runs-marked", browser(list(RUNS)), ("j", "m", "V")),
    Scene("runs-preview", browser(list(RUNS)), (), show_a_preview),
    Scene("runs-delete", browser(list(RUNS)), (), ask_to_delete),
    Scene("runs-export", browser(list(RUNS)), ("tab",), ask_for_a_file),
    Scene("no-runs", browser([])),
    Scene("keys", run(finished_run), ("question_mark",)),
    Scene("palette", browser(list(RUNS)), ("ctrl+p", *"theme"), needs_restart=True, shows="CommandList"),
    Scene("fork", browser(list(RUNS)), (), ask_for_a_fork),
    Scene("fork-problem", browser(list(RUNS)), ("tab", "tab", "ctrl+u", "ctrl+s"), ask_for_a_fork, shows="#problem"),
    Scene("compare", two_runs, ("n", "n")),
    Scene("compare-below", two_runs, ("n", "tab"), size=(60, 20)),
    Scene("compare-one", one_run),
    Scene("first-start", partial(frame_app, "first"), shows="#models"),
    Scene("new-run", partial(frame_app, "new"), shows="ModelList"),
    Scene("new-run-ticks", partial(frame_app, "new"), (*["tab"] * 3, "space"), shows="ModelList"),
    Scene("new-run-problems", partial(frame_app, "new-problems"), ("f5",), shows="#problem-model"),
    Scene("new-run-left", partial(frame_app, "new"), ("a", "escape"), shows="#said"),
    Scene("settings", partial(frame_app, "settings"), ("j", "j")),
    Scene("settings-filter", partial(frame_app, "settings"), ("slash", *"zz")),
    Scene("trust", lambda: opened_on(ASKED), shows="TrustText"),
    Scene("trust-changed", lambda: opened_on(CHANGED), ("right",), size=(60, 20), shows="TrustText"),
    Scene("all-keys", partial(frame_app, "keys"), ("j",)),
    Scene("a-key-is-asked-for", partial(frame_app, "keys"), ("j", "enter"), shows="PressDialog Static"),
    Scene("workflow-at-work", lambda: app_on(at_work(), live=True), ("2", "V")),
    Scene("workflow-at-a-gate", lambda: app_on(at_a_gate(), live=True, asked=GATE), shows="ApprovalPanel ApprovalText"),
    Scene("workflow-blocklisted", lambda: app_on(at_work(), live=True, asked=BLOCKLISTED), shows="ApprovalText"),
    Scene("workflow-choices", lambda: app_on(at_work(), live=True, asked=CEILING), shows="ChoiceRows"),
    Scene("workflow-failed", lambda: app_on(failed()), ("V",), size=(60, 20)),
    Scene("notices", browser(list(RUNS)), (), notify, shows="Toast"),
]


@asynccontextmanager
async def opened(scene: Scene, theme: str = "aeon-dark") -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    """Open the app in the scene's state."""
    app = scene.app()
    app.theme = theme
    async with app.run_test(size=scene.size, notifications=True) as pilot:
        await scene.settle(app, pilot)
        yield app, pilot


def texts(app: AeonApp) -> Iterator[Text]:
    """Return what can be read on the uppermost screen, with the colours that it is drawn in."""
    screen = app.screen
    strips = screen._compositor.render_strips()
    modal = isinstance(screen, ModalScreen)
    shown = [widget.region for widget in screen.query("*")] if modal else [screen.region]
    for region in shown:
        for strip in strips[region.y : region.bottom]:
            for segment in strip.crop(region.x, region.right):
                style = segment.style
                if style is None or style.color is None or style.bgcolor is None or NO_TEXT.fullmatch(segment.text):
                    continue
                colors = style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex
                color, background = reversed(colors) if style.reverse else colors
                yield Text(segment.text, color, background)
