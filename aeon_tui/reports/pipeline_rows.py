"""The rows of a workflow's pipeline: its thirteen agents, the gates between them, and the workflow as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState, gate_key
from aeon_widgets.icons import run_style
from aeon_widgets.text import count, duration
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
"""Of the workflow as a whole, where its status is too long for a row."""
STOPPED = ("◼", "medium", "stopped")
_AFTER = {gate.agent: gate.number for gate in GATES if gate.agent is not None}
_LAST = next(gate.number for gate in GATES if gate.agent is None)


def pipeline_rows(state: WorkflowState, status: str, now: str, *, goes_on: bool) -> list[PipelineRow]:
    """Return the rows in the order of the work; where it does not go on, nothing of it is running."""
    rows = [_whole(state, status)]
    for name in _names(state):
        rows.append(_agent(state, state.view.agents[name], now, goes_on=goes_on))
        if (number := _AFTER.get(name)) is not None:
            rows.append(_gate(state, state.view.gates[number], goes_on=goes_on))
    return [*rows, _gate(state, state.view.gates[_LAST], goes_on=goes_on)]


def _names(state: WorkflowState) -> Iterator[str]:
    yield from DELEGATION_MAP
    yield from (name for name in state.view.agents if name not in DELEGATION_MAP)


def _whole(state: WorkflowState, status: str) -> PipelineRow:
    icon, style = run_style(status)
    return PipelineRow(WORKFLOW_ROW, icon, style, WORDS.get(status, status), "the workflow", detail=state.view.task)


def _agent(state: WorkflowState, agent: AgentView, now: str, *, goes_on: bool) -> PipelineRow:
    icon, style = AGENT_STYLES[agent.state]
    word: str = agent.state
    if agent.state == "running" and not goes_on:
        icon, style, word = STOPPED
    elif agent.completion is not None and agent.state == "complete" and agent.completion.status != "success":
        failed = agent.completion.status == "failure"
        icon, style = ("✖", "failed") if failed else ("⚠", "medium")
        word = "failed" if failed else "blockers"
    seconds = state.worked(agent.name, now if goes_on else state.last_ts)
    time = duration(seconds) if seconds is not None else ""
    return PipelineRow(agent.name, icon, style, word, agent.name, time=time, detail=agent_detail(agent))


def agent_detail(agent: AgentView) -> str:
    """Return in a line why an agent was skipped or halted, or what it said when it was done."""
    if agent.state == "skipped":
        return agent.skip_reason or ""
    if agent.state == "halted":
        return (agent.halted or "").replace("_", " ")
    return agent.completion.summary if agent.completion is not None else ""


def _gate(state: WorkflowState, gate: GateView, *, goes_on: bool) -> PipelineRow:
    icon, style = GATE_STYLES[gate.state]
    word = GATE_WORDS.get(gate.state, gate.state)
    if gate.state == "asked" and not goes_on:
        icon, style, word = "◇", "medium", "undecided"
    times = state.rejections(gate.number)
    rejected = f" · {count(times, 'rejection')}" if times else ""
    name, detail = f"gate {gate.number} {gate.title}", f"{gate.artifact}{rejected}"
    return PipelineRow(gate_key(gate.number), icon, style, word, name, is_gate=True, detail=detail)
