"""A report on a run as Markdown. Foreign text is text there: no markup, no HTML, no heading of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from aeon_core.escape import escape_controls
from aeon_core.journal.view.formatting import message, route
from aeon_core.journal.view.model import RunView, StepView
from aeon_tui.reports.run_report import RunReport, Section, answer_title, notes, status_of

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
_BLOCK = re.compile(r"^(?=[#+=\-])|^(\d{1,9})(?=[.)])")
"""What would begin a heading, a list or a rule at the beginning of a line."""


def markdown(report: RunReport) -> str:
    """Return the report, ending without a newline."""
    view = report.view
    blocks = ["# " + _line(f"Run {view.run_id}")]
    blocks.append(
        _list(f"**{label}**: {_line(value)}" for label, value in report.facts if label not in ("run", "task"))
    )
    blocks += ["## Task", _quote(view.task)]
    if report.error is not None:
        blocks += ["## Error", _quote(message(report.error))]
    if report.answer is not None:
        blocks += [f"## {answer_title(view.simulated)}", _quote(report.answer)]
    blocks += [*_sections(report.for_a_person), *_sections(report.passes)]
    if view.steps or view.goal:
        blocks += ["## Plan", _quote(view.goal)]
    for step in view.steps.values():
        blocks += _step(step, view)
    for title, texts in (("Repairs", report.repairs), ("Warnings", [line.text for line in report.warnings])):
        if texts:
            blocks += [f"## {title}", _list(map(_line, texts))]
    if view.damage:
        blocks += ["## Journal damage", _list(map(_line, view.damage))]
    return "\n\n".join(block for block in blocks if block)


def _sections(sections: list[Section]) -> Iterable[str]:
    for section in sections:
        yield f"## {section.title}"
        yield "\n".join(f"{'  ' * note.depth}- {_line(note.text)}" for note in section.notes)


def _step(step: StepView, view: RunView) -> Iterable[str]:
    parent = f" (part of {step.parent})" if step.parent is not None else ""
    yield f"### {_line(f'{step.step_id} · {status_of(step, view)} · {route(step)}{parent}')}"
    yield _quote(step.description)
    yield _list(_line(text) for _, text in notes(step, view))
    if step.output is not None:
        yield _output(step.output)


def _output(output: dict[str, Any]) -> str:
    if len(output) == 1 and isinstance(output.get("text"), str):
        return "Result:\n\n" + _quote(output["text"])
    # In JSON, too, a `<` has a form that no reader takes for markup; it means the same.
    text = escape_controls(json.dumps(output, indent=2, ensure_ascii=False), keep="\n").replace("<", r"\u003c")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"Result:\n\n{fence}json\n{text}\n{fence}"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _quote(text: str) -> str:
    """Return a text of any number of lines as a quotation that keeps them."""
    lines = text.replace("\r\n", "\n").rstrip().split("\n") if text.strip() else []
    return "\\\n".join(f"> {_line(line)}" if line.strip() else "> &nbsp;" for line in lines)


def _line(text: str) -> str:
    """Return a text on one line, every character in it standing for itself."""
    shown = escape_controls(text, keep="\t").replace("\t", "    ").rstrip()
    indent = len(shown) - len(shown.lstrip(" "))
    escaped = _MARKUP.sub(r"\\\g<0>", shown[indent:])
    escaped = re.sub("[&<>]", lambda match: _ENTITIES[match.group()], escaped)
    return "&nbsp;" * indent + _BLOCK.sub(r"\1\\", escaped)
