"""Reports on runs and workflows as the text of a file, written whole or not at all (contract: show --export)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls, escape_json
from aeon_core.journal.history import open_run
from aeon_core.journal.listing import lineage_of
from aeon_core.regular_file import replace_file
from aeon_tui.reports import ExportFormat
from aeon_tui.reports.markdown import markdown
from aeon_tui.reports.run_report import RunChanges, RunReport
from aeon_tui.reports.workflow_report import WorkflowReport
from aeon_tui.sources.run_index import is_workflow


def export_journal(path: Path, form: ExportFormat, runs_dir: Path) -> str:
    """Return the report on a journal's run or workflow, which is read whole. Raises AeonError."""
    if is_workflow(path):
        workflow = WorkflowReport(path)
        return _json(workflow.as_json()) if form == "json" else _text(workflow.render(form))
    changes = RunChanges()
    view, history = open_run(path, observe=changes.apply)
    if form == "json":
        return _json(history.model_dump(mode="json"))
    lineage = lineage_of(path, cache=path.parent == runs_dir)
    return _text(render_run(RunReport(view, history, None, lineage, changes), form))


def render_run(report: RunReport, form: ExportFormat) -> str:
    """Return a run's report as Markdown or as a web page."""
    if form == "md":
        return markdown(report)
    from aeon_tui.reports.html import html_page

    return html_page(report)


def _json(value: Any) -> str:
    return escape_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def _text(text: str) -> str:
    lines = escape_controls(text.replace("\r\n", "\n"), keep="\n\t").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def write_file(path: Path, text: str) -> None:
    """Write a text in UTF-8; a file that is there is replaced, once the new one is whole. Raises UsageError."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = path.resolve()
        if target.is_file() or not target.exists():
            replace_file(target, data, target.stat() if target.exists() else None, mode=0o666, durable=False)
        else:
            # A device or a pipe is written to; a folder is an error.
            target.write_bytes(data)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {str(path)!r}: {reason}; choose another file with -o") from None
