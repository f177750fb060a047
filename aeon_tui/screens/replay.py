"""The replay of a past run or workflow: its screen with a player's keys."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input
from typing_extensions import override

from aeon_tui.screens.pane_screen import utc_now
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sources.replay import ReplayCheck, ReplaySource, speed_words
from aeon_tui.sources.run_index import is_workflow, lacks_journal
from aeon_tui.sources.workflow import WorkflowState

if TYPE_CHECKING:
    from aeon_tui.screens.pane_screen import PaneScreen
else:
    # Textual takes a screen's style sheet from its first base that is a screen, which must be the recorded one's.
    PaneScreen = object

FINDING_SECONDS = 30
_player = partial(Binding, priority=True)
# With priority over a pane's own keys: these keys control the replay.
_PLAYER_KEYS: list[BindingType] = [
    _player("space", "pause", "Pause", tooltip="Pause or continue", id="replay.pause"),
    _player("plus,equals_sign", "faster", "Faster", id="replay.faster"),
    _player("minus", "slower", "Slower", id="replay.slower"),
    _player("full_stop", "step", "Next record", tooltip="Show the next one", id="replay.step"),
    _player("end", "jump_to_end", "To the end", show=False, id="replay.end"),
]


class ReplayPlayer(PaneScreen):
    """Shows a journal at its own pace. Nothing is called, and nothing is written."""

    HELP_TITLE = "Replay"

    def __init__(self, source: ReplaySource[Any], check: ReplayCheck | None = None, **options: Any) -> None:
        super().__init__(source, **options)
        self._replay = source
        self._check = check
        self._finding_reported = False

    @property
    def chosen_run(self) -> Path | None:
        """The journal once the replay has ended: until then the keys belong to the player."""
        return super().chosen_run if self._replay.ended else None

    @property
    def status(self) -> str:
        """The recorded run's status once the replay has ended; until then, the player's state."""
        if self._replay.ended or self._replay.error is not None:
            return super().status  # type: ignore[safe-super]  # the recorded one's
        return "paused" if self._replay.paused else "replaying"

    @property
    def note(self) -> str:
        """Marks this as a replay, with its speed and the record from which Aeon now differs."""
        differs = self._check.differs_at if self._check is not None else None
        what = "" if differs is None else f" · differs from record {differs} on"
        return f"REPLAY {speed_words(self._replay.speed)}{what}"

    @override
    def show_rest(self) -> None:
        super().show_rest()
        if self._check is not None and self._check.finding is not None and not self._finding_reported:
            self._finding_reported = True
            if self._replay.error is not None:
                return  # which has been reported
            self.notify(self._check.finding, severity="warning", timeout=FINDING_SECONDS, markup=False)

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("pause", "faster", "slower", "step", "jump_to_end"):
            return not self._replay.ended and not isinstance(self.focused, Input)
        return super().check_action(action, parameters)

    def action_pause(self) -> None:
        self._replay.toggle()

    def action_faster(self) -> None:
        self._replay.faster()

    def action_slower(self) -> None:
        self._replay.slower()

    def action_step(self) -> None:
        """Pause, and show one more record."""
        self._replay.step()

    def action_jump_to_end(self) -> None:
        self._replay.jump_to_end()


class ReplayScreen(ReplayPlayer, RunScreen):
    """The replay of a run."""

    BINDINGS: ClassVar[list[BindingType]] = _PLAYER_KEYS

    @property
    def journal(self) -> Path | None:
        """The journal once the replay has ended: until then, later records are not the past."""
        return super().journal if self._replay.ended else None


class WorkflowReplayScreen(ReplayPlayer, WorkflowScreen):
    """The replay of a workflow: until its end, it is the time of the last record."""

    BINDINGS: ClassVar[list[BindingType]] = _PLAYER_KEYS

    def __init__(self, source: ReplaySource[WorkflowState], check: ReplayCheck | None = None) -> None:
        super().__init__(source, check, clock=self._recorded_now)

    @property
    def in_progress(self) -> bool:
        """Whether there are more records to show."""
        return not self._replay.ended

    def _recorded_now(self) -> datetime:
        return datetime.fromisoformat(self.state.last_ts) if self.state.last_ts else utc_now()


def replay_screen(path: Path, speed: float = 1.0) -> ReplayPlayer:
    """Return the screen that replays a run or workflow and also checks whether Aeon still does the same."""
    if not is_workflow(path):
        return ReplayScreen(ReplaySource(path, speed), ReplayCheck(path))
    from system2.workflow import replay

    # A transcript of an earlier version can be shown, but not checked.
    check = ReplayCheck(path, replay) if not lacks_journal(path) else None
    return WorkflowReplayScreen(ReplaySource[WorkflowState](path, speed), check)
