"""Asks what a new workflow is to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from aeon_core.escape import escape_controls
from aeon_tui.messages import ShowRuns, Start
from aeon_widgets.footer import KeyFooter
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_tui.sessions.workflow_session import WorkflowJob

WHAT = (
    "Thirteen agents take a task from its scope to a reviewed change. "
    "They write documents into spec/, one after the other; you decide at six gates whether it continues. "
    "You are asked before a command runs."
)


class WorkflowTaskScreen(Screen[None]):
    """Enter starts the workflow. An empty task says so and starts nothing."""

    HELP_TITLE = "New workflow"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "begin", "Start", id="workflow.begin"),
        Binding("escape", "runs", "Runs", id="workflow.runs"),
    ]
    DEFAULT_CSS = """
    WorkflowTaskScreen {
        background: $background; align: center middle;
        Vertical {
            width: 76; max-width: 100%; height: auto; max-height: 100%; padding: 1 2;
            border: round $aeon-accent; border-title-color: $aeon-accent; background: $background;
        }
        Static { height: auto; color: $aeon-text; }
        .muted { color: $aeon-muted; margin: 1 0 0 0; }
        Input { background: $panel; color: $aeon-text; margin: 1 0 0 0; }
        #problem { color: $severity-high; display: none; }
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
            yield Input(placeholder="What should be done? enter starts", compact=True)
            yield Static("", id="problem", markup=False)
            facts = f"project {asked.project_root}\nmodel   {asked.model or 'Bedrock, as the project configures it'}"
            if asked.auto_approve:
                facts += "\ngates   approved without asking"
            yield Static(escape_controls(facts, keep="\n"), classes="muted", markup=False)
        yield KeyFooter()

    def on_mount(self) -> None:
        for field in self.query(Input):
            field.focus()

    @on(Input.Submitted)
    def action_begin(self) -> None:
        """Start the workflow."""
        task = self.query_one(Input).value.strip()
        if not task:
            self._say("describe the task first")
        elif not self._beginning:
            self._beginning = True
            self.app.post_message(Start(replace(self._request, task=task), self._answered))

    def _answered(self, problem: str | None) -> None:
        self._beginning = False
        if problem is not None and self.is_attached:
            self._say(one_line(problem, 500))

    def _say(self, problem: str) -> None:
        problem_line = self.query_one("#problem", Static)
        problem_line.update(f"✖ {problem}")
        problem_line.display = True

    def action_runs(self) -> None:
        """Go to the list of runs."""
        self.app.post_message(ShowRuns())
