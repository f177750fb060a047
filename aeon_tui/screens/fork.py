"""The forks of a run: the dialog that starts one, and the lineage, a tree of ancestors and forks with their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Label, Static
from typing_extensions import override

from aeon_core.errors import AeonError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_tui.messages import CompareRuns, OpenJournal, Start
from aeon_tui.platform.background_tasks import LatestWorker, reason
from aeon_tui.screens.dialogs import Box, Dialog
from aeon_tui.screens.editor import YamlArea, YamlEditor, ask_to_discard
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_tui.sessions.fork_job import ForkRequest
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import key_of
from aeon_widgets.pane import Problem, message
from aeon_widgets.run_list import RunList, RunListHeader, as_tree, family_of
from aeon_widgets.tally import HeadLine
from aeon_widgets.text_fields import LineInput

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.platform.editor import TextProblem

_RESUMABLE = ("running", "interrupted", "aborted", "failed", "cost_ceiling", "ttl_expired")
"""Statuses of runs that were, or would have been, in the pass after the last ended one."""

REFRESH_SECONDS = 1.0
"""Seconds between readings of the runs directory while the lineage is shown."""

ReadText = Callable[[Path, int], str]
"""Returns what a fork may change at a pass's start. Reads the journal. Raises AeonError, OSError."""


@dataclass(frozen=True)
class Parent:
    """A run to fork: `first` and `last` are the passes that a fork can start with."""

    path: Path
    model: str
    ttl: int
    last: int
    first: int = 1
    budget: float | None = None


def parent_of(path: Path) -> Parent:
    """Return the forkable passes of a run, from its journal's start and end. Raises UsageError for a file that is not a
    journal.
    """
    from aeon_core.journal.summary import summarise
    from aeon_core.runs.fork import forked_config

    config = forked_config(path)
    summary = summarise(path)
    if summary is None:
        raise UsageError(f"cannot read the journal {str(path)!r}; see the damage with `aeon-tui show`")
    first = summary.forked_at or 1
    last = summary.passes + (summary.status in _RESUMABLE)
    return Parent(path, summary.model, config.ttl, max(first, last), first, config.budget)


def text_of(path: Path, pass_number: int) -> str:
    """Return what a fork may change at a pass's start, as YAML. Raises UsageError."""
    from aeon_core.runs.fork import starting_point
    from aeon_tui.sessions.fork_job import fork_text

    return fork_text(*starting_point(path, pass_number))


class StartChoice(Widget, can_focus=True):
    """`◂ pass 2 ▸`: where a fork starts. Left, Right and the number of a pass choose."""

    HELP_TITLE = "From"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h,left_square_bracket", "move(-1)", "Earlier", id="fork_start.previous"),
        Binding("right,l,right_square_bracket", "move(1)", "Later", id="fork_start.next"),
    ]
    DEFAULT_CSS = """
    StartChoice { height: 1; background: $panel; color: $aeon-text; }
    StartChoice:focus { background: $aeon-cursor; text-style: bold; }
    """

    number: reactive[int] = reactive(1, init=False)
    """The pass that the fork starts with."""

    @message
    class Chosen(Message):
        """Another pass was chosen."""

        number: int

    def __init__(self, parent: Parent, number: int) -> None:
        super().__init__(id="start")
        self._of = parent
        self.set_reactive(StartChoice.number, number)

    def render(self) -> Content:
        of, number = self._of, self.number
        back, on = ("◂ " if number > of.first else "  "), (" ▸" if number < of.last else "")
        after = "   with all earlier results" if number > 1 else ""
        return Content.assemble((back, "$aeon-accent"), f"pass {number}", (on, "$aeon-accent"), (after, "$aeon-muted"))

    def validate_number(self, number: int) -> int:
        """Limit the choice to existing passes."""
        return min(max(number, self._of.first), self._of.last)

    def watch_number(self, number: int) -> None:
        self.post_message(self.Chosen(number))

    def action_move(self, by: int) -> None:
        self.number += by

    def on_click(self, event: events.Click) -> None:
        """Move by one where an arrow is."""
        on = len(f"◂ pass {self.number}")
        self.number += (on <= event.x <= on + 1) - (event.x < 2)

    def on_key(self, event: Any) -> None:
        if event.character is not None and event.character.isdecimal():
            event.stop()
            self.number = int(event.character)


class ForkDialog(Dialog[None]):
    """Asks where a fork starts and what it changes. It stays open until the fork has started, so nothing typed is lost.

    `start` is the pass of the moment shown, by default the last one.
    """

    HELP_TITLE = "Fork"
    FIRST = "#start"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "fork", "Fork", priority=True, id="fork.start"),
        Binding("escape", "cancel", "Cancel", priority=True, id="fork.cancel"),
        # With priority, the focus moves before the next key is passed on, even if both arrive at once.
        Binding("tab", "next_field", "Next field", show=False, priority=True, id="fork_field.next"),
        Binding("down", "app.focus_next", "Next field", show=False, id="fork.next"),
        Binding("up", "app.focus_previous", "Previous field", show=False, id="fork.previous"),
    ]
    DEFAULT_CSS = """
    ForkDialog {
        & > Vertical { width: 100; height: 36; overflow-y: hidden; }
        Grid { grid-size: 2; grid-columns: 8 1fr; grid-rows: 1; height: 4; }
        Label { color: $aeon-muted; }
    }
    """

    def __init__(self, parent: Parent, start: int | None = None, read: ReadText = text_of) -> None:
        super().__init__()
        self._of = parent
        self._wanted = start
        self._first = min(max(start if start is not None else parent.last, parent.first), parent.last)
        self._read = read
        self._reading = LatestWorker(self, "fork")
        self._starting = False

    def compose(self) -> ComposeResult:
        of = self._of
        keys = f"{key_of(self, 'fork.start')} forks · tab next · {key_of(self, 'fork.cancel')} cancels"
        with Box(f"Fork {of.path.stem[:40]}", keys):
            with Grid():
                yield Label("From")
                yield StartChoice(of, self._first)
                yield Label("Model")
                yield LineInput(escape_controls(of.model), compact=True, id="model")
                yield Label("TTL")
                yield LineInput(str(of.ttl), compact=True, type="integer", id="ttl")
                yield Label("Budget")
                yield LineInput(_dollars(of.budget), placeholder="no limit, in US dollars", compact=True, id="budget")
            yield Problem()
            yield Static(self._hint(), id="hint", markup=False)
            yield YamlEditor()

    def action_next_field(self) -> None:
        """Move the focus; in the editor, Tab indents."""
        if isinstance(self.focused, YamlArea):
            raise SkipAction
        self.focus_next()

    def _hint(self) -> str:
        late = self._wanted is not None and self._wanted > self._of.last
        note = "The run ended here: this is the last moment a fork can start from. " if late else ""
        return f"{note}A new run; this one does not change. Edit requirements, criteria and plan:"

    def on_mount(self) -> None:
        if not self.query("#start"):
            return  # the app ends before the dialog is composed
        self._editor.area.read_only = True
        self._read_text(self._first)

    @property
    def _editor(self) -> YamlEditor:
        return self.query_one(YamlEditor)

    @on(StartChoice.Chosen)
    def _chosen(self, event: StartChoice.Chosen) -> None:
        event.stop()
        self._read_text(event.number)

    def _read_text(self, number: int) -> None:
        """Show the state at the start of the chosen pass; the user's changes stay."""
        if not self._editor.changed:
            self._reading.submit(lambda: self._text_read(number))

    def _text_read(self, number: int) -> Callable[[], None]:
        try:
            text = self._read(self._of.path, number)
        except (AeonError, OSError) as error:
            problem = reason(error)
            return lambda: self.show_problem(problem)
        return lambda: self._show_text(text)

    def _show_text(self, text: str) -> None:
        if self.is_attached and not self._editor.changed:
            self._editor.load(text)
            self.show_problem("")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_fork()

    def key_enter(self) -> None:
        """Fork; the focus is on the start."""
        self.action_fork()

    def action_fork(self) -> None:
        """Start the fork, or show what is wrong."""
        if not self.guard.is_open or self._starting:
            return
        try:
            options = self._options()
        except UsageError as error:
            self.show_problem(error.message)
            return
        self._starting = True
        self.show_problem("")
        self._check(self.query_one(StartChoice).number, options, self._editor.area.text, self._editor.before)

    @work(thread=True, group="fork-check", exit_on_error=False)
    def _check(self, number: int, options: Mapping[str, Any], text: str, before: str) -> None:
        """Request the fork if the text is usable; otherwise show its problems by line."""
        from aeon_tui.platform.editor import text_problems
        from aeon_tui.sessions.fork_job import TEXT, parse_fork_text

        try:
            edits = parse_fork_text(text, before)
        except UsageError as error:
            self.app.call_from_thread(self._refuse, text_problems(error, text, TEXT))
        else:
            request = ForkRequest(self._of.path, number, options, edits)
            self.app.post_message(Start(request, self._started))

    def _refuse(self, problems: Sequence[TextProblem]) -> None:
        self._starting = False
        if self.is_attached:
            self._editor.show_problems(problems)

    def _started(self, problem: str | None) -> None:
        self._starting = False
        if self.is_attached:
            self._editor.show_problems([])
        if self.is_attached and problem is not None:
            self.show_problem(problem)
        elif self.is_current:
            self.dismiss()

    def _options(self) -> dict[str, Any]:
        """Return the options that differ from the parent's. Raises UsageError, and focuses the field that is wrong."""
        from aeon_core.config.loading import checked_text
        from aeon_tui.sessions.run_jobs import FIELD_TITLES, checked_model

        of, options = self._of, dict[str, Any]()
        for key, before in (("model", of.model), ("ttl", str(of.ttl)), ("budget", _dollars(of.budget))):
            field = self.query_one(f"#{key}", Input)
            if (text := field.value.strip()) == before:
                continue
            if key == "budget" and not text:
                options[key] = None
                continue
            try:
                options[key] = checked_model(text) if key == "model" else checked_text(key, text, FIELD_TITLES[key])
            except UsageError:
                field.focus()
                raise
        return options

    def action_cancel(self) -> None:
        """Close without forking, after asking if anything was typed."""
        of = self._of
        before = (escape_controls(of.model), str(of.ttl), _dollars(of.budget))
        if self._editor.changed or tuple(field.value for field in self.query(Input)) != before:
            ask_to_discard(self, self.dismiss)
        else:
            self.dismiss()


def _dollars(budget: float | None) -> str:
    return f"{budget:g}" if budget is not None else ""


class LineageScreen(SelectableScreen[None]):
    """Runs and their forks. Enter opens one; `v` compares it with the run that the tree was opened from."""

    HELP_TITLE = "Lineage"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "beside", "Side by side", id="lineage.beside"),
        Binding("escape", "dismiss", "Back", id="lineage.back"),
    ]
    DEFAULT_CSS = """
    LineageScreen {
        background: $background;
        RunList { height: 1fr; }
    }
    """

    def __init__(
        self,
        path: Path,
        list_runs: Callable[[], Sequence[RunSummary]],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__()
        self._path, self._list_runs, self._clock = path, list_runs, clock
        self._runs: Sequence[RunSummary] = ()
        self._reading = LatestWorker(self, "lineage")

    def compose(self) -> ComposeResult:
        yield HeadLine("Lineage")
        yield RunListHeader()
        yield RunList()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(RunList):
            return  # the app ends before the screen is composed
        rows = self.query_one(RunList)
        rows.where_empty = ("reading …",)
        rows.focus()
        self.set_interval(REFRESH_SECONDS, self._read)

    def on_screen_resume(self) -> None:
        self._read()

    def _read(self) -> None:
        """Read the runs directory, on a thread."""
        if self.is_current:
            self._reading.submit(self._read_runs)

    def _read_runs(self) -> Callable[[], None]:
        try:
            family, problem = family_of(self._list_runs(), self._path.stem), ""
        except (AeonError, OSError) as error:
            family, problem = [], reason(error)
        return lambda: self._show(family, problem)

    def _show(self, family: Sequence[RunSummary], problem: str) -> None:
        if not self.is_attached:
            return
        first, self._runs = not self._runs, family
        lines, rows = as_tree(family), self.query_one(RunList)
        rows.tick(self._clock())
        rows.update_marks({self._path.stem}, frozenset())
        rows.update_lines(lines, where_empty=f"✖ {problem}" if problem else "this run is not in the list")
        if first:
            rows.cursor = next((at for at, line in enumerate(lines) if line.run.run_id == self._path.stem), 0)
        fork_count = "no fork yet" if len(family) == 1 else count(len(family), "run")
        size = f" · {fork_count}" if family else ""
        self.query_one(HeadLine).title = f"Lineage of {escape_controls(self._path.stem)}{size}"
        self.refresh_bindings()

    @property
    def chosen_run(self) -> Path | None:
        """The journal of the selected run."""
        row = next((rows.selected for rows in self.query(RunList)), None)
        return next((Path(run.path) for run in self._runs if row is not None and run.run_id == row.run_id), None)

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "beside" or self.chosen_run not in (None, self._path)

    def on_rows_view_moved(self) -> None:
        self.refresh_bindings()

    def on_rows_view_chosen(self) -> None:
        if (chosen := self.chosen_run) == self._path:
            self.dismiss()
        elif chosen is not None:
            self.dismiss()
            self.app.post_message(OpenJournal(chosen))

    def action_beside(self) -> None:
        """Compare the selected run with the one that the tree was opened from; an ancestor is on the left."""
        if (chosen := self.chosen_run) is not None:
            older = [Path(line.path) for line in self._runs]
            left, right = sorted((chosen, self._path), key=older.index)
            self.app.post_message(CompareRuns(left, right))
