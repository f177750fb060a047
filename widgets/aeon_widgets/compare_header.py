"""The lines above a comparison: which runs are compared, how they descend from each other, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from aeon_widgets.compare_rows import ComparedRun
from aeon_widgets.icons import VARIABLES, run_style
from aeon_widgets.text import fit, one_line

SIDES = ("A", "B")
_RULE = 3

Part = tuple[str, str]


class CompareHeader(Widget):
    """The name of each run above its side, the chosen one marked; a click chooses a run, a second one opens it."""

    DEFAULT_CSS = """
    CompareHeader { dock: top; height: auto; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    side: reactive[int] = reactive(0)
    """The run that is chosen: 0 for A, 1 for B."""
    beside: reactive[bool] = reactive(True, layout=True)
    place: reactive[str] = reactive("")
    """Where the person is among the differences."""

    @dataclass
    class Clicked(Message):
        """The person clicked the head of a run; `again` when it was clicked twice."""

        side: int
        again: bool

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[ComparedRun] = ()
        self._relation = ""

    def update_runs(self, runs: Sequence[ComparedRun], relation: str = "") -> None:
        """Show these two runs, and how they descend from each other."""
        self._runs, self._relation = runs, relation
        self.refresh()

    def render(self) -> Content:
        width = self.size.width
        cells = (width - _RULE) // 2 if self.beside else width
        heads = [self._head(side, cells) for side in range(len(self._runs))]
        if self.beside and len(heads) == 2:
            gap = " " * (cells - heads[0].cell_length)
            return Content("\n").join([self._title(width), Content.assemble(heads[0], gap, " │ ", heads[1])])
        return Content("\n").join([self._title(width), *heads])

    def _title(self, width: int) -> Content:
        head = "aeon  Compare  "
        right = fit(self.place, width - len(head))
        told = fit(self._relation, width - len(head) - cell_len(right) - 2)
        gap = " " * max(1, width - len(head) - cell_len(told) - cell_len(right))
        return Content.assemble(
            ("aeon", "bold $aeon-accent"), ("  Compare  ", "bold"), (told, "$aeon-muted"), gap, (right, "bold")
        )

    def _head(self, side: int, cells: int) -> Content:
        run = self._runs[side]
        chosen = side == self.side
        lead = f"{'▸' if chosen else ' '} {SIDES[side]} "
        icon, style = ("✖", "failed") if run.view is None and run.problem else ("…", "muted")
        status = "unreadable" if run.problem else "reading …"
        if run.view is not None:
            (icon, style), status = run_style(run.view.status), run.view.status.replace("_", " ")
        told = f" {icon} {one_line(status, 30)}"
        room = cells - len(lead)
        name = fit(one_line(run.run_id, 80), room)
        parts: list[Part] = [(lead, "bold $aeon-accent" if chosen else "$aeon-muted"), (name, "bold" if chosen else "")]
        if (left := room - cell_len(name)) >= cell_len(told):
            parts.append((told, VARIABLES[style]))
            left -= cell_len(told)
            task = one_line(run.view.task) if run.view is not None else ""
            if task and left > 8:
                parts.append((f"  {fit(task, left - 2)}", "$aeon-muted"))
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or offset.y == 0:
            return
        side = int(offset.x > self.size.width // 2) if self.beside else offset.y - 1
        self.post_message(self.Clicked(side, event.chain > 1))
