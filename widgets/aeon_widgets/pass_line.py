"""The passes of a run on one line: their phases, and what each came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
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
    plain = _told(by_pass, known, live)
    named, over = _told(by_pass, known, live, named=max(known, default=0)), _over(by_pass)
    lines = chain(
        _lines(named, last_too=over),
        _lines(plain),
        _without_the_oldest(named, last_too=True) if over else (),
        _without_the_oldest(plain),
    )
    line: list[Part] = []
    for line in lines:
        if _width(line) <= width:
            break
    return _cut(line, width)


def _over(by_pass: Mapping[int, list[PhaseView]]) -> bool:
    return all(phase.finished for phase in by_pass[max(by_pass)])


def _told(
    by_pass: Mapping[int, list[PhaseView]], known: Mapping[int, AssessmentView], live: bool, named: int = 0
) -> list[tuple[list[Part], list[Part]]]:
    """Return each pass with its phases and without them; of the pass `named`, the scores have their names."""
    return [
        (
            [*_head(number), *_phases(phases, live), *_scores(known.get(number), named=number == named)],
            [*_head(number), *_scores(known.get(number), named=number == named)],
        )
        for number, phases in by_pass.items()
    ]


def _lines(passes: Sequence[tuple[list[Part], list[Part]]], *, last_too: bool = False) -> Iterator[list[Part]]:
    """Yield lines with all passes, of which the older ones lose their phases first; the last one keeps them, or not."""
    for shortened in range(len(passes) + last_too):
        yield _joined([short if index < shortened else whole for index, (whole, short) in enumerate(passes)])


def _without_the_oldest(
    passes: Sequence[tuple[list[Part], list[Part]]], *, last_too: bool = False
) -> Iterator[list[Part]]:
    last = passes[-1][last_too]
    for left_out in range(1, len(passes)):
        yield [(_MORE, "muted"), *_joined([*(short for _, short in passes[left_out:-1]), last])]


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


def _head(number: int) -> list[Part]:
    return [(f"{number}", "accent")]


def _phases(phases: list[PhaseView], live: bool) -> list[Part]:
    parts: list[Part] = []
    for phase in phases:
        parts += [(_LINK if parts else " ", "muted"), _phase(phase, live)]
    return parts


def _scores(assessment: AssessmentView | None, *, named: bool) -> list[Part]:
    if assessment is None:
        return []
    icon, style = (STATUS_ICONS["complete"], "complete") if assessment.converged else ("✖", "medium")
    complete, coherent = score(assessment.completeness_score), score(assessment.coherence_score)
    told = f"complete {complete} coherent {coherent}" if named else f"{complete} {coherent}"
    return [(f" {icon} {told}", style)]


def _phase(phase: PhaseView, live: bool) -> Part:
    name = one_line(phase.phase, 20)
    if phase.finished:
        return name, ""
    status = shown_status("running", live)
    return f"{ROW_ICONS[status]} {name}", "medium" if status == STOPPED else status
