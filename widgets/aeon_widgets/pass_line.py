"""The passes of a run on one line: their phases, and what each came to."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from aeon_core.journal.adaptive_text import score
from aeon_core.journal.view import AssessmentView, PhaseView, RunView
from aeon_widgets.marks import ROW_ICONS, STATUS_ICONS, STOPPED, VARIABLES, shown_status
from aeon_widgets.text import fit, one_line

_LINK = " ─ "
_GAP = "   "
_MORE = "… "

Part = tuple[str, str]
"""Text that is safe to show, and the name of its style."""


class PassLine(Widget):
    """The pass timeline. Where it gets too long, the older passes lose their phases, then the oldest are left out."""

    RECORDS: ClassVar[frozenset[str]] = frozenset(
        {"phase", "pass", "convergence", "run_started", "run_finished", "run_resumed"}
    )

    DEFAULT_CSS = """
    PassLine { height: 1; padding: 0 1; background: $background; color: $aeon-text; display: none; }
    PassLine.-adaptive { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._live = True

    def update_view(self, view: RunView, live: bool) -> None:
        """Show the passes there are by now; `live` says whether the run goes on."""
        self._view, self._live = view, live
        self.set_class(view.adaptive, "-adaptive")
        self.refresh()

    def render(self) -> Content:
        parts = pass_parts(self._view, self.size.width, live=self._live)
        return Content.assemble(*((text, VARIABLES.get(style, "")) for text, style in parts))


def pass_parts(view: RunView, width: int, *, live: bool = True) -> list[Part]:
    """Return the passes as pieces of a line of at most `width` cells."""
    by_pass: dict[int, list[PhaseView]] = {}
    for phase in view.phases:
        by_pass.setdefault(phase.pass_number, []).append(phase)
    if not by_pass:
        return _cut([("no pass has begun", "muted")], width)
    known = {each.pass_number: each for each in view.assessments}
    whole = [_pass(number, phases, known.get(number), live) for number, phases in by_pass.items()]
    short = [_pass(number, [], known.get(number), live) for number in by_pass]
    return _cut(_fitting(whole, short, width), width)


def _fitting(whole: list[list[Part]], short: list[list[Part]], width: int) -> list[Part]:
    """Return as much as there is room for: the last pass with its phases, of the others what they came to."""
    for shortened in range(len(whole)):
        line = _joined([*short[:shortened], *whole[shortened:]])
        if _width(line) <= width:
            return line
    for left_out in range(1, len(whole)):
        line = [(_MORE, "muted"), *_joined([*short[left_out:-1], whole[-1]])]
        if _width(line) <= width:
            return line
    return [*([(_MORE, "muted")] if len(whole) > 1 else []), *whole[-1]]


def _joined(passes: list[list[Part]]) -> list[Part]:
    line: list[Part] = []
    for each in passes:
        line += [(_GAP, ""), *each] if line else each
    return line


def _cut(line: list[Part], width: int) -> list[Part]:
    shown: list[Part] = []
    for text, style in line:
        piece = fit(text, width)
        shown.append((piece, style))
        width -= cell_len(piece)
    return shown


def _width(line: list[Part]) -> int:
    return sum(cell_len(text) for text, _ in line)


def _pass(number: int, phases: list[PhaseView], assessment: AssessmentView | None, live: bool) -> list[Part]:
    parts: list[Part] = [(f"{number}", "accent")]
    for index, phase in enumerate(phases):
        parts += [(_LINK if index else " ", "muted"), _phase(phase, live)]
    if assessment is not None:
        icon, style = (STATUS_ICONS["complete"], "complete") if assessment.converged else ("✖", "medium")
        scores = f"{score(assessment.completeness_score)} {score(assessment.coherence_score)}"
        parts.append((f" {icon} {scores}", style))
    return parts


def _phase(phase: PhaseView, live: bool) -> Part:
    name = one_line(phase.phase, 20)
    if phase.finished:
        return name, ""
    status = shown_status("running", live)
    return f"{ROW_ICONS[status]} {name}", "medium" if status == STOPPED else status
