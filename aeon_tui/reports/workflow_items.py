"""The content of an agent, a gate or the whole workflow, from its records, as items that open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from aeon_core.journal.view.draft import partial_json
from aeon_core.units import count, money, span
from aeon_tui.sources.workflow import WorkflowState
from aeon_widgets.text import Block, duration, one_line, pretty
from aeon_widgets.workflow_conversation import ConversationItem
from system2.changes import FileChange
from system2.contracts import DelegationContract

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
        yield _STYLES.get(line[:1], ""), line


def detail_blocks(text: str) -> Iterator[Block]:
    """Yield the subject of a question: a diff in colours, or a reason."""
    if text.startswith("--- "):
        yield from diff_blocks(text)
    else:
        yield "muted", text


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
    """Yield the items of one entry that the view has folded: usually one, none for a first request."""
    kind = str(entry.get("type"))
    if kind in _ITEMS:
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
        yield _said("»", "text", f"{what} · {tokens:,} tokens{cost}{stop}", text)


def _tool(entry: Entry) -> Iterator[ConversationItem]:
    succeeded = bool(entry.get("success"))
    icon, style = ("✔", "complete") if succeeded else ("✖", "failed")
    flags = [f"may be an injected instruction: {flag}" for flag in entry.get("flags") or ()]
    flagged = " ⚠ flagged" if flags else ""
    head = f"{entry['tool']} {entry['args_summary']} · {span(entry.get('duration_ms'))}{flagged}"
    body: list[Block] = [("high", flag) for flag in flags]
    body += [("muted", "input"), *_input(entry.get("input") or {})]
    body += [("muted", "result" if succeeded else "refused, or failed"), ("", str(entry.get("result", "")))]
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
    changed = [("muted", f"changed: {path}") for path in entry.get("files_changed") or ()]
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
    """Return the items of a gate: the summary shown, and every decision."""
    gate = state.view.gates[number]
    if gate.state == "ahead" and not gate.decisions:
        return [ConversationItem("◇", "pending", f"{gate.artifact} is decided here; there is no question yet")]
    items = [
        ConversationItem("◇", "accent", f"summary · {gate.artifact}", tuple(summary_blocks(gate.summary, "")), True)
    ]
    items += [change_item(change) for change in gate.changes]
    for gate_decision in gate.decisions:
        icon, style, word = DECIDED.get(gate_decision.decision.value, DECIDED_ABORT)
        items.append(
            _said(
                icon,
                style,
                f"{word} at {gate_decision.timestamp[:19].replace('T', ' ')} UTC",
                gate_decision.feedback or "",
            )
        )
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
    costs = [_cost_line(state, name) for name, agent in view.agents.items() if agent.cost]
    if costs:
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


def _cost_line(state: WorkflowState, name: str) -> Block:
    agent = state.view.agents[name]
    spent, calls = sum(cost.cost_usd for cost in agent.cost), sum(cost.api_calls for cost in agent.cost)
    seconds = state.seconds.get(name, 0.0)
    return "", f"{name:<22} {money(spent):>9}  {count(calls, 'call'):<9} {duration(seconds)}"


def _ending(end: Entry, status: str) -> ConversationItem:
    took = duration(float(end.get("duration_s") or 0.0))
    style = "complete" if status == "completed" else "failed" if status in ("failed", "cost_ceiling") else "medium"
    icon = {"complete": "✔", "failed": "✖"}.get(style, "◼")
    return _said(icon, style, f"{status.replace('_', ' ')} after {took}", one_line(str(end.get("error") or ""), 2_000))
