"""Navigation: which screen the app shows, and which runs and workflows it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.screen import Screen
from typing_extensions import override

from aeon_tui.messages import SessionChanged
from aeon_tui.platform.background_tasks import NOTICE_SECONDS
from aeon_tui.sessions.session import SessionList

if TYPE_CHECKING:
    from aeon_core.journal.listing import Awaited
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.sessions.run_jobs import RunnerJob
    from aeon_tui.sessions.runner import AnyRunner
    from aeon_tui.settings import UserSettings
    from aeon_tui.sources.base import RecordSource
    from aeon_tui.sources.run_index import RunIndex

COPY_OR_QUIT = Binding("ctrl+c", "app.quit", "Copy, or quit", show=False, id="app.copy")
"""The screen's own binding of the key comes first, and copies if text is selected."""


class Navigation(App[None]):
    """Switches between screens. Escape always leads to the list of runs."""

    runs_dir: Path
    first_screen: Screen[None] | None = None
    """Set this to open on another screen."""

    first_notice = ""
    """The notice shown at the start."""
    next_notice = ""
    """A notice shown once with the next run, which it concerns."""
    user_settings: UserSettings

    _listing: RunIndex | None = None

    def __init__(self) -> None:
        super().__init__()
        self.sessions = SessionList()
        """All runs and workflows that this app has started."""
        self._session_screens: dict[AnyRunner, Screen[None]] = {}
        """Screens kept while their sessions run, on the stack or not."""

    def listed_runs(self) -> Sequence[RunSummary]:
        """Return the runs, newest first. Reads files, so call it on a thread. Raises UsageError."""
        return self._index().runs()

    @property
    def unlisted_files(self) -> Sequence[str]:
        """Names of the files in the runs directory that the last `listed_runs` left out: no journals, or damaged."""
        return self._listing.unlisted if self._listing is not None else []

    def live_runs(self) -> Sequence[RunSummary]:
        """Return the live runs, updated every few seconds. Otherwise like `listed_runs`."""
        return self._index().live()

    def _index(self) -> RunIndex:
        if self._listing is None:
            from aeon_tui.sources.run_index import RunIndex

            self._listing = RunIndex(self.runs_dir)
        return self._listing

    @property
    @override
    def _background_screens(self) -> list[Screen[Any]]:
        """None below an opaque screen: Textual would repaint them through it, and lose what else is due there."""
        return super()._background_screens if self.screen.styles.background.a < 1 else []

    @property
    def shown_screen(self) -> Screen[object]:
        """The screen that the user works with: the one below open dialogs and the palette."""
        return next(each for each in reversed(self.screen_stack) if not each.is_modal)

    def open_journal(self, path: Path, seq: int | None = None) -> None:
        """Show the run of a journal, followed live if another process writes it; at the record `seq` if given."""
        self._leave_for(lambda: self._open_journal(path, seq))

    @work(thread=True, exclusive=True, group="open")
    def _open_journal(self, path: Path, seq: int | None) -> None:
        from aeon_tui.sources.journal import source_of
        from aeon_tui.sources.run_index import is_workflow

        session = self.sessions.of(path)
        if session is not None and session in self._session_screens:
            self.call_from_thread(self._show_session, session, seq)
        elif is_workflow(path):
            self.call_from_thread(lambda: self.show_run(_transcript_screen(path)))
        else:
            self.call_from_thread(self._show_feed, source_of(path, self.runs_dir), seq)

    def open_on_transcript(self, path: Path) -> None:
        """Open on a workflow of another process, or a past one."""
        self.first_screen = _transcript_screen(path)

    def _show_feed(self, source: RecordSource, seq: int | None) -> None:
        from aeon_tui.screens.run.screen import RunScreen

        screen = RunScreen(source)
        self.show_run(screen)
        if seq is not None:
            screen.show_moment(seq)

    def open_on_watched(self, awaited: Awaited) -> None:
        """Open on a run of another process."""
        from aeon_tui.screens.run.screen import RunScreen
        from aeon_tui.sources.journal import FollowedSource

        self.first_screen = RunScreen(FollowedSource(awaited))

    def session_on(self, screen: Screen[Any]) -> AnyRunner | None:
        """Return the session of this app that a screen shows; None if it shows something else."""
        return next((each for each, shown in self._session_screens.items() if shown is screen), None)

    def show_session(self, session: AnyRunner) -> None:
        """Show a session of this app as its screen was left."""
        self._leave_for(lambda: self._show_session(session))

    def _leave_for(self, show: Callable[[], object]) -> None:
        """Show another run; first ask whether to discard feedback that would be lost with the screen of this one."""
        from aeon_tui.screens.editor import ask_to_discard
        from aeon_tui.screens.pane_screen import PaneScreen

        left = self.shown_screen
        if isinstance(left, PaneScreen) and left.would_lose_feedback:
            ask_to_discard(left, show)
        else:
            show()

    def _show_session(self, session: AnyRunner, seq: int | None = None) -> None:
        from aeon_tui.screens.run.screen import RunScreen

        screen = self._session_screens.get(session)
        if screen is None:
            if session.journal is not None:
                self._open_journal(session.journal, seq)
            return
        self.show_run(screen, closes=False)
        if seq is not None and isinstance(screen, RunScreen):
            screen.show_moment(seq)

    def show_run(self, shown: Screen[None], *, closes: bool = True) -> None:
        """Show a run, in place of the one on screen if there is one.

        Screens above that one are closed; otherwise they are back when the run is left.
        """
        from aeon_tui.screens.pane_screen import PaneScreen

        self.clear_notifications()
        if closes:
            self._close_forms()
        left = self.screen
        # The screen that the app opened on stays: nothing can replace it.
        if left is not shown:
            # A screen from which a comparison was opened is below it on the stack, too.
            if self.is_screen_installed(shown) and shown not in self.screen_stack:
                self.uninstall_screen(shown)
            if isinstance(left, PaneScreen) and len(self.screen_stack) > 1:
                self._keep_or_drop(left)
                self.switch_screen(shown)
            else:
                self.push_screen(shown)
        if self.next_notice:
            self.notify(self.next_notice, timeout=NOTICE_SECONDS, markup=False)
            self.next_notice = ""

    def _close_forms(self) -> None:
        """Close the screens above the run, the list or the comparison that they were opened from."""
        from aeon_tui.screens.browser.screen import BrowserScreen
        from aeon_tui.screens.compare import CompareScreen
        from aeon_tui.screens.pane_screen import PaneScreen

        places = (PaneScreen, BrowserScreen, CompareScreen)
        while len(self.screen_stack) > 1 and not isinstance(self.screen, places):
            self.pop_screen()

    def show_browser(self) -> None:
        """Go back to the list of runs, or to where the run was opened. The run continues."""
        from aeon_tui.screens.browser.screen import BrowserScreen
        from aeon_tui.screens.pane_screen import PaneScreen

        # Notifications about that run would hide this list.
        self.clear_notifications()
        left, below = self.screen, self.screen_stack[-2:-1]
        if not below:
            self.push_screen(BrowserScreen(self.runs_dir))
            return
        self._keep_or_drop(left)
        if isinstance(below[0], PaneScreen):
            self.switch_screen(BrowserScreen(self.runs_dir))
        else:
            self.pop_screen()

    def _keep_or_drop(self, left: Screen[Any]) -> None:
        """Keep the screen of a session until the user has seen its end.

        Called before it leaves the stack, since Textual removes screens that are neither on the stack nor installed.
        """
        session = self.session_on(left)
        if session is not None and self.sessions.has_reported(session):
            del self._session_screens[session]
        elif session is not None and not self.is_screen_installed(left):
            self.install_screen(left, f"session-{id(session)}")

    def compare_runs(self, a: Path, b: Path, side: int = 0) -> None:
        """Show two runs side by side; `side` is the chosen one."""
        from aeon_tui.screens.compare import CompareScreen

        session = self.sessions.of(b)
        self.push_screen(CompareScreen(a, b, side, lambda: session is not None and session.active and not b.exists()))

    def start_job(self, job: RunnerJob) -> Path | None:
        """Run a job, and show it unless the user keeps unsent feedback on screen; return its journal."""
        from aeon_tui.sessions.runner import Runner

        runner: AnyRunner = Runner(job, job.journal_in(self.runs_dir))
        screen = self.session_screen(runner)
        self._close_forms()
        self._leave_for(lambda: self.show_run(screen))
        self.start_session(runner)
        return runner.journal

    def session_screen(self, session: AnyRunner) -> Screen[None]:
        """Return the screen of a job that this app runs or will run."""
        screen: Screen[None]
        if session.job.what == "workflow":
            from aeon_tui.screens.workflow.screen import WorkflowScreen

            screen = WorkflowScreen(session.source, session)
        else:
            from aeon_tui.screens.run.screen import RunScreen

            screen = RunScreen(session.source, session)
        self.sessions.all.append(session)
        self._session_screens[session] = screen
        return screen

    def start_session(self, session: AnyRunner) -> None:
        """Start a session, which runs beside all others."""
        session.listen(lambda: self.post_message(SessionChanged()))
        session.start()
        self.post_message(SessionChanged())
        # Actions on past runs do not apply to this one yet.
        self.screen.refresh_bindings()

    def note_record(self, path: Path, record: dict[str, Any]) -> None:
        """Show a record that this app has written to the journal of an ended run, if that run is open."""
        for screen in self.screen_stack:
            if getattr(screen, "journal", None) == path and (note := getattr(screen, "note_record", None)) is not None:
                note(record)

    def action_keys(self) -> None:
        from aeon_tui.screens.keys import SIGNS, KeysScreen

        if not isinstance(self.screen, KeysScreen):
            bindings = {**self.screen.active_bindings, "ctrl+c": ActiveBinding(self, COPY_OR_QUIT, True, "")}
            self.push_screen(KeysScreen(bindings, getattr(self.screen, "HELP_SIGNS", SIGNS)))

    async def action_settings(self) -> None:
        from aeon_tui.screens.settings import SettingsScreen

        # Awaited, because the next key is meant for the requested screen.
        await self.push_screen(SettingsScreen())

    async def action_edit_keys(self) -> None:
        """Show all keys, to rebind actions."""
        from aeon_tui.screens.keys import KeySettingsScreen

        await self.push_screen(KeySettingsScreen())


def _transcript_screen(path: Path) -> Screen[None]:
    from aeon_tui.screens.workflow.screen import WorkflowScreen
    from aeon_tui.sources.workflow import follow_workflow

    return WorkflowScreen(follow_workflow(path))
