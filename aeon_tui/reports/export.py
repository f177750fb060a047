"""Reports on runs and workflows as files, written completely or not at all (contract: show --export)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import UsageError, reason_of
from aeon_core.escape import escape_controls, escape_json
from aeon_core.journal.history import open_end, open_run
from aeon_core.journal.listing import lineage_of
from aeon_core.journal.view.formatting import message, route
from aeon_core.journal.view.model import RunView, StepView
from aeon_core.paths import real_path
from aeon_core.regular_file import replace_file
from aeon_tui.reports import ExportFormat, fenced, literal
from aeon_tui.reports.run_report import ReportSection, RunChanges, RunReport, answer_title, notes, status_of
from aeon_tui.sources.run_index import is_workflow

if TYPE_CHECKING:
    from aeon_tui.reports.workflow_report import WorkflowReport


def report_on(
    path: Path, runs_dir: Path, pass_number: int | None = None, *, at_once: bool = False
) -> RunReport | WorkflowReport:
    """Return the report on a journal's run or workflow, read whole unless `at_once` asks for its end only.

    With a `pass_number`, it covers that pass. Raises AeonError.
    """
    if is_workflow(path):
        if pass_number is not None:
            raise UsageError(f"{path.stem!r} is a workflow, which has no passes; drop --pass")
        from aeon_tui.reports.workflow_report import WorkflowReport

        return WorkflowReport(path)
    changes = RunChanges()
    view, history = open_end(path) if at_once else open_run(path, None, pass_number, changes.apply)
    return RunReport(view, history, pass_number, lambda: lineage_of(path, cache=path.parent == runs_dir), changes)


def body_of(report: RunReport | WorkflowReport, form: ExportFormat) -> str:
    """Return a report as Markdown or as a web page, without a newline at its end."""
    if not isinstance(report, RunReport):
        return report.render(form)
    if form == "md":
        return markdown(report)
    from aeon_tui.reports.html import html_page

    return html_page(report)


def export_journal(path: Path, form: ExportFormat, runs_dir: Path) -> str:
    """Return the report on a journal's run or workflow as the text of a file. Raises AeonError."""
    report = report_on(path, runs_dir)
    if form == "json":
        return escape_json(json.dumps(report.as_json(), indent=2, ensure_ascii=False)) + "\n"
    lines = escape_controls(body_of(report, form).replace("\r\n", "\n"), keep="\n\t").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def write_file(path: Path, text: str) -> None:
    """Write a text in UTF-8; an existing file is replaced once the new one is complete. Raises UsageError."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = real_path(path)
        if target.is_file() or not target.exists():
            replace_file(target, data, target.stat() if target.exists() else None, mode=0o666, durable=False)
        else:
            # A device or a pipe is written to directly; a folder is an error.
            target.write_bytes(data)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot write {str(path)!r}: {reason_of(error)}; choose another file with -o") from None


def markdown(report: RunReport) -> str:
    """Return the report, ending without a newline."""
    view = report.view
    blocks = ["# " + literal(f"Run {view.run_id}")]
    blocks.append(
        _list(f"**{label}**: {literal(value)}" for label, value in report.facts if label not in ("run", "task"))
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
            blocks += [f"## {title}", _list(map(literal, texts))]
    if view.damage:
        blocks += ["## Journal damage", _list(map(literal, view.damage))]
    return "\n\n".join(block for block in blocks if block)


def _sections(sections: list[ReportSection]) -> Iterable[str]:
    for section in sections:
        yield f"## {section.title}"
        yield "\n".join(f"{'  ' * note.depth}- {literal(note.text)}" for note in section.notes)


def _step(step: StepView, view: RunView) -> Iterable[str]:
    parent = f" (part of {step.parent})" if step.parent is not None else ""
    yield f"### {literal(f'{step.step_id} · {status_of(step, view)} · {route(step)}{parent}')}"
    yield _quote(step.description)
    yield _list(literal(text) for _, text in notes(step, view))
    if step.output is not None:
        yield _output(step.output)


def _output(output: dict[str, Any]) -> str:
    if len(output) == 1 and isinstance(output.get("text"), str):
        return "Result:\n\n" + _quote(output["text"])
    # JSON has an equivalent form of `<` that nothing mistakes for markup.
    text = json.dumps(output, indent=2, ensure_ascii=False).replace("<", r"\u003c")
    return f"Result:\n\n{fenced(text, 'json')}"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _quote(text: str) -> str:
    """Return a text as a quotation that keeps its lines."""
    lines = text.replace("\r\n", "\n").rstrip().split("\n") if text.strip() else []
    return "\\\n".join(f"> {literal(line)}" if line.strip() else "> &nbsp;" for line in lines)
