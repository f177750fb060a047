"""The panes of a workflow: where they stand at each size, and how one gets from one to the other."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from aeon_core.regular_file import read_start
from aeon_tui.screens.pane_screen import PaneScreen
from aeon_tui.screens.panel_controller import APPROVAL
from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState, gate_of
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.footer import KeyFooter
from aeon_widgets.pane import Pane
from aeon_widgets.workflow_artifact import WorkflowArtifact
from aeon_widgets.workflow_conversation import WorkflowConversation
from aeon_widgets.workflow_header import WorkflowHeader
from aeon_widgets.workflow_pipeline import WorkflowPipeline
from system2.constants import GATES

SPEC = "spec/"
MAX_ARTIFACT = 1_000_000
"""Bytes of an artifact that are read for the screen."""


def artifacts_of(state: WorkflowState, key: str) -> list[str]:
    """Return the files that belong to a row of the pipeline, documents first, as they were named."""
    view = state.view
    if (number := gate_of(key)) is not None:
        return [view.gates[number].artifact]
    if key == WORKFLOW_ROW:
        found = [path for agent in view.agents.values() for path in agent.files_changed]
        return [path for path in dict.fromkeys(found) if path.startswith(SPEC)]
    agent = view.agents.get(key)
    if agent is None:
        return []
    own = [gate.artifact for gate in GATES if gate.agent == key and gate.artifact in agent.files_changed]
    return list(dict.fromkeys([*own, *sorted(agent.files_changed, key=lambda path: not path.startswith(SPEC))]))


def artifact_text(root: Path, name: str) -> str:
    """Return a project file's text, or in brackets why it is not shown. Call it on a thread: it reads the disk."""
    path = root / name
    try:
        inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        return "(not in the project)"
    try:
        return read_start(path, MAX_ARTIFACT).decode("utf-8", "replace")
    except OSError as error:
        return f"({(error.strerror or str(error)).lower()})"


WIDTHS = [(0, "-narrow"), (72, "-normal"), (110, "-wide"), (160, "-roomy")]
HEIGHTS = [(0, "-low"), (30, "-tall")]
PANES: dict[int, type[Pane]] = {
    1: WorkflowPipeline,
    2: WorkflowConversation,
    3: WorkflowArtifact,
    APPROVAL: ApprovalPanel,
}
"""The panes by the key that leads to them."""
TALK, ARTIFACT = 2, 3
KEYS: list[BindingType] = [
    Binding("tab", "app.focus_next", "Next", show=True, id="pane.next"),
    Binding("shift+tab", "app.focus_previous", "Previous pane", show=False, id="pane.previous"),
    Binding("v", "turn", "Artifact", tooltip="Show the artifact or the conversation", id="workflow.turn"),
    Binding("z", "zoom", "Zoom", id="run.zoom"),
    Binding("f", "follow", "Follow", id="run.follow"),
    Binding("1", "pane(1)", "Pipeline", show=False, id="workflow.pane_pipeline"),
    Binding("2", "pane(2)", "Conversation", show=False, id="workflow.pane_conversation"),
    Binding("3", "pane(3)", "Artifact", show=False, id="workflow.pane_artifact"),
    Binding("9", "pane(9)", "Decision", show=False, id="workflow.pane_decision"),
    Binding("R", "resume", "Resume", tooltip="Continue where it ended", id="workflow.resume"),
    Binding("F", "app.past_run('fork')", "Fork", tooltip="Start a new workflow from one of its gates", id="run.fork"),
    Binding("X", "abort", "End here", show=False, tooltip="Asks first", id="workflow.abort_anywhere"),
    Binding("escape", "back", "Runs", id="workflow.back"),
]

CSS = """
    WorkflowScreen {
        background: $background;
        #body { height: 1fr; min-height: 5; layout: horizontal; background: $background; }
        WorkflowPipeline { width: 38; height: 100%; }
        WorkflowConversation { width: 1fr; height: 100%; }
        WorkflowArtifact { width: 1fr; height: 100%; display: none; }
        &.-artifact WorkflowArtifact { display: block; }
        &.-artifact WorkflowConversation { display: none; }
        &.-narrow #body { layout: vertical; }
        &.-narrow WorkflowPipeline { width: 100%; height: 8; }
        &.-narrow WorkflowConversation, &.-narrow WorkflowArtifact { width: 100%; height: 1fr; }
        &.-wide WorkflowPipeline { width: 47; }
        &.-roomy WorkflowPipeline { width: 40%; }
        &.-roomy WorkflowConversation, &.-roomy WorkflowArtifact { display: block; }
        ApprovalPanel { max-height: 75%; }
        &.-asking-gate.-low #body { height: 5; min-height: 3; }
        &.-asking-gate.-low ApprovalPanel { height: 1fr; max-height: 100%; }
        &.-asking.-low.-narrow WorkflowConversation, &.-asking.-low.-narrow WorkflowArtifact { display: none; }
        &.-asking.-low.-narrow WorkflowPipeline { height: 1fr; }
        .-maximized { height: 1fr !important; max-height: 100% !important; width: 100% !important; }
    }
"""


class WorkflowPanes(PaneScreen):
    """The pipeline, the selected agent's conversation, and the artifacts. It does nothing to the workflow."""

    PANES = PANES
    ALLOW_IN_MAXIMIZED_VIEW = "WorkflowHeader, KeyFooter"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    @abstractmethod
    def show_artifact(self) -> None:
        """Read the artifact anew that belongs to the selected row."""

    def compose(self) -> ComposeResult:
        yield WorkflowHeader()
        with Container(id="body"):
            yield WorkflowPipeline()
            yield WorkflowConversation()
            yield WorkflowArtifact()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(WorkflowArtifact):
            return  # the app is ending before the screen was made
        self.begin_panes()

    def on_resize(self) -> None:
        if self.made:
            self.show_artifact()

    @property
    def artifact_is_shown(self) -> bool:
        """Whether the artifact stands on the screen."""
        return self.has_class("-artifact") or self.size.width >= WIDTHS[-1][0]

    def bring(self, number: int) -> None:
        """Show the conversation or the artifact, whichever the other hides."""
        if number in (TALK, ARTIFACT):
            self.set_class(number == ARTIFACT, "-artifact")
            self.show_artifact()

    def action_turn(self) -> None:
        """Show the artifact in place of the conversation, or the other way."""
        self.action_pane(TALK if self.has_class("-artifact") else ARTIFACT)
