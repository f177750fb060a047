"""What a person decides about a plan before it runs, and about a pass when it has ended, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aeon_core.journal.values import dict_of, dicts_of, int_of, number_of, str_of, strs_of
from aeon_core.journal.view.formatting import flags, reasons, score, told_by_verdicts
from aeon_core.journal.view.model import AssessmentView, RefinementView
from aeon_core.journal.view.reducer import assessment_of, issue_of, nodes, refinement_of
from aeon_widgets.approval_question import Section
from aeon_widgets.call_text import argument_blocks, whole
from aeon_widgets.icons import SEVERITY_ICONS, STATUS_ICONS
from aeon_widgets.issues import GAP, issue_blocks
from aeon_widgets.plan_difference import plan_change
from aeon_widgets.rendered_text import QUOTED
from aeon_widgets.text import MAX_SHOWN, count, one_line
from aeon_widgets.text_view import Block
from aeon_widgets.verdict_text import Verdict, checks, suspicions, verdicts

Subject = Mapping[str, Any]
_INDENT = "  "
_ORDER = {"no": 0, "partly": 1, "yes": 2}
_SCORED = frozenset({"incomplete", "incoherent", "inconsistent", "not_judged"})
"""Reason codes that only repeat what the requirements, the scores and the checks say."""
NO_CYCLES = "No cycles are left: a step that needs one ends the run."


def plan_body(subject: Subject) -> Iterator[Block]:
    """Yield what a plan that is about to run must achieve, and its steps with all that they call."""
    yield from problem_blocks(subject)
    yield from _cycles(subject)
    if requirements := strs_of(subject.get("requirements")):
        yield "accent", "A finished answer must satisfy"
        yield from (("", f"□ {one_line(each, MAX_SHOWN)}") for each in requirements)
    plan = dict_of(subject.get("plan")) or {}
    yield "bold", one_line(str_of(plan.get("goal")), MAX_SHOWN)
    yield from step_blocks(plan)


def plan_sections(subject: Subject, pass_number: int) -> Iterator[Section]:
    """Yield what was changed in a plan, what is wrong with it, and what is open."""
    yield from question_sections(strs_of(subject.get("questions")), given_answers(subject))
    yield from _change(subject, pass_number)
    yield from _issues(subject, pass_number)


def pass_body(subject: Subject, pass_number: int, assessments: Sequence[AssessmentView] = ()) -> Iterator[Block]:
    """Yield the requirements with verdict and quote, what else is wanting, and the answer."""
    yield from problem_blocks(subject)
    yield from _cycles(subject)
    if (shown := _assessment(subject, pass_number, assessments)) is not None:
        if shown.not_judged:
            yield "high", f"✖ {one_line(shown.not_judged, MAX_SHOWN)}"
        unmet_first = sorted(shown.requirements, key=lambda each: _ORDER.get(each.met, 0))
        yield from _verdict_blocks(verdicts(replace(shown, requirements=unmet_first)))
        yield from _verdict_blocks(each for each in (*suspicions(shown), *checks(shown)) if not each.ok)
        coded = zip(shown.reason_codes, reasons(shown), strict=False)
        if not shown.converged:
            yield from (("medium", f"✖ {reason}") for code, reason in coded if code not in _SCORED)
    answer = str_of(subject.get("answer"))
    if not answer.strip():
        yield "muted", "No answer was given."
        return
    yield "accent bold", "Answer"
    yield from whole(QUOTED, answer)


def pass_sections(subject: Subject, pass_number: int, assessments: Sequence[AssessmentView] = ()) -> Iterator[Section]:
    """Yield what the pass changed in the plan, its scores, and what else there is to know."""
    yield from question_sections(strs_of(subject.get("questions")), given_answers(subject))
    yield from _change(subject, pass_number)
    if (shown := _assessment(subject, pass_number, assessments)) is not None:
        yield _scores(subject, shown, pass_number, assessments)
    yield from _issues(subject, pass_number)
    plan = dict_of(subject.get("plan")) or {}
    if steps := [node for node, _, _ in nodes(plan) if node.get("status") != "invalid"]:
        yield Section(f"the plan: {count(len(steps), 'step')}", tuple(step_blocks(plan)))


def problem_blocks(subject: Subject) -> Iterator[Block]:
    """Yield why an edited plan could not be taken, where that is so."""
    if problem := str_of(subject.get("problem")):
        yield "high", f"✖ the edited plan was not used: {one_line(problem, MAX_SHOWN)}"


def _cycles(subject: Subject) -> Iterator[Block]:
    ttl = dict_of(subject.get("ttl"))
    if ttl is not None and "remaining" in ttl and int_of(ttl.get("remaining")) <= 0:
        yield "medium", NO_CYCLES


def _assessment(subject: Subject, pass_number: int, assessments: Sequence[AssessmentView]) -> AssessmentView | None:
    told = dict_of(subject.get("convergence"))
    if told is None:
        return None
    criteria = next((each.criteria for each in reversed(assessments) if each.criteria), {})
    return replace(assessment_of(told, pass_number=pass_number), criteria=criteria)


def _verdict_blocks(shown: Iterable[Verdict]) -> Iterator[Block]:
    for each in shown:
        yield from each.blocks


def _scores(
    subject: Subject, shown: AssessmentView, pass_number: int, assessments: Sequence[AssessmentView]
) -> Section:
    """Return the scores of a pass against those of the one before, and what agrees."""
    before = next((each for each in reversed(assessments) if each.pass_number < pass_number), None)
    earlier = (before.completeness_score, before.coherence_score) if before is not None else (None, None)
    blocks = [
        _score("completeness", shown.completeness_score, earlier[0], shown.criteria),
        _score("coherence", shown.coherence_score, earlier[1], shown.criteria),
    ]
    if shown.consistency:
        told_flags = " · ".join(f"{'✔' if ok else '✖'} {text}" for ok, text in flags(shown))
        blocks.append(("complete" if all(shown.consistency.values()) else "high", told_flags))
    blocks += _verdict_blocks(each for each in (*suspicions(shown), *checks(shown)) if each.ok)
    known = told_by_verdicts(shown) | {str_of(each.get("description")) for each in dicts_of(subject.get("issues"))}
    blocks += [("muted", f"· {one_line(each, MAX_SHOWN)}") for each in shown.detected_issues if each not in known]
    both = f"completeness {score(shown.completeness_score)} · coherence {score(shown.coherence_score)}"
    return Section(f"scores: {both}", tuple(blocks))


def _score(name: str, reached: float | None, before: float | None, criteria: Mapping[str, Any]) -> Block:
    asked = number_of(criteria.get(name))
    enough = asked is None or (reached is not None and reached >= asked)
    trend = f"{score(before)} → {score(reached)}" if before is not None else score(reached)
    wanted = "" if asked is None else f", {score(asked)} required"
    sign = "" if asked is None else "✔ " if enough else "✖ "
    return "complete" if asked is not None and enough else "" if enough else "medium", f"{sign}{name} {trend}{wanted}"


def step_blocks(plan: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the steps of a plan with their substeps and what each would call, in full."""
    yield from _steps(dicts_of(plan.get("steps")), "")


def _steps(steps: Iterable[dict[str, Any]], indent: str) -> Iterator[Block]:
    for step in steps:
        status = str_of(step.get("status")) or "pending"
        # What is yet to be done is what is decided about.
        style = status if status in STATUS_ICONS and status != "pending" else ""
        what = f"{STATUS_ICONS.get(status, '?')} {one_line(str_of(step.get('step_id')), 40)}"
        yield style, f"{indent}{what} {one_line(str_of(step.get('description')), MAX_SHOWN)}"
        if tool := str_of(step.get("tool")):
            arguments = dict_of(step.get("arguments"))
            how = ", with arguments that the model chooses" if arguments is None else ""
            yield "muted", f"{indent}{_INDENT * 2}calls {one_line(tool, 100)}{how}"
            yield from (
                (style, _indented(text, f"{indent}{_INDENT * 3}")) for style, text in argument_blocks(arguments or {})
            )
        substeps = (dict_of(step.get("subplan")) or {}).get("substeps")
        yield from _steps(dicts_of(substeps), indent + _INDENT)


def _indented(text: str, indent: str) -> str:
    """Return a text of which no line begins where a step would: none can pass for one."""
    return "\n".join(f"{indent}{line}" for line in text.split("\n"))


def _change(subject: Subject, pass_number: int) -> Iterator[Section]:
    """Yield what was changed in this pass, and before it, each by itself."""
    plan = dict_of(subject.get("plan")) or {}
    now = _refinements(subject, "refinements", pass_number)
    heading, blocks = plan_change(plan, now)
    if now:
        yield Section(f"changed: {heading}", tuple(blocks), folded=None)
    if earlier := _refinements(subject, "earlier_refinements", pass_number - 1):
        heading, blocks = plan_change(plan, earlier, later=now)
        yield Section(f"changed before this pass: {heading}", tuple(blocks))


def _refinements(subject: Subject, key: str, pass_number: int) -> list[RefinementView]:
    return [refinement_of(each, pass_number=pass_number) for each in dicts_of(subject.get(key))]


def _issues(subject: Subject, pass_number: int) -> Iterator[Section]:
    issues = [issue_of(each) for each in dicts_of(subject.get("issues"))]
    if issues:
        severities = [each.severity for each in issues]
        told = [
            f"{icon} {severities.count(name)} {name}" for name, icon in SEVERITY_ICONS.items() if name in severities
        ]
        blocks = [block for each in issues for block in (*issue_blocks(pass_number, each), GAP)][:-1]
        yield Section(f"{count(len(issues), 'issue')}: {', '.join(told)}", tuple(blocks))


ANSWERS = "answers"
"""What the part with the open questions is chosen for."""


def given_answers(subject: Subject) -> dict[str, str]:
    """Return the answers that a question has from before, by question."""
    return {question: str_of(words) for question, words in (dict_of(subject.get("answers")) or {}).items()}


def question_sections(questions: Sequence[str], answers: Mapping[str, str] | None = None) -> Iterator[Section]:
    """Yield the part with the open questions, each with the person's answer where there is one."""
    if not questions:
        return
    given, blocks = answers or {}, list[Block]()
    for question in questions:
        blocks.append(("accent", f"? {one_line(question, MAX_SHOWN)}"))
        if words := given.get(question):
            blocks.append(("complete", f"  ✔ {one_line(words, MAX_SHOWN)}"))
    done = sum(question in given for question in questions)
    told = f", {done} answered" if done else ""
    heading = f"{len(questions)} open questions{told}"
    if len(questions) == 1:
        heading = blocks.pop(0)[1]
    yield Section(heading, tuple(blocks), folded=False, opens=ANSWERS)
