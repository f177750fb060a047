"""A run's report in the forms of `show --export`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

from aeon_core.journal.history import ExecutionHistory, open_run
from aeon_core.journal.lineage import Lineage, lineage_of
from aeon_tui.cli.output import Output
from aeon_tui.reports.html import html_page
from aeon_tui.reports.markdown import markdown
from aeon_tui.reports.run_report import RunReport
from aeon_tui.sources.transcripts import is_workflow

ExportFormat = Literal["md", "html", "json"]


def print_report(out: Output, form: ExportFormat, report: RunReport, history: ExecutionHistory) -> None:
    """Print a report in one of the forms; JSON is the history alone."""
    if form == "json":
        out.json(history.model_dump(mode="json"))
    elif form == "md":
        out.block(markdown(report))
    else:
        out.block(html_page(report))


def exported(path: Path, form: ExportFormat, runs_dir: Path) -> str:
    """Return a journal's run in one of the forms, read whole. Raises AeonError where it cannot be."""
    if is_workflow(path):
        from aeon_tui.cli import workflow_show

        return workflow_show.exported(path, form)
    view, history = open_run(path)
    family = Lineage() if form == "json" else lineage_of(path, cache=path.parent == runs_dir)
    buffer = io.StringIO()
    print_report(Output(buffer), form, RunReport(view, history, None, family), history)
    return buffer.getvalue()
