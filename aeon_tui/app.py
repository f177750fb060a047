"""The app: connects screens, sources and the runner, and ends cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Event, Key, Paste
from textual.notifications import Notify, SeverityLevel
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import AwaitMount
from textual.widgets import Input
from typing_extensions import override

from aeon_themes import fallback_variables, readable_variables
from aeon_tui import messages
from aeon_tui.navigation import COPY_OR_QUIT, Navigation
from aeon_tui.platform.background_tasks import NOTICE_SECONDS
from aeon_tui.platform.stdio_capture import reserve_terminal
from aeon_tui.platform.terminal import is_served, notification, pipe_to_itself, sized, suspend, title, title_given_back
from aeon_tui.run_actions import RunActions
from aeon_tui.screens.item_actions import ItemActions
from aeon_tui.session_monitor import SessionMonitor
from aeon_tui.sessions.session import ABORT_SECONDS, ended_by_signals, let_end
from aeon_tui.settings import DEFAULT_THEME, THEMES, Today, UserSettings, add_own_themes, add_themes, open_with_theme
from aeon_widgets.keys import key_after_escape, key_of
from aeon_widgets.tally import TallyHeader
from aeon_widgets.text_fields import FeedbackField

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.theme import Theme

    from aeon_core.config.keys import AppSettings
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.trust import ProjectTrust
    from aeon_core.judge.agreement import LabelledRuns
    from aeon_tui.sessions.run_jobs import RunnerJob
    from aeon_tui.sessions.runner import AnyRunner

_MOST_NOTICES = 3


def todays_config() -> LoadedConfig:
    """Return the configuration of all layers except the command line's. Raises UsageError."""
    from aeon_core.config.loading import load_config

    return load_config()


def palette_provider() -> type[Provider]:
    """Return the provider of the palette's commands, loaded when the palette opens."""
    from aeon_tui.commands import PaletteProvider

    return PaletteProvider


class AeonApp(Navigation):
    """Browses runs, and shows the one that it was started with. `today` returns the current configuration."""

    TITLE = "aeon"
    SELECT_AUTO_SCROLL_SPEED = 20.0  # lines a second: three times as many rush past in a pane of a few rows
    theme: Reactive[str] = Reactive(DEFAULT_THEME)
    COMMANDS: ClassVar = {palette_provider}
    HELP_TITLE = "Everywhere"
    # Textual dims muted text twice, which is unreadable in some themes.
    # Notifications are at the top, since the choices of a question are at the bottom, and only as wide as their text.
    CSS = """
    VerticalScroll, OptionList, TextArea { scrollbar-size-vertical: 1; }
    CommandList > .option-list--option-highlighted { background: $block-cursor-background; }
    CommandPalette > .command-palette--help-text { text-style: not bold; }
    /* Notices would cover its lines; they are shown again when it closes. */
    CommandPalette Toast { display: none; }
    ToastRack { dock: top; align: right top; margin: 2 0 0 0; }
    Toast { padding: 0 1; width: auto; max-width: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "next_decision", "Decide", tooltip="Go to what waits for a decision", id="app.next_decision"),
        Binding("b", "next_session", "Next run", tooltip="Among those in this app", id="app.next_session"),
        Binding("q", "quit", "Quit", id="app.quit"),
        Binding("ctrl+q", "quit", "Quit", show=False, id="app.quit_anywhere"),
        COPY_OR_QUIT,
        Binding("question_mark", "keys", "Help", id="app.keys"),
        Binding("K", "edit_keys", "Change keys", show=False, id="app.edit_keys"),
        Binding("comma", "settings", "Settings", show=False, id="app.settings"),
        Binding("s", "new_run", "New run", show=False, id="app.new_run"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, tooltip="fg brings it back", id="app.suspend"),
        Binding("y", "copy_item", "Copy", show=False, tooltip="The focused item", id="app.copy_item"),
        Binding("Y", "copy_run_id", "Copy run id", show=False, id="app.copy_run_id"),
        Binding("o", "open_item", "Open in the pager", show=False, tooltip="The focused item", id="app.open_item"),
        Binding("O", "open_item(True)", "Open in the editor", show=False, id="app.edit_item"),
        Binding("ctrl+o", "open_journal", "Open a journal", show=False, tooltip="By its path", id="app.open_journal"),
        Binding("x", "export", "Export", show=False, tooltip="Write the run's report to a file", id="app.export"),
        Binding("ctrl+p", "command_palette", "Palette", show=False, id="app.palette"),
    ]

    def __init__(self, runs_dir: Path, runner: AnyRunner | None = None, today: Today = todays_config) -> None:
        super().__init__()
        self.runs_dir = runs_dir
        self.monitor = SessionMonitor(self)
        if runner is not None:
            self.first_screen = self.session_screen(runner)
        self.actions = RunActions(self, today)
        self.items = ItemActions(self)
        self.untrusted: ProjectTrust | None = None
        """What the folder asks for, if the user is asked about it at the start."""
        add_themes(self)
        self.user_settings = UserSettings(self, self.today)
        open_with_theme(self, self.user_settings.configured)
        self._quitting = False
        self._running_loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def labelled_runs(self) -> LabelledRuns:
        """The labelled passes of the runs directory, cached while their journals do not change."""
        from aeon_core.judge.agreement import LabelledRuns

        return LabelledRuns(self.runs_dir)

    def apply_settings(self, settings: AppSettings) -> None:
        """Apply the app's settings from a configuration, before the app opens."""
        self.user_settings.configured, self.user_settings.known = settings, True
        open_with_theme(self, settings)

    @override
    def get_theme(self, theme_name: str) -> Theme | None:
        """Return a theme by name, Aeon's own even unregistered, so that the stylesheet is built only once."""
        return super().get_theme(theme_name) or THEMES.get(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return our widgets' variables for a theme that does not define them."""
        return fallback_variables(self.current_theme)

    @override
    def get_css_variables(self) -> dict[str, str]:
        return {**super().get_css_variables(), **readable_variables(self.current_theme)}

    def get_default_screen(self) -> Screen[None]:
        """Return the run that was started, or the list of runs."""
        if self.first_screen is not None:
            return self.first_screen
        from aeon_tui.screens.browser.screen import BrowserScreen

        return BrowserScreen(self.runs_dir)

    @override
    def notify(self, message: str, *, title: str = "", severity: SeverityLevel = "information", **options: Any) -> None:
        """Show a notice, titled with its severity, which colour alone would not convey."""
        named = {"information": title, "warning": f"⚠ {title or 'Warning'}", "error": f"✖ {title or 'Error'}"}
        super().notify(message, title=named[severity], severity=severity, **options)

    def on_notify(self, event: Notify) -> None:
        """Keep a repeated notice only once, and only the last few: they cover the screen."""
        same = [each for each in self._notifications if each.message == event.notification.message]
        for each in same or list(self._notifications)[: 1 - _MOST_NOTICES]:
            del self._notifications[each]

    @override
    async def on_event(self, event: Event) -> None:
        """Offer a key to the screen's question first, if there is one: it may come too early for it."""
        if isinstance(event, (Key, Paste)) and not event.is_forwarded and self.screen_stack:
            if not self.screen.is_mounted:
                await AwaitMount(self.screen, [self.screen])  # its actions need its widgets
            if isinstance(event, Key):
                event = await self._without_escape(event)
            admits = getattr(self.screen, "admits", None)
            if admits is not None and not admits(event):
                return
        await super().on_event(event)

    async def _without_escape(self, event: Key) -> Key:
        """Return the key that is to be handled.

        A terminal delivers Escape and another key in quick succession as one. If a question is
        behind the top screen and that key opens its field, Escape is handled here first.
        """
        key = key_after_escape(event)
        behind = (getattr(screen, "asking", None) for screen in self.screen_stack[:-1])
        if not key or not any(asking is not None and asking.opens_field(key) for asking in behind):
            return event
        if (escape := self.screen.active_bindings.get("escape")) is not None:
            await self.run_action(escape.binding.action, escape.node)
        single = Key(key, event.character)
        single.time = event.time
        return single

    def on_key(self, event: Key) -> None:
        """Add a letter that reaches this point while a line is being typed to that line.

        It was typed before the key ahead of it had opened the line: as a key, it could decide something.
        """
        if isinstance(self.focused, Input | FeedbackField) and event.is_printable and event.character:
            event.prevent_default()
            self.focused.insert_text_at_cursor(event.character)

    def on_ready(self) -> None:
        self._running_loop = asyncio.get_running_loop()
        # Objects of the start stay alive: the collector can skip them while keys wait.
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        self.monitor.begin()
        for session in self.sessions.all:
            self.start_session(session)
        if self.untrusted is not None:
            self.actions.ask_for_trust(self.untrusted, lambda: None, quits=True)
        if self.first_notice:
            self.notify(self.first_notice, timeout=NOTICE_SECONDS, markup=False)
        self.run_worker(self._read_own_settings, thread=True, group="themes")

    def _read_own_settings(self) -> None:
        add_own_themes(self, self.user_settings.configured)
        self.user_settings.apply_keys()

    def today(self) -> LoadedConfig:
        """Return the current configuration of all layers. Reads files, so call it on a thread. Raises UsageError."""
        return self.actions.today()

    def on_show_runs(self) -> None:
        self.show_browser()

    def on_open_journal(self, message: messages.OpenJournal) -> None:
        self.open_journal(message.path, message.seq)

    def on_compare_runs(self, message: messages.CompareRuns) -> None:
        if message.right is not None:
            self.compare_runs(message.left, message.right)
        else:
            self.action_compare()

    def on_resume_run(self, message: messages.ResumeRun) -> None:
        self.actions.resume(message.path)

    def on_delete_run(self, message: messages.DeleteRun) -> None:
        self.actions.delete(message.run, message.forks, message.then)

    def on_start(self, message: messages.Start) -> None:
        self._answer(message.answered, partial(self.actions.start, message.request))

    def on_fork_workflow(self, message: messages.ForkWorkflow) -> None:
        self._answer(message.answered, partial(self.actions.fork_workflow, message))

    def on_keep_draft(self, message: messages.KeepDraft) -> None:
        self.actions.draft = message.form

    def on_trust_folder(self, message: messages.TrustFolder) -> None:
        self.actions.trust_folder(message.then)

    def on_revoke_trust(self, message: messages.RevokeTrust) -> None:
        self.actions.revoke_trust(message.then)

    def on_title_terminal(self, message: messages.TitleTerminal) -> None:
        self.update_terminal(message.text, urgent=message.urgent)

    def _answer(self, answered: messages.Answered, start: Callable[[], str | None]) -> None:
        """Start something on a thread, and reply with the reason if it fails."""
        self.run_worker(
            lambda: self.call_from_thread(answered, start()), thread=True, group="start", exit_on_error=False
        )

    @override
    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the palette's commands besides actions with keys."""
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)
        yield SystemCommand("Demo", "Start the guided run on the simulated model; needs no key", self.action_demo)
        yield SystemCommand("Trust this folder", "What its settings ask for", self.actions.trust_folder)
        yield SystemCommand("Revoke trust", "Stop trusting this folder", self.actions.revoke_trust)
        if not self._is_open("new_workflow"):
            yield SystemCommand("New workflow", "Thirteen agents, with gates between them", self.actions.new_workflow)

    def _is_open(self, action: str) -> bool:
        """Return whether the screen that an action opens is open, so that it would do nothing."""
        return any(getattr(each, "OPENED_BY", "") == action for each in self.screen_stack)

    @override
    def action_command_palette(self) -> None:
        from aeon_tui.commands import PaletteScreen

        self.push_screen(PaletteScreen())

    @override
    def action_change_theme(self) -> None:
        from aeon_tui.commands import choose_theme

        choose_theme(self)

    @work(exclusive=True, group="compare")
    async def action_compare(self) -> None:
        """Ask which run to compare with the chosen one; report if there is no other."""
        from aeon_tui.commands import choose_other_run, comparable, newest_runs
        from aeon_tui.screens.browser.screen import BrowserScreen

        asked_on, chosen = self.screen, getattr(self.shown_screen, "chosen_run", None)
        others = comparable(await newest_runs(self), chosen)
        if others and chosen is not None and self.screen is asked_on:
            choose_other_run(self, chosen, others)
        elif not others:
            new, fork = key_of(self, "app.new_run"), key_of(self, "run.fork", BrowserScreen)
            self.clear_notifications()
            self.notify(
                f"There is no other run to compare with: {new} starts one, {fork} forks this one.", markup=False
            )

    def action_demo(self) -> None:
        self.actions.demo()

    async def action_new_run(self) -> None:
        await self.actions.new_run()

    def _past_run(self, screen: Screen[object], what: str) -> Path | None:
        """Return the journal that a screen's action applies to, None if the action does not apply to its run."""
        chosen = getattr(screen, "chosen_run", None)
        session, offers = self.sessions.of(chosen), getattr(screen, "offers", None)
        continues_here = session is not None and session.running
        impossible = (continues_here and what != "fork") or (offers is not None and not offers(what))
        return None if impossible else chosen

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "past_run":
            return self._past_run(self.shown_screen, str(parameters[0])) is not None
        if action in ("copy_item", "open_item"):
            return self.items.item(self.shown_screen) is not None
        if action in ("compare", "copy_run_id", "export"):
            return getattr(self.shown_screen, "chosen_run", None) is not None
        if action in ("settings", "edit_keys", "new_run"):
            return not self._is_open(action)
        if action == "next_decision":
            return self.monitor.has_next
        if action == "next_session":
            return self.monitor.next_session is not None
        return super().check_action(action, parameters)

    def action_past_run(self, what: Literal["resume", "replay", "fork", "label"]) -> None:
        """Do something with the chosen run."""
        screen = self.shown_screen
        if (run := self._past_run(screen, what)) is None:
            return
        if what == "fork":
            self.actions.fork(run, getattr(screen, "fork_start", None))
        else:
            getattr(self.actions, what)(run)

    def action_next_decision(self) -> None:
        """Go to the next run that waits for a decision."""
        self.monitor.show_next_decision()

    def action_next_session(self) -> None:
        if (session := self.monitor.next_session) is not None:
            self.show_session(session)

    def on_session_changed(self) -> None:
        self.monitor.look()

    def on_tally_header_wanted(self, event: TallyHeader.Wanted) -> None:
        event.header.tally = self.monitor.tally()

    @override
    def action_suspend_process(self) -> None:
        """Suspend the app until `fg`, or report why that is impossible."""
        if problem := suspend(self, len(self.sessions.active)):
            self.notify(problem, severity="warning", markup=False)

    def action_copy_item(self) -> None:
        self.items.copy(self.shown_screen)

    def action_copy_run_id(self) -> None:
        if (run := getattr(self.shown_screen, "chosen_run", None)) is not None:
            self.items.copy_run_id(run)

    def action_open_journal(self) -> None:
        self.actions.open_journal()

    def action_export(self) -> None:
        if (run := getattr(self.shown_screen, "chosen_run", None)) is not None:
            self.actions.export(run)

    def action_open_item(self, editor: bool = False) -> None:
        """Open the item of the focused pane in the pager or the editor."""
        self.items.open(self.shown_screen, editor=editor)

    async def action_quit(self) -> None:
        """Quit, after one question if anything is running, since that aborts it."""
        if (active := self.sessions.active) and not self._quitting:
            from aeon_tui.screens.dialogs import QuitDialog
            from aeon_tui.screens.run.screen import RunScreen

            running = [(each.job.what, each.job.task) for each in active]
            self.push_screen(QuitDialog(running, key_of(self, "run.resume", RunScreen)), self._quit_if)
        else:
            await self.abort_and_quit()

    async def _quit_if(self, yes: bool | None) -> None:
        if yes:
            await self.abort_and_quit()

    async def abort_and_quit(self) -> None:
        """Quit, after aborting and journaling what is running. The second time, quit immediately."""
        running = self.sessions.running
        if not running or self._quitting:
            self.exit()
            return
        self._quitting = True
        self.sessions.abort()
        self.notify("Aborting the run …" if len(running) == 1 else f"Aborting {len(running)} runs …", markup=False)
        # Not here: the next key must be handled, and the notification drawn.
        self.run_worker(self._exit_when_ended(), exit_on_error=False)

    async def _exit_when_ended(self) -> None:
        deadline = time.monotonic() + ABORT_SECONDS
        while self.sessions.running and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self.exit()

    def update_terminal(self, text: str, *, urgent: bool = False) -> None:
        """Set the terminal's title; if urgent, also notify a user who looks elsewhere."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(title(text))
            if urgent and not self.app_focus:
                self._driver.write(notification(text))

    def quit_soon(self) -> None:
        """Quit; may be called from any thread, and from a signal handler."""
        if self._running_loop is not None:
            with contextlib.suppress(RuntimeError):
                self._running_loop.call_soon_threadsafe(lambda: self.run_worker(self.abort_and_quit()))


def run_app(
    runs_dir: Path,
    job: RunnerJob | None = None,
    today: Today = todays_config,
    prepare: Callable[[AeonApp], None] | None = None,
) -> int:
    """Open the app on the list of runs, on a job that it starts, or as `prepare` sets it up; return the exit code.

    That is the job's, and 0 for browsing. After the app has closed, a line on stderr for each of its runs reports
    its id and how it ended.
    """
    runner = None
    if job is not None:
        from aeon_tui.sessions.runner import Runner

        runner = Runner(job, job.journal_in(runs_dir))
    app = AeonApp(runs_dir, runner, today)
    if prepare is not None:
        prepare(app)
    if not app.user_settings.known:
        app.apply_settings(today().app)
    try:
        with pipe_to_itself() if is_served() else reserve_terminal():
            app.driver_class = sized(app.driver_class)
            with ended_by_signals(app), title_given_back():
                app.run()
    finally:
        let_end(app.sessions)
    for each in app.sessions.all:
        sys.stderr.write(f"{each.outcome()}\n")
    return (runner.exit_code if runner is not None else 0) or app.return_code or 0
