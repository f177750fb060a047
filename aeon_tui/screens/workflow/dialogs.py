"""The dialogs of a workflow: its task, and a fork at a gate with another model or feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Vertical
from textual.widgets import Input, Label, Static

from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls
from aeon_tui.messages import ForkWorkflow, ShowRuns, Start
from aeon_tui.screens.dialogs import Box, Dialog
from aeon_tui.screens.editor import ask_to_discard
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_tui.sessions.run_jobs import checked_model
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import key_of
from aeon_widgets.pane import Problem
from aeon_widgets.text import one_line
from aeon_widgets.text_fields import FeedbackField, LineInput
from aeon_widgets.virtual_list import ChoiceRows, RowsView
from system2.constants import GATES

if TYPE_CHECKING:
    from aeon_tui.sessions.workflow_session import WorkflowJob


WHAT = (
    "Thirteen agents take a task from its scope to a reviewed change. "
    "They write documents into spec/, one after the other; you decide at six gates whether it continues. "
    "You are asked before a command runs."
)


class WorkflowTaskScreen(SelectableScreen[None]):
    """Enter starts the workflow. An empty task is reported and starts nothing."""

    HELP_TITLE = "New workflow"
    OPENED_BY = "new_workflow"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "begin", "Start", id="workflow.begin"),
        Binding("escape", "runs", "Runs", id="workflow.runs"),
    ]
    DEFAULT_CSS = """
    WorkflowTaskScreen {
        background: $background; color: $aeon-text; align: center middle;
        Vertical {
            width: 76; max-width: 100%; height: auto; max-height: 100%; padding: 1 2; overflow-y: auto;
            border: round $aeon-accent; border-title-color: $aeon-accent; background: $background;
        }
        .muted { color: $aeon-muted; margin: 1 0 0 0; }
        Input { background: $panel; color: $aeon-text; margin: 1 0 0 0; }
    }
    """

    def __init__(self, request: WorkflowJob) -> None:
        super().__init__()
        self._request = request
        self._beginning = False

    def compose(self) -> ComposeResult:
        asked = self._request
        with Vertical() as box:
            box.border_title = "New workflow"
            yield Static(WHAT, markup=False)
            yield LineInput(placeholder="What should be done? ⏎ starts", compact=True)
            yield Problem()
            facts = f"project {asked.project_root}\nmodel   {asked.model or 'Bedrock, as the project configures it'}"
            if asked.auto_approve:
                facts += "\ngates   approved without asking"
            yield Static(escape_controls(facts, keep="\n"), classes="muted", markup=False)
        yield KeyFooter()

    def on_mount(self) -> None:
        for field in self.query(Input):
            field.focus()

    def on_resize(self) -> None:
        """Keep the field in sight on a low screen."""
        for field in self.query(Input):
            field.scroll_visible(animate=False)

    @on(Input.Submitted)
    def action_begin(self) -> None:
        task = self.query_one(Input).value.strip()
        if not task:
            self.query_one(Problem).show_problem("describe the task first")
        elif not self._beginning:
            self._beginning = True
            self.app.post_message(Start(replace(self._request, task=task), self._answered))

    def _answered(self, problem: str | None) -> None:
        self._beginning = False
        if problem is not None and self.is_attached:
            self.query_one(Problem).show_problem(one_line(problem, 500))

    def action_runs(self) -> None:
        self.app.post_message(ShowRuns())


_HINT = "A new workflow; this one does not change, and the project's files stay as they are now."


class WorkflowForkDialog(Dialog[None]):
    """Enter forks. It stays open until the fork has started, so nothing typed is lost.

    `start` is the gate chosen at first; the last gate if `gates` does not contain it.
    """

    HELP_TITLE = "Fork"
    FIRST = "ChoiceRows"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "fork", "Fork", priority=True, id="fork.start"),
        Binding("escape", "cancel", "Cancel", id="fork.cancel"),
        # With priority, the focus moves before the next key is passed on, even if both arrive at once.
        Binding("tab", "app.focus_next", "Next field", show=False, priority=True, id="fork.next"),
    ]
    DEFAULT_CSS = """
    WorkflowForkDialog {
        & > Vertical { width: 76; }
        Grid { grid-size: 2; grid-columns: 8 1fr; grid-rows: auto; height: auto; margin: 1 0; }
        Label { color: $aeon-muted; }
    }
    """

    def __init__(self, path: Path, model: str, gates: Sequence[int], start: int | None = None) -> None:
        super().__init__()
        self._path, self._model, self._gates, self._start = path, model, gates, start
        self._starting = False

    def compose(self) -> ComposeResult:
        keys = f"⏎ forks · ↑↓ choose · tab next · {key_of(self, 'fork.cancel')} cancels"
        with Box(f"Fork {self._path.stem[:40]}", keys):
            gates = {number: [(f"gate {number} · {GATES[number].title}", "")] for number in self._gates}
            yield (rows := ChoiceRows(gates, self._start if self._start in gates else self._gates[-1]))
            rows.styles.height = len(gates)
            with Grid():
                yield Label("Model")
                yield LineInput(escape_controls(self._model), compact=True, id="model")
                yield Label("Change")
                yield (change := FeedbackField())
                change.placeholder = "what should change? leave empty to be asked at the gate"
            yield Problem()
            yield Static(_HINT, id="hint", markup=False)

    @on(RowsView.Chosen)
    @on(Input.Submitted)
    @on(FeedbackField.Submitted)
    def _entered(self, event: RowsView.Chosen | Input.Submitted | FeedbackField.Submitted) -> None:
        event.stop()
        self.action_fork()

    def action_fork(self) -> None:
        if not self.guard.is_open or self._starting:
            return
        model = self.query_one("#model", Input).value.strip()
        try:
            model = model if model == self._model else str(checked_model(model))
        except UsageError as error:
            self.query_one("#model", Input).focus()
            self.show_problem(error.message)
            return
        self._starting = True
        self.show_problem("")
        words = self.query_one(FeedbackField).text.strip() or None
        other = model if model != self._model else None
        gate = self.query_one(ChoiceRows).value
        self.app.post_message(ForkWorkflow(self._path, gate, words, other, self._started))

    def _started(self, problem: str | None) -> None:
        self._starting = False
        if problem is not None:
            self.show_problem(problem)
        elif self.is_current:
            self.dismiss()

    def action_cancel(self) -> None:
        """Close without forking, after asking if anything was typed."""
        typed = (self.query_one("#model", Input).value, self.query_one(FeedbackField).text)
        if typed != (escape_controls(self._model), ""):
            ask_to_discard(self, self.dismiss)
        else:
            self.dismiss()
