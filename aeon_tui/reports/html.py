"""A report on a run as one web page: no script, nothing fetched. Foreign text is escaped everywhere."""

from __future__ import annotations

import html
from collections.abc import Iterator

from aeon_core.escape import escape_controls
from aeon_core.journal.view.formatting import message, route
from aeon_core.journal.view.model import LogLine, RunView, StepView
from aeon_core.timing import seconds_after
from aeon_tui.reports.pass_sections import Section
from aeon_tui.reports.run_report import RunReport, answer_title, notes, readable, status_of

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
:root { color-scheme: light dark; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dd { margin: 0; }
dt, time, .kind { color: GrayText; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { border-left: 3px solid GrayText; margin: .4rem 0; padding-left: .8rem; }
ol.timeline { list-style: none; padding: 0; font: 13px/1.6 ui-monospace, monospace; }
.timeline li { display: grid; grid-template-columns: 6rem 9rem 1fr; gap: .6rem; overflow-wrap: anywhere; }
time { text-align: right; }
.phase { border-top: 1px solid GrayText; font-weight: bold; }
.depth1 { margin-left: 1.5rem; } .depth2 { margin-left: 3rem; }
.warning { color: #a06000; } .error { color: #c02020; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>"""


def html_page(report: RunReport) -> str:
    """Return the page, ending without a newline."""
    return _PAGE.format(title=_line(f"Run {report.view.run_id}"), style=_STYLE, body="\n".join(_body(report)))


def _body(report: RunReport) -> Iterator[str]:
    view = report.view
    yield f"<h1>{_line(f'Run {view.run_id}')}</h1>"
    facts = [fact for fact in report.facts if fact[0] not in ("run", "task")]
    yield f"<dl>{''.join(f'<dt>{_line(label)}</dt><dd>{_line(value)}</dd>' for label, value in facts)}</dl>"
    yield f"<h2>Task</h2>\n{_block(view.task)}"
    if report.error is not None:
        yield f'<h2>Error</h2>\n<p class="error">{_line(message(report.error))}</p>'
    if report.answer is not None:
        yield f"<h2>{_line(answer_title(view.simulated))}</h2>\n{_block(report.answer)}"
    yield from _sections(report.for_a_person)
    yield from _sections(report.passes)
    if view.steps or view.goal:
        yield f"<h2>Plan</h2>\n<p>{_line(view.goal)}</p>"
    for step in view.steps.values():
        yield from _step(step, view)
    yield from _section("Repairs", report.repairs, "info")
    yield from _section("Warnings", [line.text for line in report.warnings], "warning")
    yield from _section("Journal damage", view.damage, "error")
    yield from _timeline(report)


def _step(step: StepView, view: RunView) -> Iterator[str]:
    parent = f" (part of {step.parent})" if step.parent is not None else ""
    yield f"<h3>{_line(f'{step.step_id} · {status_of(step, view)} · {route(step)}{parent}')}</h3>"
    yield f"<p>{_line(step.description)}</p>"
    yield from _items(notes(step, view))
    if step.output is not None:
        yield _block(readable(step.output))


def _sections(sections: list[Section]) -> Iterator[str]:
    for section in sections:
        yield f"<h2>{_line(section.title)}</h2>"
        items = (f'<li class="{note.level} depth{note.depth}">{_line(note.text)}</li>' for note in section.notes)
        yield f"<ul>{''.join(items)}</ul>"


def _section(title: str, texts: list[str], level: str) -> Iterator[str]:
    if texts:
        yield f"<h2>{title}</h2>"
    yield from _items([(level, text) for text in texts])


def _items(items: list[tuple[str, str]]) -> Iterator[str]:
    if items:
        yield f"<ul>{''.join(_item(level, text) for level, text in items)}</ul>"


def _item(level: str, text: str) -> str:
    return f'<li class="{level}">{_line(text)}</li>'


def _timeline(report: RunReport) -> Iterator[str]:
    log = report.view.log
    yield "<h2>Timeline</h2>"
    if left_out := report.view.log_count - len(log):
        yield f"<p>The first {left_out} records are omitted.</p>"
    yield f'<ol class="timeline">{"".join(_moment(line, report.view.started) for line in log)}</ol>'


def _moment(line: LogLine, start: str) -> str:
    level = "phase" if line.type == "phase" else line.level if line.level in ("warning", "error") else "info"
    after = f"+{seconds_after(start, line.ts):.3f} s"
    return (
        f'\n<li class="{level}"><time>{after}</time>'
        f'<span class="kind">{_line(line.type)}</span><span>{_line(line.text)}</span></li>'
    )


def _line(text: str) -> str:
    return html.escape(escape_controls(text))


def _block(text: str) -> str:
    return f"<pre>{html.escape(escape_controls(text, keep=chr(10) + chr(9)))}</pre>"
