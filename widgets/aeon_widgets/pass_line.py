"""The timeline of a run on one line: its passes with their phases and scores, and a scrubber through its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from aeon_core.journal.values import number_of
from aeon_core.journal.view.formatting import score
from aeon_core.journal.view.model import AssessmentView, PhaseView, RunView
from aeon_widgets.convergence import score_level
from aeon_widgets.icons import ROW_ICONS, STATUS_ICONS, STOPPED, VARIABLES, shown_status
from aeon_widgets.pane import message
from aeon_widgets.text import fit, one_line

_LINK = " ─ "
_GAP = "   "
_MORE = "… "
_HERE = "◆"
"""Precedes the past moment that is shown."""


class Place(NamedTuple):
    """A pass, or a phase of it."""

    pass_number: int
    phase: str = ""


class PassPart(NamedTuple):
    """Text that is safe to show, the name of its style, and the pass or phase that it stands for."""

    text: str
    style: str
    place: Place | None = None


class PassLine(Widget):
    """The pass timeline. If it is too long, older passes lose their phases, then the oldest passes are left out.

    A click on a pass or a phase sends `Chosen`.
    """

    RECORDS: ClassVar[frozenset[str]] = frozenset(
        {"phase", "pass", "convergence", "run_started", "run_finished", "run_resumed"}
    )

    DEFAULT_CSS = """
    PassLine { height: 1; padding: 0 1; background: $background; color: $aeon-text; display: none; }
    PassLine.-adaptive { display: block; }
    """

    @message
    class Chosen(Message):
        """The person wants to see the run as a pass, or a phase of it, had ended."""

        place: Place

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._live = True
        self._here: Place | None = None

    def update_view(self, view: RunView, live: bool, here: Place | None = None) -> None:
        """Show the passes so far; `live` says whether the run is live, `here` which past moment is shown."""
        self._view, self._live, self._here = view, live, here
        self.set_class(view.adaptive, "-adaptive")
        self.refresh()

    def _parts(self) -> list[PassPart]:
        return pass_parts(self._view, self.size.width, live=self._live, here=self._here)

    def render(self) -> Content:
        return Content.assemble(
            *((part.text, " ".join(VARIABLES.get(name, name) for name in part.style.split())) for part in self._parts())
        )

    def on_click(self, event: events.Click) -> None:
        offset, left = event.get_content_offset(self), 0
        for part in self._parts():
            right = left + cell_len(part.text)
            if offset is not None and left <= offset.x < right and part.place is not None:
                self.post_message(self.Chosen(part.place))
            left = right


def pass_parts(view: RunView, width: int, *, live: bool = True, here: Place | None = None) -> list[PassPart]:
    """Return the passes as parts of a line of at most `width` cells.

    A sign precedes the phase or pass `here`, and what comes after it is muted.
    """
    by_pass: dict[int, list[PhaseView]] = {}
    for phase in view.phases:
        by_pass.setdefault(phase.pass_number, []).append(phase)
    if not by_pass:
        return _cut([PassPart("no pass has started", "muted")], width)
    line: list[PassPart] = []
    for line in _lines(by_pass, {each.pass_number: each for each in view.assessments}, live):
        line = _marked(line, here)
        if sum(cell_len(part.text) for part in line) <= width:
            break
    return _cut(line, width)


def _lines(
    by_pass: Mapping[int, Sequence[PhaseView]], known: Mapping[int, AssessmentView], live: bool
) -> Iterator[list[PassPart]]:
    """Yield shorter and shorter versions of the line.

    Passes lose their phases, the older ones first, but never one that still runs; then the last scores lose their
    names; then the oldest passes are left out.
    """
    numbers = list(by_pass)
    over = all(phase.finished for phase in by_pass[numbers[-1]])

    def label(number: int, *, whole: bool, named: bool = False) -> list[PassPart]:
        head = PassPart(f"{number}", "accent", Place(number))
        phases: list[PassPart] = []
        for phase in by_pass[number] if whole else ():
            phases += [PassPart(_LINK if phases else " ", "muted"), _phase(phase, live)]
        return [head, *phases, *_scores(known.get(number), named=named)]

    for named in (max(known, default=0), 0):
        for shortened in range(len(numbers) + over):
            whole = numbers[shortened:]
            yield _joined(label(number, whole=number in whole, named=number == named) for number in numbers)
    for left_out in range(1, len(numbers)):
        last = label(numbers[-1], whole=True)
        yield [PassPart(_MORE, "muted"), *_joined([*(label(each, whole=False) for each in numbers[left_out:-1]), last])]


def _marked(line: list[PassPart], here: Place | None) -> list[PassPart]:
    """Return the line with the sign before the moment shown; if its phase is left out, before the pass."""
    if here is None:
        return line
    places = [part.place for part in line]
    sought = here if here in places else Place(here.pass_number)
    if sought not in places:
        return [PassPart(f"{_HERE} ", "accent"), *line] if not here.pass_number else line
    at = len(places) - 1 - places[::-1].index(sought) if sought.phase else places.index(sought)
    own = next(
        (after for after in range(at + 1, len(line)) if places[after] not in (None, Place(sought[0]))), len(line)
    )
    return [
        *line[:at],
        PassPart(f"{_HERE}{line[at].text}", "bold accent", sought),
        *line[at + 1 : own],
        *(PassPart(part.text, "muted", part.place) for part in line[own:]),
    ]


def _joined(passes: Iterable[list[PassPart]]) -> list[PassPart]:
    line: list[PassPart] = []
    for each in passes:
        line += [PassPart(_GAP, ""), *each] if line else each
    return line


def _cut(line: list[PassPart], width: int) -> list[PassPart]:
    shown: list[PassPart] = []
    for part in line:
        piece = fit(part.text, width)
        shown.append(part._replace(text=piece))
        width -= cell_len(piece)
    return shown


def _scores(assessment: AssessmentView | None, *, named: bool) -> list[PassPart]:
    """Return the verdict and scores of a pass; the colour of a score says whether it reached the required one."""
    if assessment is None:
        return []
    place, asked = Place(assessment.pass_number), assessment.criteria
    icon, style = (STATUS_ICONS["complete"], "complete") if assessment.converged else ("✖", "medium")
    parts = [PassPart(f" {icon}", style, place)]
    for word, name, value in (
        ("complete", "completeness", assessment.completeness_score),
        ("coherent", "coherence", assessment.coherence_score),
    ):
        label = f" {word} {score(value)}" if named else f" {score(value)}"
        parts.append(PassPart(label, score_level(value, number_of(asked.get(name))) or style, place))
    return parts


def _phase(phase: PhaseView, live: bool) -> PassPart:
    place = Place(phase.pass_number, phase.phase)
    name = one_line(phase.phase, 20)
    if phase.finished:
        return PassPart(name, "", place)
    status = shown_status("running", live)
    return PassPart(f"{ROW_ICONS[status]} {name}", "medium" if status == STOPPED else status, place)


BACK, ON, HERE = "◀", "▶", "●"


class Scrubber(Widget):
    """`◀━━●──▶`. `share` is the position between the first record, 0, and now, 1."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Scrubber { width: 24; height: 1; background: $background; color: $aeon-muted; }
    """

    share: reactive[float] = reactive(1.0)

    @message
    class Stepped(Message):
        """The user wants to go one record back, -1, or forward, 1."""

        by: int

    @message
    class Moved(Message):
        """The person wants to go to a position between the first record, 0, and now, 1."""

        share: float

    def render(self) -> Content:
        room = max(1, self.size.width - 2)
        here = round(min(1.0, max(0.0, self.share)) * (room - 1))
        return Content.assemble(
            (BACK, "$aeon-accent"),
            ("━" * here, "$aeon-accent"),
            (HERE, "bold $aeon-accent"),
            ("─" * (room - 1 - here), "$aeon-muted"),
            (ON, "$aeon-accent"),
        )

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        if event.x <= 0 or event.x >= self.size.width - 1:
            self.post_message(self.Stepped(-1 if event.x <= 0 else 1))
            return
        self.capture_mouse()
        self._go(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            event.stop()
            self._go(event.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()
        self.release_mouse()

    def _go(self, x: int) -> None:
        self.post_message(self.Moved(min(1.0, max(0.0, (x - 1) / max(1, self.size.width - 3)))))
