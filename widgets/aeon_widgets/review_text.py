"""What a person decides about a plan before it runs, and about a pass when it has ended, as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aeon_core.journal.values import dict_of, dicts_of, int_of, number_of, str_of, strs_of
from aeon_core.journal.view.formatting import flags, reasons, score, told_by_verdicts
from aeon_core.journal.view.model import AssessmentView
from aeon_core.journal.view.reducer import assessment_of, issue_of, refinement_of
from aeon_widgets.icons import SEVERITY_ICONS, STATUS_ICONS
from aeon_widgets.issues import GAP, issue_blocks, refinement_blocks
from aeon_widgets.text import MAX_SHOWN, count, one_line
from aeon_widgets.text_view import Block
from aeon_widgets.verdict_text import checks, suspicions, verdicts

Subject = Mapping[str, Any]
_INDENT = "  "
_TITLES = {
    "converged": "The pass converged. Take its result?",
    "not_converged": "Not converged, and nothing left to try",
}


def review_title(point: str, subject: Subject) -> str:
    """Return what is asked about a plan or a pass, in a few words."""
    if point == "plan":
        return "May this plan run?"
    if _not_judged(subject):
        return "Not judged. Accept the answer?"
    return _TITLES.get(str_of(subject.get("ended")), "Not converged yet. Another pass?")


def plan_blocks(subject: Subject, pass_number: int) -> Iterator[Block]:
    """Yield a plan that is about to run: its steps and their calls, what is wrong with it, what was changed and why."""
    yield from problem_blocks(subject)
    yield "medium", f"approve: pass {pass_number} runs it; {cycles_left(subject)}"
    yield from issue_count_blocks(subject)
    if requirements := strs_of(subject.get("requirements")):
        how = "; e edits them, for the last time" if pass_number == 1 else ""
        yield "accent", f"A finished answer must satisfy{how}"
        yield from (("", f"□ {one_line(each, MAX_SHOWN)}") for each in requirements)
        yield GAP
    yield from _plan(subject)
    yield from _part("Issues", _issues(subject, pass_number), "No issue was found.")
    yield from _part("Changed", _changes(subject, pass_number))
    yield from _part("Open questions", _questions(subject))


def pass_blocks(subject: Subject, pass_number: int, assessments: Sequence[AssessmentView] = ()) -> Iterator[Block]:
    """Yield how a pass went: what follows, its scores against the pass before, its answer, what was changed and why."""
    yield from problem_blocks(subject)
    scores = score_blocks(subject, pass_number, assessments)
    if _not_judged(subject):
        yield next(scores)  # why nothing judged it
    yield "medium", follows(subject, pass_number)
    yield from scores
    yield from _part("Answer", whole("", str_of(subject.get("answer"))), "No answer was given.")
    yield from _part("Changed before this pass", _changes(subject, pass_number - 1, "earlier_refinements"))
    yield from _part("Changed in this pass", _changes(subject, pass_number), "Nothing changed.")
    yield from _part("Issues", _issues(subject, pass_number), "No issue was found.")
    yield from _part("Open questions", _questions(subject))
    yield from _part("Plan", _plan(subject))


def issue_count_blocks(subject: Subject) -> Iterator[Block]:
    """Yield how many issues there are of each severity, the highest first; nothing where there are none."""
    found = [str_of(issue.get("severity")) for issue in dicts_of(subject.get("issues"))]
    told = [f"{icon} {found.count(name)} {name}" for name, icon in SEVERITY_ICONS.items() if name in found]
    if told:
        worst = next(name for name in SEVERITY_ICONS if name in found)
        yield worst, f"{count(len(found), 'issue')} with this plan: {' · '.join(told)}"


def _not_judged(subject: Subject) -> str:
    return assessment_of(dict_of(subject.get("convergence")) or {}, pass_number=0).not_judged


def problem_blocks(subject: Subject) -> Iterator[Block]:
    """Yield why an edited plan could not be taken, where that is so."""
    if problem := str_of(subject.get("problem")):
        yield "high", f"✖ the edited plan was not used: {one_line(problem, MAX_SHOWN)}"


def follows(subject: Subject, pass_number: int) -> str:
    """Return what an approval of a pass leads to."""
    ended = subject.get("ended")
    if _not_judged(subject):
        return "the answer is available: accept it, or reject it and say what is wrong; approve ends the run unjudged"
    if ended == "converged":
        return "approve: the run ends with this result, converged"
    if ended is not None:
        return "approve: the run ends, not converged; another pass would change nothing"
    return f"approve: pass {pass_number + 1} starts; {cycles_left(subject)}"


def cycles_left(subject: Subject) -> str:
    """Return how many cycles there are for what follows."""
    left = int_of((dict_of(subject.get("ttl")) or {}).get("remaining"))
    return f"{count(left, 'cycle')} left" if left else "no cycle is left, so the TTL ends it"


def score_blocks(subject: Subject, pass_number: int, assessments: Sequence[AssessmentView] = ()) -> Iterator[Block]:
    """Yield the scores of a pass against those of the one before, and what is wanting."""
    told = dict_of(subject.get("convergence"))
    if told is None:
        yield "muted", "The pass was not assessed."
        return
    before = next((each for each in reversed(assessments) if each.pass_number < pass_number), None)
    criteria = next((each.criteria for each in reversed(assessments) if each.criteria), {})
    shown = replace(assessment_of(told, pass_number=pass_number), criteria=criteria)
    earlier = (before.completeness_score, before.coherence_score) if before is not None else (None, None)
    if shown.not_judged:
        yield "high", f"✖ not judged: {one_line(shown.not_judged, MAX_SHOWN)}"
    for each in (*verdicts(shown), *suspicions(shown)):
        yield from each.blocks
    yield _score("completeness", shown.completeness_score, earlier[0], criteria)
    yield _score("coherence", shown.coherence_score, earlier[1], criteria)
    agreeing = all(shown.consistency.values())
    if shown.consistency:
        told_flags = " · ".join(f"{'✔' if ok else '✖'} {text}" for ok, text in flags(shown))
        yield "complete" if agreeing else "high", told_flags
    if not shown.converged:
        coded = zip(shown.reason_codes, reasons(shown), strict=False)
        yield from (("medium", f"✖ {reason}") for code, reason in coded if code != "not_judged")
    known = told_by_verdicts(shown)
    yield from (("muted", f"· {one_line(issue, MAX_SHOWN)}") for issue in shown.detected_issues if issue not in known)
    for each in checks(shown):
        yield from () if each.ok else each.blocks


def _score(name: str, reached: float | None, before: float | None, criteria: Mapping[str, Any]) -> Block:
    asked = number_of(criteria.get(name))
    enough = asked is None or (reached is not None and reached >= asked)
    trend = f"{score(before)} → {score(reached)}" if before is not None else score(reached)
    wanted = "" if asked is None else f", {score(asked)} required"
    sign = "" if asked is None else "✔ " if enough else "✖ "
    return "complete" if asked is not None and enough else "" if enough else "medium", f"{sign}{name} {trend}{wanted}"


def _plan(subject: Subject) -> Iterator[Block]:
    plan = dict_of(subject.get("plan")) or {}
    yield "bold", one_line(str_of(plan.get("goal")), MAX_SHOWN)
    yield from step_blocks(plan)


def step_blocks(plan: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the steps of a plan with their substeps and what each would call, in full; no text has a line break."""
    yield from _steps(dicts_of(plan.get("steps")), "")


def _steps(steps: Iterable[dict[str, Any]], indent: str) -> Iterator[Block]:
    for step in steps:
        status = str_of(step.get("status")) or "pending"
        # What is yet to be done is what is decided about.
        style = status if status in STATUS_ICONS and status != "pending" else ""
        what = f"{STATUS_ICONS.get(status, '?')} {one_line(str_of(step.get('step_id')), 40)}"
        yield style, f"{indent}{what} {one_line(str_of(step.get('description')), MAX_SHOWN)}"
        if tool := str_of(step.get("tool")):
            yield "muted", f"{indent}{_INDENT * 2}calls {one_line(tool, 100)}{_arguments(step)}"
        substeps = (dict_of(step.get("subplan")) or {}).get("substeps")
        yield from _steps(dicts_of(substeps), indent + _INDENT)


def _arguments(step: Mapping[str, Any]) -> str:
    arguments = step.get("arguments")
    if arguments is None:
        return ", with the reason from the model"
    return f" {json.dumps(arguments, ensure_ascii=False)}"


def _issues(subject: Subject, pass_number: int) -> Iterator[Block]:
    for issue in dicts_of(subject.get("issues")):
        yield from issue_blocks(pass_number, issue_of(issue))


def _changes(subject: Subject, pass_number: int, key: str = "refinements") -> Iterator[Block]:
    for refinement in dicts_of(subject.get(key)):
        yield from refinement_blocks(refinement_of(refinement, pass_number=pass_number))


def _questions(subject: Subject) -> Iterator[Block]:
    return (("accent", f"? {one_line(question, MAX_SHOWN)}") for question in strs_of(subject.get("questions")))


def _part(heading: str, blocks: Iterable[Block], where_empty: str = "") -> Iterator[Block]:
    """Yield blocks under a heading; nothing where there are none and that needs no word."""
    shown = [block for block in blocks if block[1]] or ([("muted", where_empty)] if where_empty else [])
    if shown:
        yield GAP
        yield "accent bold", heading
        yield from shown


def whole(style: str, text: str) -> Iterator[Block]:
    """Yield a text of any length in blocks that are each shown whole, broken between lines where there are some."""
    while len(text) > MAX_SHOWN:
        end = text.rfind("\n", 1, MAX_SHOWN)
        yield style, text[: end if end > 0 else MAX_SHOWN]
        text = text[end + 1 if end > 0 else MAX_SHOWN :]
    yield style, text
