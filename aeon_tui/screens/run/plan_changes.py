"""Which two passes are compared in the step pane, and what is different in their plans: read on a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from textual.screen import Screen

from aeon_core.errors import AeonError
from aeon_core.journal.view.model import RunView
from aeon_tui.screens.latest_worker import LatestWorker
from aeon_tui.screens.run.time_travel_controller import TimeTravelController
from aeon_tui.sources.base import failure
from aeon_tui.sources.snapshots import Closed, SnapshotStore
from aeon_widgets.key_names import key_of
from aeon_widgets.plan_difference import difference_blocks
from aeon_widgets.text_view import Block

FIRST_PLAN = 0
READING: list[Block] = [("muted", "Reading the journal …")]


class Passes(Protocol):
    """What is to be known of the screen that shows them."""

    view: RunView

    @property
    def shown_view(self) -> RunView:
        """The run at the moment that is shown."""

    @property
    def journal(self) -> Path | None:
        """What the plans are read from."""


class PlanChanges:
    """The plan's difference between two passes. It follows what is shown until the person chooses the passes.

    `has_come` is called when there is another one to show.
    """

    def __init__(
        self, screen: Screen[None], of: Passes, travel: TimeTravelController, has_come: Callable[[], None]
    ) -> None:
        self._of, self._travel, self._has_come = of, travel, has_come
        self._screen = screen
        self._reading = LatestWorker(screen, "plan_changes")
        self._chosen: tuple[int, int] | None = None
        self._asked: tuple[int, int] | None = None
        self._blocks = READING
        self.shown = False
        """Whether it is shown in the step pane instead of the step's own changes."""

    @property
    def blocks(self) -> Sequence[Block] | None:
        """What is to be shown; None where it is not."""
        return self._blocks if self.shown else None

    @property
    def passes(self) -> list[int]:
        """The passes that can be compared; the first is the original plan."""
        return [FIRST_PLAN, *sorted({phase.pass_number for phase in self._of.view.phases})]

    @property
    def pair(self) -> tuple[int, int]:
        """The passes that are compared."""
        passes = self.passes
        if self._chosen is not None and set(self._chosen) <= set(passes):
            return self._chosen
        phases = self._of.shown_view.phases
        last = phases[-1].pass_number if phases else passes[-1]
        return passes[max(0, passes.index(last) - 1)], last

    @property
    def _keys(self) -> str:
        """What the keys do meanwhile."""
        names = ("from_earlier", "from_later", "to_earlier", "to_later", "differences")
        first, later, to, to_later, back = (key_of(self._screen, f"run.{name}") for name in names)
        return f"{first} {later} from another pass · {to} {to_later} to another pass · {back} back to the step"

    def show(self, shown: bool) -> None:
        """Show it, or the step's own changes."""
        self.shown = shown
        self.update()
        self._has_come()

    def move(self, first: int = 0, last: int = 0) -> None:
        """Compare with a pass further on or back, for one side or both."""
        passes, (one, other) = self.passes, self.pair

        def moved(number: int, by: int) -> int:
            return passes[min(max(passes.index(number) + by, 0), len(passes) - 1)]

        self._chosen = (moved(one, first), moved(other, last))
        self.update()

    def update(self) -> None:
        """Look the plans up, where they are shown."""
        journal = self._of.journal
        if not self.shown or journal is None:
            return
        pair, snapshots = self.pair, self._travel.snapshots(journal)
        named = (self._name(pair[0]), self._name(pair[1]))
        if pair != self._asked:
            self._asked, self._blocks = pair, READING
        self._reading.submit(lambda: self._read(snapshots, pair, named))

    def _name(self, number: int) -> str:
        if number == FIRST_PLAN:
            return "the first plan"
        running = number == self.passes[-1] and self._of.view.passes < number and self._of.view.result is None
        return f"pass {number}, so far" if running else f"end of pass {number}"

    def _read(self, snapshots: SnapshotStore, pair: tuple[int, int], named: tuple[str, str]) -> Callable[[], None]:
        try:
            found = snapshots.at_pass_ends(pair)
        except Closed:
            return lambda: None
        except (AeonError, OSError) as error:
            problem: list[Block] = [("high", f"✖ {failure(snapshots.journal, error).message}")]
            return lambda: self._take(problem)
        blocks = difference_blocks(found[0].view, found[1].view, named, self._keys) if found else READING
        return lambda: self._take(blocks)

    def _take(self, blocks: list[Block]) -> None:
        self._blocks = blocks
        self._has_come()
