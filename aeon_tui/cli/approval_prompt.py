"""Asking a person at the terminal of a headless run (`--approve`)."""

from __future__ import annotations

import contextlib
import select
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from aeon_core.approvals.inbox import POLL_SECONDS, Inbox
from aeon_core.approvals.pending import NOBODY, ApprovalDecision, ApprovalRequest
from aeon_core.errors import AeonError
from aeon_core.journal.records import Decision
from aeon_core.journal.values import dict_of, dicts_of, str_of, strs_of
from aeon_core.journal.view.formatting import issue, refinement, refinement_cause
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import issue_of, refinement_of
from aeon_tui.cli.output import Output
from aeon_tui.platform.terminal import handled
from aeon_widgets.approval_panel import REVIEWED, approval_blocks, title
from aeon_widgets.review_text import cycles_left, follows, problem_blocks, score_blocks, step_blocks
from aeon_widgets.text import count, one_line
from aeon_widgets.text_view import Block

if TYPE_CHECKING:
    from aeon_tui.sessions.approval_edits import ApprovalEdits


_ANSWER_LINES = 12
_STEP_LINES = 60
_FEW = 10


def review_lines(request: ApprovalRequest, view: RunView) -> Iterator[Block]:
    """Yield what a person decides about, the most important first; `view` is the run up to here."""
    subject, number = request.subject, request.pass_number
    yield from problem_blocks(subject)
    if request.point == "pass":
        yield from score_blocks(subject, number, view.assessments)
        yield from _cut(_answer_blocks(str_of(subject.get("answer"))), _ANSWER_LINES, "line")
    else:
        wanted = strs_of(subject.get("requirements"))
        yield from _cut([("", f"must satisfy: {one_line(each)}") for each in wanted], _FEW, "requirement")
        yield from _cut(list(step_blocks(dict_of(subject.get("plan")) or {})), _STEP_LINES, "line")
    found = [issue_of(each) for each in dicts_of(subject.get("issues"))]
    yield from _cut([(each.severity, f"issue: {issue(each)}") for each in found], _FEW, "issue")
    yield from _cut(
        _changes("changed before this pass", subject.get("earlier_refinements"), number - 1), _FEW, "change"
    )
    yield from _cut(_changes("changed", subject.get("refinements"), number), _FEW, "change")
    questions = strs_of(subject.get("questions"))
    yield from _cut([("accent", f"question: {one_line(each)}") for each in questions], _FEW, "question")
    yield "medium", follows(subject, number) if request.point == "pass" else f"approve: {cycles_left(subject)}"


def _changes(heading: str, refinements: object, pass_number: int) -> list[Block]:
    changes = (refinement_of(each, pass_number=pass_number) for each in dicts_of(refinements))
    return [("", f"{heading}: {refinement(each)}; because: {refinement_cause(each)}") for each in changes]


def _answer_blocks(answer: str) -> list[Block]:
    if not answer.strip():
        return [("muted", "no answer was given")]
    return [("bold", "answer:"), *(("", f"  {line}") for line in answer.splitlines())]


def _cut(blocks: list[Block], most: int, noun: str) -> Iterator[Block]:
    """Yield the first blocks, and how many more there are."""
    yield from islice(blocks, most)
    if len(blocks) > most:
        yield "muted", f"… {count(len(blocks) - most, f'more {noun}')}; see all with `aeon-tui show`"


QUESTION = "approve, reject or abort? [a, r, r REASON, q] "
_EDITABLE = "approve, edit, reject or abort? [a, e, r, r REASON, q] "
QUESTIONS = {
    "tool": _EDITABLE,
    "budget": _EDITABLE,
    "plan": _EDITABLE,
    "pass": "approve, edit, reject, replay, accept and stop, or abort? [a, e, r, r REASON, p, c, q] ",
}
STYLES = {
    "bold": "bold",
    "muted": "dim",
    "complete": "green",
    "failed": "red",
    "high": "red",
    "medium": "yellow",
    "accent": "cyan",
}
_WORDS: dict[str, Decision] = {
    **dict.fromkeys(("a", "approve", "y", "yes"), "approve"),
    **dict.fromkeys(("r", "d", "reject", "n", "no"), "reject"),
    **dict.fromkeys(("q", "abort"), "abort"),
}
_EDIT_WORDS: dict[str, Decision] = {**_WORDS, **dict.fromkeys(("e", "edit"), "edit")}
_PASS_WORDS: dict[str, Decision] = {
    **_EDIT_WORDS,
    **dict.fromkeys(("p", "replay"), "replay"),
    **dict.fromkeys(("c", "accept"), "accept"),
}
_TAKEN: dict[str, dict[str, Decision]] = {**dict.fromkeys(("plan", "tool", "budget"), _EDIT_WORDS), "pass": _PASS_WORDS}
"""What an answer means, by the point; a call whose outcome is unknown cannot be edited."""


class _Interrupted(BaseException):
    """Ctrl-C or a termination while the question waits."""


class TerminalApprover:
    """Shows the question on stderr and reads the answer from standard input, both a terminal.

    While it waits it also takes a decision from another terminal, through the inbox of `journal`. `view` gives the run
    up to here: a pass is shown against those before it.
    """

    def __init__(self, out: Output, view: Callable[[], RunView] = RunView, journal: Path | None = None) -> None:
        self._out = out
        self._view = view
        self._journal = journal
        self._edits: ApprovalEdits | None = None

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person types; the end of the input rejects, of a plan or a pass as nobody; Ctrl-C aborts."""
        show(self._out, request, self._view())
        sys.stderr.write("\a")
        _forget_what_was_typed()
        with Inbox(self._journal, request) as inbox:
            try:
                return inbox.settle(self._decided(request, inbox))
            except _Interrupted:
                sys.stderr.write("\n")
                return inbox.settle(ApprovalDecision(decision="abort"))

    def _decided(self, request: ApprovalRequest, inbox: Inbox) -> ApprovalDecision:
        while True:
            with _interruptible():
                decision = _answer(request.point, inbox)
            if decision is None:
                continue
            if decision.decision != "edit" or decision.edited is not None:
                return decision
            edited = self._edited(request)
            if (elsewhere := _elsewhere(inbox)) is not None:
                return elsewhere
            if edited is not None:
                return edited

    def _edited(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Return the decision with what the person made of it in their editor; None, said why, without one."""
        from aeon_tui.sessions.approval_edits import UNCHANGED, ApprovalEdits

        self._edits = self._edits or ApprovalEdits(self._view().tools)
        decision, problem = None, UNCHANGED
        try:
            decision = self._edits.edit(request)
        except AeonError as error:
            problem = error.message
        except OSError as error:
            problem = f"cannot edit it: {error.strerror}"
        if decision is None:
            self._out.line(problem)
        return decision


def show(out: Output, request: ApprovalRequest, view: RunView) -> None:
    """Print what a person decides about; `view` is the run up to here."""
    out.line((title(request.point, request.subject), "bold yellow"))
    blocks = (
        review_lines(request, view) if request.point in REVIEWED else approval_blocks(request.point, request.subject)
    )
    for style, text in blocks:
        out.block(text, STYLES.get(style, ""), indent="  ")


def _answer(point: str, inbox: Inbox) -> ApprovalDecision | None:
    """Return the answer that the next line is, or what was decided elsewhere before it; None where it is no answer."""
    sys.stderr.write(QUESTIONS.get(point, QUESTION))
    sys.stderr.flush()
    while not _has_line():
        if (elsewhere := _elsewhere(inbox)) is not None:
            return elsewhere
    line = sys.stdin.readline()
    if not line:
        # A rejected plan would be refined and asked about again, without end.
        why = NOBODY if point in REVIEWED else "the input ended without an answer"
        return ApprovalDecision(decision="reject", feedback=why)
    word, _, more = line.strip().partition(" ")
    decision, more = _TAKEN.get(point, _WORDS).get(word.lower()), more.strip()
    if decision == "reject":
        return ApprovalDecision(decision="reject", feedback=more or None)
    # With more words it is no plain yes: `a but not the last file` must not run anything.
    return ApprovalDecision(decision=decision) if decision is not None and not more else None


def _has_line() -> bool:
    """Wait a moment for a line that the terminal has; return whether it has one, or cannot be asked."""
    try:
        return bool(select.select([sys.stdin], [], [], POLL_SECONDS)[0])
    except (OSError, ValueError):
        return True


def _elsewhere(inbox: Inbox) -> ApprovalDecision | None:
    """Return what was decided in another terminal, None where nothing was; what is typed here meanwhile is dropped."""
    if (decision := inbox.take()) is not None:
        sys.stderr.write(f"\r\x1b[Kdecided in another terminal: {decision.decision}\n")
        _forget_what_was_typed()
    return decision


def _forget_what_was_typed() -> None:
    """Drop what was typed before the question could be read."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C and a termination end the reading: after any other handler, it would go on."""

    def interrupt(*_: Any) -> NoReturn:
        raise _Interrupted

    with handled(interrupt, signal.SIGINT, signal.SIGTERM):
        yield
