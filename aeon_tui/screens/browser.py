"""The list of runs, newest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from aeon_core.errors import AeonError
from aeon_core.visible import visible
from aeon_widgets.footer import KeyFooter, fit_footer
from aeon_widgets.run_list import RunList
from aeon_widgets.text_view import TextView

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary

REFRESH_SECONDS = 3.0
ListRuns = Callable[[Path], "Sequence[RunSummary]"]


def list_runs(runs_dir: Path) -> Sequence[RunSummary]:
    """Return what is known of each run in a directory."""
    from aeon_core.journal.summary import list_runs

    return list_runs(runs_dir)


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
    BrowserScreen RunList { height: 1fr; padding: 1 0 0 0; }
    BrowserScreen TextView { height: 1fr; padding: 1 2; display: none; }
    BrowserScreen.-empty TextView { display: block; }
    BrowserScreen.-empty RunList { display: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "reload", "Reload")]

    def __init__(self, runs_dir: Path, read: ListRuns = list_runs) -> None:
        super().__init__()
        self._runs_dir = runs_dir
        self._read = read
        self._shown: Sequence[RunSummary] | None = None

    def compose(self) -> ComposeResult:
        yield BrowserTitle(self._runs_dir)
        yield RunList()
        yield TextView()
        yield KeyFooter()

    def on_mount(self) -> None:
        self.query_one(BrowserTitle).update_count("reading …")
        self.query_one(RunList).focus()
        self.set_interval(REFRESH_SECONDS, self._reload_if_active)

    def on_resize(self) -> None:
        fit_footer(self)

    def on_screen_resume(self) -> None:
        self.action_reload()

    def _reload_if_active(self) -> None:
        if self.is_current:
            self.action_reload()

    @work(thread=True, exclusive=True, group="runs", exit_on_error=False)
    def action_reload(self) -> None:
        """Read the directory again, on a thread."""
        try:
            runs = self._read(self._runs_dir)
        except AeonError as error:
            self.app.call_from_thread(self._show_problem, error.message)
        except OSError as error:
            self.app.call_from_thread(self._show_problem, f"{str(self._runs_dir)!r}: {error.strerror}")
        else:
            self.app.call_from_thread(self._show_runs, runs)

    def _show_runs(self, runs: Sequence[RunSummary]) -> None:
        if runs == self._shown:
            return
        self._shown = runs
        self.query_one(RunList).update_runs(runs)
        self.query_one(BrowserTitle).update_count(f"{len(runs):,}")
        self._show_text(not runs, ("bold", "No runs yet."), ("", START_HINT))

    def _show_problem(self, message: str) -> None:
        self._shown = None
        self.query_one(BrowserTitle).update_count("")
        self._show_text(True, ("high", f"✖ {message}"))

    def _show_text(self, shown: bool, *blocks: tuple[str, str]) -> None:
        self.set_class(shown, "-empty")
        self.query_one(TextView).show(blocks)
        if not shown and self.focused is None:
            self.query_one(RunList).focus()

    def on_rows_view_chosen(self) -> None:
        run = self.query_one(RunList).selected
        if run is not None:
            self.app.open_journal(Path(run.path))  # type: ignore[attr-defined]  # the app that owns this screen


START_HINT = """
Start one from a shell:

  aeon-tui run "your task"     on the model you have configured
  aeon-tui demo                on the simulated model: no key, no network

It appears here as soon as it has begun."""
