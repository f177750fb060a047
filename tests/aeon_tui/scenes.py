"""Screens in the states that a person meets them in, to be looked at in every theme."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from textual.pilot import Pilot
from textual.screen import ModalScreen

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser import BrowserScreen
from aeon_tui.screens.fork import ForkDialog, Parent
from aeon_tui.screens.run import RunScreen
from tests.aeon_tui.fakes import ListFeed
from tests.aeon_tui.passes import converged_run, first_pass, given_up_run
from tests.aeon_tui.recordings import START, Recording, failed_run, finished_run, live_run
from tests.aeon_tui.test_browser import summary

NO_TEXT = re.compile(r"[\s─-▟⠀-⣿🔎]*")
"""Borders, bars and gauges, and what has colours of its own."""
RUNS = [
    summary(50 - number, f"task {number}", status)
    for number, status in enumerate(
        ("running", "converged", "failed", "ttl_expired", "aborted", "interrupted", "not_converged", "cost_ceiling")
    )
]


@dataclass(frozen=True)
class Text:
    """What stands on the screen in two colours, as `#rrggbb`."""

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
    anew: bool = False
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
        for _ in range(500):
            if self.shows is None or any(widget.region for widget in app.screen.query(self.shows)):
                return
            await pilot.pause(0.01)
        raise AssertionError(f"{self.shows!r} is not shown")


def run(recording: Callable[[], Recording], live: bool = False) -> Callable[[], AeonApp]:
    def make() -> AeonApp:
        app = AeonApp(Path("runs"))
        feed = ListFeed(recording().records, live)
        app.first_screen = RunScreen(feed, clock=lambda: START + timedelta(seconds=41))
        return app

    return make


def browser(runs: list[object]) -> Callable[[], AeonApp]:
    def make() -> AeonApp:
        app = AeonApp(Path("runs"))
        app.first_screen = BrowserScreen(Path("runs"), lambda directory: runs)  # type: ignore[arg-type]
        return app

    return make


def ask_for_a_fork(app: AeonApp) -> Awaitable[object]:
    return app.push_screen(ForkDialog(Parent(Path("20261121-120000-a1b2c3.jsonl"), "simulated:default", 50, 2)))


def notify(app: AeonApp) -> None:
    app.notify("It is said.", title="A title", markup=False)
    app.notify("It is a warning.", severity="warning", title="A title", markup=False)
    app.notify("It is an error.", severity="error", title="A title", markup=False)


SCENES = [
    Scene("live", run(live_run, live=True)),
    Scene("finished", run(finished_run), ("g", "j", "j", "o")),
    Scene("failed", run(failed_run)),
    Scene("prompt", run(finished_run), ("g", "p")),
    Scene("repair", run(finished_run), ("4", "enter")),
    Scene("log", run(finished_run), ("3",)),
    Scene("filter", run(finished_run), ("slash", "a")),
    Scene("changes", run(converged_run), ("1", "up", "c")),
    Scene("issues", run(first_pass, live=True), ("7", "s")),
    Scene("given-up", run(given_up_run), ("8",)),
    Scene("narrow", run(first_pass), size=(60, 20)),
    Scene("runs", browser(list(RUNS))),
    Scene("runs-filter", browser(list(RUNS)), ("slash",)),
    Scene("no-runs", browser([])),
    Scene("keys", run(finished_run), ("question_mark",)),
    Scene("palette", browser(list(RUNS)), ("ctrl+p", *"theme"), anew=True, shows="CommandList"),
    Scene("fork", browser(list(RUNS)), (), ask_for_a_fork),
    Scene("fork-problem", browser(list(RUNS)), ("0", "enter"), ask_for_a_fork, shows="#problem"),
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
