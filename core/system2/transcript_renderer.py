"""A workflow in words, from its transcript: what `show` prints of one. Foreign text is made visible."""

from __future__ import annotations

from aeon_core.escape import escape_controls
from system2.cost import clock, dollars
from system2.policies import GateDecisionType
from system2.view import AgentView, GateView, WorkflowView

_SIGNS = {"waiting": "○", "running": "▶", "complete": "✔", "halted": "✖", "skipped": "⊘"}
_STATUS = {"cost_ceiling": "cost ceiling reached"}
_MAX_LINE = 100


def render_transcript(view: WorkflowView, *, is_live: bool) -> str:
    """Return what a workflow is, where it stands and what it cost; `is_live` says that a process writes it."""
    width = max(len(name) for name in view.agents)
    lines = [
        f"workflow {view.run_id}",
        f"task     {_line(view.task)}",
        f"status   {_status(view, is_live)}",
        f"model    {view.model}{_simulated(view)}",
        f"started  {view.started[:19].replace('T', ' ')} UTC{_took(view)}",
        f"cost     {dollars(view.cost_usd)}, {_tokens(view)}, {_count(view.api_calls, 'call')}",
        "",
        "gates",
        *(_gate(gate) for gate in view.gates.values()),
        "",
        "agents",
        *(f"  {_SIGNS[agent.state]} {name:<{width}}  {_agent(agent)}" for name, agent in view.agents.items()),
    ]
    if view.notices:
        lines += ["", "warnings", *(f"  {_line(str(notice['message']))}" for notice in view.notices)]
    return "\n".join(line.rstrip() for line in lines)


def _status(view: WorkflowView, is_live: bool) -> str:
    if view.end is not None:
        status = str(view.end["status"])
        why = f": {_line(str(view.end['error']))}" if view.end.get("error") else ""
        return f"{_STATUS.get(status, status)}{why}"
    if not is_live:
        return "interrupted"
    if view.question is not None:
        return f"waiting for an answer: {_line(str(view.question['text']))}"
    gate = view.open_gate
    return f"waiting at gate {gate.number} ({gate.title})" if gate is not None else f"running{_who(view)}"


def _tokens(view: WorkflowView) -> str:
    cached = f" ({view.cached_tokens:,} from the cache)" if view.cached_tokens else ""
    return f"{view.input_tokens:,} tokens in{cached}, {view.output_tokens:,} out"


def _simulated(view: WorkflowView) -> str:
    return " (simulated)" if view.simulated and not view.model.startswith("simulated:") else ""


def _who(view: WorkflowView) -> str:
    return f", {view.running} works" if view.running is not None else ""


def _took(view: WorkflowView) -> str:
    return f", {clock(float(view.end['duration_s']))}" if view.end is not None else ""


def _gate(gate: GateView) -> str:
    rejections = sum(each.decision is GateDecisionType.REJECT for each in gate.decisions)
    after = f" after {_count(rejections, 'rejection')}" if rejections and gate.state != "rejected" else ""
    state = "waits for a decision" if gate.state == "asked" else gate.state
    return f"  {gate.number} {gate.title:<12}  {state}{after}"


def _agent(agent: AgentView) -> str:
    if agent.state == "skipped":
        return f"skipped: {_line(agent.skip_reason or '')}"
    if agent.state == "halted":
        return f"halted: {(agent.halted or '').replace('_', ' ')}"
    if agent.completion is None:
        return agent.state
    rounds = f" ({_count(agent.rounds, 'round')})" if agent.rounds > 1 else ""
    status = "" if agent.completion.status == "success" else f"{agent.completion.status}: "
    return f"{status}{_line(agent.completion.summary)}{rounds}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _line(text: str) -> str:
    """Return the first line of a foreign text, fit for a screen."""
    first = escape_controls((text.strip().splitlines() or [""])[0])
    return first if len(first) <= _MAX_LINE else f"{first[: _MAX_LINE - 1]}…"
