"""The app: wires screens, feeds and the runner, and ends cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import ActiveBinding, Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen
from typing_extensions import override

from aeon_themes import PALETTES, fallback_variables
from aeon_tui.prints import screen_to_itself
from aeon_tui.runner import Runner, StartRun
from aeon_tui.terminal import notification, title, title_given_back

ABORT_SECONDS = 2.0
"""How long quitting waits for the run to be journaled as aborted, before it gives the terminal back."""
HANGUP_SECONDS = 10.0
"""How long a run may take to end when its terminal has been closed."""
ENDING_SECONDS = 0.3
"""A run that takes longer than that to end is in a tool: model calls are left at once."""
WAITING = "aeon-tui: waiting for the running tool …; Ctrl-C stops at once\n"
COPY_OR_QUIT = Binding("ctrl+c", "copied_or_quit", "Copy the selected text, else quit", show=False)
"""The screen's own binding of the key comes first, and copies where text is selected."""


class AeonApp(App[None]):
    """Browses runs, and shows the one that was started with it."""

    TITLE = "aeon"
    HELP_TITLE = "Everywhere"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+q", "quit", "Quit", show=False),
        COPY_OR_QUIT,
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
        self._running_loop: asyncio.AbstractEventLoop | None = None

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
        self._running_loop = asyncio.get_running_loop()
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
            bindings = {**self.screen.active_bindings, "ctrl+c": ActiveBinding(self, COPY_OR_QUIT, True, "")}
            self.push_screen(KeysScreen(bindings))

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


def run_app(runs_dir: Path, start: StartRun | None = None) -> int:
    """Open the app on the list of runs, or on a run that it starts; return the exit code of that run, 0 for browsing.

    After the app has closed, one line on stderr says how the run ended and what its id is.
    """
    if start is None:
        app = AeonApp(runs_dir)
        with _ended_by_signals(app):
            app.run()
        return app.return_code or 0
    from aeon_core.journal.writer import new_run_id

    runner = Runner(start, runs_dir / f"{new_run_id()}.jsonl")
    try:
        with screen_to_itself():
            app = AeonApp(runs_dir, runner)
            app.driver_class = _sized(app.driver_class)
            with _ended_by_signals(app), title_given_back():
                app.run()
    finally:
        _let_end(runner)
    sys.stderr.write(f"{runner.outcome()}\n")
    return runner.exit_code or app.return_code or 0


@contextlib.contextmanager
def _ended_by_signals(app: AeonApp) -> Iterator[None]:
    """Quit on SIGTERM. End the process on SIGHUP, and where the app is stuck.

    A terminal that is gone takes no output: the app would wait for it, and not end.
    """
    closed = threading.Event()
    hung_up: list[threading.Thread] = []

    def watch(number: int) -> None:
        gone = number == signal.SIGHUP
        if app.runner is not None:
            app.runner.abort()
            app.runner.wait(HANGUP_SECONDS if gone else None)
        if gone or not closed.wait(ABORT_SECONDS):
            os._exit(128 + number)

    def end(number: int, _: FrameType | None) -> None:
        watcher = threading.Thread(target=watch, args=(number,), name="aeon-end", daemon=True)
        if number == signal.SIGHUP:
            hung_up.append(watcher)
        else:
            app.quit_soon()
        watcher.start()

    # Not the event loop's handlers: the loop may be the one that is stuck.
    with _handled(end, signal.SIGTERM, signal.SIGHUP):
        try:
            yield
        finally:
            closed.set()
            for watcher in hung_up:
                watcher.join()


@contextlib.contextmanager
def _handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:
        # Only the main thread takes signals.
        yield
        return
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _let_end(runner: Runner) -> None:
    """Abort the run and wait for its end: a tool is never cut, but by the person (or a termination) that interrupts."""
    if not runner.running:
        return
    runner.abort()
    with contextlib.suppress(KeyboardInterrupt), _handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP):
        if not runner.wait(ENDING_SECONDS):
            sys.stderr.write(WAITING)
            sys.stderr.flush()
            runner.wait()


def _sized(driver: type[Driver]) -> type[Driver]:
    """Return a driver that asks the screen's own descriptor for its size: standard output is away meanwhile."""

    class Sized(driver):  # type: ignore[misc,valid-type]
        def _get_terminal_size(self) -> tuple[int, int]:
            try:
                return tuple(os.get_terminal_size(sys.__stderr__.fileno()))  # type: ignore[union-attr,return-value]
            except (AttributeError, OSError, ValueError):
                return super()._get_terminal_size()  # type: ignore[no-any-return]

    return Sized
