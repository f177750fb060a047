"""The monitor of runs that are not on screen: how many there are, which wait, and which have ended."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widgets import Input, TextArea

from aeon_core.errors import AeonError
from aeon_tui.messages import TitleTerminal
from aeon_tui.navigation import Navigation
from aeon_tui.platform.background_tasks import NOTICE_SECONDS
from aeon_tui.sessions.session import SessionChange
from aeon_widgets.keys import key_of
from aeon_widgets.tally import ROOMY, Tally, TallyHeader
from aeon_widgets.text import fit, joined, one_line

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.sessions.runner import AnyRunner

ELSEWHERE_SECONDS = 3.0
"""Seconds between polls of the runs of other processes."""
_TASK_CELLS = 50
_WAITS = "waits for you"


class SessionMonitor:
    """Updates the tally of every header, notifies the user of events off screen, and navigates to them.

    Waiting runs form one queue: those of this app, longest wait first; those of other processes; then runs that
    have ended unseen.
    """

    def __init__(self, app: Navigation) -> None:
        self._app = app
        self._elsewhere: Sequence[RunSummary] = ()
        """The live runs of other processes, the oldest first."""
        self._waited: dict[str, str] | None = None
        """What each of them waited for at the last poll, by journal; None before the first."""
        self._unseen: list[AnyRunner] = []
        """Ended while something else was on screen."""
        self._shown: object = None

    def begin(self) -> None:
        """Start polling other processes, and watch changes of the screen. Call this on the app's loop."""
        self._app.set_interval(ELSEWHERE_SECONDS, self._look_elsewhere)
        self._app.screen_change_signal.subscribe(self._app, lambda _: self._app.call_later(self.look))
        self._look_elsewhere()

    def look(self) -> None:
        """Record changes, and notify the user."""
        if not self._app.screen_stack:
            return  # the app is ending
        here = self._app.session_on(self._app.shown_screen)
        for change in self._app.sessions.look():
            if change.session is not here:
                self._report_change(change)
        self._unseen = [each for each in self._unseen if each is not here and self._is_last(each)]
        self.show_tally()

    def _is_last(self, session: AnyRunner) -> bool:
        """Whether no process has continued the session's journal since."""
        return session.journal is None or self._app.sessions.of(session.journal) is session

    def _report_change(self, change: SessionChange) -> None:
        session = change.session
        if session.aborting:
            return
        if change.kind == "waits":
            self._notify(session.job.task, _WAITS)  # its panel rings the bell itself
            return
        self._unseen.append(session)
        self._app.bell()
        self._notify(session.job.task, session.status, failed=session.exit_code != 0)

    def _notify(self, task: str, words: str, *, failed: bool = False) -> None:
        task = fit(one_line(task), _TASK_CELLS)
        focused = self._app.focused
        typing = isinstance(focused, Input | TextArea) and focused.display
        # On the screen of a run, the same key may answer its question.
        may_answer = hasattr(self._app.shown_screen, "asking")
        shows = "" if typing or may_answer else f" · {key_of(self._app, 'app.next_decision')} shows it"
        self._app.notify(
            f"{joined(task, one_line(words, 300), by=': ')}{shows}",
            severity="warning" if failed else "information",
            timeout=NOTICE_SECONDS,
            markup=False,
        )
        self._app.post_message(TitleTerminal(f"aeon: {joined(words, task)}", urgent=True))

    def _look_elsewhere(self) -> None:
        self._app.run_worker(self._read_elsewhere, thread=True, exclusive=True, group="elsewhere", exit_on_error=False)

    def _read_elsewhere(self) -> None:
        found: Sequence[RunSummary] = []
        with contextlib.suppress(AeonError, OSError):  # the list itself reports what is wrong with the folder
            found = self._app.live_runs()
        with contextlib.suppress(RuntimeError):  # the app has ended
            self._app.call_from_thread(self._apply_elsewhere, found)

    def _apply_elsewhere(self, found: Sequence[RunSummary]) -> None:
        self._elsewhere = [each for each in reversed(found) if self._app.sessions.of(Path(each.path)) is None]
        now = {each.path: each.waits_for for each in self._elsewhere}
        before, self._waited = now if self._waited is None else self._waited, now
        if not self._app.screen_stack:
            return
        shown = _journal(self._app.shown_screen)
        tasks = [
            each.task
            for each in self._elsewhere
            if each.waits_for and before.get(each.path) != each.waits_for and Path(each.path) != shown
        ]
        if tasks:
            self._app.bell()
            self._notify(*((tasks[0], _WAITS) if len(tasks) == 1 else ("", f"{len(tasks)} runs wait for you")))
        self.show_tally()

    def tally(self) -> Tally:
        """Return the tally of this process and others; empty if the screen itself shows all of it."""
        if not self._app.screen_stack:
            return Tally()
        sessions, shown = self._app.sessions, self._app.shown_screen
        live = [*sessions.active, *(Path(each.path) for each in self._elsewhere)]
        if all(each in (self._app.session_on(shown), _journal(shown)) for each in live):
            return Tally()
        waiting = len(sessions.waiting) + len(self._waiting_elsewhere)
        return Tally(len(live) - waiting, waiting)

    @property
    def _waiting_elsewhere(self) -> list[Path]:
        return [Path(each.path) for each in self._elsewhere if each.waits_for]

    def show_tally(self) -> None:
        """Show the tally in the header of the screen, and the keys that lead to the runs that it counts."""
        tally = self.tally()
        shown = (tally, self.has_next, self.next_session is not None, self._app.screen)
        if shown == self._shown:
            return
        self._shown = shown
        for header in self._app.screen.query(TallyHeader):
            header.tally = tally
        self._app.screen.refresh_bindings()
        if not hasattr(self._app.shown_screen, "asking"):  # the screen of a run sets the terminal's title itself
            words = "".join(text for text, _ in tally.parts(ROOMY))
            self._app.post_message(TitleTerminal(f"aeon: {words}" if words else "aeon"))

    @property
    def has_next(self) -> bool:
        """Whether anything off screen needs a decision or a look."""
        return bool(self._queue())

    def _queue(self) -> list[AnyRunner | Path]:
        """Return the waiting runs other than the one on screen, in queue order after it."""
        shown = self._app.shown_screen
        here: AnyRunner | Path | None = self._app.session_on(shown) or _journal(shown)
        queue: list[AnyRunner | Path] = [*self._app.sessions.waiting, *self._waiting_elsewhere, *self._unseen]
        place = queue.index(here) + 1 if here in queue else 0
        return [each for each in queue[place:] + queue[:place] if each != here]

    def show_next_decision(self) -> None:
        """Go to the next waiting run; a screen's own question comes first, through the screen's own key."""
        from aeon_tui.screens.pane_screen import PaneScreen

        following = next(iter(self._queue()), None)
        if isinstance(following, Path):
            self._app.open_journal(following)
        elif following is not None:
            self._app.show_session(following)
            # A panel that is not there yet takes the focus itself.
            if isinstance(screen := self._app.screen, PaneScreen):
                screen.action_focus_question()

    @property
    def next_session(self) -> AnyRunner | None:
        """The session to switch to: the next that runs or has ended unseen; None if there is no other."""
        others = [each for each in self._app.sessions.all if each.active or each in self._unseen]
        here = self._app.session_on(self._app.shown_screen)
        sessions = self._app.sessions.all
        place = sessions.index(here) + 1 if here is not None else 0
        return next((each for each in sessions[place:] + sessions[:place] if each in others and each is not here), None)


def _journal(screen: Screen[object]) -> Path | None:
    """Return the journal of the run that a screen shows; a list shows none, whatever is selected."""
    return getattr(screen, "chosen_run", None) if hasattr(screen, "asking") else None
