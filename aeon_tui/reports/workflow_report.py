"""The report on a workflow: the rows of its pipeline, and its history as text, JSON, Markdown or a web page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from aeon_core.escape import escape_controls
from aeon_core.journal.reader import read_records
from aeon_core.journal.summary import is_being_written
from aeon_core.units import count, money
from aeon_tui.reports import ExportFormat
from aeon_tui.reports.web_page import Html, join, page, tag
from aeon_tui.reports.workflow_items import items_of
from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState, gate_key
from aeon_widgets.icons import run_style
from aeon_widgets.text import duration, one_line
from aeon_widgets.workflow_pipeline import PipelineRow
from system2.constants import DELEGATION_MAP, GATES
from system2.view import AgentView, GateView

AGENT_STYLES = {
    "waiting": ("○", "pending"),
    "running": ("▶", "running"),
    "complete": ("✔", "complete"),
    "halted": ("✖", "failed"),
    "skipped": ("⊘", "muted"),
}
GATE_STYLES = {
    "ahead": ("◇", "pending"),
    "asked": ("?", "medium"),
    "approved": ("◆", "complete"),
    "rejected": ("✎", "medium"),
    "aborted": ("◼", "medium"),
}
GATE_WORDS = {"ahead": "", "asked": "waits"}
WORDS = {
    "waiting for a decision": "waits",
    "waiting for you": "waits",
    "cost_ceiling": "ceiling",
    "interrupted": "stopped",
    "unreadable": "",
}
"""The whole workflow's word if its status is too long for a row."""
STOPPED = ("◼", "medium", "stopped")
_AFTER = {gate.agent: gate.number for gate in GATES if gate.agent is not None}
_LAST = next(gate.number for gate in GATES if gate.agent is None)


def pipeline_rows(state: WorkflowState, status: str, now: str, *, in_progress: bool) -> list[PipelineRow]:
    """Return the rows in order of work; in a stopped workflow, none is running."""
    rows = [_whole(state, status)]
    for name in _names(state):
        rows.append(_agent_row(state, state.view.agents[name], now, in_progress=in_progress))
        if (number := _AFTER.get(name)) is not None:
            rows.append(_gate_row(state, state.view.gates[number], in_progress=in_progress))
    return [*rows, _gate_row(state, state.view.gates[_LAST], in_progress=in_progress)]


def _names(state: WorkflowState) -> Iterator[str]:
    yield from DELEGATION_MAP
    yield from (name for name in state.view.agents if name not in DELEGATION_MAP)


def _whole(state: WorkflowState, status: str) -> PipelineRow:
    icon, style = run_style(status)
    return PipelineRow(WORKFLOW_ROW, icon, style, WORDS.get(status, status), "the workflow", detail=state.view.task)


def _agent_row(state: WorkflowState, agent: AgentView, now: str, *, in_progress: bool) -> PipelineRow:
    icon, style = AGENT_STYLES[agent.state]
    word: str = agent.state
    if agent.state == "running" and not in_progress:
        icon, style, word = STOPPED
    elif agent.completion is not None and agent.state == "complete" and agent.completion.status != "success":
        failed = agent.completion.status == "failure"
        icon, style = ("✖", "failed") if failed else ("⚠", "medium")
        word = "failed" if failed else "blockers"
    seconds = state.seconds_worked(agent.name, now if in_progress else state.last_ts)
    time = duration(seconds) if seconds is not None else ""
    return PipelineRow(agent.name, icon, style, word, agent.name, time=time, detail=agent_detail(agent))


def agent_detail(agent: AgentView) -> str:
    """Return in one line why an agent was skipped or halted, or its summary."""
    if agent.state == "skipped":
        return agent.skip_reason or ""
    if agent.state == "halted":
        return (agent.halted or "").replace("_", " ")
    return agent.completion.summary if agent.completion is not None else ""


def _gate_row(state: WorkflowState, gate: GateView, *, in_progress: bool) -> PipelineRow:
    icon, style = GATE_STYLES[gate.state]
    word = GATE_WORDS.get(gate.state, gate.state)
    if gate.state == "asked" and not in_progress:
        icon, style, word = "◇", "medium", "undecided"
    times = state.rejections(gate.number)
    rejected = f" · {count(times, 'rejection')}" if times else ""
    name, detail = f"gate {gate.number} {gate.title}", f"{gate.artifact}{rejected}"
    return PipelineRow(gate_key(gate.number), icon, style, word, name, is_gate=True, detail=detail)


class ReportPart(NamedTuple):
    """A heading with its lines."""

    title: str
    lines: list[str]


class WorkflowReport:
    """The report on a transcript, read whole. Raises UsageError if the file is not one."""

    def __init__(self, path: Path) -> None:
        self.damage: list[str] = []
        self._state = WorkflowState()
        for record in read_records(path, damage=self.damage):
            self._state.apply(record)
        self.damage += self._state.damage
        self.view = self._state.view
        self._is_live = is_being_written(path)

    @property
    def text(self) -> str:
        """The whole report for a terminal: the workflow and its status, then what each agent did."""
        parts = [self._overview()]
        for part in self._agents():
            parts.append("\n".join([part.title, *(f"  {line}" for line in part.lines)]))
        return "\n\n".join(parts)

    def render(self, form: ExportFormat) -> str:
        """Return the report as Markdown or as a web page."""
        return self._markdown() if form == "md" else self._page()

    def as_json(self) -> dict[str, Any]:
        """Return the view of the transcript as plain JSON."""
        view = self.view
        status = view.end["status"] if view.end is not None else "running" if self._is_live else "interrupted"
        return {
            **_named(view, "run_id", "task"),
            "status": status,
            **_named(view, "model", "simulated", "started", "config"),
            **_named(view, "cost_usd", "input_tokens", "output_tokens", "api_calls"),
            "gates": [_gate_json(gate) for gate in view.gates.values()],
            "agents": [_agent_json(agent) for agent in view.agents.values()],
            "notices": [dict(notice) for notice in view.notices],
            "end": dict(view.end) if view.end is not None else None,
            "damage": self.damage,
        }

    @property
    def _status(self) -> str:
        return self._state.status(live=self._is_live, reading=False)

    def _overview(self) -> str:
        view, question, error = self.view, self.view.question, (self.view.end or {}).get("error")
        why = f": {one_line(str(error), 400)}" if error else f": {one_line(str(question['text']))}" if question else ""
        took = f", {duration(float(view.end['duration_s']))}" if view.end is not None else ""
        cached = f" ({view.cached_tokens:,} from the cache)" if view.cached_tokens else ""
        tokens = f"{view.input_tokens:,} tokens in{cached}, {view.output_tokens:,} out"
        simulated = " (simulated)" if view.simulated and not view.model.startswith("simulated:") else ""
        rows = pipeline_rows(self._state, self._status, self._state.last_ts, in_progress=self._is_live)[1:]
        width = max(len(row.name) for row in rows)
        lines = [
            f"workflow {view.run_id}",
            f"task     {one_line(view.task)}",
            f"status   {self._status.replace('_', ' ')}{why}",
            f"model    {view.model}{simulated}",
            f"started  {view.started[:19].replace('T', ' ')} UTC{took}",
            f"cost     {money(view.cost_usd)}, {tokens}, {count(view.api_calls, 'call')}",
            "",
            *(
                f"{row.icon} {row.name:<{width}} {row.word:<9} {row.time:>7}  {one_line(row.detail, 100)}"
                for row in rows
            ),
        ]
        if view.notices:
            lines += ["", "warnings", *(f"  {one_line(str(notice['message']))}" for notice in view.notices)]
        return "\n".join(line.rstrip() for line in lines)

    def _agents(self) -> Iterator[ReportPart]:
        for agent in self.view.agents.values():
            lines = list(_activity_lines(agent))
            if lines:
                yield ReportPart(f"{agent.name}: {_spent(agent)}", lines)

    def _markdown(self) -> str:
        parts = [f"# Workflow {escape_controls(self.view.run_id)}", fenced(self._overview())]
        for part in self._agents():
            parts += [f"## {escape_controls(part.title)}", fenced("\n".join(part.lines))]
        return "\n\n".join(parts)

    def _page(self) -> str:
        title = f"Workflow {self.view.run_id}"
        whole = ReportPart("", self._overview().split("\n"))
        header = tag("header", tag("h1", title), class_="head")
        return page(title, join(header, tag("main", *map(_section, (whole, *self._agents())), id="main")))


def _spent(agent: AgentView) -> str:
    calls, spent = sum(cost.api_calls for cost in agent.cost), sum(cost.cost_usd for cost in agent.cost)
    return f"{count(calls, 'call')}, {money(spent)}"


def _activity_lines(agent: AgentView) -> Iterator[str]:
    for item in (item for entry in agent.entries for item in items_of(entry)):
        words = one_line(" · ".join(text for _, text in item.body), 400) if item.is_open else ""
        yield f"{item.icon} {one_line(item.head, 400)}{f' · {words}' if words else ''}"


def _named(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def _gate_json(gate: GateView) -> dict[str, Any]:
    decided = [{"decision": each.decision.value, **_named(each, "feedback", "timestamp")} for each in gate.decisions]
    return {"gate": gate.number, **_named(gate, "title", "artifact", "state", "summary"), "decisions": decided}


def _agent_json(agent: AgentView) -> dict[str, Any]:
    tools = [entry for entry in agent.entries if entry.get("type") == "tool_exec"]
    fields = ("tool", "input", "result", "success", "duration_ms", "flags")
    return {
        "agent": agent.name,
        **_named(agent, "state", "rounds"),
        "contract": agent.contract.as_dict() if agent.contract is not None else None,
        "completion": agent.completion.as_dict() if agent.completion is not None else None,
        **_named(agent, "halted", "skip_reason", "files_changed"),
        "cost": [cost.as_dict() for cost in agent.cost],
        "tools": [{key: entry.get(key) for key in fields} for entry in tools],
    }


def fenced(text: str, language: str = "") -> str:
    """Return a text as a code block of Markdown, whatever it contains."""
    shown = escape_controls(text, keep="\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}{language}\n{shown}\n{fence}"


def _section(part: ReportPart) -> Html:
    heading = tag("h2", part.title) if part.title else None
    return tag("section", heading, tag("pre", "\n".join(part.lines)))
