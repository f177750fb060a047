"""The layout of a run's panes: which are on screen depends on its size, the run's content, and the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from msgspec import Struct
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.style import Style

from aeon_core.journal.view.model import RunView
from aeon_tui.screens.pane_screen import APPROVAL
from aeon_widgets import convergence, issues, repairs, ttl_gauge
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import Pane, RailLine
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.step_pane import StepPane
from aeon_widgets.text import Piece
from aeon_widgets.ttl_gauge import TTLGauge

WIDTHS = [(0, "-narrow"), (72, "-normal"), (110, "-wide")]
HEIGHTS = [(0, "-low"), (30, "-tall"), (45, "-very-tall")]
"""The columns and rows from which each layout applies."""
_TINY = 18
"""Below this many rows, the lower panes get their least height."""
_TIGHT = 15
"""Below this many rows, the lower panes get one line each."""
_LEAST = 13
"""Below this many rows, there is no guide."""
_FLAT = 9
"""Below this many rows, a question takes them all under the header: its text, and the first line of its answers."""
_GUIDE = 3
"""The most rows of the guide."""
_NORMAL, BESIDE = WIDTHS[1][0], 160
"""From this many columns on, a question is shown beside the plan."""
_WIDE = WIDTHS[2][0]


class RunPane(Struct, frozen=True):
    """A pane of the run screen. Its entry here gives it a key, a place in the column, and a summary line."""

    number: int
    """Its key; keys are in reading order."""
    title: str
    kind: type[Pane]
    short: str = ""
    """Its name if space is short."""
    summary: Callable[[RunView], Sequence[Piece]] | None = None
    """Its summary line while it is closed, for a pane of the column beside the step."""
    rows: int = 0
    """The least useful height in rows, border included."""
    in_passes: bool = False
    """Whether only runs with passes have it."""


ALL: tuple[RunPane, ...] = (
    RunPane(1, "Plan", PlanTree),
    RunPane(2, "Step", StepPane),
    RunPane(3, "TTL", TTLGauge, summary=ttl_gauge.summary, rows=6),
    RunPane(4, "Convergence", ConvergencePane, "Conv.", convergence.summary, 6, True),
    RunPane(5, "Issues", IssuesPane, summary=issues.summary, rows=4, in_passes=True),
    RunPane(6, "Repairs", RepairsPane, "Rep.", repairs.summary, 3),
    RunPane(7, "Answer", Outcome),
    RunPane(8, "Log", LogPane),
    RunPane(APPROVAL, "Decision", ApprovalPanel),
)
"""The panes from top left to bottom right."""
PANES: dict[int, type[Pane]] = {pane.number: pane.kind for pane in ALL}
"""The panes by key."""
PANE_KEYS: list[BindingType] = [
    Binding(f"{pane.number}", f"pane({pane.number})", pane.title, show=False, id=f"run.pane_{pane.title.lower()}")
    for pane in ALL
]
SIDE: dict[int, RunPane] = {pane.number: pane for pane in ALL if pane.summary is not None}
"""The panes of the third column. On screens without it, they share the step's place, one at a time."""
STEP, TTL, CONVERGENCE, ISSUES, REPAIRS, LOG = 2, 3, 4, 5, 6, 8
_FIRST = (CONVERGENCE, ISSUES, TTL)
"""The panes of the column that open first while there is room, in this order; the others follow."""
_TTL_ROWS = 10
"""The height in rows at which the TTL pane shows all its lines."""
_ISSUE_ROWS = 6
"""The usual most rows of an issue with its repair."""

_SIDE_KINDS = ", ".join(pane.kind.__name__ for pane in SIDE.values())
CSS = (
    f"""
    RunScreen {{ {_SIDE_KINDS} {{ height: auto; }} }}
    RunScreen.-turns #side {{ {_SIDE_KINDS} {{ height: 1fr; max-height: 100%; }} }}
"""
    """
    RunScreen {
        background: $background;
        #timeline { height: 1; display: none; background: $background; }
        #timeline > PassLine { width: 1fr; }
        Scrubber { display: none; }
        #body {
            layout: grid; grid-size: 2 1; grid-columns: 2fr 3fr; grid-gutter: 0;
            height: 1fr; min-height: 6; background: $background;
        }
        #middle { height: 100%; width: 100%; background: $background; }
        StepPane { height: 1fr; }
        #middle > ApprovalPanel { max-height: 75%; }
        #side {
            height: 100%; width: 100%; background: $background;
            overflow-y: auto; scrollbar-size-vertical: 1;
        }
        IssuesPane { height: 1fr; min-height: 4; }
        RepairsPane { min-height: 3; }
        LogPane { height: 3; }
        Outcome { max-height: 5; }
        #guide { height: auto; max-height: 3; padding: 0 1; background: $panel; color: $aeon-accent; }
    }
    RunScreen.-tall { LogPane { height: 5; } Outcome { max-height: 9; } }
    RunScreen.-very-tall { LogPane { height: 5; } Outcome { max-height: 15; } }
    RunScreen.-log-open LogPane { height: 40%; min-height: 6; }
    RunScreen.-wide #body { grid-size: 3 1; grid-columns: 4fr 5fr 32; }
    RunScreen.-wide Scrubber.-there { display: block; }
    RunScreen.-wide.-adaptive #body { grid-columns: 4fr 5fr 38; }
    RunScreen.-wide.-roomy #body { grid-columns: 1fr 1fr 50; }
    RunScreen.-adaptive #timeline { display: block; }
    RunScreen.-plain RepairsPane { height: 1fr; }
    RunScreen.-low.-log-open { #body { min-height: 4; } Outcome { max-height: 4; } }
    RunScreen.-low.-tiny { #body { min-height: 4; } LogPane { height: 3; min-height: 3; } Outcome { max-height: 4; } }
    RunScreen.-low.-tight {
        #timeline { display: none; }
        #guide { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        #body { min-height: 3; }
        LogPane, Outcome { height: 2; min-height: 2; max-height: 2; border-bottom: none; }
    }
    RunScreen.-asking {
        Outcome { display: none; }
        #guide { display: none; }
        &.-low #body { min-height: 3; }
        &.-low LogPane { display: none; }
        &.-tall LogPane, &.-very-tall LogPane { height: 3; }
        &.-tall ApprovalPanel { max-height: 50%; }
        &.-very-tall ApprovalPanel { max-height: 45%; }
        &.-wide.-very-tall ApprovalPanel { max-height: 40%; }
        &.-tiny {
            #timeline, Toast.-information { display: none; }
            #body { min-height: 0; }
            ApprovalPanel { max-height: 65%; .away { height: 1; } }
            ApprovalPanel:focus-within { max-height: 90%; }
        }
        &.-flat {
            KeyFooter { display: none; }
            PlanTree, StepPane { border-bottom: none; }
            ApprovalPanel {
                max-height: 35%; border: none; border-top: heavy $severity-medium;
                .keys { max-height: 1; }
            }
            ApprovalPanel:focus-within { max-height: 100%; }
            & > ApprovalPanel:focus-within { position: absolute; offset-y: 2; }
        }
    }
    RunScreen.-ended #guide, RunScreen.-least #guide { display: none; }
    RunScreen .-maximized { height: 1fr !important; max-height: 100% !important; }
"""
)


class Body(Container):
    """Holds the plan, the step and the panes beside them. Its height shrinks when the run asks or ends."""

    class Resized(Message):
        """The number of panes that fit has changed."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class Layout:
    """Shows and hides the panes beside the plan. `turn` is the pane that the user chose, if not all fit."""

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._labels: dict[int, Content] = {}
        self._seen: tuple[object, ...] = ()
        """The state for which the panes were last arranged."""
        self.turn = STEP

    def pane(self, number: int) -> Pane:
        """Return the pane with this key."""
        return self._screen.query_one(PANES[number])

    def has(self, number: int, view: RunView) -> bool:
        """Return whether the run has content for a pane, even if the pane is not on screen."""
        if number == STEP:
            return True
        if number in SIDE:
            return view.adaptive or not SIDE[number].in_passes
        return bool(self._screen.query(PANES[number])) and self.pane(number).display

    def bring(self, number: int, view: RunView, shown: RunView) -> None:
        """Open a pane if not all fit; the log toggles."""
        if number == LOG:
            log = self.pane(LOG)
            self._screen.set_class(not (log.has_focus and self._screen.has_class("-log-open")), "-log-open")
        elif number == STEP or number in SIDE:
            self.turn = number
            self.arrange(view, shown)

    def resize(self, view: RunView, shown: RunView) -> None:
        """Show the panes that fit now, always including the focused one."""
        self.turn = next((number for number in SIDE if self.pane(number).has_focus), self.turn)
        self.arrange(view, shown)

    def arrange(self, view: RunView, shown: RunView) -> None:
        """Show the panes that fit, if that may have changed.

        `view` is the run as it is now, so that nothing moves while its past is shown; `shown` is what the panes show.
        """
        size = self._screen.size
        rows = self._screen.query_one(Body).size.height
        guided = any(child.id == "guide" for child in self._screen.children)
        has = view.adaptive, view.result is None, bool(view.repairs)
        seen = (size, rows, guided, self.turn, self._screen.maximized, *has, len(shown.issues), len(shown.repairs))
        if seen != self._seen:
            # At first, styles are applied when the screen is shown.
            self._arrange(view, shown, size, rows, guided=guided, update=bool(self._seen))
            self._seen = seen
        if size.width >= _WIDE:
            for line in self._screen.query(RailLine):
                line.summary = tuple(_SUMMARIES[line.id or ""](shown))

    def _arrange(self, view: RunView, shown: RunView, size: Size, rows: int, *, guided: bool, update: bool) -> None:
        column = size.width >= _WIDE
        having = [number for number in SIDE if self.has(number, view)]
        there = [self.turn] if self.turn in having else []
        if column:
            there = self._fitting(having, rows, empty=set() if view.repairs else {REPAIRS})
        for number in SIDE:
            self.pane(number).display = number in there
        for line in self._screen.query(RailLine):
            line.display = column and line.number in having and line.number not in there
        self.pane(STEP).display = self._screen.query_one("#middle").display = column or not there
        self._screen.query_one("#side").display = column or bool(there)
        self._share(there, having, rows if column else 0, len(shown.issues))
        self._screen.update_classes(
            {
                "-turns": not column and bool(there),
                "-roomy": size.width >= BESIDE,
                "-tiny": size.height < _TINY + _GUIDE * guided,
                "-tight": size.height < _TIGHT + _GUIDE * guided and self._screen.maximized is None,
                "-least": size.height < _LEAST,
                "-flat": size.height < _FLAT,
                "-adaptive": view.adaptive,
                "-plain": not view.adaptive,
                "-ended": view.result is not None,
            },
            update=update,
        )
        self._label_borders(shown, [] if column else having, there)

    def _fitting(self, having: Sequence[int], rows: int, empty: Set[int]) -> list[int]:
        """Return the panes that are open in a column of that height; each other pane is one line.

        Empty panes open only if all others are open.
        """
        left = rows - _lines(having)
        opened: list[int] = []
        for number in dict.fromkeys([*([self.turn] if self.turn in having else []), *_FIRST, *having]):
            more = SIDE[number].rows - _lines([number])
            fits = more <= left and (number not in empty or len(opened) == len(having) - 1)
            if number in having and (fits or number == self.turn):
                opened.append(number)
                left -= more
        return sorted(opened)

    def _share(self, there: Sequence[int], having: Sequence[int], rows: int, issues: int) -> None:
        """Give the rest of the column to panes whose content exceeds their least height."""
        left = max(0, rows - sum(SIDE[number].rows if number in there else _lines([number]) for number in having))
        more = dict.fromkeys(SIDE, 0)
        if TTL in there and left >= _TTL_ROWS - SIDE[TTL].rows:
            more[TTL] = _TTL_ROWS - SIDE[TTL].rows
            left -= more[TTL]
        if REPAIRS in there and left > _TTL_ROWS:
            more[REPAIRS] = 4
            left -= 4
        more[CONVERGENCE] = left - min(left // 3, issues * _ISSUE_ROWS) if ISSUES in there else left
        for number, pane in SIDE.items():
            unbounded = self._screen.maximized, self.pane(ISSUES if CONVERGENCE in having else REPAIRS)
            bounded = rows and self.pane(number) not in unbounded
            self.pane(number).styles.max_height = pane.rows + more[number] if bounded else None
        self._screen.query_one(TTLGauge).short = bool(rows) and TTL in there and not more[TTL]

    def _label_borders(self, view: RunView, having: Sequence[int], shown: Sequence[int]) -> None:
        """List on a pane's lower border the panes that share its place, with their keys; they can be clicked."""
        counts = {ISSUES: f" {len(view.issues)}", REPAIRS: f" {len(view.repairs)}"}
        # On a low screen the header shows the TTL; a run without repairs has no repairs pane.
        left_out = {*shown, *([TTL] if self._screen.size.width < _NORMAL else []), *([] if view.repairs else [REPAIRS])}
        there = [number for number in having if number not in left_out]

        def line(*, short: bool, separator: str) -> Content:
            titles = {number: (short and SIDE[number].short) or SIDE[number].title for number in there}
            others = [(number, f"{number} {title}{counts.get(number, '')}") for number, title in titles.items()]
            panes = [*([(STEP, f"{STEP} Step")] if shown else []), *others]
            # A click acts like the pane's key.
            leads = ((text, Style.from_meta({"@click": f"screen.pane({number})"})) for number, text in panes)
            return Content(separator).join(Content(text).stylize(style) for text, style in leads)

        room = self._screen.size.width * 3 // 5 - 6
        lines = (line(short=False, separator=" · "), line(short=True, separator=" · "), line(short=True, separator="·"))
        label = next((each for each in lines if each.cell_length <= room), lines[-1])
        place = shown[-1] if shown else STEP
        for number in (STEP, *SIDE):
            text = label if number == place and having else Content()
            if self._labels.get(number, Content()) != text:
                self._labels[number] = text
                self.pane(number).border_subtitle = text.stylize_before("$aeon-muted")


COST = "cost"
"""The cost line, which is part of the TTL pane while that is open."""
_SUMMARIES: dict[str, Callable[[RunView], Sequence[Piece]]] = {COST: ttl_gauge.cost_summary}
_SUMMARIES |= {f"line-{number}": pane.summary for number, pane in SIDE.items() if pane.summary is not None}


def _lines(numbers: Sequence[int]) -> int:
    """Return the number of closed panes with a line."""
    return len(numbers) + (TTL in numbers)


def rail_lines() -> dict[int, list[RailLine]]:
    """Return new lines for the column's closed panes, by the pane that follows."""
    lines = {number: [RailLine(number, pane.title, line_id=f"line-{number}")] for number, pane in SIDE.items()}
    lines[TTL].append(RailLine(TTL, "Cost", line_id=COST, numbered=False))
    return lines
