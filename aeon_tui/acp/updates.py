"""The updates an editor shows for a run: plan entries, tool calls with diffs, text; from live or recorded records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import acp
from acp.schema import PlanEntry, PlanEntryStatus, ToolCallLocation, ToolCallStatus, ToolKind

from aeon_core import RunResult
from aeon_tui.reports.exit_summary import details, ending, why_not_usable
from aeon_tui.reports.run_report import readable
from aeon_tui.sessions.served_runs import Delta, Event, ProgressLines
from aeon_widgets.run_list import cost
from aeon_widgets.run_question import REVIEWED, headline, run_question
from aeon_widgets.text import one_line

Record = Mapping[str, Any]
KINDS: dict[str, ToolKind] = {
    "Read": "read",
    "Write": "edit",
    "Edit": "edit",
    "Grep": "search",
    "Glob": "search",
    "Bash": "execute",
}
STATUSES: dict[str, PlanEntryStatus] = {"pending": "pending", "running": "in_progress"}
"""Of a step; all others have ended."""
MESSAGES = {
    "answer": acp.update_agent_message_text,
    "reason": acp.update_agent_thought_text,
    "fallback": acp.update_agent_thought_text,
}
"""What shows a reply, by the call's purpose. Plans and verdicts are shown once they are complete."""
MAX_OUTPUT = 20_000
"""How many characters of a tool's result are shown."""
_HUNK = re.compile(r"^@@ .*\n", re.MULTILINE)


class Updates:
    """Turns the events of one run, in order, into the updates of a session."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._progress = ProgressLines()
        self._entries: list[PlanEntry] = []
        self._streams = self._has_diff = False
        self._answer = ""
        """What the editor shows as the last answer."""
        self.call = ""
        """The tool call that is under way or asked about, else empty: one at a time."""

    def of(self, event: Event) -> Iterator[Any]:
        """Yield the updates for an event."""
        if isinstance(event, Delta):
            if event.purpose in MESSAGES:
                self._streams = True
                yield MESSAGES[event.purpose](event.text)
            return
        line, kind = self._progress.line(event), event["type"]
        if kind in ("plan", "step"):
            before, self._entries = self._entries, [_entry(step) for step in self._progress.view.steps.values()]
            if self._entries != before:
                yield acp.update_plan(self._entries)
        elif line:
            yield acp.update_agent_thought_text(f"\n\n{line}\n\n")
        elif handler := getattr(self, f"_{kind}", None):
            yield from handler(event)

    def _llm(self, record: Record) -> Iterator[Any]:
        purpose, streamed, self._streams = record["purpose"], self._streams, False
        text = str((record.get("response") or {}).get("text") or "")
        if text and purpose in MESSAGES and not streamed:
            yield MESSAGES[purpose](text)
        if text and purpose == "answer":
            self._answer = text

    def _approval(self, record: Record) -> Iterator[Any]:
        point, is_approved = record["point"], record.get("decision") not in ("reject", "abort")
        if self.call and (record["state"] == "asked" or not (point == "tool" and is_approved)):
            yield self._ended("completed" if is_approved or point in REVIEWED else "failed")
        if record["state"] == "asked" and point == "tool":
            yield self._begun(record, record["subject"], "pending")
        elif record["state"] == "asked":
            self.call, question = (
                f"{record['run']}-{record['seq']}",
                run_question(point, record["subject"], record["pass"]),
            )
            content = [_text(question.text)]
            yield acp.start_tool_call(self.call, question.headline, kind="think", status="pending", content=content)

    def _tool(self, record: Record) -> Iterator[Any]:
        if record["state"] == "started" and self.call:
            yield acp.update_tool_call(self.call, status="in_progress", raw_input=record["arguments"])
        elif record["state"] == "started":
            yield self._begun(record, record, "in_progress")
        elif self.call:
            error = record.get("error")
            result = error or record.get("result") or {}
            content = None if self._has_diff and not error else [_text(readable(result)[:MAX_OUTPUT])]
            yield self._ended("failed" if error else "completed", content=content, raw_output=result)

    def _begun(self, record: Record, about: Record, status: ToolCallStatus) -> Any:
        """Return the start of a call of `tool_name` with `arguments`."""
        name, arguments, preview = about["tool_name"], about.get("arguments") or {}, about.get("preview") or {}
        path, text, command = (arguments.get(key) for key in ("file_path", "content", "command"))
        place = str(self._cwd / path) if isinstance(path, str) else ""
        content: list[Any] = [acp.tool_diff_content(place, new, old) for old, new in hunks(preview.get("diff") or "")]
        if name == "Write" and isinstance(text, str) and not content:
            content = [acp.tool_diff_content(place, text)]
        self.call, self._has_diff = f"{record['run']}-{record['seq']}", bool(content)
        if reason := preview.get("problem") or about.get("reason"):
            content.append(_text(str(reason)))
        return acp.start_tool_call(
            self.call,
            one_line(str(command), 200) if name == "Bash" else headline("tool", about).removesuffix("?"),
            kind=KINDS.get(name, "other"),
            status=status,
            content=content or None,
            locations=[ToolCallLocation(path=place)] if place else None,
            raw_input=arguments,
        )

    def _ended(self, status: ToolCallStatus, **more: Any) -> Any:
        call, self.call = self.call, ""
        return acp.update_tool_call(call, status=status, **more)

    def _run_finished(self, record: Record) -> Iterator[Any]:
        result = RunResult.model_validate(record["result"], extra="ignore")
        if result.answer and result.answer != self._answer:
            yield acp.update_agent_message_text(result.answer)
        summary = [ending(result, scores=False), cost(result.cost_usd) if result.cost_usd else ""]
        summary += ["simulated model" if result.simulated else "", details(result)]
        questions = "\n- ".join(["Open questions:", *result.follow_up_questions]) if result.follow_up_questions else ""
        parts = filter(None, (questions, f"---\n{' · '.join(filter(None, summary))}", why_not_usable(result)))
        yield acp.update_agent_message_text("".join(f"\n\n{part}" for part in parts))


def _entry(step: Any) -> PlanEntry:
    suffix = f" ({step.status})" if step.status in ("failed", "invalid") else ""
    words = f"{'  ' * step.depth}{step.description}{suffix}"
    return acp.plan_entry(words, status=STATUSES.get(step.status, "completed"))


def _text(text: str) -> Any:
    return acp.tool_content(acp.text_block(text))


def hunks(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each hunk of a unified diff of one file."""
    for part in _HUNK.split(diff)[1:]:
        lines = part.removesuffix("\n").split("\n")
        old, new = ("\n".join(line[1:] for line in lines if line[:1] in (" ", sign)) for sign in "-+")
        yield old, new
