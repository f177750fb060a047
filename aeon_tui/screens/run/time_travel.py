"""The run's screen in time: its panes show how the run is now, or how it was at a record of its past."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from textual.widgets import Input

from aeon_core.journal.view.model import RunView
from aeon_tui.screens.run.panes import RunPanes
from aeon_tui.screens.run.plan_changes import PlanChanges
from aeon_tui.screens.run.time_travel_controller import TimeTravelController, shown_moment
from aeon_tui.sources.snapshots import SnapshotStore
from aeon_tui.sources.timeline import Move, back_a_pass, by_records, on_a_pass, to_pass, to_phase, to_seq, to_share
from aeon_widgets.log_pane import LogPane
from aeon_widgets.pass_line import PassLine, Place
from aeon_widgets.run_header import RunHeader
from aeon_widgets.scrubber import Scrubber
from aeon_widgets.step_pane import TABS, StepText

_TRAVELS = (
    "pass_moment",
    "record_moment",
    "pause_here",
    "now",
    "leave_past",
    "changes_of_plan",
    "later_pass",
    "earlier_pass",
)
_SCROLLED = (LogPane, StepText, Input)
"""Where End goes to the end of a text."""


class TimeTravel(RunPanes):
    """Goes through a run's past by passes and records. The run itself continues, and is folded, in the background.

    What decides something about the run is about the run as it is now, whatever moment is shown.
    """

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self.view = view
        """The run as it is now."""
        self._first: int | None = None
        """The record to show first."""
        self.travel = TimeTravelController(self, self._snapshot_has_come, lambda: self.kept_snapshots)
        self.changes = PlanChanges(self, self, self.travel, self.show_step)

    @property
    def shown_view(self) -> RunView:
        """The run at the moment that is shown; as it is now where that is no other."""
        return self.travel.snapshot.view if self.travel.snapshot is not None else self.view

    @property
    def view_now(self) -> RunView:
        """The run as it is now."""
        return self.view

    @property
    @abstractmethod
    def journal(self) -> Path | None:
        """What the past is read from; None where there is nothing to read."""

    @property
    @abstractmethod
    def kept_snapshots(self) -> SnapshotStore | None:
        """Views of the past that the records' source has anyway."""

    @property
    @abstractmethod
    def goes_on(self) -> bool:
        """Whether the run is live, here or in another process."""

    def on_unmount(self) -> None:
        self.made = False
        self.travel.close()

    def show_time(self) -> None:
        """Show the position of the current view in the run's records."""
        travel = self.travel
        if self._first is not None and self.journal is not None:
            first, self._first = self._first, None
            if self.goes_on or first != self.view.last_seq:
                self._go(to_seq(first))
        shown = shown_moment(travel, self.view, asked=self.asks)
        self.query_one(RunHeader).update_moment(shown, travel.reading)
        scrubber = self.query_one(Scrubber)
        scrubber.set_class(self.journal is not None, "-there")
        snapshot = travel.snapshot
        scrubber.share = snapshot.position / max(1, snapshot.positions - 1) if snapshot is not None else 1.0

    def show_passes(self) -> None:
        """Show all passes that there are by now, and which moment of them is shown."""
        here = None
        if self.travel.snapshot is not None:
            last = self.shown_view.phases[-1:]
            here = Place(last[0].pass_number, last[0].phase) if last else Place(0)
        self.query_one(PassLine).update_view(self.view, self.goes_on, here)

    def _snapshot_has_come(self) -> None:
        """Show another moment in every pane."""
        if not self.made:
            return
        self.repaint(frozenset(), goes_on=self.goes_on or self.travel.snapshot is not None)
        self.changes.update()
        self.show_passes()
        self.show_time()
        self.show_header()
        self.refresh_bindings()

    @abstractmethod
    def show_header(self) -> None:
        """Show status, cost and time of the moment that is shown."""

    def show_moment(self, seq: int) -> None:
        """Show the run as it was at the record with that seq, once there is something of it to show.

        The last record of a run that has ended is how it is now.
        """
        self._first = seq

    def _go(self, move: Move) -> None:
        if self.journal is not None:
            self.travel.go(self.journal, move)

    def action_pass_moment(self, by: int) -> None:
        """Go to the last moment at which a pass ended, -1, or to the next, 1."""
        self._go(back_a_pass if by < 0 else on_a_pass)

    def action_record_moment(self, by: int) -> None:
        """Go so many records back or on."""
        self._go(by_records(by))

    def action_pause_here(self) -> None:
        """Stay at the current view while the run continues, or return to now."""
        if self.travel.away:
            self.action_now()
        elif self.journal is not None:
            self.travel.pause(self.journal, self.view.last_seq)

    def action_now(self) -> None:
        """Return to how the run is now."""
        self.travel.to_now()

    def action_leave_past(self) -> None:
        """Return to how the run is now, wherever the focus is."""
        self.action_now()

    def action_changes_of_plan(self) -> None:
        """Show what two passes made of the plan, or the selected step's own changes again."""
        self.changes.show(not self.changes.shown)
        super().action_tab(TABS.index("Changes"))

    def action_tab(self, index: int) -> None:
        """Open a tab of the step pane."""
        self.changes.show(False)
        super().action_tab(index)

    def action_earlier_pass(self, by: int) -> None:
        """Compare from another pass on."""
        self.changes.move(first=by)

    def action_later_pass(self, by: int) -> None:
        """Compare with another pass."""
        self.changes.move(last=by)

    def on_pass_line_chosen(self, event: PassLine.Chosen) -> None:
        place = event.place
        self._go(to_phase(*place) if place.phase else to_pass(place.pass_number))

    def on_scrubber_stepped(self, event: Scrubber.Stepped) -> None:
        self.action_record_moment(event.by)

    def on_scrubber_moved(self, event: Scrubber.Moved) -> None:
        self._go(to_share(event.share))

    def on_run_header_past_left(self) -> None:
        self.action_now()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now."""
        if action == "back":
            return not self.travel.away
        if action not in _TRAVELS:
            return super().check_action(action, parameters)
        if self.journal is None:
            return False
        if action in ("now", "leave_past"):
            return self.travel.away and not (action == "now" and isinstance(self.focused, _SCROLLED))
        if action == "pause_here":
            return self.travel.paused or self.goes_on
        if action in ("earlier_pass", "later_pass"):
            return self.changes.shown
        return action != "changes_of_plan" or self.view.adaptive
