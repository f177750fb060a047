"""What a run asks a person: a headline, the text to decide about, and answers named after their effects."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from aeon_core.escape import escape_blanks
from aeon_core.journal.values import dict_of, dicts_of, int_of, number_of, str_of, strs_of
from aeon_core.journal.view.formatting import cut_off, flags, named_in_verdicts, reasons, score
from aeon_core.journal.view.model import AssessmentView, RefinementView
from aeon_core.journal.view.reducer import assessment_of, issue_of, nodes, refinement_of
from aeon_core.paths import leads_to
from aeon_core.units import count, money
from aeon_widgets.call_rows import CALL_LABELS
from aeon_widgets.icons import SEVERITY_ICONS, STATUS_ICONS
from aeon_widgets.issues import issue_blocks
from aeon_widgets.plan_difference import plan_change
from aeon_widgets.rendered_text import QUOTED
from aeon_widgets.reply_text import checks, suspicions, verdicts
from aeon_widgets.text import MAX_SHOWN, Block, exact, fit, one_line, spaced

Typed = Literal["", "reason", "run"]
"""What must be typed before an answer is sent: nothing, a reason, or the word `run`."""
REASON: Typed = "reason"
RUN: Typed = "run"


class Choice(Struct, frozen=True):
    """An answer: its key, its effect in words, and what is sent for it."""

    key: str
    words: str
    answer: str
    typed: Typed = ""


class QuestionSection(Struct, frozen=True):
    """A part of the text under a heading that opens it."""

    heading: str
    blocks: tuple[Block, ...]
    folded: bool | None = True
    """None means only if there is no room for all of it."""
    opens: str = ""
    """The answer that Enter on the heading sends; if empty, Enter opens or folds the part."""


class ApprovalQuestion(Struct, frozen=True):
    """A question. `body` is always shown, `sections` are opened one by one."""

    kind: str
    """A point of a run (`plan`, `pass`, `tool`, `unknown`, `budget`), or of a workflow: `gate`, `command`, `choice`."""
    headline: str
    body: tuple[Block, ...]
    choices: tuple[Choice, ...]
    sections: tuple[QuestionSection, ...] = ()
    hint: str = ""
    """The placeholder of the field for a reason."""
    options: tuple[str, ...] = ()
    """Other answers, one of which is picked from a list."""
    safe: str = ""
    """The option with which nothing is lost."""

    @property
    def text(self) -> str:
        """All the text to decide about, without styles."""
        parts = [text for _, text in self.body]
        for section in self.sections:
            parts += ["", section.heading, *(f"  {text}" for _, text in section.blocks)]
        return "\n".join(parts)


SHORT = 40
"""The longest value next to its name, in characters; longer ones are below, so that none can pass for a name."""
CUT_AT = "… ["
"""The beginning of the line that says that a diff was cut."""
_EXACT = ("command", "file_path", "url")
"""Arguments in which every character counts; longer ones with other names may be prose."""
_SHOWN_BY_DIFF = ("file_path", "old_string", "new_string", "replace_all", "diff", "content")
DIFF_LINES = 5_000
"""The most lines that are compared; longer texts are shown one after the other, as comparing them takes too long."""
SHELL = "code bash"
"""The style of a command."""
MODEL_CHARACTERS = 300
"""Characters shown of what the model says about its call, so that this cannot push the call out of sight."""
Subject = Mapping[str, Any]


def call_title(subject: Subject) -> str:
    """Return a call as a question, such as `Edit notes.md?`, `Run this command?` or `Call send_mail?`.

    A link is named with the file that would be changed: `Edit link.md → notes.md?`.
    """
    name, arguments = str_of(subject.get("tool_name")), dict_of(subject.get("arguments")) or {}
    path, url = str_of(arguments.get("file_path")), str_of(arguments.get("url"))
    if name in ("Edit", "Write") and path:
        target = leads_to(path, str_of((dict_of(subject.get("preview")) or {}).get("diff")))
        return f"{name} {exact(path, 120)}{f' → {exact(target, 120)}' if target else ''}?"
    if name == "Bash" and str_of(arguments.get("command")):
        return "Run this command?"
    if name.lower().rpartition("__")[2] in ("fetch", "webfetch") and url:
        return f"Fetch {exact(url, 120)}?"
    return f"Call {one_line(name or 'a tool', 120)}?"


def call_blocks(point: str, subject: Subject) -> Iterator[Block]:
    """Yield why a call needs a decision, then the call as it would be made."""
    arguments = subject.get("arguments")
    if not isinstance(arguments, dict):
        yield from whole("", json.dumps(dict(subject), ensure_ascii=False, indent=2))
        return
    if point == "unknown":
        yield "medium", "The process ended during this call: its outcome is unknown. Check before you decide."
    name = one_line(str_of(subject.get("tool_name")), 120)
    if name != "Bash" and name not in call_title(subject):
        yield "muted", f"tool: {name}"
    if description := subject.get("description"):
        yield "muted", f"for the step: {_brief(description)}"
    if reason := subject.get("reason"):
        yield "muted", f"asked because: {_brief(reason)}"
    why_not = str_of((dict_of(subject.get("proposal")) or {}).get("why_not"))
    if why_not and why_not != reason:
        yield "muted", f"no rule can always allow it: {_brief(why_not)}"
    preview = dict_of(subject.get("preview")) or {}
    if problem := str_of(preview.get("problem")):
        yield "high", f"✖ the call would fail: {_brief(problem)}"
    if warning := str_of(preview.get("warning")):
        yield "high", f"✖ {_brief(warning)}"
    if not (diff := str_of(preview.get("diff"))):
        yield from argument_blocks(arguments)
        return
    # Arguments that the diff shows in full are not repeated.
    hidden = () if any(line.startswith(CUT_AT) for line in diff.split("\n")) else _SHOWN_BY_DIFF
    yield from argument_blocks({name: value for name, value in arguments.items() if name not in hidden})
    given, head = str_of(arguments.get("file_path")), diff.partition("\n")[0]
    path = head.removeprefix("--- a/") if head.startswith("--- a/") else given
    if len(path) > SHORT or path != given:  # the title has no room for it, or it is behind a link
        yield "bold", f"file: {exact(path, MAX_SHOWN)}"
    changed = {line.endswith("\r") for line in diff.split("\n")[2:] if line[:1] in ("+", "-")}
    # Only some of the changed lines end in CRLF: without a sign, old and new line would look the same.
    yield from whole(f"diff {exact(given, 200)}", diff.replace("\r", "\\r") if len(changed) > 1 else diff)


def argument_blocks(arguments: Mapping[str, Any]) -> Iterator[Block]:
    """Yield each argument with its name; `old_string` and `new_string` are shown as a diff."""
    old, new = arguments.get("old_string"), arguments.get("new_string")
    compared = isinstance(old, str) and isinstance(new, str)
    for name, value in _flat(arguments):
        if compared and name in ("old_string", "new_string"):
            continue
        named = one_line(name, 100)
        if len(value) <= SHORT and "\n" not in value and name != "command":
            yield "bold", f"{named}: {escape_blanks(value)}"
        else:
            yield "bold", f"{named}:"
            shown = escape_blanks(value).replace("\r", "\\r") if name in _EXACT else value
            yield from whole(SHELL if name == "command" else "", shown)
    if compared:
        yield from _difference(str(old), str(new))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values as text; a nested name is `object.name`."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _brief(text: Any) -> str:
    shown = one_line(str(text), MODEL_CHARACTERS)
    return f"{shown}…" if len(str(text)) > MODEL_CHARACTERS else shown


_MONEY = {
    "spent_usd": "spent",
    "held_usd": "reserved for calls of unknown cost",
    "reserved_usd": "the next call may cost up to",
    "limit_usd": "budget",
}
_MONEY_WIDTH = max(map(len, _MONEY.values()))


def budget_blocks(subject: Subject) -> Iterator[Block]:
    """Yield what was spent, and what the next call may cost."""
    if model := subject.get("model"):
        purpose = str_of(subject.get("purpose"))
        yield "muted", f"the next call asks {_brief(model)} to {CALL_LABELS.get(purpose, _brief(purpose))}"
    for key, words in _MONEY.items():
        usd = subject.get(key)
        if isinstance(usd, int | float) and (usd or key != "held_usd"):
            yield "", f"{words:<{_MONEY_WIDTH}} {money(usd)}"


def _difference(old: str, new: str) -> Iterable[Block]:
    # Not `splitlines`, which hides a change of the final newline and splits at other characters too.
    before, after = old.split("\n"), new.split("\n")
    if not before[-1] and not after[-1]:
        del before[-1], after[-1]
    if len(before) + len(after) > DIFF_LINES:
        yield from (("failed", f"-{line}") for line in before)
        yield from (("complete", f"+{line}") for line in after)
        return
    for line in list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]:
        style = {"+": "complete", "-": "failed", "@": "muted"}.get(line[:1], "")
        yield style, line


def whole(style: str, text: str) -> Iterator[Block]:
    """Yield a text of any length in blocks short enough to be shown in full, split between lines if possible."""
    while len(text) > MAX_SHOWN:
        end = text.rfind("\n", 1, MAX_SHOWN)
        yield style, text[: end if end > 0 else MAX_SHOWN]
        text = text[end + 1 if end > 0 else MAX_SHOWN :]
    yield style, text


_INDENT = "  "
_ORDER = {"no": 0, "partly": 1, "yes": 2}
_SCORED = frozenset({"incomplete", "incoherent", "inconsistent", "not_judged"})
"""Reason codes that only repeat what the requirements, the scores and the checks say."""
NO_CYCLES = "No cycles are left: a step that needs one ends the run."
UNCHANGED = "The last rejection changed nothing: no usable change was proposed."


def plan_body(subject: Subject) -> Iterator[Block]:
    """Yield the requirements of a plan that is about to run, its goal, and its steps with their calls."""
    yield from _warnings(subject)
    if requirements := strs_of(subject.get("requirements")):
        yield "accent", "A finished answer must satisfy"
        yield from (("", f"□ {one_line(each, MAX_SHOWN)}") for each in requirements)
    plan = dict_of(subject.get("plan")) or {}
    yield "bold", one_line(str_of(plan.get("goal")), MAX_SHOWN)
    yield from step_blocks(plan)


def pass_body(subject: Subject, shown: AssessmentView | None, cut: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the requirements with verdicts and quotes, what else is wrong, and the answer."""
    yield from _warnings(subject)
    if cut:
        yield "high", f"✖ {cut_off(cut)}"
    if shown is not None:
        if shown.not_judged:
            yield "high", f"✖ {one_line(shown.not_judged, MAX_SHOWN)}"
        unmet_first = sorted(shown.requirements, key=lambda each: _ORDER.get(each.met, 0))
        wrong = (each for each in (*suspicions(shown), *checks(shown)) if not each.ok)
        for each in (*verdicts(replace(shown, requirements=unmet_first)), *wrong):
            yield from each.blocks
        coded = zip(shown.reason_codes, reasons(shown), strict=False)
        if not shown.converged:
            yield from (("medium", f"✖ {reason}") for code, reason in coded if code not in _SCORED)
    answer = str_of(subject.get("answer"))
    if not answer.strip():
        yield "muted", "No answer was given."
        return
    yield "accent bold", "Answer"
    yield from whole(QUOTED, answer)


def question_parts(
    subject: Subject, pass_number: int, shown: AssessmentView | None, assessments: Sequence[AssessmentView]
) -> Iterator[QuestionSection]:
    """Yield the open questions, what changed in the plan, the scores of a pass, and the issues."""
    yield from question_sections(strs_of(subject.get("questions")), given_answers(subject))
    yield from _change(subject, pass_number)
    if shown is not None:
        yield _scores(subject, shown, pass_number, assessments)
    if issues := [issue_of(each) for each in dicts_of(subject.get("issues"))]:
        severities = Counter(each.severity for each in issues)
        counts = [f"{icon} {severities[name]} {name}" for name, icon in SEVERITY_ICONS.items() if severities[name]]
        blocks = spaced(issue_blocks(pass_number, each) for each in issues)
        yield QuestionSection(f"{count(len(issues), 'issue')}: {', '.join(counts)}", tuple(blocks))


def _warnings(subject: Subject) -> Iterator[Block]:
    """Yield why an edited plan was not used, that a rejection changed nothing, and that no cycles are left, if so."""
    if problem := str_of(subject.get("problem")):
        yield "high", f"✖ the edited plan was not used: {one_line(problem, MAX_SHOWN)}"
    if subject.get("unchanged"):
        yield "medium", UNCHANGED
    if not has_cycles(subject):
        yield "medium", NO_CYCLES


def _scores(
    subject: Subject, shown: AssessmentView, pass_number: int, assessments: Sequence[AssessmentView]
) -> QuestionSection:
    """Return the scores of a pass compared with the previous one, and the checks that passed."""
    before = next((each for each in reversed(assessments) if each.pass_number < pass_number), None)
    earlier = (before.completeness_score, before.coherence_score) if before is not None else (None, None)
    blocks = [
        _score("completeness", shown.completeness_score, earlier[0], shown.criteria),
        _score("coherence", shown.coherence_score, earlier[1], shown.criteria),
    ]
    if shown.consistency:
        flag_line = " · ".join(f"{'✔' if ok else '✖'} {text}" for ok, text in flags(shown))
        blocks.append(("complete" if all(shown.consistency.values()) else "high", flag_line))
    blocks += [block for each in (*suspicions(shown), *checks(shown)) if each.ok for block in each.blocks]
    known = named_in_verdicts(shown) | {str_of(each.get("description")) for each in dicts_of(subject.get("issues"))}
    blocks += [("muted", f"· {one_line(each, MAX_SHOWN)}") for each in shown.detected_issues if each not in known]
    both = f"completeness {score(shown.completeness_score)} · coherence {score(shown.coherence_score)}"
    return QuestionSection(f"scores: {both}", tuple(blocks))


def _score(name: str, reached: float | None, before: float | None, criteria: Mapping[str, Any]) -> Block:
    asked = number_of(criteria.get(name))
    enough = asked is None or (reached is not None and reached >= asked)
    trend = f"{score(before)} → {score(reached)}" if before is not None else score(reached)
    wanted = "" if asked is None else f", {score(asked)} required"
    sign = "" if asked is None else "✔ " if enough else "✖ "
    return "complete" if asked is not None and enough else "" if enough else "medium", f"{sign}{name} {trend}{wanted}"


def step_blocks(plan: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the steps of a plan with their substeps and what each would call, in full."""
    for step, depth, _ in nodes(plan):
        indent = _INDENT * depth
        status = str_of(step.get("status")) or "pending"
        # Pending steps are what is decided about, so they are not muted.
        style = status if status in STATUS_ICONS and status != "pending" else ""
        what = f"{STATUS_ICONS.get(status, '?')} {one_line(str_of(step.get('step_id')), 40)}"
        yield style, f"{indent}{what} {one_line(str_of(step.get('description')), MAX_SHOWN)}"
        if tool := str_of(step.get("tool")):
            arguments = dict_of(step.get("arguments"))
            how = ", with arguments that the model chooses" if arguments is None else ""
            yield "muted", f"{indent}{_INDENT * 2}calls {one_line(tool, 100)}{how}"
            # An argument is indented more than a step, so that it cannot pass for one.
            for style, text in argument_blocks(arguments or {}):
                yield style, "\n".join(f"{indent}{_INDENT * 3}{line}" for line in text.split("\n"))


def _change(subject: Subject, pass_number: int) -> Iterator[QuestionSection]:
    """Yield what changed in this pass, and separately what changed before it."""
    plan = dict_of(subject.get("plan")) or {}
    now = _refinements(subject, "refinements", pass_number)
    heading, blocks = plan_change(plan, now)
    if now:
        yield QuestionSection(f"changed: {heading}", tuple(blocks), folded=None)
    if earlier := _refinements(subject, "earlier_refinements", pass_number - 1):
        heading, blocks = plan_change(plan, earlier, later=now)
        yield QuestionSection(f"changed before this pass: {heading}", tuple(blocks))


def _refinements(subject: Subject, key: str, pass_number: int) -> list[RefinementView]:
    return [refinement_of(each, pass_number=pass_number) for each in dicts_of(subject.get(key))]


ANSWERS = "answers"
"""What choosing the section with the open questions sends."""


def given_answers(subject: Subject) -> dict[str, str]:
    """Return the earlier answers, by question."""
    return {question: str_of(words) for question, words in (dict_of(subject.get("answers")) or {}).items()}


def question_sections(questions: Sequence[str], answers: Mapping[str, str] | None = None) -> Iterator[QuestionSection]:
    """Yield the section with the open questions, each with the person's answer if there is one."""
    if not questions:
        return
    given, blocks = answers or {}, list[Block]()
    for question in questions:
        blocks.append(("accent", f"? {one_line(question, MAX_SHOWN)}"))
        if words := given.get(question):
            blocks.append(("complete", f"  ✔ {one_line(words, MAX_SHOWN)}"))
    done = sum(question in given for question in questions)
    progress = f", {done} answered" if done else ""
    heading = f"{len(questions)} open questions{progress}"
    if len(questions) == 1:
        heading = blocks.pop(0)[1]
    yield QuestionSection(heading, tuple(blocks), folded=False, opens=ANSWERS)


REVIEWED = ("plan", "pass")
"""The points at which a person reviews work, rather than allows an action."""
_WHAT_TO_FIX = "what should change?"
_WHY_NOT = "why not?"
ALWAYS = "always"
"""What the choice that adds a rule sends."""
END = Choice("X", "End here, not finished", "abort")
_LATER = Choice("X", "Stop here, decide later", "abort")
_FIX = Choice("w", "Tell it what to fix", "reject", REASON)
_ACCEPT = Choice("c", "Accept the result as it is", "accept")
_AGAIN = Choice("r", "Run this pass again", "replay")
_EDIT_PLAN = Choice("e", "Edit the plan", "edit")


def run_question(
    point: str,
    subject: Subject,
    pass_number: int = 1,
    assessments: Sequence[AssessmentView] = (),
    cut: Sequence[str] = (),
) -> ApprovalQuestion:
    """Return the question about `subject`. A pass is compared with the `assessments` of earlier ones; `cut` names the
    parts of its result that are incomplete because the model's reply was cut off.
    """
    body: Iterable[Block]
    sections: list[QuestionSection] = []
    if point in REVIEWED:
        assessed = dict_of(subject.get("convergence")) if point == "pass" else None
        criteria = next((each.criteria for each in reversed(assessments) if each.criteria), {})
        shown = (
            replace(assessment_of(assessed, pass_number=pass_number), criteria=criteria)
            if assessed is not None
            else None
        )
        sections = [*question_parts(subject, pass_number, shown, assessments)]
        body = pass_body(subject, shown, cut) if point == "pass" else plan_body(subject)
        plan = dict_of(subject.get("plan")) or {}
        if point == "pass" and (steps := [node for node, _, _ in nodes(plan) if node.get("status") != "invalid"]):
            sections.append(QuestionSection(f"the plan: {count(len(steps), 'step')}", tuple(step_blocks(plan))))
    else:
        body = budget_blocks(subject) if point == "budget" else call_blocks(point, subject)
    answers = tuple(choices(point, subject, pass_number))
    hint = _WHAT_TO_FIX if point in REVIEWED else _WHY_NOT
    return ApprovalQuestion(point, headline(point, subject), tuple(body), answers, tuple(sections), hint)


def headline(point: str, subject: Subject) -> str:
    """Return the outcome to decide about, or the question itself, in a few words."""
    if point == "plan":
        return _plan_headline(subject)
    if point == "pass":
        return _pass_headline(subject)
    if point == "tool":
        return call_title(subject)
    if point == "gate":
        title, artifact = (one_line(str(subject.get(name)), 80) for name in ("title", "artifact"))
        return f"Gate {subject.get('gate')} · {title}: approve {artifact}?"
    if point == "question":
        return one_line(str(subject.get("text")), 200)
    if point == "unknown":
        return f"{one_line(str(subject.get('tool_name', 'A tool')), 60)} was interrupted: call it again?"
    if point == "budget":
        limit, proposed = number_of(subject.get("limit_usd")), number_of(subject.get("proposed_usd"))
        if limit is None or proposed is None:
            return "Raise the budget?"
        return f"Raise the budget from {money(limit)} to {money(proposed)}?"
    return f"Decide: {one_line(point, 40)}"


def _plan_headline(subject: Subject) -> str:
    steps = [node for node, _, _ in nodes(dict_of(subject.get("plan")) or {})]
    calls = sum(bool(str_of(step.get("tool"))) for step in steps if step.get("status", "pending") == "pending")
    issues = len(dicts_of(subject.get("issues")))
    parts = [count(len(steps), "step")]
    parts += [count(calls, "tool call")] if calls else []
    parts += [count(issues, "issue")] if issues else []
    return f"Run this plan? {', '.join(parts)}"


def _pass_headline(subject: Subject) -> str:
    assessed = dict_of(subject.get("convergence"))
    if assessed is None:
        return "Not finished: the pass was not assessed"
    shown = assessment_of(assessed, pass_number=0)
    if shown.not_judged:
        return "Not judged: nothing has checked the answer"
    met, number = sum(each.met == "yes" for each in shown.requirements), len(shown.requirements)
    if subject.get("ended") == "converged":
        if not number:
            return "Finished: the result is complete and consistent"
        all_met = "the requirement is met" if number == 1 else f"all {number} requirements are met"
        return f"Finished: {all_met if met == number else f'{met} of {number} requirements are met'}"
    if unmet := number - met:
        if number == 1:
            return "Not finished: the requirement is unmet"
        return f"Not finished: {unmet} of {number} requirements {'is' if unmet == 1 else 'are'} unmet"
    return f"Not finished: {next(iter(reasons(shown)), 'the judge gave no reason')}"


def choices(point: str, subject: Subject, pass_number: int = 1) -> list[Choice]:
    """Return the answers with different effects at this point, the one that continues first."""
    if point == "plan":
        edit = Choice("e", "Edit plan or requirements", "edit") if pass_number == 1 else _EDIT_PLAN
        refines = has_cycles(subject) and not subject.get("single_pass")
        change = [Choice("w", "Tell it what to change", "reject", REASON)] if refines else []
        return [Choice("a", "Run this plan", "approve"), *change, edit, END]
    if point == "pass":
        return _pass_choices(subject)
    if point == "unknown":
        again = Choice("a", "Call it again, perhaps a second time", "approve")
        return [again, Choice("w", "Let the step fail, and say why", "reject", REASON), END]
    if point == "budget":
        proposed = number_of(subject.get("proposed_usd"))
        return [
            Choice("a", f"Raise it to {money(proposed)}" if proposed is not None else "Raise it", "approve"),
            Choice("e", "Set another budget", "edit"),
            Choice("w", "End at the ceiling, and say why", "reject", REASON),
            _LATER,
        ]
    rule = str_of((dict_of(subject.get("proposal")) or {}).get("rule"))
    return [
        Choice("a", f"{call_title(subject).partition(' ')[0]} it", "approve"),
        *([Choice("A", f"Always allow {fit(one_line(rule), 40)}", ALWAYS)] if rule else []),
        Choice("w", "Refuse it, and say why", "reject", REASON),
        Choice("e", "Edit the arguments", "edit"),
        END,
    ]


def _pass_choices(subject: Subject) -> list[Choice]:
    ended = subject.get("ended")
    # Any further work needs a cycle; without one, the TTL ends the run.
    more = has_cycles(subject)
    fix, again = ([_FIX], [_AGAIN, _EDIT_PLAN]) if more else ([], [])
    if ended == "converged":
        return [Choice("a", "Accept the result", "approve"), *fix, *again, END]
    if ended is None and more:
        return [Choice("a", "Run another pass", "approve"), *fix, _ACCEPT, *again, END]
    how = "not finished" if ended is not None else "out of cycles"
    return [Choice("a", f"End here, {how}", "approve"), *fix, _ACCEPT, *again, _LATER]


def has_cycles(subject: Subject) -> bool:
    """Return whether a cycle is left; True if the subject does not say."""
    ttl = dict_of(subject.get("ttl"))
    return ttl is None or "remaining" not in ttl or int_of(ttl.get("remaining")) > 0
