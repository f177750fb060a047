"""Which panes of a run are on screen: by its size, by what the run has, and by what the person chose."""

from __future__ import annotations

from dataclasses import dataclass

from textual.containers import Container
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen

from aeon_core.journal.view.model import RunView
from aeon_tui.screens.pane_screen import APPROVAL
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.step_pane import StepPane
from aeon_widgets.ttl_gauge import TTLGauge

WIDTHS = [(0, "-narrow"), (72, "-normal"), (110, "-wide")]
HEIGHTS = [(0, "-low"), (30, "-tall"), (45, "-very-tall")]
"""From how many columns and rows on which layout is taken."""
_TINY = 18
"""Below so many rows the panes below get as low as they can."""
_GUIDE = 3
"""Rows that the guide takes at most."""
_NORMAL, _ROOMY = WIDTHS[1][0], 160
_WIDE, _TALL = WIDTHS[2][0], HEIGHTS[1][0]

PANES: dict[int, type[Pane]] = {
    1: PlanTree,
    2: StepPane,
    3: TTLGauge,
    4: ConvergencePane,
    5: IssuesPane,
    6: RepairsPane,
    7: Outcome,
    8: LogPane,
    APPROVAL: ApprovalPanel,
}
"""The panes by the key that leads to them, in reading order."""
STEP, TTL, CONVERGENCE, ISSUES, REPAIRS = 2, 3, 4, 5, 6
_SIDE = (TTL, CONVERGENCE, ISSUES, REPAIRS)
"""The panes of the third column. Without room for all, they take turns; without a column, the step does so, too."""
_SHORTER = {CONVERGENCE: ("Convergence", "Conv."), REPAIRS: ("Repairs", "Rep.")}
"""What stands for panes that are not on screen where there is little room to name them."""
_SPACIOUS, _ROOM_FOR_FOUR, _ROOM_FOR_THREE, _ROOM_FOR_THREE_SHORT = 31, 27, 22, 16
"""Rows of the column from which on all panes of an adaptive run fit with several repairs, with one, without any, and
so with a short TTL."""

CSS = """
    RunScreen {
        background: $background;
        #timeline { height: 1; display: none; background: $background; }
        #timeline > PassLine { width: 1fr; }
        Scrubber { display: none; }
        #body {
            layout: grid; grid-size: 2 1; grid-columns: 2fr 3fr; grid-gutter: 0;
            height: 1fr; min-height: 6; background: $background;
        }
        #side {
            height: 100%; width: 100%; background: $background;
            overflow-y: auto; scrollbar-size-vertical: 1;
        }
        ConvergencePane { height: auto; max-height: 40%; }
        IssuesPane { height: 1fr; min-height: 4; }
        RepairsPane { height: auto; max-height: 7; }
        LogPane { height: 6; }
        Outcome { max-height: 7; }
        #guide { height: auto; max-height: 3; padding: 0 1; background: $panel; color: $aeon-accent; }
    }
    RunScreen.-tall { LogPane { height: 9; } Outcome { max-height: 11; } }
    RunScreen.-very-tall { LogPane { height: 14; } Outcome { max-height: 18; } }
    RunScreen.-low.-ended LogPane { height: 5; }
    RunScreen.-narrow { LogPane { height: 5; } Outcome { max-height: 5; } }
    RunScreen.-wide #body { grid-size: 3 1; grid-columns: 6fr 9fr 32; }
    RunScreen.-wide Scrubber.-there { display: block; }
    RunScreen.-wide.-adaptive #body { grid-columns: 6fr 9fr 38; }
    RunScreen.-roomy.-adaptive #body { grid-columns: 6fr 9fr 66; }
    RunScreen.-adaptive.-tall {
        &.-ended LogPane { height: 5; }
        &.-ended Outcome { max-height: 9; }
    }
    RunScreen.-adaptive {
        #timeline { display: block; }
        TTLGauge { max-height: 46%; }
        RepairsPane { max-height: 3; }
        &.-spacious RepairsPane { max-height: 7; }
        &.-three RepairsPane { height: 1fr; min-height: 4; max-height: 100%; }
    }
    RunScreen.-adaptive.-very-tall.-ended { LogPane { height: 9; } Outcome { max-height: 15; } }
    RunScreen.-plain RepairsPane { height: 1fr; max-height: 100%; }
    RunScreen.-turns #side > * { height: 1fr; max-height: 100%; }
    RunScreen.-low.-tiny { #body { min-height: 4; } LogPane { height: 3; } Outcome { max-height: 4; } }
    RunScreen.-asking {
        Outcome { display: none; }
        #guide { display: none; }
        &.-low LogPane { display: none; }
        &.-tall LogPane { height: 4; }
        &.-very-tall LogPane { height: 9; }
    }
    RunScreen .-maximized { height: 1fr !important; max-height: 100% !important; }
"""


class Body(Container):
    """Plan, step and the panes beside them. It gets lower as the run asks or ends, with the screen as it is."""

    @dataclass
    class Resized(Message):
        """There is room for more panes, or for fewer."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class Layout:
    """Shows and hides the panes beside the plan. `turn` is the one that the person chose where they take turns."""

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._told: dict[int, str] = {}
        self._seen: tuple[object, ...] = ()
        """What the panes were arranged for."""
        self.turn = STEP

    def pane(self, number: int) -> Pane:
        """Return a pane by the key that leads to it."""
        return self._screen.query_one(PANES[number])

    def has(self, number: int, view: RunView) -> bool:
        """Return whether the run has anything for a pane, whether or not it is on screen."""
        if number in (ISSUES, CONVERGENCE):
            return view.adaptive
        if number == REPAIRS:
            return bool(view.repairs)
        if number in (STEP, TTL):
            return True
        return bool(self._screen.query(PANES[number])) and self.pane(number).display

    def bring(self, number: int, view: RunView, shown: RunView) -> None:
        """Let a pane have its turn where there is not room for all."""
        if number in (STEP, *_SIDE):
            self.turn = number
            self.arrange(view, shown)

    def resize(self, view: RunView, shown: RunView) -> None:
        """Show the panes that there is room for now, the one that has the focus for certain."""
        self.turn = next((number for number in _SIDE if self.pane(number).has_focus), self.turn)
        self.arrange(view, shown)

    def arrange(self, view: RunView, shown: RunView) -> None:
        """Show the panes that there is room for, where that may have changed.

        `view` is the run as it is now, so that nothing moves while its past is shown; `shown` is what the panes show.
        """
        size = self._screen.size
        rows = self._screen.query_one(Body).size.height
        guided = any(child.id == "guide" for child in self._screen.children)
        seen = (
            size,
            rows,
            guided,
            self.turn,
            view.adaptive,
            view.result is None,
            len(shown.issues),
            len(shown.repairs),
        )
        if seen != self._seen:
            self._seen = seen
            self._arrange(view, shown, size, rows, guided=guided)

    def _arrange(self, view: RunView, shown: RunView, size: Size, rows: int, *, guided: bool) -> None:
        column = size.width >= _WIDE
        having = [number for number in _SIDE if self.has(number, view)]
        there = self._fitting(having, view, rows) if column else self._turns(having, column=False)
        three = len(there) > 1 and view.adaptive and rows < _ROOM_FOR_FOUR
        all_of_them = there == having
        for number in _SIDE:
            self.pane(number).display = number in there
        self.pane(STEP).display = column or not there
        self._screen.query_one("#side").display = bool(there)
        self._screen.query_one(TTLGauge).short = three and rows < _ROOM_FOR_THREE
        self._screen.update_classes(
            {
                "-turns": not all_of_them and len(there) <= 1,
                "-three": three,
                "-spacious": rows >= _SPACIOUS,
                "-roomy": size.width >= _ROOMY,
                "-tiny": size.height < _TINY + _GUIDE * guided,
                "-adaptive": view.adaptive,
                "-plain": not view.adaptive,
                "-ended": view.result is not None,
            }
        )
        self._tell(shown, there, all_of_them=all_of_them)

    def _fitting(self, having: list[int], view: RunView, rows: int) -> list[int]:
        """Return the panes that a column of that height has room for; issues and repairs take turns first."""
        if not view.adaptive:
            return having if self._screen.size.height >= _TALL else self._turns(having, column=True)
        if rows >= _ROOM_FOR_FOUR or (rows >= _ROOM_FOR_THREE_SHORT and REPAIRS not in having):
            return having
        if rows < _ROOM_FOR_THREE_SHORT:
            return self._turns(having, column=True)
        return [number for number in having if number != (ISSUES if self.turn == REPAIRS else REPAIRS)]

    def _turns(self, there: list[int], *, column: bool) -> list[int]:
        if self.turn in there:
            return [self.turn]
        first = CONVERGENCE if CONVERGENCE in there else TTL
        return [first] if column else []

    def _tell(self, view: RunView, shown: list[int], *, all_of_them: bool) -> None:
        """Say on a pane's lower border which others take turns with it, by their keys."""
        others = {
            STEP: "Step" if shown and not self.pane(STEP).display else "",
            TTL: "TTL" if view.adaptive or shown else "",
            CONVERGENCE: "Convergence" if view.adaptive else "",
            ISSUES: f"Issues {len(view.issues)}" if view.adaptive else "",
            REPAIRS: f"Repairs {len(view.repairs)}" if view.repairs else "",
        }
        if view.adaptive and self._screen.size.width < (_WIDE if view.repairs else _NORMAL):
            others |= {name: others[name].replace(*_SHORTER[name]) for name in _SHORTER}
        if self._screen.size.width < _NORMAL:
            others[TTL] = ""  # the header has it
        told = " · ".join(f"{number} {name}" for number, name in others.items() if name and number not in shown)
        teller = shown[-1] if shown else STEP
        for number in (STEP, *_SIDE):
            text = told if number == teller and not all_of_them else ""
            if self._told.get(number, "") != text:
                self._told[number] = text
                self.pane(number).border_subtitle = Content.styled(text, "$aeon-muted")
