"""The two-line headers of a run and of a workflow: task and status; model, cost, time, and cycles left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.visual import Visual
from typing_extensions import override

from aeon_core.journal.values import at_pass
from aeon_core.journal.view.formatting import words
from aeon_core.journal.view.model import RunView
from aeon_core.units import count, local_time, money
from aeon_widgets.icons import VARIABLES, run_style
from aeon_widgets.tally import TallyHeader
from aeon_widgets.text import duration, fit, one_line


class RunPosition(NamedTuple):
    """A moment of a run's past."""

    pass_number: int
    """0 before the first pass."""
    passes: int
    """The number of passes so far."""
    phase: str
    """The phase that was running; empty at the end of a pass."""
    record: int
    last: int
    """The last record so far; both are numbered as in the journal."""
    ts: str
    paused: bool = False
    asked: bool = False
    """Whether the run is waiting for the person now."""

    def texts(self) -> Iterator[str]:
        """Yield shorter and shorter descriptions of the moment."""
        head = "‖ paused · " if self.paused else "◀ "
        place = f"pass {self.pass_number} of {self.passes}" if self.pass_number else "before pass 1"
        phase = f" · {one_line(self.phase, 20)}" if self.phase else ""
        time = f" · as of {local_time(self.ts, '%H:%M')}" if self.ts else ""
        record, short = f" · record {self.record:,} of {self.last:,}", f" · {self.record:,}/{self.last:,}"
        new = f" · {count(self.last - self.record, 'record')} since" if self.paused else ""
        asked = " · the run waits for you" if self.asked else ""
        yield f"{head}{place}{phase}{time}{record}{new}{asked}"
        yield f"{head}{place}{phase}{time}{short}{asked}"
        yield f"{head}{place}{time}{asked}"
        yield f"{head}{place}{time}"
        yield f"{head}{place}"


SEPARATOR = "  "
SIMULATED = "SIMULATED"
LEAST = len(SIMULATED) + len(SEPARATOR)
"""Cells of the second line reserved for its left side, so that a simulated run always says so."""

NEAR = 0.8
"""The share of a budget from which the cost is highlighted, unless `budget_warning` is set."""

Part = tuple[str, str]


class TwoLineHeader(TallyHeader):
    """Task and status on the first line, and as many facts as fit on the second."""

    DEFAULT_CSS = """
    TwoLineHeader { dock: top; height: 2; background: $panel; color: $aeon-text; padding: 0 1; }
    """
    LEAST_CUT = 12
    """The fewest cells in which part of a fact is worth showing."""

    @staticmethod
    def first_line(width: int, kind: str, task: str, status: str) -> Content:
        """Return the line with task and status; `kind` says what runs, if that is not a run."""
        icon, style = run_style(status)
        status_text = f"{icon} {words(status)}"
        lead = Content.assemble(("aeon", "bold $aeon-accent"), (kind, "$aeon-muted"), SEPARATOR)
        room = width - lead.cell_length - cell_len(status_text) - 3
        left = Content.assemble(lead, (fit(one_line(task) or "…", room), "bold"))
        gap = max(1, width - left.cell_length - cell_len(status_text))
        return Content.assemble(left, " " * gap, (status_text, f"bold {VARIABLES[style]}"))

    def second_line(
        self, width: int, left: Sequence[Part], facts: Sequence[tuple[str, str, bool]], right: list[Part]
    ) -> Content:
        """Return the facts that fit between `left` and `right`, the most important first.

        Each is a text, its style, and whether it may be cut off.
        """
        parts = [*left]
        room = width - _width(right) - len(SEPARATOR) * bool(right) - _width(left)
        for text, style, may_be_cut in facts:
            shown = fit(text, room)
            if shown and (shown == text or (may_be_cut and room >= self.LEAST_CUT)):
                parts += [(shown, style), (SEPARATOR, "")]
                room -= cell_len(shown) + len(SEPARATOR)
        return Content.assemble(*parts, " " * max(0, width - _width(parts) - _width(right)), *right)


class RunHeader(TwoLineHeader):
    """Task and status on the first line; model, pass and phase, time and TTL on the second.

    If a past moment is shown, the second line begins with it, and a click returns to the present.
    """

    class PastLeft(Message):
        """The person wants to return to the present."""

    def __init__(self) -> None:
        super().__init__()
        self._position: RunPosition | None = None
        self._reading = ""
        self._view = RunView()
        self._status = "running"
        self._note = ""
        self._elapsed_s = 0.0
        self._with_ttl = False
        self._shown: object = None

    def update_view(
        self, view: RunView, status: str, elapsed_s: float, note: str = "", *, with_ttl: bool = False
    ) -> None:
        """Show the run as it is now; `status` is a RunResult's or `running`, `note` is highlighted.

        `with_ttl` is for a screen that shows the TTL nowhere else.
        """
        shown = (id(view), view.last_seq, status, note, with_ttl)
        if shown != self._shown:
            self._view, self._status, self._note, self._elapsed_s, self._shown = view, status, note, elapsed_s, shown
            self._with_ttl = with_ttl
            self.refresh()
        elif int(elapsed_s) != int(self._elapsed_s):
            self._elapsed_s = elapsed_s
            self.refresh(Region(0, 1, self.size.width, 1))

    def update_moment(self, position: RunPosition | None, reading: str = "") -> None:
        """Say which moment is shown, None for the present; `reading` is the progress of loading another one."""
        if (position, reading) != (self._position, self._reading):
            self._position, self._reading = position, reading
            self.refresh()

    def on_click(self) -> None:
        if self._position is not None:
            self.post_message(self.PastLeft())

    def render(self) -> Content:
        return Content("\n").join([self._line(0), self._line(1)])

    @override
    def render_line(self, y: int) -> Strip:
        """Draw one line without the other, since the time changes only the second."""
        if self.text_selection is not None or not self.size.width:
            return super().render_line(y)
        (strip,) = Visual.to_strips(self, self._line(y), self.size.width, 1, self.visual_style)
        return strip.apply_offsets(0, y)

    def _line(self, y: int) -> Content:
        return self._second_line(self.size.width) if y else self.with_tally(self._first_line)

    def _first_line(self, width: int) -> Content:
        return self.first_line(width, "", self._view.task, self._status)

    def _second_line(self, width: int) -> Content:
        time: Part = (duration(self._elapsed_s), "$aeon-text")
        ttl = [*gauge(self._view, self.outer_size.width), (SEPARATOR, "")] if self._with_ttl else []
        least = LEAST if self._view.simulated else 0
        right = _first_fitting(width - least, ([*ttl, time], [time]))
        left: list[Part] = []
        if moment := self._moment(width - _width(right) - len(SEPARATOR) * bool(right) - least):
            left = [(moment, "bold $background on $severity-medium"), (SEPARATOR, "")]
        return self.second_line(width, left, self._facts(), right)

    def _facts(self) -> list[tuple[str, str, bool]]:
        """Return the text and style of each fact and whether it may be cut off, the most important first."""
        view, phase = self._view, ""
        if view.result is None and view.phases and self._position is None:
            phase = f"pass {view.phases[-1].pass_number} · {one_line(view.phases[-1].phase, 20)}"
        cost, tokens = view.cost_usd, view.usage.get("input_tokens", 0) + view.usage.get("output_tokens", 0)
        lineage = f"fork of {one_line(view.parent, 40)}{at_pass(view.parent_pass)}" if view.parent else ""
        return [
            (SIMULATED if view.simulated else "", "bold $severity-medium", True),
            (one_line(self._note) if self._note != self._reading else "", "bold $severity-medium", True),
            (one_line(view.model, 80) or "no model yet", "$aeon-text", True),
            (*spent(view), False),
            (phase, "$aeon-muted", False),
            (money(cost) if cost and budget_usd(view) is None else "", "$aeon-text", False),
            (count(tokens, "token") if tokens else "", "$aeon-muted", False),
            (lineage, "$aeon-muted", False),
        ]

    def _moment(self, room: int) -> str:
        """Return the longest description of the moment that fits."""
        if self._position is None:
            return fit(f" … {self._reading} ", room) if self._reading else ""
        read = f" · {self._reading}" if self._reading else ""
        texts = [f" {text}{read} " for text in self._position.texts()]
        return next((text for text in texts if cell_len(text) <= room), texts[-1].strip())


def _first_fitting(width: int, lines: Iterable[list[Part]]) -> list[Part]:
    return next((line for line in lines if _width(line) <= width), [])


def _width(parts: Sequence[Part]) -> int:
    return sum(cell_len(text) for text, _ in parts)


def budget_usd(view: RunView) -> float | None:
    """Return the budget that the run was started with, in US dollars; None if there is none."""
    return _usd(view.config.get("budget"))


def spent(view: RunView) -> Part:
    """Return the cost and budget of a run, with their style; empty texts for a run without a budget."""
    budget = budget_usd(view)
    if budget is None:
        return "", ""
    if view.cost_usd is None and view.usage:
        # A reply came without token counts.
        return f"cost unknown, budget {money(budget)}", "$severity-medium"
    cost = view.cost_usd or 0.0
    if cost > budget:
        # No call is made that might exceed the budget, so a person must have raised it.
        return f"{money(cost)}, budget raised", "$severity-medium"
    warn_at = _usd(view.config.get("budget_warning"))
    near = cost > 0 and cost >= (NEAR * budget if warn_at is None else warn_at)
    return f"{money(cost)} of {money(budget)}", "$severity-medium" if near else "$aeon-text"


def _usd(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and math.isfinite(value) else None  # type: ignore[arg-type]


def gauge(view: RunView, width: int) -> list[Part]:
    """Return the TTL as a bar and in words, sized for a header of that width."""
    if not view.ttl_allocated:
        return [("TTL –", "$aeon-muted")]
    left, of = f"{view.ttl_remaining}", f"{view.ttl_allocated}"
    words = f"{left}/{of} left" if width < 72 else f"{left} of {of} left"
    return [("TTL ", "$aeon-muted"), *bar(view, 10 if width >= 90 else 4), (f" {words}", "$aeon-text")]


def bar(view: RunView, cells: int) -> list[Part]:
    """Return the share of cycles left as a bar."""
    share = min(1.0, max(0.0, view.ttl_remaining / view.ttl_allocated))
    filled = max(1, int(share * cells)) if view.ttl_remaining else 0
    colour = "$severity-high" if share <= 0.1 else "$severity-medium" if share <= 0.25 else "$status-complete"
    return [("█" * filled, colour), ("░" * (cells - filled), "$aeon-muted")]


BAR_CELLS, SHORT_BAR_CELLS = 16, 8
_FULL, _EMPTY, _WARNING_MARK, _CEILING_MARK = "█", "░", "┊", "│"


@dataclass(frozen=True)
class WorkflowFacts:
    """The content of a workflow's header."""

    task: str = ""
    status: str = "running"
    model: str = ""
    simulated: bool = False
    doing: str = ""
    """The agent at work, or the gate or question that waits."""
    note: str = ""
    """A highlighted note."""
    cost_usd: float = 0.0
    warning_usd: float = 0.0
    ceiling_usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0


class WorkflowHeader(TwoLineHeader):
    """Shows at a glance the task, the status, and the cost against the warning level and the ceiling."""

    LEAST_CUT = 8
    facts: reactive[WorkflowFacts] = reactive(WorkflowFacts())

    def render(self) -> Content:
        return Content("\n").join([self.with_tally(self._first_line), self._second_line(self.size.width)])

    def _first_line(self, width: int) -> Content:
        return self.first_line(width, " workflow", self.facts.task, self.facts.status)

    def _second_line(self, width: int) -> Content:
        facts = self.facts
        shown_facts = [
            (SIMULATED if facts.simulated else "", "bold $severity-medium", True),
            (one_line(facts.note), "bold $severity-medium", True),
            (one_line(facts.doing), "$aeon-text", True),
            (one_line(facts.model, 80) or "no model yet", "$aeon-muted", True),
            (count(facts.tokens, "token") if facts.tokens else "", "$aeon-muted", False),
        ]
        least = LEAST if facts.simulated else 0
        costs = (self._cost(width, cells) for cells in (BAR_CELLS if width >= 110 else SHORT_BAR_CELLS, 0))
        return self.second_line(width, [], shown_facts, _first_fitting(width - least, costs))

    def _cost(self, width: int, cells: int) -> list[Part]:
        facts = self.facts
        time = (f"{SEPARATOR}{duration(facts.seconds)}", "$aeon-text")
        spent = (money(facts.cost_usd), f"bold {self._cost_style}")
        if not facts.ceiling_usd:
            return [spent, time]
        bar = f" {cost_bar(facts, cells)}" if cells else ""
        parts = [spent, (f"{bar} ", self._cost_style), (f"of {money(facts.ceiling_usd)}", "$aeon-text")]
        if facts.cost_usd >= facts.warning_usd > 0:
            parts.append((f" ⚠ over {money(facts.warning_usd)}", "bold $severity-medium"))
        elif width >= 110 and facts.warning_usd > 0:
            parts.append((f", {_WARNING_MARK} warns at {money(facts.warning_usd)}", "$aeon-muted"))
        return [*parts, time]

    @property
    def _cost_style(self) -> str:
        facts = self.facts
        if facts.ceiling_usd and facts.cost_usd >= facts.ceiling_usd:
            return "$severity-high"
        return "$severity-medium" if facts.cost_usd >= facts.warning_usd > 0 else "$aeon-text"


def cost_bar(facts: WorkflowFacts, cells: int) -> str:
    """Return the cost as a bar up to the ceiling, with a mark at the warning level."""
    if facts.ceiling_usd <= 0:
        return ""
    full = min(cells, int(facts.cost_usd / facts.ceiling_usd * cells + 0.5))
    bar = [_FULL] * full + [_EMPTY] * (cells - full)
    mark = int(facts.warning_usd / facts.ceiling_usd * cells)
    if 0 < mark < cells and full <= mark:
        bar[mark] = _WARNING_MARK
    return "".join(bar) + _CEILING_MARK
