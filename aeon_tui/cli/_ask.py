"""Asking a person at the terminal of a headless run (`--approve`)."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from aeon_core.effects.approval import NOBODY, ApprovalDecision, ApprovalRequest
from aeon_core.errors import AeonError
from aeon_core.journal.records import Decision
from aeon_core.journal.view import RunView
from aeon_tui.cli._output import Output
from aeon_tui.cli._review import review_lines
from aeon_tui.signals import handled
from aeon_widgets.approval_text import REVIEWED, approval_blocks, title

if TYPE_CHECKING:
    from aeon_tui.plan_reviews import PlanReviews

QUESTION = "approve, reject or abort? [a, r, r and why, q] "
QUESTIONS = {
    "plan": "approve, edit, reject or abort? [a, e, r, r and why, q] ",
    "pass": "approve, edit, reject, replay, accept and stop, or abort? [a, e, r, r and why, p, c, q] ",
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
_REVIEW_WORDS: dict[str, Decision] = {**_WORDS, **dict.fromkeys(("e", "edit"), "edit")}
_PASS_WORDS: dict[str, Decision] = {
    **_REVIEW_WORDS,
    **dict.fromkeys(("p", "replay"), "replay"),
    **dict.fromkeys(("c", "accept"), "accept"),
}
_TAKEN: dict[str, dict[str, Decision]] = {"plan": _REVIEW_WORDS, "pass": _PASS_WORDS}
"""What an answer means, by the point; at every other one it is what calls take."""


class _Interrupted(BaseException):
    """Ctrl-C or a termination while the question waits."""


class TerminalApprover:
    """Shows the question on stderr and reads the answer from standard input, both a terminal.

    `view` gives the run up to here: a pass is shown against those before it.
    """

    def __init__(self, out: Output, view: Callable[[], RunView] = RunView) -> None:
        self._out = out
        self._view = view
        self._reviews: PlanReviews | None = None

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person types; the end of the input rejects, of a plan or a pass as nobody; Ctrl-C aborts."""
        self._out.line((title(request.point, request.subject), "bold yellow"))
        blocks = (
            review_lines(request, self._view())
            if request.point in REVIEWED
            else approval_blocks(request.point, request.subject)
        )
        for style, text in blocks:
            self._out.block(text, STYLES.get(style, ""), indent="  ")
        sys.stderr.write("\a")
        _forget_what_was_typed()
        try:
            return self._decided(request)
        except _Interrupted:
            sys.stderr.write("\n")
            return ApprovalDecision(decision="abort")

    def _decided(self, request: ApprovalRequest) -> ApprovalDecision:
        while True:
            with _interruptible():
                decision = _answer(request.point)
            if decision.decision != "edit":
                return decision
            if (edited := self._edited(request)) is not None:
                return edited

    def _edited(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Return the decision with the plan that the person made of it in their editor; None, said why, without one."""
        from aeon_tui.plan_reviews import PlanReviews

        self._reviews = self._reviews or PlanReviews()
        decision, problem = None, "the plan is as it was; nothing was decided"
        try:
            decision = self._reviews.edit(request)
        except AeonError as error:
            problem = error.message
        except OSError as error:
            problem = f"the plan cannot be edited: {error.strerror}"
        if decision is None:
            self._out.line(problem)
        return decision


def _answer(point: str) -> ApprovalDecision:
    taken = _TAKEN.get(point, _WORDS)
    while True:
        sys.stderr.write(QUESTIONS.get(point, QUESTION))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            # A rejected plan would be refined and asked about again, without end.
            why = NOBODY if point in REVIEWED else "the input ended before an answer"
            return ApprovalDecision(decision="reject", feedback=why)
        word, _, more = line.strip().partition(" ")
        decision, more = taken.get(word.lower()), more.strip()
        if decision == "reject":
            return ApprovalDecision(decision="reject", feedback=more or None)
        # With more words it is no plain yes: `a but not the last file` must not run anything.
        if decision is not None and not more:
            return ApprovalDecision(decision=decision)


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
