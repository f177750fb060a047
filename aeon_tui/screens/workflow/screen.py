"""One workflow of system2, live or past: both are the same fold of its transcript."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from aeon_core.errors import AeonError
from aeon_core.units import count, seconds_after
from aeon_tui.messages import ResumeRun
from aeon_tui.platform.background_tasks import LatestWorker
from aeon_tui.reports.workflow_report import SIGNS, gate_items, items_of, pipeline_rows, reply_blocks, whole_items
from aeon_tui.screens.pane_screen import (
    APPROVAL,
    FOLD_SECONDS,
    WAITING,
    WAITING_HERE,
    Clock,
    PaneScreen,
    Place,
    utc_now,
)
from aeon_tui.screens.workflow.approval_controller import WorkflowApprovalController, headline
from aeon_tui.sources.base import RecordSource
from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState, gate_of
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import KeyGuard, key_of
from aeon_widgets.pane import Pane
from aeon_widgets.run_header import WorkflowFacts, WorkflowHeader
from aeon_widgets.run_question import ALWAYS
from aeon_widgets.text import exact, one_line
from aeon_widgets.virtual_list import RowsView
from aeon_widgets.workflow_panes import ConversationItem, WorkflowArtifact, WorkflowConversation, WorkflowPipeline
from system2.changes import SPEC_FOLDER
from system2.constants import GATE_OF_AGENT
from system2.documents import text_of

if TYPE_CHECKING:
    from aeon_tui.sessions.runner import Runner
    from aeon_tui.sessions.workflow_session import WorkflowJob


def artifacts_of(state: WorkflowState, key: str) -> list[str]:
    """Return the files that belong to a row of the pipeline, documents first, in the order named."""
    view = state.view
    if (number := gate_of(key)) is not None:
        return [view.gates[number].artifact]
    if key == WORKFLOW_ROW:
        found = [path for agent in view.agents.values() for path in agent.files_changed]
        return [path for path in dict.fromkeys(found) if path.startswith(SPEC_FOLDER)]
    agent = view.agents.get(key)
    if agent is None:
        return []
    own = GATE_OF_AGENT[key].artifact if key in GATE_OF_AGENT else None
    return sorted(agent.files_changed, key=lambda path: (path != own, not path.startswith(SPEC_FOLDER)))


WIDTHS = [(0, "-narrow"), (72, "-normal"), (110, "-wide"), (160, "-roomy")]
HEIGHTS = [(0, "-tiny"), (15, "-low"), (30, "-tall")]
TALK, ARTIFACT = 2, 3
_CHANGES_FILES = frozenset({"tool_exec", "agent_complete"})


class WorkflowScreen(PaneScreen):
    """The pipeline, the selected agent's conversation, and the artifacts, folded from the records as they arrive.

    If the workflow runs here, its questions are shown immediately.
    """

    HELP_TITLE = "Workflow"
    HELP_SIGNS = SIGNS
    PANES: ClassVar[dict[int, type[Pane]]] = {
        1: WorkflowPipeline,
        TALK: WorkflowConversation,
        ARTIFACT: WorkflowArtifact,
        APPROVAL: ApprovalPanel,
    }
    RESUME_ID = "workflow.resume"
    WHAT = "workflow"
    ALLOW_IN_MAXIMIZED_VIEW = "WorkflowHeader, KeyFooter"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "turn", "Artifact", tooltip="Show the artifact or the conversation", id="workflow.turn"),
        Binding("z", "zoom", "Zoom", id="run.zoom"),
        Binding("f", "follow", "Follow", id="run.follow"),
        Binding("1", "pane(1)", "Pipeline", show=False, id="workflow.pane_pipeline"),
        Binding("2", "pane(2)", "Conversation", show=False, id="workflow.pane_conversation"),
        Binding("3", "pane(3)", "Artifact", show=False, id="workflow.pane_artifact"),
        Binding("9", "pane(9)", "Decision", show=False, id="workflow.pane_decision"),
        Binding("R", "resume", "Resume", tooltip="Continue where it ended", id="workflow.resume"),
        Binding(
            "F", "app.past_run('fork')", "Fork", tooltip="Start a new workflow from one of its gates", id="run.fork"
        ),
        Binding("P", "app.past_run('replay')", "Replay", tooltip="Play it back from its journal", id="run.replay"),
        Binding("X", "abort", "End here", show=False, tooltip="Asks first", id="workflow.abort_anywhere"),
        Binding("escape", "back", "Runs", id="workflow.back"),
    ]
    DEFAULT_CSS = """
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
        &.-asking.-tiny ApprovalPanel { height: 2; }
        &.-deciding.-tiny #body { display: none; }
        &.-deciding.-tiny ApprovalPanel { height: 1fr; max-height: 100%; }
        &.-asking.-low.-narrow, &.-tiny.-narrow {
            WorkflowPipeline { height: 1fr; }
            &.-reading WorkflowPipeline { display: none; }
            &.-choosing WorkflowConversation, &.-choosing WorkflowArtifact { display: none; }
        }
        .-maximized { height: 1fr !important; max-height: 100% !important; width: 100% !important; }
    }
    """
    asking: WorkflowApprovalController

    def __init__(
        self,
        source: RecordSource[WorkflowState],
        runner: Runner[WorkflowJob] | None = None,
        clock: Clock = utc_now,
        guard: KeyGuard | None = None,
    ) -> None:
        super().__init__(source, runner, clock)
        self.state = WorkflowState()
        self.asking = WorkflowApprovalController(self, self._broker, self._place_of_question, guard)
        self._items: dict[str, list[ConversationItem]] = {}
        self._taken: dict[str, int] = {}
        """How many of an agent's records are among its items."""
        self._shown_key = ""
        self._shown_at = 0
        """The second shown as the time; 0 if no time passes."""
        self._stream_shown = 0
        """The version of the reply in progress."""
        self._artifact = 0
        self._reading = LatestWorker(self, "artifact")

    def compose(self) -> ComposeResult:
        yield WorkflowHeader()
        with Container(id="body"):
            yield WorkflowPipeline()
            yield WorkflowConversation()
            yield WorkflowArtifact()
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(WorkflowArtifact):
            return  # the app ends before the screen is composed
        self.begin_panes()

    def on_resize(self) -> None:
        if self.made:
            self.show_artifact()

    @property
    def shown_task(self) -> str:
        return self.state.view.task

    @property
    def error(self) -> AeonError | None:
        """Why there is nothing more to read, or why the workflow could not start."""
        return super().error or (self._runner.error if self._runner is not None else None)

    def offers(self, action: str) -> bool:
        """Return whether an action applies to the workflow as it is now."""
        if self._source.live or action == "label":
            return False
        if action == "replay":
            return True
        view = self.state.view
        if action == "fork":
            return self.state.has_journal and any(gate.decisions for gate in view.gates.values())
        is_complete = view.end is not None and view.end["status"] == "completed"
        return self.chosen_run is not None and self.state.has_journal and self._source.ended and not is_complete

    @property
    def fork_start(self) -> int | None:
        """The selected gate; None if another row is selected."""
        return gate_of(self.query_one(WorkflowPipeline).selected)

    @property
    def in_progress(self) -> bool:
        """Whether a process, this one or another, works on it."""
        return self._source.live and self.state.view.end is None

    @property
    def status(self) -> str:
        if self._runner is not None:
            if self._runner.error is not None:
                return "failed"
            if self._runner.aborting and self._runner.running:
                return "aborting"
        if self._broker is not None and self._broker.waiting is not None:
            return WAITING if self._runner is None else WAITING_HERE
        if self._source.error is not None and self.state.last_seq < 0:
            return "unreadable"
        return self.state.status(live=self._source.live, reading=not self._source.ended)

    def _fold(self) -> bool:
        if not self.made:
            return False
        if replaced := (view := self._source.take_view()) is not None:
            self.state = view
            self._items, self._taken, self._shown_key = {}, {}, ""
        records = self._source.take(FOLD_SECONDS)
        entries = [entry for record in records for entry in self.state.apply(record)]
        changed = self._status_changed() or replaced or bool(records)
        if changed:
            self._show(self._clock().isoformat())
        if any(entry.get("type") in _CHANGES_FILES for entry in entries):
            self.show_artifact()
        version = self._runner.stream.version if self._runner is not None else 0
        streamed, self._stream_shown = version != self._stream_shown, version
        return changed or streamed

    def show_rest(self) -> None:
        """Show what changes without records: the time, the reply in progress, notices and the question."""
        if self.made:
            super().show_rest()
            now = self._clock()
            second = int(now.timestamp()) if self.in_progress else 0
            if second != self._shown_at:
                self._shown_at = second
                self._show(now.isoformat())
            self._show_activity(now.isoformat())
            if self.asking.show(home=self.query_one(WorkflowPipeline)):
                self._update_terminal(urgent=True)

    def _show(self, now: str) -> None:
        rows = pipeline_rows(self.state, self.status, now, in_progress=self.in_progress)
        self.query_one(WorkflowPipeline).update_rows(rows, self.state.current)
        self._show_talk()
        self.query_one(WorkflowHeader).facts = self._facts(now)

    def _facts(self, now: str) -> WorkflowFacts:
        state, view = self.state, self.state.view
        doing = ""
        if self.in_progress:
            if (gate := view.open_gate) is not None:
                doing = f"gate {gate.number}: {gate.title}"
            elif (question := view.question) is not None:
                doing = headline(str(question["kind"]), str(question.get("agent") or ""))
            elif view.running:
                doing = f"agent {view.running}"
        return WorkflowFacts(
            task=view.task or (self._runner.job.task if self._runner is not None else ""),
            status=self.status,
            model=view.model,
            simulated=view.simulated,
            doing=doing if view.task else "",
            note=self.note,
            cost_usd=view.cost_usd,
            warning_usd=state.warning_usd,
            ceiling_usd=state.ceiling_usd,
            tokens=view.input_tokens + view.output_tokens,
            seconds=seconds_after(view.started, now if self.in_progress else state.last_ts),
        )

    @property
    def note(self) -> str:
        """An addition to the status in the header; usually empty."""
        if damage := len(self._source.damage) + len(self.state.damage):
            return f"⚠ {count(damage, 'problem')} in the journal"
        if self._runner is not None and self._runner.job.warnings:
            return f"⚠ {count(len(self._runner.job.warnings), 'warning')}"
        return ""

    def _show_talk(self) -> None:
        key = self.query_one(WorkflowPipeline).selected
        talk = self.query_one(WorkflowConversation)
        items = self._items_of(key)
        if key != self._shown_key:
            self._shown_key, self._artifact = key, 0
            is_running = key == self.state.current
            talk.pane_title = f"Agent {key}" if key in self.state.view.agents else key.capitalize()
            talk.start(items, follow=is_running)
            self.show_artifact()
        else:
            talk.update_items(items)

    def _show_activity(self, now: str) -> None:
        """Show what the selected agent is doing and writing now."""
        busy, talk = self.state.busy, self.query_one(WorkflowConversation)
        if busy is None or not self.in_progress or self._shown_key != busy.step_id:
            talk.update_live(None)
            return
        stream = self._runner.stream if self._runner is not None and busy.name == "writes" else None
        seconds = seconds_after(self.state.busy_since, now)
        doing = busy._replace(seconds=seconds, tokens_per_second=stream.tokens_per_second if stream else None)
        body = list(reply_blocks(stream.text, stream.calls)) if stream is not None else []
        if body:
            style, text = body[-1]
            body[-1] = style, f"{text}▌"
        words = " · ".join(part for part in (doing.name, doing.time, doing.rate) if part)
        talk.update_live(ConversationItem(doing.spinner, "running", one_line(words, 300), tuple(body), True))

    def _items_of(self, key: str) -> list[ConversationItem]:
        if (gate := gate_of(key)) is not None:
            return gate_items(self.state, gate)
        agent = self.state.view.agents.get(key)
        if agent is None:
            how_to_continue = ""
            if self.offers("resume"):
                how_to_continue = f"press {key_of(self, self.RESUME_ID)} to continue where it ended"
            return [*whole_items(self.state, self.status, how_to_continue), *self._warning_items()]
        items, taken = self._items.setdefault(key, []), self._taken.get(key, 0)
        for entry in agent.entries[taken:]:
            items += items_of(entry)
        self._taken[key] = len(agent.entries)
        return items or [ConversationItem("○", "muted", "this agent has not started")]

    def _warning_items(self) -> list[ConversationItem]:
        warnings = self._runner.job.warnings if self._runner is not None else []
        listed = {notice["message"] for notice in self.state.view.notices}
        others = [warning for warning in warnings if warning not in listed]
        return [ConversationItem("⚠", "medium", one_line(warning), (("", warning),)) for warning in others]

    def on_rows_view_moved(self, event: RowsView.Moved) -> None:
        if isinstance(event.rows, WorkflowPipeline):
            self._show_talk()

    def on_rows_view_chosen(self, event: RowsView.Chosen) -> None:
        if isinstance(event.rows, WorkflowPipeline):
            self.action_pane(TALK)

    @property
    def artifact_is_shown(self) -> bool:
        return self.has_class("-artifact") or self.size.width >= WIDTHS[-1][0]

    def bring(self, number: int) -> None:
        """Switch between the conversation and the artifact."""
        if number in (TALK, ARTIFACT):
            self.set_class(number == ARTIFACT, "-artifact")
            self.show_artifact()

    def action_turn(self) -> None:
        """Show the artifact in place of the conversation, or the reverse."""
        self.action_pane(TALK if self.has_class("-artifact") else ARTIFACT)

    def show_artifact(self) -> None:
        """Read the files of the selected row on a thread, if they are on screen."""
        if not self.artifact_is_shown or not self.made:
            return
        names, root = artifacts_of(self.state, self._shown_key), self.state.project_root
        if not names:
            self.query_one(WorkflowArtifact).show_nothing("No files written here.")
            return
        self._artifact %= len(names)
        name = names[self._artifact]
        more = f"{self._artifact + 1} of {len(names)} · ← → another" if len(names) > 1 else ""

        def read() -> Callable[[], None]:
            if not os.path.lexists(root / name):
                return lambda: self.query_one(WorkflowArtifact).show_nothing(f"{exact(name)} does not exist")
            content = text_of(root, name)
            return lambda: self.query_one(WorkflowArtifact).show_file(name, content, more)

        self._reading.submit(read)

    @on(WorkflowArtifact.OtherWanted)
    def _show_other_artifact(self, event: WorkflowArtifact.OtherWanted) -> None:
        event.stop()
        self._artifact += event.by
        self.show_artifact()

    def on_descendant_focus(self) -> None:
        """Give a question all the room of a low window while it has the focus; if one pane fits, show the focused."""
        reading = any(self.query_one(self.PANES[number]).has_focus_within for number in (TALK, ARTIFACT))
        self.update_classes({"-deciding": self.asking.is_focused, "-reading": reading, "-choosing": not reading})

    def _place_of_question(self) -> Place:
        return self, self.query_one(KeyFooter)

    @on(ApprovalPanel.Answered)
    def _answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        if event.answer == "abort":
            # The dialog receives the keys now; the first key after it may be meant for the question.
            event.panel.reopen()
            self.action_abort()
        elif event.answer == ALWAYS:
            self.asking.ask_for_rule(event.panel, (), self.state.project_root)
        else:
            self.asking.answer(event.panel, event.answer, event.words)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "resume":
            return self.offers(action)
        return super().check_action(action, parameters)

    def action_follow(self) -> None:
        """Go to the running agent, and follow the workflow."""
        self.query_one(WorkflowPipeline).follow(self.state.current)
        self._show_talk()
        self.query_one(WorkflowConversation).action_follow()

    def _abort(self) -> None:
        if self._runner is not None:
            super()._abort()
        else:
            self.asking.abort()

    def action_resume(self) -> None:
        """Continue a workflow that was ended or cut off."""
        if self.chosen_run is not None:
            self.app.post_message(ResumeRun(self.chosen_run))
