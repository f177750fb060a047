"""The list of runs, live ones first, then the newest; forks under the run that they were forked from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_tui.messages import OpenJournal
from aeon_tui.screens.browser.actions import RUN_KEYS
from aeon_tui.screens.browser.filter_line import FilteredScreen, Present, Runs, RunSearch
from aeon_tui.screens.browser.preview import PreviewPane
from aeon_tui.screens.browser.widgets import BrowserTitle, FilterHint, ListRuns, RunsText
from aeon_tui.screens.context import context_of
from aeon_widgets.filter_line import FilterLine
from aeon_widgets.footer import KeyFooter
from aeon_widgets.key_names import key_of
from aeon_widgets.run_list import RunList, RunListHeader, ordered
from aeon_widgets.run_preview import Kin
from aeon_widgets.run_tree import LIVE, WORKFLOW, RunLine, as_tree

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

REFRESH_SECONDS, LIVE_SECONDS, TICK_SECONDS = 3.0, 0.5, 1.0
"""How often the folder is read, more often while a run is live unless that is slow; how often ages are updated."""
_SHARE = 20
"""Reading takes at most one part in so many of the time."""
WIDE = 100
"""From this width the preview is next to the list, unless closed; on narrower screens it opens below the list."""
ORDERS = ("", "cost", "scores")


class BrowserScreen(FilteredScreen):
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
        Binding("slash", "filter", "Filter", key_display="/", tooltip="By words and filters", id="browser.filter"),
        Binding("v", "preview", "Preview", id="browser.preview"),
        *RUN_KEYS,
        Binding("S", "next_status", "Next status", show=False, tooltip="Filter by it", id="browser.status"),
        Binding("V", "next_order", "Order", show=False, tooltip="By age, cost or scores", id="browser.order"),
        Binding("ctrl+r", "reload", "Reload", show=False, id="browser.reload"),
        Binding("escape", "back", "Back", id="browser.back"),
    ]

    def __init__(
        self, runs_dir: Path, read: ListRuns | None = None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__(clock)
        self._runs_dir = runs_dir
        self._read = read
        self._order = ""
        self._due_at = 0.0
        self._damaged: set[str] = set()
        """Runs of which a preview has told so."""
        self.preview_wanted: bool | None = None
        """Whether the person wants the preview; None while nothing was said."""

    def compose(self) -> ComposeResult:
        yield BrowserTitle(self._runs_dir)
        yield FilterLine("words or filters; enter searches the full text of all runs", self.suggester)
        yield FilterHint()
        yield RunsText()
        with Container(id="runs"):
            with Vertical(id="list"):
                yield RunListHeader()
                yield RunList()
            yield PreviewPane(self.clock)
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(RunList):
            return  # the app is ending before the screen was made
        self.query_one(BrowserTitle).update_count("reading …")
        self.query_one(RunList).focus()
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
    @override
    def selected_run(self) -> RunSummary | None:
        # Asked for by the keys at the foot, also while the screen is taken down.
        row = next((rows.selected for rows in self.query(RunList)), None)
        return self.runs.by_id.get(row.run_id) if row is not None and self.runs is not None else None

    @property
    def chosen_run(self) -> Path | None:
        """The journal that the keys of a run's actions go for."""
        run = self.selected_run
        return Path(run.path) if run is not None else None

    def offers(self, action: str) -> bool:
        """Return whether an action applies to the selected run in its current state."""
        run = self.selected_run
        if run is None or (run.kind == WORKFLOW and (action not in ("resume", "fork") or run.status == LIVE)):
            return False
        if run.status == LIVE:
            return action == "fork" and run.passes > 0
        return run.resumable if action == "resume" else action != "label" or run.ended

    @override
    def forks_of(self, run: RunSummary) -> list[RunSummary]:
        return self.runs.forks.get(run.run_id, []) if self.runs is not None else []

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "back":
            return self.has_class("-filtered")
        if action in ("filter", "preview", "next_status", "next_order"):
            empty = self.has_class("-unreadable") or (self.runs is not None and not self.runs.all)
            return not empty and (action != "filter" or not isinstance(self.focused, FilterLine))
        return super().check_action(action, parameters)

    def _tick(self) -> None:
        if self.is_current:
            self.query_one(RunList).tick(self.clock())

    def _reload_if_due(self) -> None:
        if self.is_current and time.monotonic() >= self._due_at:
            self.action_reload()

    @override
    def read_again(self) -> None:
        self.action_reload()

    @work(thread=True, exclusive=True, group="runs", exit_on_error=False)
    def action_reload(self) -> None:
        """Read the directory again, on a thread."""
        began = time.monotonic()
        self._due_at = began + REFRESH_SECONDS
        try:
            found = self._read(self._runs_dir) if self._read is not None else context_of(self).listed_runs()
        except AeonError as error:
            self.app.call_from_thread(self._show_problem, error.message)
        except OSError as error:
            self.app.call_from_thread(self._show_problem, f"{str(self._runs_dir)!r}: {error.strerror}")
        else:
            known = self.runs
            if any(run.status == LIVE for run in found):
                now = time.monotonic()
                self._due_at = min(self._due_at, now + max(LIVE_SECONDS, _SHARE * (now - began)))
            if known is None or found != known.all:
                self.app.call_from_thread(self._take, Runs(found))

    def _take(self, runs: Runs) -> None:
        self.runs = runs
        self.suggester.present = Present(runs.models, runs.statuses)
        self.show_runs()
        self.remove_class("-unreadable")
        self._show_first_start(not runs.all)
        if runs.all and self.focused is None:
            self.query_one(RunList).focus()
        self.refresh_bindings()

    def _show_problem(self, message: str) -> None:
        self.runs = None
        self.query_one(BrowserTitle).update_count("")
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
            self.call_after_refresh(self.query_one(RunList).focus)
            return
        from aeon_tui.screens.onboarding import Onboarding

        self.mount(first := Onboarding(), before="#runs")
        self.call_after_refresh(first.focus)

    @override
    def show_runs(self, *, keep: bool = True) -> None:
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
        self.query_one(BrowserTitle).update_count(total if asked.is_empty else f"{len(matching):,} of {total}")

    def _lines_of(self, runs: Sequence[RunSummary]) -> Sequence[RunLine]:
        if self._order:
            return [RunLine(run) for run in ordered(runs, self._order)]
        return as_tree(runs) if self.runs is None or runs is not self.runs.all else self.runs.tree

    def _show_found(self, search: RunSearch, runs: Runs) -> None:
        found = search.found[:]
        self.shown_of_search = len(found)
        lines = []
        for each in found:
            if (run := runs.by_id.get(each.run_id)) is not None:
                lines += [RunLine(run), RunLine(run, found=each.excerpt, found_in=each.part, seq=each.seq)]
        where_empty = "no run contains this text" if search.ended else "searching …"
        self._update_list(lines, search.text, where_empty, keep=True)
        self.query_one(BrowserTitle).update_count(search.told())

    def _update_list(self, lines: Sequence[RunLine], wanted: str, where_empty: str, keep: bool) -> None:
        rows = self.query_one(RunList)
        had_one = rows.selected is not None
        rows.tick(self.clock())
        rows.update_lines(lines, wanted, where_empty=where_empty, keep=keep)
        self.query_one(RunListHeader).update_order(self._order or "age")
        self._show_preview()
        if had_one != (rows.selected is not None):
            self.refresh_bindings()  # the keys that do something with the selected run

    @override
    def show_marks(self) -> None:
        marked = self.marked.run_id if self.marked is not None else ""
        self.query_one(RunList).update_marks(marked, frozenset(self._damaged))
        self.query_one(BrowserTitle).update_order(self._order, marked)

    def _show_preview(self) -> None:
        """Show the selected run beside the list, or under it, where the preview is open."""
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
        self.refresh_bindings()  # what can be done with one run may not be with another

    def action_preview(self) -> None:
        """Open the preview, or close it."""
        self.preview_wanted = not self.has_class("-preview")
        self._show_preview()
        if not self.preview_wanted and self.focused is self.query_one(PreviewPane):
            self.query_one(RunList).focus()

    def action_next_order(self) -> None:
        """Order by the next of age, cost and scores."""
        self._order_by(ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)])

    @on(RunListHeader.Ordered)
    def _title_clicked(self, event: RunListHeader.Ordered) -> None:
        self._order_by(event.order if event.order in ORDERS and event.order != self._order else "")

    def _order_by(self, order: str) -> None:
        self._order = order
        self.show_marks()
        self.show_runs()

    def on_rows_view_chosen(self) -> None:
        line = self.query_one(RunList).selected_line
        if line is not None and (run := self.selected_run) is not None:
            self.app.post_message(OpenJournal(Path(run.path), line.seq))
