"""Two runs, side by side: how each went, its scores, plan, answer, issues and options, as rows with a side each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aeon_core.journal.values import str_of
from aeon_core.journal.view.formatting import verdict, words
from aeon_core.journal.view.model import AssessmentView, IssueView, RunView
from aeon_core.journal.view.step_issues import found_issues
from aeon_core.money import money
from aeon_core.timing import seconds_after
from aeon_widgets.compare_steps import CompareRow, StepPair, begun, line_row, pair_steps, plan_rows, text_rows
from aeon_widgets.convergence import UNCHANGED, change, trend
from aeon_widgets.icons import SEVERITY_ICONS, run_style
from aeon_widgets.run_columns import SIMULATED
from aeon_widgets.run_tree import start_words
from aeon_widgets.text import block, count, duration, one_line

_LABEL = 10
_NAME = 22
"""Cells of an option's name."""
_ISSUE = 2
_ENDED = "–"
"""What a run that has ended does now."""
_VALUE = 2_000
"""Characters of an option's value that are compared and shown."""


@dataclass(frozen=True)
class ComparedRun:
    """A run as it is compared: its view, or why there is none."""

    name: str
    """What it is called where the view does not tell its id."""
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
class Comparison:
    """What two runs have in common, and in what they differ."""

    rows: tuple[CompareRow, ...]
    relation: str = ""
    """How the runs descend from each other, in words that call them A and B; empty where they do not."""
    whole: bool = True
    """Whether both could be read."""

    @property
    def differences(self) -> int:
        """How many differences there are."""
        return sum(row.begins for row in self.rows)


def compare(left: ComparedRun, right: ComparedRun) -> Comparison:
    """Return the comparison of two runs. Exchanging them exchanges the sides; a run does not differ from itself."""
    rows = [*_notes(left, right)]
    one, other = left.view, right.view
    if one is None or other is None:
        rows += _one_alone(one, other)
        return Comparison(tuple(rows), whole=False)
    pairs = pair_steps(one.steps, other.steps, outputs=not (one.whole_from or other.whole_from))
    since = shared_from(one, other)
    rows += _section("Scores", list(_scores(one, other, since)), "No pass was assessed.")
    unlike = [name for (name, value), (_, its) in zip(facts(one), facts(other), strict=True) if value != its]
    rows += _section("Overview", begun(list(_facts(one, other))), told=f"different: {', '.join(unlike)}")
    rows += _section("Answer", _answers(one, other), "Neither has an answer yet.")
    rows += _section("Plan", list(plan_rows(pairs)), "Neither has a plan yet.")
    issues = f"Issues from pass {since} on" if since else "Issues"
    rows += _section(issues, list(_issues(one, other, pairs, since)), "No issue was found.")
    rows += _section("Options", list(_options(one, other)), "All options are the same.")
    return Comparison(tuple(rows if rows[0].left or rows[0].right else rows[1:]), relation(one, other))


def relation(left: RunView, right: RunView) -> str:
    """Return how two runs descend from each other, in words that call them A and B; empty where they do not."""
    if left.run_id == right.run_id:
        return "the same run twice" if left.run_id else ""
    if _is_fork(right, left):
        return f"B is a fork of A, from {start_words(right.parent_pass)}"
    if _is_fork(left, right):
        return f"A is a fork of B, from {start_words(left.parent_pass)}"
    if left.parent and left.parent == right.parent:
        return f"both are forks of {one_line(left.parent, 40)}"
    return ""


def _is_fork(run: RunView, of: RunView) -> bool:
    return bool(run.parent) and run.parent == of.run_id


def shared_from(left: RunView, right: RunView) -> int:
    """Return the pass from which on both journals tell a run and its fork, or two forks; 0 for other runs."""
    return max(left.parent_pass, right.parent_pass) if relation(left, right) else 0


def _notes(left: ComparedRun, right: ComparedRun) -> Iterator[CompareRow]:
    for told, other in zip(_said(left), _said(right), strict=True):
        if told or other:
            yield CompareRow("#", told, other, left_style="high", right_style="high")
    if left.note or right.note:
        yield CompareRow("#", left.note, right.note, left_style="medium", right_style="medium")


def _said(run: ComparedRun) -> tuple[str, str]:
    damage = run.view.damage if run.view is not None else []
    broken = f"⚠ {count(len(damage), 'part')} of the journal cannot be read: {one_line(damage[0])}" if damage else ""
    return (f"✖ {one_line(run.problem)}" if run.problem else ""), broken


def _section(name: str, rows: Sequence[CompareRow], where_empty: str = "", told: str = "") -> list[CompareRow]:
    """Return rows under a heading that says what differs, or how many differences there are; above it an empty one."""
    number = sum(row.begins for row in rows)
    told = "" if not rows else f" · {told or count(number, 'difference')}" if number else " · the same"
    heading = CompareRow("#", f"{name}{told}", f"{name}{told}", left_style="accent bold", right_style="accent bold")
    empty = [CompareRow("#", where_empty, where_empty, left_style="muted", right_style="muted")]
    return [CompareRow("#"), heading, *(rows or empty)]


def _one_alone(left: RunView | None, right: RunView | None) -> list[CompareRow]:
    """Return what can be said where one of the runs cannot be read."""
    sides = [dict(facts(view)) if view is not None else {} for view in (left, right)]
    names = [name for name, value in (sides[0] or sides[1]).items() if (name, value) != ("now", _ENDED)]
    return [CompareRow("#"), *(CompareRow("#", _named(name, sides[0]), _named(name, sides[1])) for name in names)]


def _named(name: str, side: Mapping[str, str]) -> str:
    return f"{name:<{_LABEL}}{side[name]}" if name in side else ""


def facts(view: RunView) -> Iterator[tuple[str, str]]:
    """Yield name and value of what is known of a run at a glance."""
    icon, _ = run_style(view.status)
    tokens = [view.usage.get(name, 0) for name in ("input_tokens", "output_tokens")]
    done = sum(step.status == "complete" for step in view.wanted_steps)
    price = "price unknown" if view.cost_usd is None else money(view.cost_usd)
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
    """Return what a run is doing; a dash where it has ended."""
    if view.result is not None or not view.phases:
        return _ENDED
    phase, step = view.phases[-1], view.steps.get(view.current_step_id or "")
    what = f" · {one_line(step.step_id, 30)} {one_line(step.description, 200)}" if step is not None else ""
    return f"pass {phase.pass_number} · {one_line(phase.phase, 20)}{what}"


def _facts(left: RunView, right: RunView) -> Iterator[CompareRow]:
    for (name, value), (_, other) in zip(facts(left), facts(right), strict=True):
        if name == "now" and value == other == _ENDED:
            continue
        row = line_row(value, other, f"{name:<{_LABEL}}")
        # Except for the task, whole values differ, not words of them.
        yield row if name == "task" else replace(row, left_spans=(), right_spans=())


def _scores(left: RunView, right: RunView, since: int) -> Iterator[CompareRow]:
    sides = [{each.pass_number: each for each in view.assessments} for view in (left, right)]
    forked = "B" if _is_fork(right, left) else "A" if _is_fork(left, right) else ""
    # A fork begins with the scores of the pass before it.
    for number in sorted(number for number in {*sides[0], *sides[1]} if number >= since - 1):
        one, other = sides[0].get(number), sides[1].get(number)
        scores = _either(_score(one, other if forked == "A" else None), _score(other, one if forked == "B" else None))
        verdicts = _either(_verdict(one), _verdict(other))
        if verdicts.differs and not scores.differs:
            scores = replace(scores, mark="≠")
        yield from begun([replace(row, begins=False) for row in (scores, verdicts)])


def _score(shown: AssessmentView | None, parents: AssessmentView | None) -> str | None:
    """Return the scores of a pass, of a fork with the difference from its parent's."""
    if shown is None:
        return None
    names = ("completeness_score", "coherence_score")
    pairs = [(getattr(parents, name, None), getattr(shown, name)) for name in names]
    complete, coherent = (f"{trend([own])}{_gain(parent, own)}" for parent, own in pairs)
    return f"{f'pass {shown.pass_number}':<{_LABEL}}complete {complete}  coherent {coherent}"


def _gain(parent: float | None, own: float | None) -> str:
    told = change([parent, own])
    return "" if told == UNCHANGED else told


def _verdict(shown: AssessmentView | None) -> str | None:
    if shown is None:
        return None
    return f"{' ' * _LABEL}{'✔' if shown.converged else '✖'} {verdict(shown)}"


def _either(left: str | None, right: str | None, hang: int = _LABEL) -> CompareRow:
    """Return a row of two lines, one of which may not be there; its difference begins here."""
    if left is None:
        return CompareRow("B", "", right or "", hang=hang, begins=True)
    if right is None:
        return CompareRow("A", left, "", hang=hang, begins=True)
    row = line_row(left, right)
    return replace(row, hang=hang, begins=row.differs)


def _answers(left: RunView, right: RunView) -> list[CompareRow]:
    one, other = map(_answer, (left, right))
    rows = text_rows(block(one), block(other))
    if one != other and not any(row.differs for row in rows):
        rows.append(CompareRow("≠", "the rest differs", "the rest differs", begins=True))
    return rows


def _answer(view: RunView) -> str:
    """Return a run's answer: that of its end, before it the last one that was written."""
    if view.result is not None:
        return view.result.answer or ""
    calls = (attempts[-1] for attempts in reversed(view.calls.values()))
    written = next((call.response for call in calls if call.purpose == "answer" and call.response is not None), {})
    return str_of(written.get("text"))


def _issues(left: RunView, right: RunView, pairs: Sequence[StepPair], since: int) -> Iterator[CompareRow]:
    """Yield the issues that were found from a pass on: those of the left alone, of the right alone, then of both."""
    same = {pair.right.step_id: pair.left.step_id for pair in pairs if pair.left is not None and pair.right is not None}
    there = {_key(issue, {}): issue for issue in _found(left, since)}
    here = {_key(issue, same): issue for issue in _found(right, since)}
    yield from (_either(_issue(issue), None, _ISSUE) for key, issue in there.items() if key not in here)
    yield from (_either(None, _issue(issue), _ISSUE) for key, issue in here.items() if key not in there)
    for key, issue in there.items():
        if key in here:
            yield _either(_issue(issue), _issue(here[key]), _ISSUE)


def _found(view: RunView, since: int) -> list[IssueView]:
    return [issue for number, issue in reversed(found_issues(view)) if number >= since]


def _key(issue: IssueView, same: Mapping[str, str]) -> tuple[str, str, str]:
    step_id = issue.step_id or ""
    return same.get(step_id, step_id), issue.type, issue.description


def _issue(issue: IssueView) -> str:
    place = f"{one_line(issue.step_id, 40)} " if issue.step_id else ""
    icon = SEVERITY_ICONS.get(issue.severity, "?")
    severity = one_line(issue.severity, 10)
    return f"{icon} {severity} {place}{words(issue.type)}: {one_line(issue.description)}"


def _options(left: RunView, right: RunView) -> Iterator[CompareRow]:
    """Yield the options that differ, and how many do not."""
    one, other = dict(_flat("", _configuration(left))), dict(_flat("", _configuration(right)))
    names = sorted({*one, *other})
    for name in names:
        told, said = one.get(name), other.get(name)
        if told != said:
            label = f"{one_line(name, 60):<{_NAME}} "
            yield _either(_option(label, told), _option(label, said), hang=len(label))
    alike = sum(one.get(name) == other.get(name) for name in names)
    if 0 < alike < len(names):
        text = f"{count(alike, 'option')} the same"
        yield CompareRow(" ", text, text)


def _option(label: str, value: str | None) -> str | None:
    return f"{label}{value}" if value is not None else None


def _configuration(view: RunView) -> dict[str, Any]:
    tools = sorted({str(tool.get("name", "?")) for tool in view.tools})
    criteria = next((each.criteria for each in reversed(view.assessments) if each.criteria), {})
    return {**view.config, "registered tools": tools, "criteria": criteria}


def _flat(before: str, options: Mapping[str, Any], deep: int = 0) -> Iterable[tuple[str, str]]:
    """Yield each option with its whole name and its value as one line."""
    for name, value in options.items():
        if isinstance(value, dict) and value and deep < 3:
            yield from _flat(f"{before}{name}.", value, deep + 1)
        else:
            yield f"{before}{name}", _value(value)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value, _VALUE)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return one_line(", ".join(value), _VALUE) or "none"
    try:
        return one_line(json.dumps(value, ensure_ascii=False), _VALUE)
    except (TypeError, ValueError, RecursionError) as error:
        return f"(cannot be shown: {type(error).__name__})"
