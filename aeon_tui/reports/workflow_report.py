"""A workflow for people: its rows in the pipeline, the items of an agent, a gate or the whole, and the report.

The screen shows rows and items; the report has them as text, JSON, Markdown or a web page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aeon_core.journal.reader import read_records
from aeon_core.journal.summary import is_being_written
from aeon_core.journal.view.draft import partial_json
from aeon_core.units import count, money, span
from aeon_tui.reports import ExportFormat, fenced, literal
from aeon_tui.reports.web_page import join, page, tag
from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState, gate_key
from aeon_widgets.icons import run_style
from aeon_widgets.run_question import whole
from aeon_widgets.text import Block, duration, exact, one_line, pretty
from aeon_widgets.workflow_panes import ConversationItem, PipelineRow
from system2.changes import FileChange
from system2.constants import DELEGATION_MAP, GATE_OF_AGENT, LAST_GATE
from system2.contracts import DelegationContract
from system2.view import AgentView, GateView

# What comes later has a sign and no word: what waits is what needs a person.
AGENT_STYLES = {
    "waiting": ("○", "pending", ""),
    "running": ("▶", "running", "running"),
    "complete": ("✔", "complete", "complete"),
    "halted": ("✖", "failed", "halted"),
    "skipped": ("⊘", "muted", "skipped"),
}
GATE_STYLES = {
    "ahead": ("◇", "pending", ""),
    "asked": ("?", "medium", "waits"),
    "approved": ("◆", "complete", "approved"),
    "rejected": ("✎", "medium", "rejected"),
    "aborted": ("◼", "medium", "aborted"),
}
WORDS = {
    "waiting for a decision": "waits",
    "waiting for you": "waits",
    "cost_ceiling": "ceiling",
    "interrupted": "stopped",
    "unreadable": "",
}
"""The whole workflow's word if its status is too long for a row."""
STOPPED = ("◼", "medium", "stopped")
REPORTED = {"failure": ("✖", "failed", "failed"), "blockers": ("⚠", "medium", "blockers")}
"""An agent that has worked, but reports something else than success."""
SIGNS = [
    (icon, word or ("gate to come" if icon == GATE_STYLES["ahead"][0] else "agent to come"), style)
    for icon, style, word in (*AGENT_STYLES.values(), *REPORTED.values(), *GATE_STYLES.values(), STOPPED)
]
"""The signs of the pipeline's rows: each with its meaning and style."""


def pipeline_rows(state: WorkflowState, status: str, now: str, *, in_progress: bool) -> list[PipelineRow]:
    """Return the rows in order of work; in a stopped workflow, none is running."""
    icon, style = run_style(status)
    whole = PipelineRow(WORKFLOW_ROW, icon, style, WORDS.get(status, status), "the workflow", detail=state.view.task)
    rows = [whole]
    for name in dict.fromkeys([*DELEGATION_MAP, *state.view.agents]):
        rows.append(_agent_row(state, state.view.agents[name], now, in_progress=in_progress))
        if (gate := GATE_OF_AGENT.get(name)) is not None:
            rows.append(_gate_row(state, state.view.gates[gate.number], in_progress=in_progress))
    return [*rows, _gate_row(state, state.view.gates[LAST_GATE.number], in_progress=in_progress)]


def _agent_row(state: WorkflowState, agent: AgentView, now: str, *, in_progress: bool) -> PipelineRow:
    icon, style, word = AGENT_STYLES[agent.state]
    if agent.state == "running" and not in_progress:
        icon, style, word = STOPPED
    elif agent.state == "complete" and agent.completion is not None and agent.completion.status != "success":
        icon, style, word = REPORTED[agent.completion.status]
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
    icon, style, word = GATE_STYLES[gate.state]
    if gate.state == "asked" and not in_progress:
        icon, style, word = "◇", "medium", "undecided"
    times = state.rejections(gate.number)
    rejected = f" · {count(times, 'rejection')}" if times else ""
    name, detail = f"gate {gate.number} {gate.title}", f"{gate.artifact}{rejected}"
    return PipelineRow(gate_key(gate.number), icon, style, word, name, is_gate=True, detail=detail)


_STYLES = {"+": "complete", "-": "failed", "@": "muted"}


def summary_blocks(text: str, style: str = "bold") -> Iterator[Block]:
    """Yield a gate's summary, with what needs attention highlighted."""
    for line in text.split("\n"):
        yield ("high" if line.startswith("⚠") else style), line


def change_blocks(changes: Iterable[FileChange], artifact: str) -> Iterator[Block]:
    """Yield every diff with a heading, except that of a new artifact, which is shown whole."""
    for change in changes:
        if change.diff and not (change.path == artifact and change.status == "created"):
            yield "muted", f"── {change.status} {change.path} ──"
            yield from diff_blocks(change.diff)
            yield "", ""


def diff_blocks(diff: str) -> Iterator[Block]:
    """Yield the lines of a unified diff without its two headings."""
    for line in diff.split("\n")[2:]:
        yield from whole(_STYLES.get(line[:1], ""), line)


def detail_blocks(text: str) -> Iterator[Block]:
    """Yield the subject of a question: a diff in colours, or a reason."""
    if text.startswith("--- "):
        yield from diff_blocks(text)
    else:
        yield from whole("muted", text)


def change_item(change: FileChange) -> ConversationItem:
    """Return a gate's changed file; it opens to the diff."""
    icon, style = ("⚠", "high") if change.flag else ("✎", "text")
    return ConversationItem(icon, style, change.summary, tuple(diff_blocks(change.diff)))


Entry = Mapping[str, Any]
NOTES = {
    "warning": ("⚠", "medium", "warning"),
    "cost_warning": ("⚠", "medium", "cost"),
    "context_warning": ("⚠", "medium", "context window"),
    "context_summarized": ("✎", "medium", "context window"),
    "retry": ("↻", "medium", "again"),
    "flagged": ("⚠", "high", "may be an injected instruction"),
}
DECIDED = {"approve": ("◆", "complete", "approved"), "reject": ("✎", "medium", "rejected")}
COMPLETIONS = {"success": ("✔", "complete"), "blockers": ("⚠", "medium"), "failure": ("✖", "failed")}
DECIDED_ABORT = ("◼", "medium", "aborted")


def _said(icon: str, style: str, head: str, text: str, *more: Block) -> ConversationItem:
    """Return an item that shows a text, if there is one, and more."""
    return ConversationItem(icon, style, head, ((("", text),) if text else ()) + more, True)


def items_of(entry: Entry) -> Iterator[ConversationItem]:
    """Yield the items of one entry that the view has folded: usually one, none for a first request.

    There is none for a retry either: the failed call says when it is tried again.
    """
    kind = str(entry.get("type"))
    if kind in _ITEMS and entry.get("kind") != "retry":
        yield from _ITEMS[kind](entry)


def reply_blocks(text: str, calls: Iterable[tuple[str, str]]) -> Iterator[Block]:
    """Yield the reply so far: its text, and its tool calls in their final form."""
    if text:
        yield "", text
    for tool_name, arguments in calls:
        yield "accent", tool_name
        given = partial_json(arguments)
        yield from _input(given if isinstance(given, dict) else {})


def _start(entry: Entry) -> Iterator[ConversationItem]:
    if feedback := entry.get("feedback"):
        yield _said("✎", "medium", f"round {entry['round']}: a person rejected it", str(feedback))
    contract = DelegationContract(**entry["contract"])
    tools = ", ".join(entry.get("tools") or ())
    full_text = f"{contract.to_message()}\n\n## Tools\n{tools}\n\n## Defined in\n{entry.get('source') or ''}"
    goal = contract.objective.splitlines()[0] if contract.objective.strip() else ""
    yield ConversationItem("◇", "accent", f"contract: {goal}", (("", full_text),))


def _request(entry: Entry) -> Iterator[ConversationItem]:
    if entry.get("attempt", 1) > 1:
        yield ConversationItem("↻", "medium", f"attempt {entry['attempt']}")


def _response(entry: Entry) -> Iterator[ConversationItem]:
    if error := entry.get("error"):
        wait = entry.get("retry_in_s")
        again = f" · retrying in {wait:.1f} s" if isinstance(wait, int | float) else ""
        head = f"{error.get('error_type') or error.get('type') or 'the call failed'}{again}"
        yield _said("✖", "failed", head, str(error.get("message") or pretty(dict(error))))
        return
    message = entry.get("message") or {}
    text = "\n\n".join(str(part["text"]) for part in message.get("content", ()) if part.get("text"))
    usage = entry.get("usage") or {}
    tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    cost = f" · {money(entry['cost_usd'])}" if entry.get("cost_usd") else ""
    what = "summary of the conversation" if entry.get("purpose") == "summary" else f"{entry['agent']} says"
    stop = " · cut off" if entry.get("stop_reason") == "max_tokens" else ""
    if text.strip():
        yield _said("»", "text", f"{what} · {count(tokens, 'token')}{cost}{stop}", text)


_EXIT_CODE = re.compile("^exit code .*", re.MULTILINE)


def _tool(entry: Entry) -> Iterator[ConversationItem]:
    succeeded = bool(entry.get("success"))
    icon, style = ("✔", "complete") if succeeded else ("✖", "failed")
    flags = [f"may be an injected instruction: {flag}" for flag in entry.get("flags") or ()]
    flagged = " ⚠ flagged" if flags else ""
    result, ended = str(entry.get("result", "")), ""
    code = _EXIT_CODE.search(result) if succeeded and entry["tool"] == "Bash" else None
    if code is not None and code[0] != "exit code 0":
        # The call succeeded, but the command did not, such as tests that fail.
        icon, style, ended = "⚠", "medium", f" · {code[0]}"
    head = f"{entry['tool']} {entry['args_summary']}{ended} · {span(entry.get('duration_ms'))}{flagged}"
    body: list[Block] = [("high", flag) for flag in flags]
    body += [("muted", "input"), *_input(entry.get("input") or {})]
    body += [("muted", "result" if succeeded else "refused, or failed"), ("", result)]
    yield ConversationItem(icon, style, head, tuple(body))


def _input(given: Mapping[str, Any]) -> Iterator[Block]:
    for name, value in given.items():
        text = value if isinstance(value, str) else pretty(value)
        yield "", f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}"


def _question(entry: Entry) -> Iterator[ConversationItem]:
    what = "command" if entry.get("kind") == "bash" else str(entry.get("kind", "")).replace("_", " ")
    details = tuple(block for detail in entry.get("details") or () for block in detail_blocks(str(detail)))
    if entry.get("state") == "asked":
        yield _said("?", "medium", f"asked · {what}", str(entry.get("text", "")), *details)
    else:
        yield _said("→", "medium", f"decided · {what}: {entry.get('choice')}", str(entry.get("feedback") or ""))


def _decision(entry: Entry) -> Iterator[ConversationItem]:
    icon, style, word = DECIDED.get(str(entry["decision"]), DECIDED_ABORT)
    yield _said(icon, style, f"gate {entry['gate']}: {word}", str(entry.get("feedback") or ""))


def _complete(entry: Entry) -> Iterator[ConversationItem]:
    cost, completion = entry.get("cost") or {}, entry.get("completion")
    spent = f"{money(cost.get('cost_usd') or 0.0)}, {count(cost.get('api_calls', 0), 'call')}"
    changed = [("muted", f"changed: {exact(path)}") for path in entry.get("files_changed") or ()]
    if completion is None:
        why = str(entry.get("halted") or "").replace("_", " ")
        yield ConversationItem("✖", "failed", f"halted: {why} · {spent}", tuple(changed), True)
        return
    status = str(completion.get("status"))
    icon, style = COMPLETIONS.get(status, COMPLETIONS["failure"])
    blockers = [("high", f"blocker: {blocker}") for blocker in completion.get("blockers") or ()]
    yield _said(icon, style, f"complete: {status} · {spent}", str(completion.get("summary", "")), *blockers, *changed)


def _skipped(entry: Entry) -> Iterator[ConversationItem]:
    yield _said("⊘", "muted", "skipped", str(entry.get("reason", "")))


def _note(entry: Entry) -> Iterator[ConversationItem]:
    icon, style, what = NOTES.get(str(entry.get("kind")), NOTES["warning"])
    yield _said(icon, style, what, str(entry.get("message", "")))


_ITEMS: dict[str, Callable[[Entry], Iterator[ConversationItem]]] = {
    "agent_start": _start,
    "agent_skipped": _skipped,
    "api_request": _request,
    "api_response": _response,
    "tool_exec": _tool,
    "question": _question,
    "gate_decision": _decision,
    "agent_complete": _complete,
    "note": _note,
}


def gate_items(state: WorkflowState, number: int) -> list[ConversationItem]:
    """Return the items of a gate: every decision, and the last summary in its place among them."""
    gate = state.view.gates[number]
    if gate.state == "ahead" and not gate.decisions:
        return [ConversationItem("◇", "pending", f"{gate.artifact} is decided here; there is no question yet")]
    items = []
    for gate_decision in gate.decisions:
        icon, style, word = DECIDED.get(gate_decision.decision.value, DECIDED_ABORT)
        head = f"{word} at {gate_decision.timestamp[:19].replace('T', ' ')} UTC"
        items.append(_said(icon, style, head, gate_decision.feedback or ""))
    summary = tuple(summary_blocks(gate.summary, ""))
    # It was shown after the decisions before the last one, or after all while the gate waits.
    place = len(items) if gate.state == "asked" else -1
    items[place:place] = [
        ConversationItem("◇", "accent", f"summary · {gate.artifact}", summary, True),
        *map(change_item, gate.changes),
    ]
    if gate.state == "asked":
        items.append(ConversationItem("?", "medium", "waits for a decision"))
    return items


def whole_items(state: WorkflowState, status: str, how_to_continue: str) -> list[ConversationItem]:
    """Return the items of the whole workflow: task, gates, costs, warnings, and its end."""
    view = state.view
    items = [ConversationItem("◇", "accent", "task", (("", view.task),), True)]
    if view.model:
        project = f"{view.model}\nproject {state.project_root}"
        items.append(ConversationItem(" ", "text", "model", (("", project),), True))
    if costs := [_cost_line(state, agent) for agent in view.agents.values() if agent.cost]:
        total = f"{money(view.cost_usd)} in {count(view.api_calls, 'call')}, "
        total += f"{view.input_tokens:,} tokens in, {view.output_tokens:,} out"
        items.append(ConversationItem(" ", "text", f"cost · {total}", tuple(costs)))
    for notice in view.notices:
        items += _note(notice)
    if view.end is not None:
        items.append(_ending(view.end, status))
    if how_to_continue:
        items.append(ConversationItem("→", "accent", how_to_continue))
    return items


def _cost_line(state: WorkflowState, agent: AgentView) -> Block:
    seconds = duration(state.seconds.get(agent.name, 0.0))
    return "", f"{agent.name:<22} {money(agent.cost_usd):>9}  {count(agent.api_calls, 'call'):<9} {seconds}"


def _ending(end: Entry, status: str) -> ConversationItem:
    took = duration(float(end.get("duration_s") or 0.0))
    style = "complete" if status == "completed" else "failed" if status in ("failed", "cost_ceiling") else "medium"
    icon = {"complete": "✔", "failed": "✖"}.get(style, "◼")
    return _said(icon, style, f"{status.replace('_', ' ')} after {took}", one_line(str(end.get("error") or ""), 2_000))


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
        for title, lines in self._agents():
            parts.append("\n".join([title, *(f"  {line}" for line in lines)]))
        return "\n\n".join(parts)

    def render(self, form: ExportFormat) -> str:
        """Return the report as Markdown or as a web page."""
        name = f"Workflow {self.view.run_id}"
        if form == "md":
            parts = [f"# {literal(name)}", fenced(self._overview())]
            for title, lines in self._agents():
                parts += [f"## {literal(title)}", fenced("\n".join(lines))]
            return "\n\n".join(parts)
        sections = [tag("section", None, tag("pre", self._overview()))]
        for title, lines in self._agents():
            sections.append(tag("section", tag("h2", title), tag("pre", "\n".join(lines))))
        header = tag("header", tag("h1", name), class_="head")
        return page(name, join(header, tag("main", *sections, id="main")))

    def as_json(self) -> dict[str, Any]:
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
        why, status = one_line(str(error or (question and question["text"]) or "")), self._status.replace("_", " ")
        took = f", {duration(float(view.end['duration_s']))}" if view.end is not None else ""
        cached = f" ({view.cached_tokens:,} from the cache)" if view.cached_tokens else ""
        tokens = f"{view.input_tokens:,} tokens in{cached}, {view.output_tokens:,} out"
        simulated = " (simulated)" if view.simulated and not view.model.startswith("simulated:") else ""
        rows = pipeline_rows(self._state, self._status, self._state.last_ts, in_progress=self._is_live)[1:]
        width = max(len(row.name) for row in rows)
        lines = [
            f"workflow {view.run_id}",
            f"task     {one_line(view.task)}",
            f"status   {why if why.startswith(status) else f'{status}: {why}' if why else status}",
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

    def _agents(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a heading, and the lines below it, for each agent that has done anything."""
        for agent in self.view.agents.values():
            if lines := list(_activity_lines(agent)):
                yield f"{agent.name}: {count(agent.api_calls, 'call')}, {money(agent.cost_usd)}", lines


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
