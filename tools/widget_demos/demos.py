"""The demo of each widget: how to create it and show a moment of a run, as your own app would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace
from textual.containers import Vertical
from textual.widget import Widget

from aeon_core.journal.search import search_journal
from aeon_core.journal.summary import RunSummary, summarise
from aeon_core.journal.view.formatting import convergence
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_core.units import seconds_after
from aeon_widgets import ttl_gauge
from aeon_widgets.approval_panel import AnswerKeys, ApprovalPanel
from aeon_widgets.call_rows import RowKey
from aeon_widgets.compare_rows import ComparedRun, compare
from aeon_widgets.compare_view import CompareHeader, CompareView
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.footer import KeyFooter
from aeon_widgets.issues import IssuesPane
from aeon_widgets.log_pane import LogPane
from aeon_widgets.match_list import MatchList
from aeon_widgets.outcome import Outcome
from aeon_widgets.pane import RailLine
from aeon_widgets.pass_line import PassLine, Scrubber
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader, WorkflowFacts, WorkflowHeader
from aeon_widgets.run_list import RunLine, RunList, RunListHeader, as_tree
from aeon_widgets.run_preview import Kin, RunPreview, preview_blocks
from aeon_widgets.run_question import choices, run_question
from aeon_widgets.step_pane import StepPane
from aeon_widgets.tally import HeadLine, Tally
from aeon_widgets.text import Block
from aeon_widgets.text_fields import FilterLine
from aeon_widgets.text_view import TextView
from aeon_widgets.ttl_gauge import TTLGauge
from aeon_widgets.workflow_panes import (
    ConversationItem,
    PipelineRow,
    WorkflowArtifact,
    WorkflowConversation,
    WorkflowPipeline,
)

SCOPE = """# Scope

| path | what it holds |
|---|---|
| src/ | nothing yet |
| README.md | three sentences |

- an API for invoices
- no user interface
"""
ROWS = [
    PipelineRow("repo-governor", "✔", "complete", "complete", "repo-governor", time="01:12", detail="two files found"),
    PipelineRow("gate 0", "?", "medium", "waits", "gate 0 scope", is_gate=True, detail="spec/scope.md"),
    PipelineRow("spec-coordinator", "○", "pending", "waiting", "spec-coordinator"),
    PipelineRow("eval-engineer", "⊘", "muted", "skipped", "eval-engineer", detail="no prompt was changed"),
]
ITEMS = [
    ConversationItem("◇", "accent", "contract: survey the repository", (("", "## Objective\nSurvey the repository."),)),
    ConversationItem("»", "text", "repo-governor says · 812 tokens", (("", "I look at what is there first."),), True),
    ConversationItem("✔", "complete", "Glob pattern=**/* · 4 ms", (("muted", "result"), ("", "README.md"))),
    ConversationItem("✖", "failed", "Read file_path=../notes · 0 ms", (("", "it is not in the project"),)),
]
FACTS = WorkflowFacts(
    task="design a REST API for invoices",
    status="waiting for you",
    model="bedrock:us.anthropic.claude-sonnet-4",
    doing="gate 0: scope",
    cost_usd=2.31,
    warning_usd=2.0,
    ceiling_usd=5.0,
    tokens=81_204,
    seconds=72,
)


RECORDING = Path(__file__).with_name("recording.jsonl")
"""The journal of the run that the demos show: two passes with repairs on the simulated model."""
RUN_ID = "20261120-093000-d3a0a1"
NOW = datetime(2026, 11, 20, 9, 40, tzinfo=UTC)
"""The fixed time of the demos, so that ages do not change."""
_OTHERS = ("running", "not_converged", "failed", "aborted", "interrupted", "ttl_expired")


def runs() -> list[RunSummary]:
    """Return the recorded run and older ones with different statuses, one of them a fork."""
    run = replace(cast("RunSummary", summarise(RECORDING)), run_id=RUN_ID)
    return [run, *(_other(run, number, status) for number, status in enumerate(_OTHERS, start=1))]


def _other(run: RunSummary, number: int, status: str) -> RunSummary:
    began = datetime.fromisoformat(run.started) - timedelta(minutes=17 * number)
    other = replace(
        run,
        run_id=f"{began:%Y%m%d-%H%M%S}-d3a0a{number + 1}",
        status=status,
        started=began.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    )
    return replace(other, parent=run.run_id, forked_at=2) if status == "not_converged" else other


def lines() -> list[RunLine]:
    """Return the runs as the lines of a list."""
    return as_tree(runs())


COMPARED = "the run after its first pass, and as it is now"
LOOKED_FOR = "invoices"
LAST = 168
"""The seq of the recording's last record."""


@dataclass(frozen=True)
class Moment:
    """A run after these records."""

    view: RunView
    records: Sequence[dict[str, Any]]
    live: bool
    """Whether the run is live."""

    @property
    def status(self) -> str:
        """The status to show."""
        return "running" if self.live else self.view.status


@dataclass(frozen=True)
class Demo:
    """The demo of one widget."""

    name: str
    """The module that it is in."""
    make: Callable[[], Widget]
    show: Callable[[Any, Moment], object] = lambda widget, moment: None  # noqa: ARG005  # it shows no run
    """Shows a moment of the run in the widget."""


def _with_view(widget: Any, moment: Moment) -> None:
    widget.update_view(moment.view)


def _plan_tree(widget: PlanTree, moment: Moment) -> None:
    widget.live = moment.live
    widget.update_view(moment.view)


def _run_header(widget: RunHeader, moment: Moment) -> None:
    widget.update_view(
        moment.view, moment.status, seconds_after(moment.view.started, moment.view.last_ts), with_ttl=True
    )


def _step_pane(widget: StepPane, moment: Moment) -> None:
    view = moment.view
    chosen = view.current_step_id or next(reversed(view.steps), None)
    widget.update_view(view, RowKey("step", chosen) if chosen is not None else None, [], live=moment.live)


def _text_view(widget: TextView, moment: Moment) -> None:
    blocks: list[Block] = [("bold", moment.view.task)]
    blocks += [("muted", convergence(each)) for each in moment.view.assessments]
    if moment.view.result is not None:
        blocks.append(("", moment.view.result.answer or ""))
    widget.show(blocks)


def _approval(widget: Vertical, moment: Moment) -> None:
    """Show the run's question at that moment, else its last one, so that there is something to see."""
    asked = [each for each in moment.records if each["type"] == "approval" and each["state"] == "asked"]
    last = asked[-1] if asked else None
    shown = next(iter(widget.query(ApprovalPanel)), None)
    known = moment.view.assessments
    question = run_question(last["point"], last["subject"], last["pass"], known) if last is not None else None
    if (shown.question if shown is not None else None) == question:
        return
    if shown is not None:
        shown.remove()
    if question is not None:
        widget.mount(ApprovalPanel(question))


def _run_list(widget: RunList, moment: Moment) -> None:
    del moment
    widget.tick(NOW)
    widget.update_lines(lines())


def _run_list_header(widget: Vertical, moment: Moment) -> None:
    _run_list(widget.query_one(RunList), moment)
    widget.query_one(RunListHeader).order = "age"


def _run_preview(widget: RunPreview, moment: Moment) -> None:
    run = replace(runs()[0], status=moment.status)
    widget.show(list(preview_blocks(run, moment.view, Kin(), NOW)))


def _filter_line(widget: Vertical, moment: Moment) -> None:
    widget.query_one(FilterLine).cursor_blink = False
    _run_list(widget.query_one(RunList), moment)


def _scrubber(widget: Scrubber, moment: Moment) -> None:
    widget.share = max(0, moment.view.last_seq) / LAST


def _tally(widget: HeadLine, moment: Moment) -> None:
    widget.tally = Tally(2 if moment.live else 1, 1)


def _match_list(widget: MatchList, moment: Moment) -> None:
    last = moment.view.last_seq
    found = [each for each in search_journal(RECORDING, LOOKED_FOR) if each.seq is not None and each.seq <= last]
    widget.update_matches(found, LOOKED_FOR, "no record matches yet")


def _rail_line(widget: RailLine, moment: Moment) -> None:
    widget.summary = tuple(ttl_gauge.summary(moment.view))


def _compared(moment: Moment) -> tuple[ComparedRun, ComparedRun]:
    """Return the run at the end of its first pass, and at that moment."""
    end = next((at for at, each in enumerate(moment.records) if each["type"] == "pass"), len(moment.records))
    return ComparedRun("first-pass", fold(moment.records[: end + 1])), ComparedRun("now", moment.view)


def _workflow_header(widget: WorkflowHeader, moment: Moment) -> None:
    del moment
    widget.facts = FACTS


_ALL = [
    Demo("answer_keys", lambda: AnswerKeys([(each.key, each.words) for each in choices("tool", {})])),
    Demo("approval_panel", Vertical, _approval),
    Demo("compare_header", CompareHeader, lambda widget, moment: widget.update_runs(_compared(moment), COMPARED)),
    Demo("compare_view", CompareView, lambda widget, moment: widget.show(compare(*_compared(moment)))),
    Demo("convergence", ConvergencePane, _with_view),
    Demo("filter_line", lambda: Vertical(FilterLine("a line to type in"), RunList()), _filter_line),
    Demo("footer", KeyFooter),
    Demo("issues", IssuesPane, _with_view),
    Demo("log_pane", LogPane, _with_view),
    Demo("match_list", MatchList, _match_list),
    Demo("outcome", Outcome, _with_view),
    Demo("pass_line", PassLine, lambda widget, moment: widget.update_view(moment.view, moment.live)),
    Demo("plan_tree", PlanTree, _plan_tree),
    Demo("rail_line", lambda: RailLine(3, "TTL"), _rail_line),
    Demo("repairs", RepairsPane, _with_view),
    Demo("run_list_header", lambda: Vertical(RunListHeader(), RunList()), _run_list_header),
    Demo("run_header", RunHeader, _run_header),
    Demo("run_list", RunList, _run_list),
    Demo("run_preview", RunPreview, _run_preview),
    Demo("scrubber", Scrubber, _scrubber),
    Demo("step_pane", StepPane, _step_pane),
    Demo("tally", lambda: HeadLine("Settings"), _tally),
    Demo("text_view", TextView, _text_view),
    Demo("ttl_gauge", TTLGauge, _with_view),
    Demo("workflow_artifact", WorkflowArtifact, lambda widget, _: widget.show_file("spec/scope.md", SCOPE)),
    Demo("workflow_header", WorkflowHeader, _workflow_header),
    Demo("workflow_pipeline", WorkflowPipeline, lambda widget, _: widget.update_rows(ROWS, "gate 0")),
    Demo("workflow_conversation", WorkflowConversation, lambda widget, _: widget.update_items(ITEMS)),
]
DEMOS = {demo.name: demo for demo in _ALL}
"""By the name of the widget's module."""
