"""A report on a whole run as one web page, readable without Aeon or the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from aeon_core.installation import versions
from aeon_core.journal.values import brief, id_of, str_of
from aeon_core.journal.view import formatting
from aeon_core.journal.view.formatting import message, repair_words, route
from aeon_core.journal.view.model import CallView, LogLine, RepairView, StepView, ToolCallView
from aeon_core.journal.view.reducer import nodes
from aeon_core.units import count, money, seconds_after, span
from aeon_tui.reports.run_report import ApprovalChange, PassSpan, ReportNote, RunReport, answer_title, notes, status_of
from aeon_tui.reports.web_page import Html, TextArchive, join, page, tag
from aeon_widgets.call_rows import CALL_LABELS
from aeon_widgets.icons import LEVELS, ROW_ICONS, run_style, shown_status
from aeon_widgets.plan_difference import changes, plan_view
from aeon_widgets.run_question import argument_blocks, headline
from aeon_widgets.step_text import prompt_blocks, repair_blocks, spent_on, tool_blocks
from aeon_widgets.text import Block, pretty, readable

_TEXTS = ("json", "markdown", "code", "diff")
"""Styles of blocks with text of a model or a tool."""
_TITLE = 300
"""The most characters of the task in the page's title."""
_WHOLE = 20_000
"""The most characters of the task, the answer and a step's result shown at first."""
_LONG = 200
"""The characters from which any other block is shown as a long text, too."""


def html_page(report: RunReport) -> str:
    """Return the page, ending without a newline."""
    return _Page(report).render()


class _Page:
    """Writes the sections of one report in order, and stores its long texts separately."""

    def __init__(self, report: RunReport) -> None:
        self.report, self.view, self.changes = report, report.view, report.changes
        self._live = self.view.status == "running"
        self.notes = report.pass_notes
        spans = sorted(self.changes.passes.items())
        self.passes = [each for number, each in spans if number in self.notes or not report.one_pass]
        self.texts = TextArchive(self._states())

    def render(self) -> str:
        view = self.view
        sections = [
            _section("error", "Error", self._error(), view.last_seq),
            _section("answer", answer_title(view.simulated), self._answer(), view.last_seq),
            *(_section(_slug(each.title), each.title, _notes(each.notes)) for each in self.report.for_a_person),
            _section("summary", "Summary", self._facts()),
            _section("requirements", "Requirements", self._requirements()),
            _section("passes", "Passes", self._passes()),
            _section("plan", "Plan", self._plan()),
            _section("issues", "Issues", self._issues()),
            _section("repairs", "Repairs", self._repairs()),
            _section("approvals", "Approvals", self._approvals()),
            _section("cost", "Cost and TTL", self._cost()),
            _section("warnings", "Warnings", self._warnings()),
            _section("damage", "Journal damage", _notes([ReportNote("error", each) for each in view.damage])),
            _section("records", "Records", self._records()),
        ]
        made = tag(
            "p", f"Made by Aeon {versions()['aeon']} from the journal of the run ", tag("code", view.run_id), "."
        )
        body = join(
            tag("a", "Skip to the report", class_="skip", href="#main"),
            tag("header", self._header(), class_="head"),
            tag("nav", self._contents(sections), aria_label="Contents", id="contents"),
            tag("main", *(markup for _, _, markup in sections if markup), id="main", tabindex="-1"),
            tag("footer", made),
        )
        title = f"Run {view.run_id} · {brief(view.task, 80)}"
        return page(title, body, archive=self.texts.packed())

    def _states(self) -> dict[str, Any]:
        """Return the script's data for each moment: plans and statuses, TTL and cost, passes and phases."""
        last = self.view.last_seq
        log = self.view.log
        return {
            "run": self.view.run_id,
            "started": self.view.started,
            "first": log[0].seq if log and self.report.one_pass else 0,
            "last": last,
            "live": self._live,
            "icons": ROW_ICONS,
            "plans": [[seq, [_node(*each) for each in nodes(plan)]] for seq, plan in self.changes.plans if seq <= last],
            "statuses": [each for each in self.changes.statuses if each[0] <= last],
            "totals": [each for each in self.changes.totals if each[0] <= last],
            "passes": [[each.number, each.first, each.last, each.phases] for each in self.passes],
        }

    def _header(self) -> Html:
        view = self.view
        icon, style = run_style(view.status)
        facts = [f"{icon} {formatting.words(view.status)}", f"{view.model}{' (simulated)' if view.simulated else ''}"]
        return join(
            tag("h1", brief(view.task, _TITLE)),
            tag("p", tag("strong", facts[0], class_=style), f" · {facts[1]} · ", tag("code", view.run_id)),
        )

    def _contents(self, sections: Sequence[tuple[str, str, Html | None]]) -> Html:
        links = [tag("li", tag("a", title, href=f"#{name}")) for name, title, markup in sections if markup]
        passes = [
            tag("li", tag("a", f"pass {each.number} {self._scores_of(each.number)}", href=f"#pass-{each.number}"))
            for each in self.passes
        ]
        steps = [
            _tree_row(step.step_id, step.depth, step.description, status_of(step, self.view))
            for step in self.view.steps.values()
        ]
        return tag(
            "details",
            tag("summary", "Contents"),
            tag("ul", *links),
            join(tag("h2", "Passes"), tag("ul", *passes)) if passes else None,
            join(tag("h2", "Plan"), tag("ul", *steps, id="tree")) if steps else None,
            open=True,
        )

    def _scores_of(self, number: int) -> str:
        found = self.view.assessment_of(number)
        if found is None or found.completeness_score is None:
            return ""
        scores = (formatting.score(found.completeness_score), formatting.score(found.coherence_score))
        return f"{'✔' if found.converged else '✖'} {' · '.join(scores)}"

    def _facts(self) -> Html:
        facts = [fact for fact in self.report.facts if fact[0] != "task"]
        listed = (join(tag("dt", label), tag("dd", value)) for label, value in facts)
        task = self.view.task
        said = brief(task, _TITLE) == task
        whole = None if said else join(tag("h3", "Task"), self.texts.shown(task, "prose", _WHOLE))
        return join(tag("dl", *listed), whole)

    def _error(self) -> Html | None:
        error = self.report.error
        return tag("p", message(error), class_="error") if error is not None else None

    def _answer(self) -> Html | None:
        answer = self.report.answer
        return tag("div", self.texts.shown(answer, "prose", _WHOLE), class_="answer") if answer is not None else None

    def _requirements(self) -> Html | None:
        wanted: dict[str, list[Html]] = {text: [] for text in self.view.requirements}
        for assessment in self.view.assessments:
            for each in assessment.requirements:
                icon = formatting.MET_ICONS.get(each.met, "?")
                found = None if each.quote_found else tag("span", f" ({formatting.QUOTE_NOT_FOUND})", class_="medium")
                quoted = join(" ", tag("q", brief(each.evidence, 1_000))) if each.evidence else None
                level = {"yes": "complete", "partly": "medium"}.get(each.met, "high")
                said = tag("span", f"{icon} {each.met or 'not judged'}", class_=level)
                link = tag("a", f"pass {assessment.pass_number}", href=f"#pass-{assessment.pass_number}")
                verdict = tag("li", link, " ", said, quoted, found, data_seq=assessment.seq)
                wanted.setdefault(each.text, []).append(verdict)
        rows = [
            tag("li", self._said(text), tag("ul", *said) if said else tag("p", "Not judged.", class_="muted"))
            for text, said in wanted.items()
        ]
        return tag("ol", *rows) if rows else None

    def _passes(self) -> Html | None:
        across = self.report.across_passes
        passes = join(*map(self._pass, self.passes), *([tag("h3", "Across passes"), _notes(across)] if across else []))
        return passes or None

    def _pass(self, each: PassSpan) -> Html:
        number = each.number
        verdict, *rest = self.notes.get(number) or [ReportNote("text", f"pass {number}")]
        head = verdict.text if self.view.adaptive else f"pass {number}"
        calls = [call for call in self.view.loose_calls if call.pass_number == number]
        attempts = [attempt for call in calls for attempt in self.view.calls.get(call.call_id, [call])]
        repairs = [repair for repair in self.view.repairs if repair.pass_number == number and repair.step_id is None]
        evidence = [note for note in rest if note.kind == "evidence"]
        assessed = self.view.assessment_of(number)
        return tag(
            "section",
            tag("h3", f"{head[:1].upper()}{head[1:]}"),
            tag(
                "div",
                self._meters(number),
                _notes([note for note in rest if note.kind != "evidence"]),
                tag("details", tag("summary", "The judge's evidence"), _notes(evidence)) if evidence else None,
                data_seq=assessed.seq if assessed is not None else each.first,
            ),
            self._plan_change(each),
            *map(self._call, attempts),
            *map(self._repair, repairs),
            id=f"pass-{number}",
            data_seq=each.first,
        )

    def _meters(self, number: int) -> Html | None:
        found = self.view.assessment_of(number)
        if found is None or found.completeness_score is None:
            return None
        scores = (("completeness", found.completeness_score), ("coherence", found.coherence_score))
        return tag(
            "p",
            *(
                tag(
                    "span",
                    f"{name} ",
                    tag("meter", value=score, min=0, max=1, aria_label=name),
                    formatting.score(score),
                )
                for name, score in scores
                if score is not None
            ),
            class_="scores",
        )

    def _plan_change(self, each: PassSpan) -> Html | None:
        """Return the changes that the pass made to its first plan."""
        begun = max(each.first, self.changes.plans[0][0]) if self.changes.plans else each.first
        before, after = (plan_view(self.changes.plan_at(seq)) for seq in (begun, each.last))
        before.last_seq, after.last_seq = begun, each.last
        after.refinements = [found for found in self.view.refinements if found.seq <= each.last]
        if not after.steps:
            return None
        blocks = [(style, text.replace("━━ ", "")) for style, text in changes(before, after)]
        summary = next(text for style, text in blocks if not style)
        return _details(f"Plan changes: {summary}", self._blocks(blocks), seq=each.last, level="change")

    def _plan(self) -> Html | None:
        steps = self.view.steps
        if not steps and not self.view.goal:
            return None
        return join(self._said(self.view.goal), *map(self._step, steps.values()))

    def _step(self, step: StepView) -> Html:
        status = status_of(step, self.view)
        parent = f" (part of {step.parent})" if step.parent is not None else ""
        found = [ReportNote(level, text) for level, text in notes(step, self.view)]
        output = None
        if step.output is not None:
            shown = join(tag("p", "result", class_="label"), self._output(step))
            output = tag("div", shown, data_seq=step.output_seq)
        return tag(
            "section",
            tag(
                "h3",
                tag("span", f"{ROW_ICONS.get(status, '?')} ", class_=status, data_icon=step.step_id),
                tag("span", step.step_id),
                tag("span", f" · {status} · {route(step)}{parent}", class_="muted"),
            ),
            self._said(step.description),
            self._depends(step),
            _notes(found),
            output,
            *map(self._call, step.calls),
            *(self._tool_call(step, call) for call in step.tool_calls),
            *map(self._repair, step.repairs),
            id=_anchor(step.step_id),
            class_=f"step depth{min(step.depth, 4)}",
            data_step=step.step_id,
        )

    def _said(self, text: str) -> Html:
        return tag("p", text) if len(text) <= _LONG * 5 else self.texts.shown(text, "prose")

    def _depends(self, step: StepView) -> Html | None:
        links = [join(" ", self._step_link(each)) for each in step.depends_on]
        return tag("p", "builds on", *links, class_="muted") if links else None

    def _output(self, step: StepView) -> Html:
        is_text = step.mode != "tool" and list(step.output or {}) == ["text"]
        return self.texts.shown(readable(step.output or {}), "prose" if is_text else None, _WHOLE // 10)

    def _call(self, call: CallView) -> Html:
        (_, head), *rest = prompt_blocks([call], self._live)
        status = shown_status("failed" if call.error else "complete" if call.finished else "running", self._live)
        label = CALL_LABELS.get(call.purpose)
        title = f"{ROW_ICONS[status]} model · {f'{label} · ' if label else ''}{head.removeprefix('━━ ')}"
        return self._folded(title, rest, call.seq, "error" if call.error else "call")

    def _tool_call(self, step: StepView, call: ToolCallView) -> Html:
        (_, head), *rest = tool_blocks(replace(step, tool_calls=[call]), self._live)
        status = shown_status("failed" if call.error else "complete" if call.finished else "running", self._live)
        title = f"{ROW_ICONS[status]} tool · {head.removeprefix('━━ ')}"
        # The first two blocks are the arguments, the last one the result; here both show the change.
        rest[:2] = [("accent", "arguments"), *argument_blocks(call.arguments)]
        if call.result is not None and isinstance(diff := call.result.get("diff"), str):
            others = {key: value for key, value in call.result.items() if key != "diff"}
            rest[-1:] = [("json", pretty(others)), ("diff", diff)]
        return self._folded(title, rest, call.seq, "error" if call.error else "call")

    def _repair(self, repair: RepairView) -> Html:
        _, *rest = repair_blocks([repair])
        title = f"✎ {' · '.join(repair_words(repair))}"
        return self._folded(title, rest, repair.seq, "warning")

    def _folded(self, title: str, blocks: Iterable[Block], seq: int, level: str) -> Html:
        if not self.texts.has_room:
            blocks = [("muted", f"Left out to keep this page small; it is record {seq} of the journal.")]
        return _details(title, self._blocks(blocks), seq=seq, level=level)

    def _blocks(self, blocks: Iterable[Block]) -> Html:
        return join(*(self._block(style, text) for style, text in blocks if text))

    def _block(self, style: str, text: str) -> Html:
        form = style.partition(" ")[0]
        if form in _TEXTS or (not style and (len(text) > _LONG or "\n" in text)):
            return self.texts.shown(text, {"diff": "diff", "markdown": "prose"}.get(form))
        return tag("p", text, class_={"accent": "label"}.get(form, form) or None)

    def _issues(self) -> Html | None:
        rows = [
            tag(
                "li",
                tag("a", f"pass {report.pass_number}", href=f"#pass-{report.pass_number}"),
                tag("strong", f" {brief(each.severity, 10)} · {formatting.words(each.type)}"),
                join(" · ", self._step_link(each.step_id)) if each.step_id else None,
                f": {brief(each.description, 1_000)}",
                tag("span", f" → {brief(each.repair, 1_000)}", class_="muted") if each.repair else None,
                class_={"high": "error", "medium": "warning"}.get(each.severity),
                data_seq=report.seq,
            )
            for report in self.view.reports
            for each in report.issues
        ]
        return tag("ul", *rows, class_="rows") if rows else None

    def _step_link(self, step_id: str) -> Html:
        """Return a link to a step, or only its id if the page does not have the step."""
        name = brief(step_id, 40)
        return tag("a", name, href=f"#{_anchor(step_id)}") if step_id in self.view.steps else tag("span", name)

    def _repairs(self) -> Html | None:
        items = [
            tag("li", text, class_="warning", data_seq=repair.seq)
            for repair, text in zip(self.view.repairs, self.report.repairs, strict=True)
        ]
        return tag("ul", *items, class_="rows") if items else None

    def _approvals(self) -> Html | None:
        items = [self._approval(each) for each in self.changes.approvals if each.seq <= self.view.last_seq]
        return join(*items) or None

    def _approval(self, each: ApprovalChange) -> Html:
        decided = each.decided or {}
        waited = span(seconds_after(each.asked, str_of(decided.get("ts"))) * 1_000) if decided else ""
        outcome = f"decided: {brief(decided.get('decision'), 20)} after {waited}" if decided else "waits for a decision"
        title = f"{headline(each.point, each.subject)} · {brief(each.point, 20)} · pass {each.pass_number} · {outcome}"
        blocks: list[Block] = []
        for key in ("feedback", "answers", "edited", "allow"):
            if value := decided.get(key):
                blocks += [("accent", key), ("", value) if isinstance(value, str) else ("json", pretty(value))]
        blocks += [("accent", "what was shown"), ("json", pretty(each.subject))]
        return self._folded(title, blocks, each.seq, "call")

    def _cost(self) -> Html | None:
        by_purpose: dict[str, list[CallView]] = {}
        for attempts in self.view.calls.values():
            for call in attempts:
                by_purpose.setdefault(call.purpose, []).append(call)
        tools = list(self.view.tool_calls.values())
        rows = [
            tag("tr", tag("th", purpose or "?", scope="row"), *map(_number, _spent(calls)))
            for purpose, calls in by_purpose.items()
        ]
        every = [call for calls in by_purpose.values() for call in calls]
        if not rows and not tools:
            return None
        names = ("purpose", "calls", "tokens in", "tokens out", "cost", "waited")
        view = self.view
        left = f"{view.ttl_remaining} of {view.ttl_allocated} left; limit {view.ttl_limit}"
        ttl = f"TTL: {count(view.ttl_spent, 'cycle')} spent, {left}."
        called = f" {count(len(tools), 'tool call')}, {spent_on([], tools).rpartition(' · ')[2]}." if tools else ""
        total = tag("tr", tag("th", "all", scope="row"), *map(_number, _spent(every)))
        table = tag(
            "table",
            tag("thead", tag("tr", *(tag("th", name, scope="col") for name in names))),
            tag("tbody", *rows),
            tag("tfoot", total),
        )
        wide = tag("div", table, class_="wide", role="region", aria_label="Cost by purpose", tabindex=0)
        return join(tag("p", ttl, called), wide)

    def _warnings(self) -> Html | None:
        items = [tag("li", each.text, class_=each.level, data_seq=each.seq) for each in self.report.warnings]
        return tag("ul", *items, class_="rows") if items else None

    def _records(self) -> Html:
        log = self.view.log
        left_out = self.view.log_count - len(log)
        note = tag("p", f"The first {left_out:,} records are omitted.", class_="muted") if left_out else None
        seen: set[int] = set()
        lines = tag("ol", *(_record(line, self.view.started, seen) for line in log), class_="records")
        return join(note, tag("details", tag("summary", f"{count(len(log), 'line')} of the journal"), lines))


def _section(name: str, title: str, content: Html | None, seq: int | None = None) -> tuple[str, str, Html | None]:
    if not content:
        return name, title, None
    heading = tag("h2", title, id=f"{name}-title")
    return name, title, tag("section", heading, content, id=name, aria_labelledby=f"{name}-title", data_seq=seq)


def _slug(title: str) -> str:
    return title.casefold().replace(" ", "-")


def _anchor(step_id: str) -> str:
    return f"step-{quote(step_id, safe='', errors='replace')}"


def _details(title: str, content: Html, *, seq: int, level: str) -> Html:
    return tag("details", tag("summary", brief(title, 300)), content, class_=level, data_seq=seq)


def _node(node: dict[str, Any], depth: int, _parent: str | None) -> list[Any]:
    step_id = str_of(node.get("step_id"))
    described = brief(str_of(node.get("description")), 120)
    return [step_id, _anchor(step_id), depth, described, id_of(node.get("status")) or "pending"]


def _tree_row(step_id: str, depth: int, description: str, status: str) -> Html:
    icon = tag("span", f"{ROW_ICONS.get(status, '?')} ", class_=status, title=status)
    link = tag("a", f"{step_id} {brief(description, 120)}", href=f"#{_anchor(step_id)}")
    return tag("li", icon, link, class_=f"depth{min(depth, 4)}")


def _notes(notes: Sequence[ReportNote]) -> Html | None:
    """Return notes as a list, nested by depth."""
    items: list[Html] = []
    index = 0
    while index < len(notes):
        note, below = notes[index], index + 1
        while below < len(notes) and notes[below].depth > note.depth:
            below += 1
        level = note.level if note.level != "text" else None
        items.append(tag("li", brief(note.text, 2_000), _notes(notes[index + 1 : below]), class_=level))
        index = below
    return tag("ul", *items, class_="notes") if items else None


def _spent(calls: Sequence[CallView]) -> Iterator[str]:
    yield f"{len(calls):,}"
    for name in ("input_tokens", "output_tokens"):
        yield f"{sum((call.usage or {}).get(name, 0) for call in calls):,}"
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    yield money(sum(costs)) if costs else "–"
    yield span(sum(call.latency_ms or 0 for call in calls))


def _number(text: str) -> Html:
    return tag("td", text)


def _record(line: LogLine, start: str, seen: set[int]) -> Html:
    first = line.seq not in seen
    seen.add(line.seq)
    level = "phase" if line.type == "phase" else line.level if line.level in LEVELS and line.level != "info" else None
    return tag(
        "li",
        tag("time", f"+{seconds_after(start, line.ts):.3f} s"),
        tag("span", line.type, class_="kind"),
        tag("span", line.text),
        id=f"record-{line.seq}" if first else None,
        class_=level,
    )
