"""Two runs side by side: how each went, its scores, plan, answer, issues and options, in rows with two sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

from aeon_core.journal.values import at_pass, str_of
from aeon_core.journal.view.formatting import verdict, words
from aeon_core.journal.view.model import AssessmentView, IssueView, RunView, StepView, found_issues
from aeon_core.units import count, money, seconds_after
from aeon_widgets.convergence import UNCHANGED, change, trend
from aeon_widgets.icons import SEVERITY_ICONS, STATUS_ICONS, run_style
from aeon_widgets.plan_difference import StepPair, pair_steps, value_text
from aeon_widgets.run_list import SIMULATED
from aeon_widgets.text import block, duration, one_line, pretty

Mark = Literal[" ", "A", "B", "≠", "#"]
"""Both sides are the same, only the left or only the right one has it, they differ; `#`: a row about neither side."""
Span = tuple[int, int]
"""Start and end of a part of a text."""
Spans = tuple[Span, ...]
MOST_LINES = 4_000
"""Longer texts are compared line by line at the same position: finding moved lines would take too long."""
MOST_CHARACTERS = 2_000
"""The words of longer lines are not compared."""
LIKE = 0.4
"""Lines with a lower similarity differ as a whole."""
_WORDS = re.compile(r"\s+|\w+(?:[.,:]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class CompareRow:
    """One row of a comparison: its left and right side, and how they differ."""

    mark: Mark
    left: str = ""
    right: str = ""
    spans: tuple[Spans, Spans] = ((), ())
    """The words of each side that the other does not have; empty if the lines differ as a whole."""
    style: str = ""
    hang: int = 0
    """The indent of the text's continuation lines, in cells."""
    begins: bool = False
    """Whether a difference begins here; keys go from one to the next."""

    @property
    def differs(self) -> bool:
        """Whether the sides differ."""
        return self.mark in ("A", "B", "≠")

    @property
    def is_heading(self) -> bool:
        """Whether it is one text across both sides."""
        return self.mark == "#" and self.left == self.right


def row_of(left: str | None, right: str | None, indent: str = "", hang: int | None = None) -> CompareRow:
    """Return two lines side by side, with the words that differ; None stands for a missing line."""
    hang = len(indent) if hang is None else hang
    if left is None:
        return CompareRow("B", "", f"{indent}{right}", hang=hang)
    if right is None:
        return CompareRow("A", f"{indent}{left}", "", hang=hang)
    mark: Mark = " " if left == right else "≠"
    return CompareRow(mark, f"{indent}{left}", f"{indent}{right}", _word_spans(left, right, len(indent)), hang=hang)


def text_rows(left: str, right: str, indent: str = "") -> list[CompareRow]:
    """Return two texts line by line; a difference `begins` at the first row of each stretch that differs."""
    before, after = left.split("\n") if left else [], right.split("\n") if right else []
    rows: list[CompareRow] = []
    for name, start, end, there, there_end in _blocks(before, after):
        pairs = zip_longest(before[start:end], after[there:there_end])
        made = [row_of(*pair, indent) for pair in pairs]
        rows += made if name == "equal" else with_beginning(made)
    return rows


def with_beginning(rows: Sequence[CompareRow]) -> list[CompareRow]:
    """Return the rows as one difference, which begins at the first of them that differs."""
    first = next((place for place, row in enumerate(rows) if row.differs), None)
    return [replace(row, begins=place == first) for place, row in enumerate(rows)]


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterable[tuple[str, int, int, int, int]]:
    if len(before) + len(after) <= MOST_LINES:
        return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    pairs = enumerate(zip_longest(before, after))
    return (("equal" if one == other else "replace", at, at + 1, at, at + 1) for at, (one, other) in pairs)


def _word_spans(left: str, right: str, offset: int) -> tuple[Spans, Spans]:
    if left == right or len(left) + len(right) > MOST_CHARACTERS:
        return (), ()
    before, after = _WORDS.findall(left), _WORDS.findall(right)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < LIKE:
        return (), ()
    found = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _spans_of(before, [code[1:3] for code in found], offset),
        _spans_of(after, [code[3:5] for code in found], offset),
    )


def _spans_of(words: Sequence[str], ranges: Iterable[Span], offset: int) -> Spans:
    starts = [offset]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[begin], starts[end]) for begin, end in ranges if begin < end)


_INDENT = "  "
_FIELD = 11
_SHORT = 60
"""The longest value that fits on the line of its name, in characters."""
CONTEXT = 1
"""Equal lines shown around those that differ."""
MOST_ROWS = 60
"""Rows of one value that are shown."""
_NAMES = {"mode": "done by"}


def plan_rows(pairs: Sequence[StepPair]) -> Iterator[CompareRow]:
    """Yield each step of two plans next to its counterpart, and below it what differs."""
    for pair in pairs:
        left, right = pair.left, pair.right
        depth = 1 + max(step.depth for step in (left, right) if step is not None)
        head = row_of(_head(left), _head(right), hang=len(_INDENT) * depth)
        yield replace(head, mark="≠" if pair.changed else head.mark if head.mark in "AB" else " ", begins=pair.differs)
        if left is None or right is None:
            continue
        for name in pair.changed:
            if name != "description":
                yield from _field(name, getattr(left, name), getattr(right, name), _INDENT * (1 + depth))


def _head(step: StepView | None) -> str | None:
    if step is None:
        return None
    icon = STATUS_ICONS.get(step.status, "?")
    return f"{_INDENT * step.depth}{icon} {one_line(step.step_id, 40)} {one_line(step.description)}"


def _field(name: str, left: Any, right: Any, indent: str) -> Iterator[CompareRow]:
    label = f"{indent}{_NAMES.get(name, name):<{_FIELD}}"
    one, other = value_text(name, left), value_text(name, right)
    if all(len(text) <= _SHORT and "\n" not in text for text in (one, other)):
        yield row_of(block(one), block(other), label)
        return
    yield CompareRow("≠", label.rstrip(), label.rstrip())
    rows = [replace(row, begins=False) for row in _long_text_rows(one, other, indent + _INDENT)]
    yield from _shortened(rows, indent + _INDENT)


def _long_text_rows(one: str, other: str, indent: str = "") -> list[CompareRow]:
    """Return two texts line by line, and say so if only the part that is not shown differs."""
    rows = text_rows(block(one), block(other), indent)
    if one != other and not any(row.differs for row in rows):
        rows.append(replace(row_of("the rest differs", "the rest differs", indent), mark="≠", begins=True))
    return rows


def _shortened(rows: Sequence[CompareRow], indent: str) -> list[CompareRow]:
    """Return the rows that differ with those next to them, and how many are left out."""
    near = {place + by for place, row in enumerate(rows) if row.differs for by in range(-CONTEXT, CONTEXT + 1)}
    shown: list[CompareRow] = []
    left_out = 0
    for place, row in enumerate([*rows, None]):
        if row is not None and place not in near:
            left_out += 1
            continue
        if left_out:
            shown.append(_same(f"{indent}⋯ {count(left_out, 'line')} the same"))
        shown += [row] if row is not None else []
        left_out = 0
    if len(shown) <= MOST_ROWS:
        return shown
    more = f"{indent}… {count(len(shown) - MOST_ROWS, 'more line')}: open the run to see them"
    return [*shown[:MOST_ROWS], replace(_same(more), mark="≠")]


def _same(text: str) -> CompareRow:
    return CompareRow(" ", text, text)


_LABEL = 10
_NAME = 22
"""Cells of an option's name."""
_ISSUE = 2
_ENDED = "–"
"""Stands for what a run that has ended does now."""
_VALUE = 2_000
"""Characters of an option's value that are compared and shown."""


@dataclass(frozen=True)
class ComparedRun:
    """A run to compare: its view, or why there is none."""

    name: str
    """The run's name if the view has no id."""
    view: RunView | None = None
    problem: str = ""
    """Why it cannot be read."""
    note: str = ""
    """What the view leaves out."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return (self.view.run_id if self.view is not None else "") or self.name


@dataclass(frozen=True)
class RunComparison:
    """What two runs have in common, and how they differ."""

    rows: tuple[CompareRow, ...]
    relation: str = ""
    """How the runs, called A and B, descend from each other; empty if they do not."""
    whole: bool = True
    """Whether both could be read."""

    @property
    def differences(self) -> int:
        """How many differences there are."""
        return sum(row.begins for row in self.rows)


def compare(left: ComparedRun, right: ComparedRun) -> RunComparison:
    """Return the comparison of two runs; a run does not differ from itself."""
    rows = [*_notes(left, right)]
    one, other = left.view, right.view
    if one is None or other is None:
        alone = one or other
        known = facts(alone) if alone is not None else ()
        overview_lines = [f"{name:<{_LABEL}}{value}" for name, value in known if (name, value) != ("now", _ENDED)]
        rows += [
            CompareRow("#", text if one is alone else "", text if other is alone else "")
            for text in ("", *overview_lines)
        ]
        return RunComparison(tuple(rows), whole=False)
    pairs = pair_steps(one.steps, other.steps, outputs=not (one.whole_from or other.whole_from))
    # The first pass that both journals of related runs have.
    since = max(one.parent_pass, other.parent_pass) if relation(one, other) else 0
    rows += _section("Scores", list(_scores(one, other, since)), "No pass was assessed.")
    both = [(name, value, its) for (name, value), (_, its) in zip(facts(one), facts(other), strict=True)]
    unlike = ", ".join(name for name, value, its in both if value != its)
    overview: list[CompareRow] = []
    for name, value, its in both:
        if name != "now" or {value, its} != {_ENDED}:
            row = row_of(value, its, f"{name:<{_LABEL}}")
            # Except for the task, values differ as a whole, not word by word.
            overview.append(row if name == "task" else replace(row, spans=((), ())))
    rows += _section("Overview", with_beginning(overview), summary=f"different: {unlike}")
    rows += _section("Answer", _long_text_rows(_answer(one), _answer(other)), "Neither has an answer yet.")
    rows += _section("Plan", list(plan_rows(pairs)), "Neither has a plan yet.")
    issues = f"Issues from pass {since} on" if since else "Issues"
    rows += _section(issues, list(_issues(one, other, pairs, since)), "No issues found.")
    rows += _section("Options", list(_options(one, other)), "All options are the same.")
    return RunComparison(tuple(rows if rows[0].left or rows[0].right else rows[1:]), relation(one, other))


def relation(left: RunView, right: RunView) -> str:
    """Return how two runs, called A and B, descend from each other; empty if they do not."""
    if left.run_id == right.run_id:
        return "the same run twice" if left.run_id else ""
    if _is_fork(right, left):
        return f"B is a fork of A{at_pass(right.parent_pass)}"
    if _is_fork(left, right):
        return f"A is a fork of B{at_pass(left.parent_pass)}"
    if left.parent and left.parent == right.parent:
        return f"both are forks of {one_line(left.parent, 40)}"
    return ""


def _is_fork(run: RunView, of: RunView) -> bool:
    return bool(run.parent) and run.parent == of.run_id


def _notes(left: ComparedRun, right: ComparedRun) -> Iterator[CompareRow]:
    def notes(run: ComparedRun) -> Iterator[tuple[str, str]]:
        damage = run.view.damage if run.view is not None else []
        parts = f"{count(len(damage), 'part')} of the journal cannot be read"
        yield "high", f"✖ {one_line(run.problem)}" if run.problem else ""
        yield "high", f"⚠ {parts}: {one_line(damage[0])}" if damage else ""
        yield "medium", run.note

    for (style, one), (_, other) in zip(notes(left), notes(right), strict=True):
        if one or other:
            yield CompareRow("#", one, other, style=style)


def _section(name: str, rows: Sequence[CompareRow], where_empty: str = "", summary: str = "") -> list[CompareRow]:
    """Return an empty row, a heading that says what or how much differs, and the rows."""
    number = sum(row.begins for row in rows)
    summary = "" if not rows else f" · {summary or count(number, 'difference')}" if number else " · the same"
    heading = CompareRow("#", f"{name}{summary}", f"{name}{summary}", style="accent bold")
    return [CompareRow("#"), heading, *(rows or [CompareRow("#", where_empty, where_empty, style="muted")])]


def facts(view: RunView) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each fact about a run."""
    icon, _ = run_style(view.status)
    tokens = [view.usage.get(name, 0) for name in ("input_tokens", "output_tokens")]
    done = sum(step.status == "complete" for step in view.wanted_steps)
    price = "cost unknown" if view.cost_usd is None else money(view.cost_usd)
    yield "task", one_line(view.task)
    named = view.model.startswith(SIMULATED)
    yield "model", f"{one_line(view.model, 80)}{' (simulated)' if view.simulated and not named else ''}"
    yield "status", f"{icon} {words(view.status)}"
    yield "now", _now(view)
    yield "passes", f"{view.passes:,}"
    yield "steps", f"{done:,} of {len(view.wanted_steps):,} complete"
    yield "repairs", f"{len(view.repairs):,}"
    yield "TTL", f"{view.ttl_spent:,} of {count(view.ttl_allocated, 'cycle')} used"
    yield "tokens", f"{tokens[0]:,} in, {tokens[1]:,} out"
    yield "cost", f"{price}{' (simulated)' if view.simulated and not view.cost_usd else ''}"
    yield "time", duration(seconds_after(view.started, view.last_ts))


def _now(view: RunView) -> str:
    """Return what a run is doing; a dash if it has ended."""
    if view.result is not None or not view.phases:
        return _ENDED
    phase, step = view.phases[-1], view.steps.get(view.current_step_id or "")
    what = f" · {one_line(step.step_id, 30)} {one_line(step.description, 200)}" if step is not None else ""
    return f"pass {phase.pass_number} · {one_line(phase.phase, 20)}{what}"


def _scores(left: RunView, right: RunView, since: int) -> Iterator[CompareRow]:
    sides = [{each.pass_number: each for each in view.assessments} for view in (left, right)]
    # A fork begins with the scores of the pass before it.
    for number in sorted(number for number in {*sides[0], *sides[1]} if number >= since - 1):
        one, other = sides[0].get(number), sides[1].get(number)
        scores = row_of(
            _score(one, other if _is_fork(left, right) else None),
            _score(other, one if _is_fork(right, left) else None),
            hang=_LABEL,
        )
        verdicts = row_of(_verdict(one), _verdict(other), hang=_LABEL)
        if verdicts.differs and not scores.differs:
            scores = replace(scores, mark="≠")
        yield from with_beginning([scores, verdicts])


def _score(shown: AssessmentView | None, parents: AssessmentView | None) -> str | None:
    """Return the scores of a pass, with the difference from the `parents` ones if it is of a fork."""
    if shown is None:
        return None
    pairs = [(getattr(parents, name, None), getattr(shown, name)) for name in ("completeness_score", "coherence_score")]
    complete, coherent = (f"{trend([own])}{change([parent, own]).replace(UNCHANGED, '')}" for parent, own in pairs)
    return f"{f'pass {shown.pass_number}':<{_LABEL}}complete {complete}  coherent {coherent}"


def _verdict(shown: AssessmentView | None) -> str | None:
    if shown is None:
        return None
    return f"{' ' * _LABEL}{'✔' if shown.converged else '✖'} {verdict(shown)}"


def _answer(view: RunView) -> str:
    """Return a run's final answer, or, before its end, the last one written."""
    if view.result is not None:
        return view.result.answer or ""
    calls = (attempts[-1] for attempts in reversed(view.calls.values()))
    written = next((call.response for call in calls if call.purpose == "answer" and call.response is not None), {})
    return str_of(written.get("text"))


def _issues(left: RunView, right: RunView, pairs: Sequence[StepPair], since: int) -> Iterator[CompareRow]:
    """Yield the issues found from pass `since` on: those of the left run only, of the right one only, then of both."""
    same = {pair.right.step_id: pair.left.step_id for pair in pairs if pair.left is not None and pair.right is not None}
    there = {_key(issue, {}): issue for issue in _found(left, since)}
    here = {_key(issue, same): issue for issue in _found(right, since)}
    for key in sorted({**there, **here}, key=lambda key: (key in here, key in there)):
        row = row_of(_issue(there.get(key)), _issue(here.get(key)), hang=_ISSUE)
        yield replace(row, begins=row.differs)


def _found(view: RunView, since: int) -> list[IssueView]:
    return [issue for number, issue in reversed(found_issues(view)) if number >= since]


def _key(issue: IssueView, same: Mapping[str, str]) -> tuple[str, str, str]:
    step_id = issue.step_id or ""
    return same.get(step_id, step_id), issue.type, issue.description


def _issue(issue: IssueView | None) -> str | None:
    if issue is None:
        return None
    place = f"{one_line(issue.step_id, 40)} " if issue.step_id else ""
    icon = SEVERITY_ICONS.get(issue.severity, "?")
    severity = one_line(issue.severity, 10)
    return f"{icon} {severity} {place}{words(issue.type)}: {one_line(issue.description)}"


def _options(left: RunView, right: RunView) -> Iterator[CompareRow]:
    """Yield the options that differ, and the number of those that do not."""
    one, other = dict(_flat("", _configuration(left))), dict(_flat("", _configuration(right)))
    names = sorted({*one, *other})
    unlike = [name for name in names if one.get(name) != other.get(name)]
    for name in unlike:
        label = f"{one_line(name, 60):<{_NAME}} "
        left_text, right_text = (label + side[name] if name in side else None for side in (one, other))
        yield replace(row_of(left_text, right_text, hang=len(label)), begins=True)
    if len(names) > len(unlike) > 0:
        yield _same(f"{count(len(names) - len(unlike), 'option')} the same")


def _configuration(view: RunView) -> dict[str, Any]:
    tools = sorted({str(tool.get("name", "?")) for tool in view.tools})
    criteria = next((each.criteria for each in reversed(view.assessments) if each.criteria), {})
    return {**view.config, "registered tools": tools, "criteria": criteria}


def _flat(before: str, options: Mapping[str, Any], deep: int = 0) -> Iterable[tuple[str, str]]:
    """Yield each option with its full name and its value on one line."""
    for name, value in options.items():
        if isinstance(value, dict) and value and deep < 3:
            yield from _flat(f"{before}{name}.", value, deep + 1)
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield f"{before}{name}", one_line(", ".join(value), _VALUE) or "none"
        else:
            yield f"{before}{name}", one_line(value if isinstance(value, str) else pretty(value), _VALUE)
