"""Approvals at the terminal of a headless run (`--approve`)."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from aeon_core.approval_inbox import POLL_SECONDS, Inbox
from aeon_core.approvals import NOBODY, ApprovalDecision, ApprovalRequest
from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.journal.records import Decision
from aeon_core.journal.values import dict_of, str_of, strs_of
from aeon_core.journal.view.model import RunView, cut_replies
from aeon_core.paths import run_command
from aeon_core.process import drop_typed_ahead, ending_signals, handled
from aeon_core.units import count
from aeon_tui.cli.output import OutputStream
from aeon_widgets.rendered_text import QUOTED, block_lines
from aeon_widgets.run_question import ALWAYS, ANSWERS, REVIEWED, ApprovalQuestion, Choice, given_answers, run_question
from aeon_widgets.text import MAX_SHOWN, Block, exact

if TYPE_CHECKING:
    from aeon_tui.sessions.approval_edits import ApprovalEdits


_BODY = 60
"""The most lines shown of a pass, which may have a long answer."""
_FEW = 10
"""The most lines shown of each further section."""
_WIDEST = 10_000
"""The width of code lines in cells: the terminal wraps them itself."""


def question_lines(question: ApprovalQuestion, journal: Path | None) -> Iterator[Block]:
    """Yield the question (all of a plan or call) and the first lines of each further section."""
    body = [line for block in question.body for line in _plain(*block)]
    yield from _cut(body, _BODY if question.kind == "pass" else len(body), journal)
    for section in question.sections:
        yield "accent", section.heading
        yield from ((style, f"  {text}") for style, text in _cut(section.blocks, _FEW, journal))


def _plain(style: str, text: str) -> Iterator[Block]:
    """Yield a block's lines: a diff with its line numbers, anything else as it is."""
    if style.startswith("diff "):
        yield from ((line.style, line.text) for line in block_lines(style, text, _WIDEST))
    else:
        bar = "│ " if style == QUOTED else ""
        yield from ((style, f"{bar}{line}") for line in text.split("\n"))


def _cut(blocks: Sequence[Block], most: int, journal: Path | None) -> Iterator[Block]:
    """Yield the first blocks, and the number of those left out."""
    yield from islice(blocks, most)
    if len(blocks) > most:
        see = f"; see all with {run_command('show', journal)}" if journal is not None else ""
        yield "muted", f"… {count(len(blocks) - most, 'more line')}{see}"


def answer_lines(question: ApprovalQuestion, rule: str) -> list[str]:
    """Return a line for each answer: its letter and effect, with all of the proposed rule."""
    always = f"Always allow {exact(rule, MAX_SHOWN)}"
    lines = [f"{_letters(each):<9} {always if each.answer == ALWAYS else each.words}" for each in question.choices]
    return [*lines, f"{'enter':<9} Answer the open questions"] if _is_open(question) else lines


def _is_open(question: ApprovalQuestion) -> bool:
    return any(section.opens == ANSWERS for section in question.sections)


def _letters(choice: Choice) -> str:
    if choice.answer == ALWAYS:
        return f"{choice.key} [RULE]"
    return f"{choice.key} REASON" if choice.typed else choice.key


def prompt(question: ApprovalQuestion) -> str:
    """Return the prompt before the cursor."""
    enter = ["enter"] if _is_open(question) else []
    return f"[{', '.join([*map(_letters, question.choices), *enter])}] "


NO_REASON = "say why: w and the reason"
STYLES = {
    "bold": "bold",
    "muted": "dim",
    "complete": "green",
    "failed": "red",
    "high": "red",
    "medium": "yellow",
    "accent": "cyan",
}
_WORDS = {"approve": "a", "yes": "a", "reject": "w", "no": "w", "replay": "r", "accept": "c", "edit": "e", "abort": "X"}
"""Words accepted in place of a letter: the decisions' names."""


class _Interrupted(BaseException):
    """Ctrl-C, a termination or a hang-up while the question waits."""


class TerminalApprover:
    """Shows the question on stderr and reads the answer from standard input, both a terminal.

    While it waits, it also accepts a decision from another terminal, through the inbox of `journal`. `view` returns the
    run so far, since a pass is compared with earlier ones.
    """

    def __init__(self, out: OutputStream, view: Callable[[], RunView] = RunView, journal: Path | None = None) -> None:
        self._out = out
        self._view = view
        self._journal = journal
        self._edits: ApprovalEdits | None = None
        self._answers: dict[str, str] = {}
        """Answers to the open questions, sent with the decision."""

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return the person's decision. The end of the input rejects, Ctrl-C aborts."""
        question = question_of(request, self._view())
        self._answers = given_answers(request.subject)
        print_question(self._out, question, self._journal)
        for line in answer_lines(question, _proposed(request)):
            self._out.line(line)
        sys.stderr.write("\a")
        drop_typed_ahead(sys.stdin)
        with Inbox(self._journal, request) as inbox:
            try:
                return inbox.settle(self._decided(request, question, inbox))
            except _Interrupted:
                with contextlib.suppress(OSError):
                    sys.stderr.write("\n")
                return inbox.settle(self._with_answers(ApprovalDecision(decision="abort")))

    def _with_answers(self, decision: ApprovalDecision) -> ApprovalDecision:
        return decision.model_copy(update={"answers": self._answers}) if self._answers else decision

    def _decided(self, request: ApprovalRequest, question: ApprovalQuestion, inbox: Inbox) -> ApprovalDecision:
        while True:
            with _interruptible():
                sys.stderr.write(prompt(question))
                line: ApprovalDecision | str | None = _line(inbox)
                if line == "\n" and _is_open(question):
                    line = self._answer_questions(request, inbox)
            if isinstance(line, ApprovalDecision):
                return line
            decision = _read(line, request, question, self._out) if line is not None else None
            if decision is None:
                continue
            if decision.decision != "edit":
                return self._with_answers(decision)
            edited = self._edited(request)
            if (elsewhere := _elsewhere(inbox)) is not None:
                return elsewhere
            if edited is not None:
                return self._with_answers(edited)

    def _answer_questions(self, request: ApprovalRequest, inbox: Inbox) -> ApprovalDecision | str | None:
        """Read an answer to each open question; an empty line keeps the current one.

        Return a decision made elsewhere meanwhile, "" at the end of the input, else None.
        """
        for question in strs_of(request.subject.get("questions")):
            known = self._answers.get(question)
            self._out.line((f"? {escape_controls(question)}", "cyan"))
            sys.stderr.write(f"[{escape_controls(known)}] " if known else "answer: ")
            line = _line(inbox)
            if not isinstance(line, str) or not line:
                return line
            if words := line.strip():
                self._answers[question] = words
        answered = f"{count(len(self._answers), 'answer')} given" if self._answers else "no answer given"
        self._out.line((f"{answered}; now decide", "dim"))
        return None

    def _edited(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Return the decision with an edit from the person's editor; without one, print why and return None."""
        from aeon_tui.sessions.approval_edits import UNCHANGED, ApprovalEdits

        self._edits = self._edits or ApprovalEdits(self._view().tools)
        decision, problem = None, UNCHANGED
        try:
            decision = self._edits.edit(request)
        except AeonError as error:
            problem = error.message
        except OSError as error:
            problem = f"cannot create a file to edit: {error.strerror}"
        if decision is None:
            self._out.line(problem)
        return decision


def question_of(request: ApprovalRequest, view: RunView) -> ApprovalQuestion:
    """Return the question of a request; `view` is the run so far."""
    return run_question(request.point, request.subject, request.pass_number, view.assessments, cut_replies(view))


def print_question(out: OutputStream, question: ApprovalQuestion, journal: Path | None) -> None:
    """Print the question."""
    out.line((question.headline, "bold yellow"))
    for style, text in question_lines(question, journal):
        out.block(text, next((STYLES[part] for part in style.split() if part in STYLES), ""), indent="  ")


def _line(inbox: Inbox) -> ApprovalDecision | str:
    """Return the next typed line, "" at the end of the input, or a decision made elsewhere before it."""
    sys.stderr.flush()
    while not _has_line():
        if (elsewhere := _elsewhere(inbox)) is not None:
            return elsewhere
    return sys.stdin.readline()


def _read(
    line: str, request: ApprovalRequest, question: ApprovalQuestion, out: OutputStream
) -> ApprovalDecision | None:
    """Return the decision of a line; None if it has none."""
    if not line:
        # A rejected plan would be refined and asked about again, endlessly.
        why = NOBODY if question.kind in REVIEWED else "the input ended without an answer"
        return ApprovalDecision(decision="reject", feedback=why)
    word, _, reason = line.strip().partition(" ")
    letter, reason = _WORDS.get(word.lower(), word), reason.strip()
    choice = next((each for each in question.choices if each.key == letter), None)
    if choice is None:
        return None
    if choice.typed and not reason:
        out.line(NO_REASON)
        return None
    if choice.answer == ALWAYS:
        return _with_rule(request, reason, out)
    # With more words, this is no plain yes: `a but not the last file` must not run anything.
    if reason and not choice.typed:
        return None
    return ApprovalDecision(decision=cast("Decision", choice.answer), feedback=reason or None)


def _proposed(request: ApprovalRequest) -> str:
    return str_of((dict_of(request.subject.get("proposal")) or {}).get("rule"))


def _with_rule(request: ApprovalRequest, typed: str, out: OutputStream) -> ApprovalDecision | None:
    """Return the approval with a rule for this run: the typed one, or else the proposed one."""
    from aeon_core.journal.records import AllowedRule
    from aeon_core.policy import rule_problem

    proposal = dict_of(request.subject.get("proposal")) or {}
    rule, about = typed or _proposed(request), proposal.get("about")
    names = list(dict_of(request.subject.get("arguments")) or {})
    if problem := rule_problem(rule, str_of(request.subject.get("tool_name")), str_of(about) or None, names):
        out.line(problem)
        return None
    return ApprovalDecision(decision="approve", allow=AllowedRule(rule=rule, scope="run"))


def _has_line() -> bool:
    """Wait briefly for a line from the terminal; return whether there is one, or the terminal cannot be polled."""
    try:
        return bool(select.select([sys.stdin], [], [], POLL_SECONDS)[0])
    except (OSError, ValueError):
        return True


def _elsewhere(inbox: Inbox) -> ApprovalDecision | None:
    """Return a decision from another terminal, or None; then what is typed here is dropped."""
    if (decision := inbox.take()) is not None:
        sys.stderr.write(f"\r\x1b[Kdecided in another terminal: {decision.decision}\n")
        drop_typed_ahead(sys.stdin)
    return decision


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C, a termination or a hang-up interrupt the read; with any other handler it would resume."""

    def interrupt(*_: Any) -> NoReturn:
        raise _Interrupted

    with handled(interrupt, *ending_signals()):
        yield
