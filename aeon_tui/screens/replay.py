"""A past run shown once more: the run's screen, with the keys of a player."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.widgets import Input
from typing_extensions import override

from aeon_tui.replayed import Check, ReplayFeed, speed_words
from aeon_tui.screens.run import RunScreen

FINDING_SECONDS = 30


class ReplayScreen(RunScreen):
    """Shows a journal at its own pace. Nothing is called, and nothing is written."""

    HELP_TITLE = "Replay"
    # Before a pane's own keys: what is pressed here goes for the replay.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause", priority=True),
        Binding("plus,equals_sign,greater_than_sign", "faster", "Faster", key_display="+", priority=True),
        Binding("minus,less_than_sign", "slower", "Slower", key_display="-", priority=True),
        Binding("full_stop", "step", "One record", key_display=".", priority=True),
        Binding("end", "jump_to_end", "To the end", show=False, priority=True),
    ]

    def __init__(self, feed: ReplayFeed, check: Check | None = None) -> None:
        super().__init__(feed)
        self._replay = feed
        self._check = check
        self._finding_told = False

    @property
    def chosen_run(self) -> Path | None:
        """The journal once it has been shown to its end: until then the keys are the player's."""
        return super().chosen_run if self._replay.ended else None

    @property
    def status(self) -> str:
        """The recorded run's status once it is shown to its end; before that, what the player does."""
        if self._replay.ended or self._replay.error is not None:
            return super().status
        return "paused" if self._replay.paused else "replaying"

    @property
    def note(self) -> str:
        """That this is a past run, how fast it goes by, and whether Aeon does something else today."""
        differs = self._check.differs_at if self._check is not None else None
        what = "of a past run" if differs is None else f"· differs from {differs} on"
        return f"REPLAY {speed_words(self._replay.speed)} {what}"

    @override
    def tick(self) -> None:
        super().tick()
        if self._check is not None and self._check.finding is not None and not self._finding_told:
            self._finding_told = True
            if self._replay.error is not None:
                return  # which has been told
            self.notify(self._check.finding, severity="warning", timeout=FINDING_SECONDS, markup=False)

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("pause", "faster", "slower", "step", "jump_to_end"):
            return not self._replay.ended and not isinstance(self.focused, Input)
        return super().check_action(action, parameters)

    def palette(self) -> Iterator[SystemCommand]:
        """Yield the palette's commands for the player."""
        if not self._replay.ended:
            yield SystemCommand("Pause the replay, or go on", "Stop at this record", self.action_pause)
            yield SystemCommand("Replay faster", "Take the next higher speed", self.action_faster)
            yield SystemCommand("Replay slower", "Take the next lower speed", self.action_slower)
            yield SystemCommand("Replay one record", "Pause, and show one more", self.action_step)
            yield SystemCommand("Replay to the end", "Show all the rest at once", self.action_jump_to_end)

    def action_pause(self) -> None:
        """Pause, or go on."""
        self._replay.toggle()

    def action_faster(self) -> None:
        """Take the next higher speed."""
        self._replay.faster()

    def action_slower(self) -> None:
        """Take the next lower speed."""
        self._replay.slower()

    def action_step(self) -> None:
        """Pause, and show one more record."""
        self._replay.step()

    def action_jump_to_end(self) -> None:
        """Show all the rest at once."""
        self._replay.jump_to_end()


def replay_screen(path: Path, speed: float = 1.0) -> ReplayScreen:
    """Return the screen that shows a run once more, and checks meanwhile whether Aeon still does the same."""
    return ReplayScreen(ReplayFeed(path, speed), Check(path))
