"""Full-text search within one run: the input line, the matches by step, and one opened match."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input

from aeon_core.errors import AeonError
from aeon_core.journal.search import SearchHit, search_journal
from aeon_core.journal.view.last_states import LastStates
from aeon_core.journal.view.model import RunView
from aeon_core.units import count
from aeon_tui.platform.background_tasks import LatestWorker
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_tui.sources.base import RecordSource
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import key_of
from aeon_widgets.match_list import Heading, MatchList, RecordText, record_blocks
from aeon_widgets.step_pane import TABS
from aeon_widgets.tally import HeadLine
from aeon_widgets.text import Block, one_line
from aeon_widgets.text_fields import FilterLine

POLL_SECONDS = 0.05
HINT = "the words of a prompt, a reply, a tool's result …"


MOST = 10_000
"""The most records listed; a text that occurs in more of them is no help."""
PIECE_SECONDS = 0.004
PAUSE_SECONDS = 0.001
"""How long the thread works before it yields to the screen, and for how long."""


class RecordSearch:
    """Searches one run's journal for a text, on a thread. `found` grows, in the order of the records,
    until `ended` is True."""

    def __init__(self, journal: Path, wanted: str) -> None:
        self.wanted = wanted
        self.found: list[SearchHit] = []
        self.ended = False
        self.cancelled = False
        self.error: AeonError | None = None
        self._worked = time.perf_counter()
        threading.Thread(target=self._work, args=(journal,), name="aeon-search", daemon=True).start()

    @property
    def full(self) -> bool:
        """Whether more records may contain the text than are listed."""
        return len(self.found) >= MOST

    def cancel(self) -> None:
        """End the search soon; matches so far stay."""
        self.cancelled = not self.ended

    def _work(self, journal: Path) -> None:
        try:
            for match in search_journal(journal, self.wanted, cancelled=self._is_over):
                self.found.append(match)
        except AeonError as error:
            self.error = error
        finally:
            self.ended = True

    def _is_over(self) -> bool:
        if time.perf_counter() - self._worked > PIECE_SECONDS:
            time.sleep(PAUSE_SECONDS)
            self._worked = time.perf_counter()
        return self.cancelled or self.full


class StepPlace(NamedTuple):
    """Where a match is on the run's screen."""

    step_id: str
    tab: int
    """An index of the step pane's `TABS`."""
    words: str = ""
    """The searched text."""


class SearchScreen(SelectableScreen[StepPlace | None]):
    """Enter searches, then goes to the step that holds the text; if no step shows it, the record opens."""

    HELP_TITLE = "Search in the run"

    DEFAULT_CSS = """
    SearchScreen {
        background: $background;
        HeadLine { background: $background; color: $aeon-muted; }
        MatchList { height: 1fr; }
        RecordText { display: none; height: 1fr; border-top: solid $aeon-border; }
        RecordText:focus { border-top: solid $aeon-accent; }
        &.-opened RecordText { display: block; }
        &.-opened MatchList { height: 25%; min-height: 3; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "next(1)", "Next", id="search.next"),
        Binding("N", "next(-1)", "Previous", id="search.previous"),
        Binding("v", "record", "Record", id="search.raw"),
        Binding("slash", "type", "Search", id="search.type"),
        Binding("escape", "back", "Back", id="search.back"),
    ]

    def __init__(self, source: RecordSource, journal: Path, view: RunView | None = None) -> None:
        super().__init__()
        self._source, self._journal = source, journal
        self._view = view or RunView()
        """The run as its screen shows it."""
        self._search: RecordSearch | None = None
        self._shown: tuple[int, bool] = (-1, False)
        self._reading = LatestWorker(self, "record")

    def compose(self) -> ComposeResult:
        yield FilterLine(HINT)
        yield HeadLine("")
        yield MatchList()
        yield RecordText()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(HeadLine):
            return  # the app ends before the screen is composed
        self._say(f"{key_of(self, 'filter.submit', FilterLine)} searches every record of the run, including long texts")
        self.set_focus(self.query_one(FilterLine))
        self.set_interval(POLL_SECONDS, self._show_found)

    def on_unmount(self) -> None:
        if self._search is not None:
            self._search.cancel()

    @on(Input.Submitted)
    def _begin(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            return
        if self._search is not None:
            self._search.cancel()
        self._search, self._shown = RecordSearch(self._journal, event.value), (-1, False)
        self.remove_class("-opened")
        self.set_focus(self.query_one(MatchList))
        self._show_found()

    def _show_found(self) -> None:
        search = self._search
        if search is None or self._shown == (shown := (len(search.found), search.ended)):
            return
        self._shown = shown
        self.query_one(MatchList).update_matches(
            search.found[: shown[0]],
            search.wanted,
            steps={step.step_id: step.description for step in self._view.steps.values()},
        )
        self._say(_result(search, key_of(self, "search.back")))

    def _say(self, text: str) -> None:
        self.query_one(HeadLine).title = text

    def on_rows_view_chosen(self) -> None:
        """Go to the step that shows the text; if none does, open the record."""
        selected = self.query_one(MatchList).selected
        place = place_in(self._view, selected) if selected is not None else None
        if place is not None and self._search is not None:
            self.dismiss(place._replace(words=self._search.wanted))
        else:
            self.action_record()

    def action_record(self) -> None:
        """Open the record that contains the text."""
        if isinstance(self.query_one(MatchList).selected, SearchHit):
            self.add_class("-opened")
            self.set_focus(self.query_one(RecordText))
            self._open()

    def on_rows_view_moved(self) -> None:
        if self.has_class("-opened"):
            self._open()

    def _open(self) -> None:
        """Read the selected record, on a thread, and show it."""
        match, search = self.query_one(MatchList).selected, self._search
        if not isinstance(match, SearchHit) or search is None:
            return

        def read() -> Callable[[], None]:
            blocks = _blocks(self._journal, match, self._source)
            return lambda: show(blocks)

        def show(blocks: Sequence[Block]) -> None:
            if match is self.query_one(MatchList).selected:
                text = self.query_one(RecordText)
                place = f"seq {match.seq:,}" if match.seq is not None else f"byte {match.offset:,}"
                text.border_title = Content(f" {one_line(match.type or 'damaged', 40)} · {place} ")
                text.open(blocks, search.wanted)

        self._reading.submit(read)

    def action_next(self, by: int) -> None:
        """Go to another match, and open it if a match is open."""
        self.query_one(MatchList).select_next(by)

    def action_type(self) -> None:
        self.set_focus(self.query_one(FilterLine))

    def action_back(self) -> None:
        """Cancel the search in progress, close the record, or go back to the run."""
        if self._search is not None and not self._search.ended:
            self._search.cancel()
        elif self.has_class("-opened"):
            self.remove_class("-opened")
            self.set_focus(self.query_one(MatchList))
        else:
            self.dismiss()


def _result(search: RecordSearch, cancel: str) -> str:
    if search.error is not None:
        return one_line(search.error.message)
    number = len(search.found)
    found = f"{count(number, 'record')} {'matches' if number == 1 else 'match'}" if number else "no record matches"
    if not search.ended:
        return f"searching … {number:,} found · {cancel} cancels"
    if search.full:
        return f"the first {MOST:,} matching records"
    return f"{found} so far; the search was cancelled" if search.cancelled else found


def place_in(view: RunView, selected: SearchHit | Heading) -> StepPlace | None:
    """Return the step and tab that show a match, or the step of a heading; None if the view has neither."""
    step = view.steps.get(selected.step_id or "")
    if step is None:
        return None
    if isinstance(selected, Heading):
        return StepPlace(step.step_id, TABS.index("Output"))
    seq = selected.holder if selected.holder is not None else selected.seq
    shown: dict[str, tuple[str, list[int | None]]] = {
        "step": ("Output", [step.output_seq]),
        "llm": ("Prompt", [each for call in step.calls for each in (call.seq, call.finished_seq)]),
        "tool": ("Tool call", [each for call in step.tool_calls for each in (call.seq, call.finished_seq)]),
        "supervisor": ("Repairs", [repair.seq for repair in step.repairs]),
    }
    tab, seqs = shown.get(selected.part.partition(".")[0], ("", []))
    return StepPlace(step.step_id, TABS.index(tab)) if seq in seqs else None


def _blocks(journal: Path, match: SearchHit, source: RecordSource) -> list[Block]:
    """Return a record as text, with its long texts if they can be found."""
    record = source.record(match.seq) if match.seq is not None and not source.reading else None
    if record is not None:
        return record_blocks(record)
    try:
        with LastStates(journal, recent=1, until=match.end) as states:
            states.read_on()
            line, record, problem = states.last()
    except AeonError as error:
        return [("high", f"✖ {error.message}")]
    if record is None:
        return [("high", f"✖ {problem}"), ("", line.decode("utf-8", "replace"))]
    return record_blocks(record)
