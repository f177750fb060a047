"""The app: wires screens, feeds and the runner, and ends cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual import work
from textual.app import App, SystemCommand
from textual.binding import ActiveBinding, Binding, BindingType
from textual.screen import Screen
from typing_extensions import override

from aeon_themes import fallback_variables, readable_variables
from aeon_tui.ending import ABORT_SECONDS, ended_by_signals, let_end
from aeon_tui.prints import screen_to_itself
from aeon_tui.run_actions import RunActions, Today
from aeon_tui.runner import Runner
from aeon_tui.served import is_served, pipe_to_itself
from aeon_tui.terminal import notification, sized, title, title_given_back
from aeon_tui.theming import add_own_themes, add_themes
from aeon_tui.work import Work
from aeon_widgets.footer import fit_footer

if TYPE_CHECKING:
    from aeon_core.config_files import LoadedConfig
    from aeon_core.journal.awaiting import Awaited
    from aeon_tui.feed import Feed

NOTICE_SECONDS = 20
COPY_OR_QUIT = Binding("ctrl+c", "copied_or_quit", "Copy the selected text, else quit", show=False)
"""The screen's own binding of the key comes first, and copies where text is selected."""


def todays_config() -> LoadedConfig:
    """Return the configuration of all layers but the command line's. Raises UsageError."""
    from aeon_core.config_files import load_config

    return load_config()


class AeonApp(App[None]):
    """Browses runs, and shows the one that was started with it. `today` gives what a journal does not hold."""

    TITLE = "aeon"
    HELP_TITLE = "Everywhere"
    # Textual dims the colour of a muted text once more: that could not be read in every theme.
    CSS = "CommandPalette > .command-palette--help-text { text-style: not bold; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+q", "quit", "Quit", show=False),
        COPY_OR_QUIT,
        Binding("question_mark", "keys", "Keys", key_display="?"),
    ]

    def __init__(self, runs_dir: Path, runner: Runner | None = None, today: Today = todays_config) -> None:
        super().__init__()
        self.runs_dir = runs_dir
        self.runner = runner
        """The run that goes on here, or was the last to do so."""
        self.runners = [runner] if runner is not None else []
        """All that this app has run, in their order."""
        self.actions = RunActions(self, today)
        self.first_screen: Screen[None] | None = None
        """Set to open on another screen."""
        self.first_notice = ""
        """What is said at first."""
        add_themes(self)
        self._quitting = False
        self._running_loop: asyncio.AbstractEventLoop | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of our widgets for a theme that does not define them."""
        return fallback_variables(self.current_theme)

    @override
    def get_css_variables(self) -> dict[str, str]:
        return {**super().get_css_variables(), **readable_variables(self.current_theme)}

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
        self._running_loop = asyncio.get_running_loop()
        # What is there after start-up stays: the collector need not look at it while keys wait.
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        if self.runner is not None:
            self._begin(self.runner)
        if self.first_notice:
            self.notify(self.first_notice, timeout=NOTICE_SECONDS, markup=False)
        self.run_worker(partial(add_own_themes, self), thread=True, group="themes")

    @override
    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the palette's commands."""
        if (run := self._past_run(screen)) is not None:
            yield from self.actions.commands(run)
        if (own := getattr(screen, "palette", None)) is not None:
            yield from own()
        yield SystemCommand("Theme", "Change the theme", self.action_change_theme)
        yield SystemCommand("Keys", "Show what every key does", self.action_keys)
        yield SystemCommand("Quit", "Quit; a run that is going on is aborted", self.action_quit)

    def action_keys(self) -> None:
        """Show the key help."""
        from aeon_tui.screens.keys import KeysScreen

        if not isinstance(self.screen, KeysScreen):
            bindings = {**self.screen.active_bindings, "ctrl+c": ActiveBinding(self, COPY_OR_QUIT, True, "")}
            self.push_screen(KeysScreen(bindings))

    @work(thread=True, exclusive=True, group="open")
    def open_journal(self, path: Path) -> None:
        """Show the run of a journal, one that another process writes as it goes on."""
        from aeon_tui.watching import feed_of

        self.call_from_thread(self._show_feed, feed_of(path, self.runs_dir))

    def open_on_watched(self, awaited: Awaited) -> None:
        """Open on a run of another process."""
        from aeon_tui.screens.run import RunScreen
        from aeon_tui.watching import WatchFeed

        self.first_screen = RunScreen(WatchFeed(awaited))

    def _show_feed(self, feed: Feed) -> None:
        from aeon_tui.screens.run import RunScreen

        self.show_run(RunScreen(feed))

    def start_work(self, work: Work) -> None:
        """Run something, and show it."""
        from aeon_tui.screens.run import RunScreen

        self.runner = Runner(work, work.journal_in(self.runs_dir))
        self.runners.append(self.runner)
        self.show_run(RunScreen(self.runner.feed, self.runner))
        self._begin(self.runner)

    def _begin(self, runner: Runner) -> None:
        runner.start()
        # What can be done with a past run cannot be done with this one yet.
        self.screen.refresh_bindings()
        fit_footer(cast("Screen[None]", self.screen))

    def show_run(self, shown: Screen[None]) -> None:
        """Show a run, in place of the one that is shown where there is one."""
        from aeon_tui.screens.browser import BrowserScreen
        from aeon_tui.screens.run import RunScreen

        self.clear_notifications()
        while len(self.screen_stack) > 1 and not isinstance(self.screen, (RunScreen, BrowserScreen)):
            self.pop_screen()
        # The screen that the app opened on stays: nothing can be put in its place.
        if isinstance(self.screen, RunScreen) and len(self.screen_stack) > 1:
            self.switch_screen(shown)
        else:
            self.push_screen(shown)

    def _past_run(self, screen: Screen[object]) -> Path | None:
        """Return the journal that a screen's actions go for, None where it is none that was ended or left."""
        chosen = getattr(screen, "chosen_run", None)
        goes_on_here = self.runner is not None and self.runner.running and self.runner.journal == chosen
        return None if goes_on_here else chosen

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "past_run":
            return self._past_run(self.screen) is not None
        return super().check_action(action, parameters)

    def action_past_run(self, what: Literal["resume", "replay", "fork"]) -> None:
        """Do something with the run that is chosen."""
        if (run := self._past_run(self.screen)) is not None:
            getattr(self.actions, what)(run)

    def show_browser(self) -> None:
        """Go back to the list of runs."""
        from aeon_tui.screens.browser import BrowserScreen

        # What was told of that run would hide this list.
        self.clear_notifications()
        below = self.screen_stack[-2:-1]
        if below and isinstance(below[0], BrowserScreen):
            self.pop_screen()
        elif below:
            self.switch_screen(BrowserScreen(self.runs_dir))
        else:
            self.push_screen(BrowserScreen(self.runs_dir))

    async def action_quit(self) -> None:
        """Quit; a run that is going on is aborted first, and journaled as such. A second time: at once."""
        if self.runner is None or not self.runner.running or self._quitting:
            self.exit()
            return
        self._quitting = True
        self.runner.abort()
        self.notify("Aborting the run …", markup=False)
        # Not here: the next key must be heard, and what was said be drawn.
        self.run_worker(self._exit_when_ended(self.runner), exit_on_error=False)

    async def _exit_when_ended(self, runner: Runner) -> None:
        deadline = time.monotonic() + ABORT_SECONDS
        while runner.running and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self.exit()

    async def action_copied_or_quit(self) -> None:
        """Quit: nothing was selected, else the screen would have copied it."""
        await self.action_quit()

    def tell_terminal(self, text: str, *, urgent: bool = False) -> None:
        """Name the terminal so; what is urgent is a notification too, where the person looks elsewhere."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(title(text))
            if urgent and not self.app_focus:
                self._driver.write(notification(text))

    def quit_soon(self) -> None:
        """Quit; from any thread, and from a signal's handler."""
        if self._running_loop is not None:
            with contextlib.suppress(RuntimeError):
                self._running_loop.call_soon_threadsafe(lambda: self.run_worker(self.action_quit()))


def run_app(
    runs_dir: Path,
    work: Work | None = None,
    today: Today = todays_config,
    prepare: Callable[[AeonApp], None] | None = None,
) -> int:
    """Open the app on the list of runs, on a work that it starts, or as `prepare` says; return the exit code.

    That is the work's, and 0 for browsing. After the app has closed, one line on stderr for each run that it ran says
    how it ended and what its id is.
    """
    runner = Runner(work, work.journal_in(runs_dir)) if work is not None else None
    app = AeonApp(runs_dir, runner, today)
    if prepare is not None:
        prepare(app)
    try:
        with pipe_to_itself() if is_served() else screen_to_itself():
            app.driver_class = sized(app.driver_class)
            with ended_by_signals(app), title_given_back():
                app.run()
    finally:
        if app.runner is not None:
            let_end(app.runner)
    for each in app.runners:
        sys.stderr.write(f"{each.outcome()}\n")
    return (runner.exit_code if runner is not None else 0) or app.return_code or 0
