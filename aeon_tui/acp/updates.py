"""The updates an editor shows for a run: plan entries, tool calls with diffs, text; from live or recorded records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from acp import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import PlanEntryStatus, ToolCallLocation, ToolKind

from aeon_tui.sessions.streamed_run import PHASES
from aeon_widgets.call_text import call_title
from aeon_widgets.run_question import REVIEWED, run_question
from aeon_widgets.text import count, one_line

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
ANSWER = "answer"
THOUGHTS = frozenset({"reason", "fallback"})
"""Purposes of the calls whose text is a step's output."""
MAX_OUTPUT = 20_000
"""How many characters of a tool's result are sent; the journal has the rest."""
_HUNK = re.compile(r"^@@ .*$", re.MULTILINE)


class Updates:
    """Turns the records of one run, in order, into the updates of a session."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._steps: dict[str, list[str]] = {}
        """Description and status of each step, by id, in the plan's order."""
        self._asked: dict[str, str] = {}
        """The tool call that a question about a step announced, by the step's id."""
        self._diffs: set[str] = set()
        """Tool calls that show a diff."""
        self._streamed = ""
        """The part of the current reply that has arrived."""
        self._answer = ""
        """What the editor shows as the last answer."""
        self.question = ""
        """The tool call that shows the latest question."""

    def of(self, record: Record) -> Iterator[Any]:
        """Yield the updates for a record."""
        if (handler := getattr(self, f"_{record['type']}", None)) is not None:
            yield from handler(record)

    def delta(self, purpose: str, text: str) -> Iterator[Any]:
        """Yield a piece of a reply that is meant for people; plans and verdicts are shown once they are complete."""
        if purpose == ANSWER:
            self._streamed += text
            yield update_agent_message_text(text)
        elif purpose in THOUGHTS:
            self._streamed += text
            yield update_agent_thought_text(text)

    def _run_started(self, record: Record) -> Iterator[Any]:
        yield update_user_message_text(str(record["task"]))

    def _phase(self, record: Record) -> Iterator[Any]:
        if record["state"] == "started":
            yield update_agent_thought_text(f"\n\nPass {record['pass']}: {PHASES[record['phase']]}\n\n")

    def _plan(self, record: Record) -> Iterator[Any]:
        self._steps = {
            step["step_id"]: [f"{'  ' * depth}{step['description']}", step.get("status", "pending")]
            for step, depth in _walk(record["plan"].get("steps") or [])
        }
        yield self._entries()

    def _step(self, record: Record) -> Iterator[Any]:
        if (step := self._steps.get(record["step_id"])) is not None and step[1] != record["status"]:
            step[1] = record["status"]
            yield self._entries()

    def _entries(self) -> Any:
        return update_plan(
            plan_entry(
                f"{words} ({status})" if status in ("failed", "invalid") else words,
                status=STATUSES.get(status, "completed"),
            )
            for words, status in self._steps.values()
        )

    def _llm(self, record: Record) -> Iterator[Any]:
        purpose = record["purpose"]
        if record["state"] == "started":
            self._streamed = ""
            return
        text = str((record.get("response") or {}).get("text") or "")
        if text and not self._streamed:
            yield from self.delta(purpose, text)
        if text and purpose == ANSWER:
            self._answer = text

    def _approval(self, record: Record) -> Iterator[Any]:
        point, step = record["point"], record.get("step_id") or ""
        if record["state"] == "decided":
            call, taken = self._asked.get(step), record.get("decision") not in ("reject", "abort")
            if call is not None and not (point == "tool" and taken):
                del self._asked[step]
                yield update_tool_call(call, status="completed" if taken or point in REVIEWED else "failed")
            return
        subject = record["subject"]
        if (before := self._asked.pop(step, None)) is not None:
            yield update_tool_call(before, status="completed")
        call = self._asked[step] = self.question = f"{record['run']}-ask-{record['seq']}"
        if point != "tool":
            question = run_question(point, subject, record["pass"])
            content = [tool_content(text_block(question.text))]
            yield start_tool_call(call, question.headline, kind="think", status="pending", content=content)
            return
        preview = subject.get("preview") or {}
        yield self._begun(call, subject, "pending", preview.get("diff"), preview.get("problem") or "")

    def _tool(self, record: Record) -> Iterator[Any]:
        own = f"{record['run']}-{record['call_id']}"
        if record["state"] == "started":
            asked = self._asked.pop(record["step_id"], None)
            if asked is not None:
                self._asked[own] = asked
                yield update_tool_call(asked, status="in_progress", raw_input=record["arguments"])
            else:
                yield self._begun(own, record, "in_progress", record.get("preview"))
            return
        call, error = self._asked.pop(own, own), record.get("error")
        result = error or record.get("result") or {}
        content = None
        if error or call not in self._diffs:
            content = [tool_content(text_block(_output(result)))]
        yield update_tool_call(call, status="failed" if error else "completed", content=content, raw_output=result)

    def _begun(self, call: str, about: Record, status: Any, diff: str | None, problem: str = "") -> Any:
        """Return the start of a call of `tool_name` with `arguments`."""
        name, arguments = str(about["tool_name"]), about.get("arguments") or {}
        path = arguments.get("file_path", arguments.get("path"))
        place = str(self._cwd / path) if isinstance(path, str) else ""
        if diff is None and name == "Write" and isinstance(arguments.get("content"), str):
            content: list[Any] = [tool_diff_content(place, arguments["content"])]
        else:
            content = [tool_diff_content(place, new, old) for old, new in hunks(diff or "")]
        if content:
            self._diffs.add(call)
        if reason := problem or about.get("reason"):
            content.append(tool_content(text_block(str(reason))))
        command = arguments.get("command") if name == "Bash" else None
        return start_tool_call(
            call,
            one_line(str(command), 200) if command else call_title(about).removesuffix("?"),
            kind=KINDS.get(name, "other"),
            status=status,
            content=content or None,
            locations=[ToolCallLocation(path=place)] if place else None,
            raw_input=arguments,
        )

    def _convergence(self, record: Record) -> Iterator[Any]:
        found = [each for each in record.get("requirements") or [] if isinstance(each, dict)]
        if found:
            met = sum(each.get("met") == "yes" for each in found)
            yield update_agent_thought_text(f"\n{met} of {count(len(found), 'requirement')} met\n")

    def _notice(self, record: Record) -> Iterator[Any]:
        yield update_agent_thought_text(f"\n{record['message']}\n")

    def _run_finished(self, record: Record) -> Iterator[Any]:
        result = record["result"]
        if (answer := result.get("answer")) and answer != self._answer:
            yield update_agent_message_text(answer)
        questions = [f"\n- {each}" for each in result.get("follow_up_questions") or []]
        open_questions = f"\n\nOpen questions:{''.join(questions)}" if questions else ""
        yield update_agent_message_text(f"{open_questions}\n\n---\n{ending(result)}")


def ending(result: Mapping[str, Any]) -> str:
    """Return in one line how a run ended, and how to see it again."""
    why = (result.get("error") or {}).get("message")
    cost, passes = result.get("cost_usd"), result.get("passes") or 0
    parts = [f"{result['status'].replace('_', ' ')}{f': {one_line(why, 500)}' if why else ''}"]
    parts += [f"{passes} pass{'' if passes == 1 else 'es'}"] if passes else []
    parts += [f"${cost:.4f}"] if cost else []
    parts += ["simulated model"] if result.get("simulated") else []
    return " · ".join([*parts, f"`aeon-tui show {result['run_id']}`"])


def hunks(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each hunk of a unified diff of one file."""
    for part in _HUNK.split(diff)[1:]:
        lines = part.strip("\n").split("\n")
        old = [line[1:] for line in lines if line[:1] in (" ", "-")]
        new = [line[1:] for line in lines if line[:1] in (" ", "+")]
        yield "\n".join(old), "\n".join(new)


def _walk(steps: list[dict[str, Any]], depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    for step in steps:
        yield step, depth
        yield from _walk((step.get("subplan") or {}).get("substeps") or [], depth + 1)


def _output(result: Mapping[str, Any]) -> str:
    """Return a result as text: its only text as it is, anything else as JSON."""
    texts = [value for value in result.values() if isinstance(value, str)]
    whole = texts[0] if len(texts) == len(result) == 1 else json.dumps(result, ensure_ascii=False, indent=2)
    return whole if len(whole) <= MAX_OUTPUT else f"{whole[:MAX_OUTPUT]}\n… {len(whole) - MAX_OUTPUT:,} more characters"
