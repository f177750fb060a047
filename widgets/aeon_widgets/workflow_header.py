"""The two lines above a workflow: its task and status; model, running agent, cost against its limits, time."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from aeon_core.units import money
from aeon_widgets.icons import VARIABLES, run_style
from aeon_widgets.run_header import SEPARATOR, SIMULATED
from aeon_widgets.tally import TallyHeader
from aeon_widgets.text import duration, fit, one_line

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
    """Who works, or which gate waits."""
    note: str = ""
    """Something to be aware of."""
    cost_usd: float = 0.0
    warning_usd: float = 0.0
    ceiling_usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0


class WorkflowHeader(TallyHeader):
    """Shows at a glance the task, the status, and the cost against the warning level and the ceiling."""

    DEFAULT_CSS = """
    WorkflowHeader { dock: top; height: 2; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts = WorkflowFacts()

    def update_facts(self, facts: WorkflowFacts) -> None:
        """Show these facts."""
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def render(self) -> Content:
        width = self.size.width
        return Content("\n").join([self.with_tally(self._first_line), self._second_line(width)])

    def _first_line(self, width: int) -> Content:
        facts = self._facts
        icon, style = run_style(facts.status)
        status = f"{icon} {facts.status.replace('_', ' ')}"
        room = width - len("aeon workflow    ") - cell_len(status) - 1
        task = fit(one_line(facts.task) or "…", room)
        left = Content.assemble(("aeon", "bold $aeon-accent"), (" workflow", "$aeon-muted"), SEPARATOR, (task, "bold"))
        gap = max(1, width - left.cell_length - cell_len(status))
        return Content.assemble(left, " " * gap, (status, f"bold {VARIABLES[style]}"))

    def _second_line(self, width: int) -> Content:
        facts = self._facts
        right = self._cost(width)
        right_width = sum(cell_len(text) for text, _ in right)
        room = width - right_width - len(SEPARATOR)
        left: list[tuple[str, str]] = []
        told = [
            (SIMULATED if facts.simulated else "", "bold $severity-medium"),
            (one_line(facts.note), "bold $severity-medium"),
            (one_line(facts.doing), "$aeon-text"),
            (one_line(facts.model, 80) or "no model yet", "$aeon-muted"),
            (f"{facts.tokens:,} tokens" if facts.tokens else "", "$aeon-muted"),
        ]
        for text, style in told:
            if text and room >= min(cell_len(text), 8):
                shown = fit(text, room)
                left += [(shown, style), (SEPARATOR, "")]
                room -= cell_len(shown) + len(SEPARATOR)
        content = Content.assemble(*left)
        return Content.assemble(content, " " * max(0, width - content.cell_length - right_width), *right)

    def _cost(self, width: int) -> list[tuple[str, str]]:
        facts = self._facts
        time = (f"{SEPARATOR}{duration(facts.seconds)}", "$aeon-text")
        spent = (money(facts.cost_usd), f"bold {self._cost_style}")
        if not facts.ceiling_usd:
            return [spent, time]
        bar = gauge(facts, BAR_CELLS if width >= 110 else SHORT_BAR_CELLS)
        parts = [spent, (f" {bar} ", self._cost_style), (f"of {money(facts.ceiling_usd)}", "$aeon-text")]
        if facts.cost_usd >= facts.warning_usd > 0:
            parts.append((f" ⚠ over {money(facts.warning_usd)}", "bold $severity-medium"))
        elif width >= 110 and facts.warning_usd > 0:
            parts.append((f", {_WARNING_MARK} warns at {money(facts.warning_usd)}", "$aeon-muted"))
        return [*parts, time]

    @property
    def _cost_style(self) -> str:
        facts = self._facts
        if facts.ceiling_usd and facts.cost_usd >= facts.ceiling_usd:
            return "$severity-high"
        return "$severity-medium" if facts.cost_usd >= facts.warning_usd > 0 else "$aeon-text"


def gauge(facts: WorkflowFacts, cells: int) -> str:
    """Return the cost as a bar up to the ceiling, with a mark where the warning is."""
    if facts.ceiling_usd <= 0:
        return ""
    full = min(cells, int(facts.cost_usd / facts.ceiling_usd * cells + 0.5))
    bar = [_FULL] * full + [_EMPTY] * (cells - full)
    mark = int(facts.warning_usd / facts.ceiling_usd * cells)
    if 0 < mark < cells and full <= mark:
        bar[mark] = _WARNING_MARK
    return "".join(bar) + _CEILING_MARK
