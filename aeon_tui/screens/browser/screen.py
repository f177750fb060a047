"""The list of runs, live ones first, then the newest; forks under the run that they were forked from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_tui.messages import CompareRuns, DeleteRun, OpenJournal
from aeon_tui.platform.background_tasks import reason
from aeon_tui.screens.browser.preview import PreviewPane
from aeon_tui.screens.browser.run_filter import (
    FilterSuggester,
    RunFilter,
    Runs,
    RunSearch,
    asked_status,
    hint,
    read_filter,
    with_status,
)
from aeon_tui.screens.context import PAST_RUN_KEYS, context_of
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import key_of
from aeon_widgets.pane import Item
from aeon_widgets.run_list import LIVE, WORKFLOW, RunLine, RunList, RunListHeader, as_tree, ordered
from aeon_widgets.run_preview import Kin
from aeon_widgets.tally import TallyHeader
from aeon_widgets.text import fit, one_line
from aeon_widgets.text_fields import FilterLine
from aeon_widgets.text_view import TextView

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

ListRuns = Callable[[Path], "Sequence[RunSummary]"]


class BrowserTitle(TallyHeader):
    """The title of the list: its folder, the number of runs, and their order."""

    DEFAULT_CSS = """
    BrowserTitle { height: 1; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    count: reactive[str] = reactive("reading …")
    """How many runs there are."""
    order: reactive[str] = reactive("")
    """Their order; empty if it is by age."""
    marked: reactive[str] = reactive("")
    """The id of the marked run, or how many are marked."""
    unlisted: reactive[int] = reactive(0)
    """How many files are no journals, or damaged at the beginning."""

    def __init__(self, runs_dir: Path) -> None:
        super().__init__()
        self._runs_dir = runs_dir

    @override
    def render(self) -> Content:
        return self.with_tally(self._title)

    def _title(self, room: int) -> Content:
        where = escape_controls(str(self._runs_dir))
        order = f" · by {self.order}" if self.order else ""
        unlisted = f" · {count(self.unlisted, 'unreadable file')}" if self.unlisted else ""
        marked = f" · ◆ {fit(one_line(self.marked), 26)} marked" if self.marked else ""
        return Content.assemble(
            ("aeon", "bold $aeon-accent"),
            ("  Runs", "bold"),
            f"  {self.count}{order}{marked}",
            (unlisted, "$severity-medium"),
            (f"  {where}", "$aeon-muted"),
        ).truncate(room, ellipsis=True)


class FilterHint(Widget):
    """The line under the filter: its possible terms, or the part that has no effect."""

    DEFAULT_CSS = """
    FilterHint { height: 1; background: $panel; color: $aeon-muted; padding: 0 1; }
    FilterHint.-problem { color: $severity-high; }
    """

    text: reactive[str] = reactive("")

    @override
    def render(self) -> Content:
        text = escape_controls(self.text)
        while cell_len(text) > self.size.width and " · " in text and not self.has_class("-problem"):
            text = text.rpartition(" · ")[0]
        return Content(text).truncate(self.size.width, ellipsis=True)


class RunsText(TextView):
    """Shows why the list cannot be read, in its place."""

    HELP_TITLE = "Runs"


REFRESH_SECONDS, LIVE_SECONDS, TICK_SECONDS = 3.0, 0.5, 1.0
"""Seconds between reads of the folder (fewer while a run is live, unless reading is slow) and updates of ages."""
_SHARE = 20
"""The share of time that reading may take is one in this number."""
WIDE = 100
"""From this width the preview is next to the list, unless closed; on narrower screens it opens below the list."""
ORDERS = ("", "cost", "scores")


FOUND_SECONDS = 0.1
"""Seconds between updates of what a search has found."""
_OF_A_RUN = ("mark", "compare", "delete", "copy_path")
"""Actions on the selected run."""


class BrowserScreen(SelectableScreen[None]):
    """All runs of the runs directory. Enter opens one, live or past, in the same view."""

    HELP_TITLE = "Runs"

    DEFAULT_CSS = """
    BrowserScreen {
        background: $background;
        FilterLine, FilterHint { display: none; }
        &.-filtered FilterLine, &.-filtered FilterHint { display: block; }
        #runs { height: 1fr; layout: vertical; }
        #list { height: 1fr; }
        RunList { height: 1fr; }
        PreviewPane { display: none; height: 1fr; border-top: solid $aeon-border; }
        PreviewPane:focus { border-top: solid $aeon-accent; }
        &.-preview PreviewPane { display: block; }
        &.-wide #runs { layout: horizontal; }
        &.-wide #list { width: 1fr; height: 1fr; }
        &.-wide PreviewPane { width: 27%; min-width: 36; border-top: none; border-left: solid $aeon-border; }
        &.-wide PreviewPane:focus { border-left: solid $aeon-accent; }
        RunsText { height: 1fr; padding: 1 2; display: none; }
        Onboarding { height: 1fr; }
        &.-unreadable RunsText { display: block; }
        &.-unreadable #runs, &.-no-runs #runs { display: none; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "app.new_run", "New run", id="app.new_run"),
        Binding("slash", "filter", "Filter", tooltip="By words and filters", id="browser.filter"),
        Binding("v", "preview", "Preview", id="browser.preview"),
        *PAST_RUN_KEYS,
        Binding("m", "mark", "Mark", show=False, tooltip="Mark it to compare with another", id="browser.mark"),
        Binding(
            "C", "compare", "Compare", show=False, tooltip="With the marked run, or choose one", id="browser.compare"
        ),
        Binding("delete", "delete", "Delete", show=False, tooltip="Asks first", id="browser.delete"),
        Binding("ctrl+y", "copy_path", "Copy path", show=False, tooltip="Of its journal", id="browser.copy_path"),
        Binding("S", "next_status", "Next status", show=False, tooltip="Filter by it", id="browser.status"),
        Binding("V", "next_order", "Order", show=False, tooltip="By age, cost or scores", id="browser.order"),
        Binding("ctrl+r", "reload", "Reload", show=False, id="browser.reload"),
        Binding("escape", "back", "Back", id="browser.back"),
    ]

    def __init__(
        self, runs_dir: Path, read: ListRuns | None = None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__()
        self._runs_dir = runs_dir
        self._read = read
        self.clock = clock
        """Returns the time from which ages are computed."""
        self.runs: Runs | None = None
        """None until the directory has been read, and if it cannot be."""
        self.marked: list[RunSummary] = []
        """The runs to compare, at most two; a third mark replaces the first."""
        self.search: RunSearch | None = None
        self._shown_of_search = 0
        self._watch: Timer | None = None
        self.suggester = FilterSuggester()
        self._order = ""
        self._due_at = 0.0
        self._list = RunList()
        self._damaged: set[str] = set()
        """Runs whose damage a preview has found."""
        self.preview_wanted: bool | None = None
        """Whether the user wants the preview; None until they choose."""

    def compose(self) -> ComposeResult:
        yield BrowserTitle(self._runs_dir)
        yield FilterLine("words or filters; ⏎ searches the full text of all runs", self.suggester)
        yield FilterHint()
        yield RunsText()
        with Container(id="runs"):
            with Vertical(id="list"):
                yield RunListHeader()
                yield self._list
            yield PreviewPane(self.clock)
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(RunList):
            return  # the app ends before the screen is composed
        self._list.focus()
        self.set_interval(LIVE_SECONDS, self._reload_if_due)
        self.set_interval(TICK_SECONDS, self._tick)

    def on_unmount(self) -> None:
        self.drop_search()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-wide")
        self._show_preview()

    def on_screen_resume(self) -> None:
        self.action_reload()

    @property
    def selected_run(self) -> RunSummary | None:
        """The run under the list's cursor, as last read."""
        row = self._list.selected
        return self.runs.by_id.get(row.run_id) if row is not None and self.runs is not None else None

    @property
    def chosen_run(self) -> Path | None:
        """The journal that the keys of a run's actions apply to."""
        run = self.selected_run
        return Path(run.path) if run is not None else None

    def offers(self, action: str) -> bool:
        """Return whether an action applies to the selected run in its current state."""
        run = self.selected_run
        if run is None or (run.kind == WORKFLOW and (action not in ("resume", "fork", "replay") or run.status == LIVE)):
            return False
        if run.status == LIVE:
            return action == "fork"
        return run.resumable if action == "resume" else action != "label" or run.ended

    def forks_of(self, run: RunSummary) -> list[RunSummary]:
        """Return the forks of a run, newest first."""
        return self.runs.forks.get(run.run_id, []) if self.runs is not None else []

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "back":
            return self.has_class("-filtered")
        if action in ("filter", "preview", "next_status", "next_order"):
            empty = self.has_class("-unreadable") or (self.runs is not None and not self.runs.all)
            return not empty and (action != "filter" or not isinstance(self.focused, FilterLine))
        return action not in _OF_A_RUN or self.selected_run is not None

    def _tick(self) -> None:
        if self.is_current:
            self._list.tick(self.clock())

    def _reload_if_due(self) -> None:
        if self.is_current and time.monotonic() >= self._due_at:
            self.action_reload()

    @work(thread=True, exclusive=True, group="runs", exit_on_error=False)
    def action_reload(self) -> None:
        """Read the directory again, on a thread."""
        began = time.monotonic()
        self._due_at = began + REFRESH_SECONDS
        try:
            found = self._read(self._runs_dir) if self._read is not None else context_of(self).listed_runs()
        except (AeonError, OSError) as error:
            self.app.call_from_thread(self._show_problem, reason(error))
        else:
            if self._read is None:
                self.app.call_from_thread(self._note_unlisted, len(context_of(self).unlisted_files))
            known = self.runs
            if any(run.status == LIVE for run in found):
                now = time.monotonic()
                self._due_at = min(self._due_at, now + max(LIVE_SECONDS, _SHARE * (now - began)))
            if known is None or found != known.all:
                self.app.call_from_thread(self._apply, Runs(found))

    def _note_unlisted(self, files: int) -> None:
        self.query_one(BrowserTitle).unlisted = files

    def _apply(self, runs: Runs) -> None:
        self.runs = runs
        self.suggester.runs = runs
        self.marked = [run for run in self.marked if run.run_id in runs.by_id]
        self.show_marks()
        self.show_runs()
        self.remove_class("-unreadable")
        self._show_first_start(not runs.all)
        if runs.all and self.focused is None:
            self._list.focus()
        self.refresh_bindings()

    def _show_problem(self, message: str) -> None:
        self.runs = None
        self.query_one(BrowserTitle).count = ""
        self.query_one(RunsText).show([("high", f"✖ {message}")])
        self._show_first_start(False)
        self.add_class("-unreadable")
        self.refresh_bindings()

    def _show_first_start(self, shown: bool) -> None:
        """Show the way to a first run in place of an empty list."""
        if shown == self.has_class("-no-runs"):
            return
        self.set_class(shown, "-no-runs")
        if not shown:
            self.query("Onboarding").remove()
            self.call_after_refresh(self._list.focus)
            return
        from aeon_tui.screens.onboarding import Onboarding

        self.mount(first := Onboarding(), before="#runs")
        self.call_after_refresh(first.focus)

    def show_runs(self, *, keep: bool = True) -> None:
        """Show the runs: those found, those that pass the filter, or all; `keep` the selection."""
        if self.runs is None:
            return
        if self.search is not None:
            self._show_found(self.search, self.runs)
            return
        asked = self.asked
        matching, total = self.runs.matching(asked), f"{len(self.runs.all):,}"
        self.show_hint(asked.problem)
        back, search = key_of(self, "browser.back"), key_of(self, "filter.submit", FilterLine)
        no_match, no_words = f"this filter; {back} shows all", f"; {search} searches the full text of all runs"
        nothing = f"no run matches{no_words}" if not asked.conditions else f"no run matches {no_match}"
        self._update_list(self._lines_of(matching), "", nothing, keep)
        self.query_one(BrowserTitle).count = total if asked.is_empty else f"{len(matching):,} of {total}"

    def _lines_of(self, runs: Sequence[RunSummary]) -> Sequence[RunLine]:
        if self._order:
            return [RunLine(run) for run in ordered(runs, self._order)]
        return as_tree(runs) if self.runs is None or runs is not self.runs.all else self.runs.tree

    def _show_found(self, search: RunSearch, runs: Runs) -> None:
        found = search.found[:]
        self._shown_of_search = len(found)
        lines = []
        for each in found:
            if (run := runs.by_id.get(each.run_id)) is not None:
                lines += [RunLine(run), RunLine(run, found=each.excerpt, found_in=each.part, seq=each.seq)]
        nothing = "nothing found before the search was stopped" if search.stopped else "no run contains this text"
        where_empty = f"{nothing}; {key_of(self, 'browser.back')} shows all" if search.ended else "searching …"
        self._update_list(lines, search.text, where_empty, keep=True)
        self.query_one(BrowserTitle).count = search.summary()

    def _update_list(self, lines: Sequence[RunLine], wanted: str, where_empty: str, keep: bool) -> None:
        rows = self._list
        had_one = rows.selected is not None
        rows.tick(self.clock())
        rows.update_lines(lines, wanted, where_empty=where_empty, keep=keep)
        self.query_one(RunListHeader).order = self._order or "age"
        self._show_preview()
        if had_one != (rows.selected is not None):
            self.refresh_bindings()  # the keys that act on the selected run

    def show_marks(self) -> None:
        """Show which run is marked, which are damaged, and the order."""
        marked = [run.run_id for run in self.marked]
        self._list.update_marks(frozenset(marked), frozenset(self._damaged))
        title = self.query_one(BrowserTitle)
        title.order, title.marked = self._order, "2" if len(marked) > 1 else "".join(marked)

    def _show_preview(self) -> None:
        """Show the selected run beside or below the list, if the preview is open."""
        is_open = self.preview_wanted if self.preview_wanted is not None else self.has_class("-wide")
        for pane in self.query(PreviewPane):
            self.set_class(is_open, "-preview")
            run = self.selected_run
            if not is_open:
                pane.forget()
            elif run is None or self.runs is None:
                pane.select(None, Kin())
            else:
                pane.select(run, Kin(run.parent in self.runs.by_id, self.forks_of(run)))

    @on(PreviewPane.Read)
    def _note_damage(self, event: PreviewPane.Read) -> None:
        change = self._damaged.add if event.damaged else self._damaged.discard
        change(event.run.run_id)
        self.show_marks()

    def on_rows_view_moved(self) -> None:
        self._show_preview()
        self.refresh_bindings()  # not every action applies to every run

    def action_preview(self) -> None:
        """Open the preview, or close it."""
        self.preview_wanted = not self.has_class("-preview")
        self._show_preview()
        if not self.preview_wanted and self.focused is self.query_one(PreviewPane):
            self._list.focus()

    def action_next_order(self) -> None:
        """Switch the order between age, cost and scores."""
        self._order_by(ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)])

    @on(RunListHeader.Ordered)
    def _title_clicked(self, event: RunListHeader.Ordered) -> None:
        self._order_by(event.order if event.order in ORDERS and event.order != self._order else "")

    def _order_by(self, order: str) -> None:
        self._order = order
        self.show_marks()
        self.show_runs()

    def on_rows_view_chosen(self) -> None:
        line = self._list.selected_line
        if line is not None and (run := self.selected_run) is not None:
            self.app.post_message(OpenJournal(Path(run.path), line.seq))

    @property
    def asked(self) -> RunFilter:
        """The parsed filter line."""
        return read_filter(self.query_one(FilterLine).value, self.clock().astimezone())

    def show_hint(self, problem: str) -> None:
        """Show the possible terms under the line, or the part of it that has no effect."""
        line = self.query_one(FilterLine).value
        shown = self.query_one(FilterHint)
        shown.set_class(bool(problem), "-problem")
        shown.text = hint(line, problem, self.suggester.runs)

    def action_next_status(self) -> None:
        """Filter by the next status that occurs among the runs; after the last one, show all."""
        if self.runs is None:
            return
        line = self.query_one(FilterLine).value
        choices = ["", *self.runs.statuses]
        asked = asked_status(line)
        at = choices.index(asked) if asked in choices else 0
        self.action_ask(with_status(line, choices[(at + 1) % len(choices)]))

    def action_ask(self, line: str) -> None:
        """Show the runs that pass the filter."""
        self.set_class(bool(line), "-filtered")
        filter_line = self.query_one(FilterLine)
        filter_line.value = line
        filter_line.cursor_position = len(line)
        self._list.focus()
        self.refresh_bindings()

    def action_filter(self) -> None:
        self.add_class("-filtered")
        self.set_focus(self.query_one(FilterLine))  # immediately, because the next key is a letter
        self.show_hint(self.asked.problem)
        self.refresh_bindings()

    def action_back(self) -> None:
        """Stop the current search, or else show all runs again."""
        if self.search is not None and not self.search.ended:
            self.search.stop()
            return
        self.drop_search()
        self.remove_class("-filtered")
        self.query_one(FilterLine).value = ""
        self._list.focus()
        self.show_runs()
        self.refresh_bindings()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self.drop_search()
        self.show_runs(keep=not self.query_one(FilterLine).value)

    @on(Input.Submitted)
    def _search_texts(self) -> None:
        asked = self.asked
        if asked.problem:
            return  # in the list, letters that correct the line would be keys
        self._list.focus()
        if not asked.text or self.runs is None:
            return
        self.drop_search()
        of = RunFilter(conditions=asked.conditions)
        search = self.search = RunSearch(self.runs.matching(of), asked.text)
        self.run_worker(search.work, thread=True, group="search", exit_on_error=False)
        self._watch = self.set_interval(FOUND_SECONDS, self.look_at_search)
        self.show_runs()

    def look_at_search(self) -> None:
        """Show what the search has found since the last update."""
        search = self.search
        if search is None or self.runs is None:
            return
        ended = search.ended
        if ended or len(search.found) != self._shown_of_search:
            self.show_runs()
        else:
            self.query_one(BrowserTitle).count = search.summary()
        if ended and self._watch is not None:
            self._watch.stop()

    def drop_search(self) -> None:
        """End the search and keep what it found."""
        if self._watch is not None:
            self._watch.stop()
        if self.search is not None:
            self.search.stop()
            self.search = None

    def action_mark(self) -> None:
        """Mark the selected run for a comparison, or unmark it."""
        run = self.selected_run
        if run is not None:
            others = [each for each in self.marked if each.run_id != run.run_id]
            self.marked = others if len(others) < len(self.marked) else [*others[-1:], run]
            self.show_marks()
            self.refresh_bindings()

    def action_compare(self) -> None:
        """Compare the two marked runs, or the selected run with the marked one; if none is marked, ask for one."""
        pair = {run.run_id: run for run in [*self.marked, self.selected_run][:2] if run is not None}.values()
        if any(run.kind == WORKFLOW for run in pair):
            self.app.clear_notifications()
            self.app.notify("A workflow has no passes to compare; only runs can be compared.", markup=False)
        elif pair:
            self.app.post_message(CompareRuns(*(Path(run.path) for run in pair)))

    def action_delete(self) -> None:
        """Delete the selected run after asking."""
        if (run := self.selected_run) is not None:
            self.app.post_message(DeleteRun(run, len(self.forks_of(run)), self.action_reload))

    @property
    def item(self) -> Item | None:
        """The id of the selected run."""
        return Item("the run id", run.run_id) if (run := self.selected_run) is not None else None

    def action_copy_path(self) -> None:
        """Copy the path of the run's journal, over SSH too."""
        if (run := self.selected_run) is not None:
            self.app.copy_to_clipboard(run.path)
            self.app.clear_notifications()
            self.app.notify(f"Copied: {run.path}", timeout=4, markup=False)
