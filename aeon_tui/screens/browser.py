"""The list of runs, live ones first, then the newest; forks under the run that they were forked from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.visible import visible
from aeon_tui.run_actions import RUN_ACTIONS
from aeon_tui.screens.run_search import Runs, RunSearch
from aeon_widgets.filter_line import FilterLine
from aeon_widgets.footer import KeyFooter, fit_footer
from aeon_widgets.run_list import RunList
from aeon_widgets.run_tree import RunLine, as_tree
from aeon_widgets.text_view import TextView

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

REFRESH_SECONDS = 3.0
FOUND_SECONDS = 0.1
"""How often what a search has found is shown."""
NO_WORDS = "no run has these words; enter searches the full text of all runs"
ListRuns = Callable[[Path], "Sequence[RunSummary]"]


def listing_of(runs_dir: Path) -> ListRuns:
    """Return what lists the runs of a directory again and again, and reads only what has changed."""
    from aeon_core.journal.listing import Listing

    listing = Listing(runs_dir)
    return lambda _: listing.runs()


class BrowserTitle(Widget):
    """What the list is of, and how many there are."""

    DEFAULT_CSS = """
    BrowserTitle { height: 1; background: $panel; color: $aeon-text; padding: 0 1; }
    """

    def __init__(self, runs_dir: Path) -> None:
        super().__init__()
        self._runs_dir = runs_dir
        self._count = ""

    def update_count(self, count: str) -> None:
        """Say how many runs there are."""
        if count != self._count:
            self._count = count
            self.refresh()

    def render(self) -> Content:
        where = visible(str(self._runs_dir))
        return Content.assemble(
            ("aeon", "bold $aeon-accent"), ("  Runs", "bold"), f"  {self._count}", (f"  {where}", "$aeon-muted")
        ).truncate(self.size.width, ellipsis=True)


class BrowserScreen(Screen[None]):
    """All runs of the runs directory. Enter opens one, live or past, in the same view."""

    HELP_TITLE = "Runs"

    DEFAULT_CSS = """
    BrowserScreen { background: $background; }
    BrowserScreen FilterLine { display: none; }
    BrowserScreen.-filtered FilterLine { display: block; }
    BrowserScreen RunList { height: 1fr; padding: 1 0 0 0; }
    BrowserScreen TextView { height: 1fr; padding: 1 2; display: none; }
    BrowserScreen.-empty TextView { display: block; }
    BrowserScreen.-empty RunList { display: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("r", "reload", "Reload"),
        *RUN_ACTIONS,
        Binding("escape", "back", "Back"),
    ]

    def __init__(self, runs_dir: Path, read: ListRuns | None = None) -> None:
        super().__init__()
        self._runs_dir = runs_dir
        self._read = read
        self._runs: Runs | None = None
        """None as long as the directory has not been read, or cannot be."""
        self._search: RunSearch | None = None
        self._shown_of_search = 0
        self._watch: Timer | None = None

    def compose(self) -> ComposeResult:
        yield BrowserTitle(self._runs_dir)
        yield FilterLine("task, status, model or run id; enter searches the full text of all runs")
        yield RunList()
        yield TextView()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(RunList):
            return  # the app is ending before the screen was made
        self.query_one(BrowserTitle).update_count("reading …")
        self.query_one(RunList).focus()
        self.set_interval(REFRESH_SECONDS, self._reload_if_active)

    def on_unmount(self) -> None:
        self._drop_search()

    def on_resize(self) -> None:
        fit_footer(self)

    def on_screen_resume(self) -> None:
        self.action_reload()

    @property
    def selected_run(self) -> RunSummary | None:
        """The run that the list's cursor is on, as it was last read."""
        # Asked for by the keys at the foot, also while the screen is taken down.
        row = next((rows.selected for rows in self.query(RunList)), None)
        return self._runs.by_id.get(row.run_id) if row is not None and self._runs is not None else None

    @property
    def chosen_run(self) -> Path | None:
        """The journal that the keys of a run's actions go for."""
        run = self.selected_run
        return Path(run.path) if run is not None else None

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "back":
            return self.has_class("-filtered")
        return action != "filter" or not isinstance(self.focused, FilterLine)

    def _reload_if_active(self) -> None:
        if self.is_current:
            self.action_reload()

    @work(thread=True, exclusive=True, group="runs", exit_on_error=False)
    def action_reload(self) -> None:
        """Read the directory again, on a thread."""
        try:
            if self._read is None:
                self._read = listing_of(self._runs_dir)
            found = self._read(self._runs_dir)
        except AeonError as error:
            self.app.call_from_thread(self._show_problem, error.message)
        except OSError as error:
            self.app.call_from_thread(self._show_problem, f"{str(self._runs_dir)!r}: {error.strerror}")
        else:
            known = self._runs
            if known is None or found != known.all:
                self.app.call_from_thread(self._take, Runs(found))

    def _take(self, runs: Runs) -> None:
        self._runs = runs
        self._show_runs()
        self._show_text(not runs.all, ("bold", "No runs yet."), ("", START_HINT))
        self.refresh_bindings()

    def _show_problem(self, message: str) -> None:
        self._runs = None
        self.query_one(BrowserTitle).update_count("")
        self._show_text(True, ("high", f"✖ {message}"))

    def _show_text(self, shown: bool, *blocks: tuple[str, str]) -> None:
        self.set_class(shown, "-empty")
        self.query_one(TextView).show(blocks)
        if not shown and self.focused is None:
            self.query_one(RunList).focus()

    def _show_runs(self, *, keep: bool = True) -> None:
        """Show what there is of the runs: those found, those that pass the filter, or all; `keep` the selection."""
        if self._runs is None:
            return
        if self._search is not None:
            self._show_found(self._search, self._runs)
            return
        text = self.query_one(FilterLine).value
        matching, total = self._runs.matching(text), f"{len(self._runs.all):,}"
        lines = as_tree(matching) if matching is not self._runs.all else self._runs.tree
        self._update_list(lines, "", NO_WORDS, keep)
        self.query_one(BrowserTitle).update_count(f"{len(matching):,} of {total}" if text.split() else total)

    def _show_found(self, search: RunSearch, runs: Runs) -> None:
        found = search.found[:]
        self._shown_of_search = len(found)
        lines = []
        for each in found:
            if (run := runs.by_id.get(each.run_id)) is not None:
                lines += [RunLine(run), RunLine(run, found=each.excerpt, found_in=each.type)]
        where_empty = "no run holds this text" if search.ended else "searching …"
        self._update_list(lines, search.text, where_empty, keep=True)
        self.query_one(BrowserTitle).update_count(search.told())

    def _update_list(self, lines: Sequence[RunLine], wanted: str, where_empty: str, keep: bool) -> None:
        rows = self.query_one(RunList)
        had_one = rows.selected is not None
        rows.update_lines(lines, wanted, where_empty=where_empty, keep=keep)
        if had_one != (rows.selected is not None):
            self.refresh_bindings()  # the keys that do something with the selected run

    def action_filter(self) -> None:
        """Open the line that narrows the list."""
        self.add_class("-filtered")
        self.query_one(FilterLine).focus()
        self.refresh_bindings()

    def action_back(self) -> None:
        """Stop a search that is going on; else show all runs again."""
        if self._search is not None and not self._search.ended:
            self._search.stop()
            return
        self._drop_search()
        self.remove_class("-filtered")
        self.query_one(FilterLine).value = ""
        self.query_one(RunList).focus()
        self._show_runs()
        self.refresh_bindings()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self._drop_search()
        self._show_runs(keep=not self.query_one(FilterLine).value)

    @on(Input.Submitted)
    def _search_texts(self) -> None:
        text = self.query_one(FilterLine).value.strip()
        if not text or self._runs is None:
            self.query_one(RunList).focus()
            return
        self._drop_search()
        search = self._search = RunSearch(self._runs.all, text)
        self.run_worker(search.work, thread=True, group="search", exit_on_error=False)
        self._watch = self.set_interval(FOUND_SECONDS, self.look_at_search)
        self.query_one(RunList).focus()
        self._show_runs()

    def look_at_search(self) -> None:
        """Show what a search has found since."""
        search = self._search
        if search is None or self._runs is None:
            return
        ended = search.ended
        if ended or len(search.found) != self._shown_of_search:
            self._show_runs()
        else:
            self.query_one(BrowserTitle).update_count(search.told())
        if ended and self._watch is not None:
            self._watch.stop()

    def _drop_search(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        if self._search is not None:
            self._search.stop()
            self._search = None

    def on_rows_view_chosen(self) -> None:
        run = self.selected_run
        if run is not None:
            self.app.open_journal(Path(run.path))  # type: ignore[attr-defined]  # the app that owns this screen


START_HINT = """
Start one from a shell:

  aeon-tui run "your task"     on the model you have configured
  aeon-tui demo                on the simulated model: no key, no network

It appears here as soon as it has begun."""
