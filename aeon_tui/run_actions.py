"""What can be done with a past run from the screens that show it: resume, replay, fork."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.binding import Binding, BindingType

from aeon_core.errors import AeonError

if TYPE_CHECKING:
    from aeon_core.config_files import LoadedConfig
    from aeon_tui.app import AeonApp
    from aeon_tui.forked import ForkRun
    from aeon_tui.resumed import ResumeRun
    from aeon_tui.screens.fork import ForkAnswer, Parent

RUN_ACTIONS: list[BindingType] = [
    Binding("R", "app.past_run('resume')", "Resume"),
    Binding("P", "app.past_run('replay')", "Replay"),
    Binding("F", "app.past_run('fork')", "Fork"),
]
"""The keys of a screen that has a `chosen_run`."""
PROBLEM_SECONDS = 20
Today = Callable[[], "LoadedConfig"]
"""Gives the configuration of all layers as it is now."""


@dataclass
class RunActions:
    """Does what a person asks for with a run. Journals are read on a thread; what goes wrong is a notification."""

    app: AeonApp
    today: Today

    def resume(self, path: Path) -> None:
        """Go on with a run, and show it."""
        if not self._busy():
            self._on_thread(partial(self._resume, path))

    def replay(self, path: Path) -> None:
        """Show a run once more from its journal."""
        self._on_thread(partial(self._replay, path))

    def fork(self, path: Path) -> None:
        """Ask from which pass on and how, and run the fork."""
        if not self._busy():
            self._on_thread(partial(self._ask_for_fork, path))

    def commands(self, path: Path) -> Iterator[SystemCommand]:
        """Yield the palette's commands for a run."""
        yield SystemCommand("Resume", "Go on with this run where it was cut off", partial(self.resume, path))
        yield SystemCommand("Replay", "Show this run once more from its journal", partial(self.replay, path))
        yield SystemCommand("Fork", "Start a new run where a pass of this one started", partial(self.fork, path))

    def _busy(self) -> bool:
        """Say so where a run of this app goes on, and return whether one does."""
        runner = self.app.runner
        if runner is None or not runner.running:
            return False
        self._say(f"The run {runner.run_id} goes on in this app; wait for its end, or start another in a new terminal.")
        return True

    def _on_thread(self, work: Callable[[], None]) -> None:
        self.app.run_worker(lambda: self._told(work), thread=True, exit_on_error=False, group="actions")

    def _told(self, work: Callable[[], None]) -> None:
        try:
            work()
        except AeonError as error:
            self._say_from_thread(error.message)
        except OSError as error:
            self._say_from_thread(f"{error.filename}: {error.strerror}" if error.filename else str(error))

    def _resume(self, path: Path) -> None:
        from aeon_core.journal.recovery import make_sure_nobody_writes
        from aeon_tui.resumed import ended_for_good, resumed

        if ended := ended_for_good(path):
            self._say_from_thread(f"{ended}; F forks it")
            return
        make_sure_nobody_writes(path)
        self._begin(resumed(path, self.today(), {}, in_app=True))

    def _replay(self, path: Path) -> None:
        from aeon_tui.replayed import make_sure_it_is_over
        from aeon_tui.screens.replay import replay_screen

        make_sure_it_is_over(path)
        self._in_app(lambda: self.app.show_run(replay_screen(path)))

    def _ask_for_fork(self, path: Path) -> None:
        from aeon_tui.screens.fork import ForkDialog, parent_of

        parent = parent_of(path)

        def ask() -> None:
            # The key may have been pressed more than once.
            if not isinstance(self.app.screen, ForkDialog):
                self.app.clear_notifications()
                self.app.push_screen(ForkDialog(parent), partial(self._fork, parent))

        self._in_app(ask)

    def _fork(self, parent: Parent, answer: ForkAnswer | None) -> None:
        if answer is not None and not self._busy():
            self._on_thread(lambda: self._begin_fork(parent, answer))

    def _begin_fork(self, parent: Parent, answer: ForkAnswer) -> None:
        from aeon_tui.forked import forked

        said: dict[str, Any] = {"runs_dir": self.app.runs_dir}
        if answer.model != parent.model:
            said["model"] = answer.model
        if answer.ttl != parent.ttl:
            said["ttl"] = answer.ttl
        self._begin(forked(parent.path, answer.pass_number, self.today(), said, in_app=True))

    def _begin(self, work: ResumeRun | ForkRun) -> None:
        work.prepare()
        self._in_app(lambda: self._start(work))

    def _start(self, work: ResumeRun | ForkRun) -> None:
        # Another one may have begun while this one was made ready.
        if not self._busy():
            self.app.start_work(work)
        elif work.tools is not None:
            work.tools.close()

    def _in_app(self, act: Callable[[], object]) -> None:
        # The app may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            self.app.call_from_thread(act)

    def _say_from_thread(self, text: str) -> None:
        self._in_app(lambda: self._say(text))

    def _say(self, text: str) -> None:
        # One at a time: several would hide the screen that they are about.
        self.app.clear_notifications()
        self.app.notify(text, severity="warning", timeout=PROBLEM_SECONDS, markup=False)
