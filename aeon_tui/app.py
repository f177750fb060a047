"""The app: wires screens, feeds and the runner, and ends cleanly."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from typing_extensions import override

from aeon_themes import PALETTES, fallback_variables
from aeon_tui.runner import Runner, StartRun

ABORT_SECONDS = 2.0
"""How long quitting waits for the run to be journaled as aborted."""


class AeonApp(App[None]):
    """Browses runs, and shows the one that was started with it."""

    TITLE = "aeon"
    HELP_TITLE = "Everywhere"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+q", "quit", "Quit", show=False),
        Binding("question_mark", "keys", "Keys", key_display="?"),
    ]

    def __init__(self, runs_dir: Path, runner: Runner | None = None) -> None:
        super().__init__()
        self.runs_dir = runs_dir
        self.runner = runner
        self.first_screen: Screen[None] | None = None
        """Set to open on another screen."""
        for palette in PALETTES:
            self.register_theme(palette.theme())
        self.theme = PALETTES[0].name
        self._quitting = False

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of our widgets for a theme that does not define them."""
        return fallback_variables(self.current_theme.dark)

    def get_default_screen(self) -> Screen[None]:
        """Return the run that was started, or the list of runs."""
        if self.first_screen is not None:
            return self.first_screen
        if self.runner is None:
            from aeon_tui.screens.browser import BrowserScreen

            return BrowserScreen(self.runs_dir)
        from aeon_tui.screens.run import RunScreen

        return RunScreen(self.runner.feed, self.runner)

    def on_ready(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, lambda: self.run_worker(self.action_quit()))
            except (NotImplementedError, RuntimeError, ValueError):
                break
        # What is there after start-up stays: the collector need not look at it while keys wait.
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        if self.runner is not None:
            self.runner.start()

    @override
    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the palette's commands."""
        yield SystemCommand("Theme", "Change the theme", self.action_change_theme)
        yield SystemCommand("Keys", "Show what every key does", self.action_keys)
        yield SystemCommand("Quit", "Quit; a run that is going on is aborted", self.action_quit)

    def action_keys(self) -> None:
        """Show the key help."""
        from aeon_tui.screens.keys import KeysScreen

        if not isinstance(self.screen, KeysScreen):
            self.push_screen(KeysScreen(self.screen.active_bindings))

    def open_journal(self, path: Path) -> None:
        """Show the run of a journal."""
        from aeon_tui.feed import JournalFeed
        from aeon_tui.screens.run import RunScreen

        self.push_screen(RunScreen(JournalFeed(path, follow=True)))

    def show_browser(self) -> None:
        """Go back to the list of runs."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
            return
        from aeon_tui.screens.browser import BrowserScreen

        self.push_screen(BrowserScreen(self.runs_dir))

    async def action_quit(self) -> None:
        """Quit; a run that is going on is aborted first, and journaled as such. A second time: at once."""
        if self.runner is None or not self.runner.running or self._quitting:
            self.exit()
            return
        self._quitting = True
        self.runner.abort()
        self.notify("Aborting the run …", markup=False)
        deadline = time.monotonic() + ABORT_SECONDS
        while self.runner.running and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self.exit()


def run_app(runs_dir: Path, start: StartRun | None = None) -> int:
    """Open the app on the list of runs, or on a run that it starts; return the exit code of that run, 0 for browsing.

    After the app has closed, one line on stderr says how the run ended and what its id is.
    """
    if start is None:
        app = AeonApp(runs_dir)
        app.run()
        return app.return_code or 0
    from aeon_core.journal.writer import new_run_id

    runner = Runner(start, runs_dir / f"{new_run_id()}.jsonl")
    app = AeonApp(runs_dir, runner)
    try:
        app.run()
    finally:
        if runner.running:
            runner.abort()
            runner.wait(ABORT_SECONDS)
    sys.stderr.write(f"{runner.outcome()}\n")
    return runner.exit_code or app.return_code or 0
