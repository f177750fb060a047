"""Who is asked: about what, and from another terminal where nobody sits at this one (contract: `--wait`)."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from aeon_core.approvals.inbox import POLL_SECONDS, Inbox
from aeon_core.approvals.pending import ANSWERS, NOBODY, TOO_LATE, ApprovalDecision, ApprovalRequest, Approver, ask
from aeon_core.escape import escape_controls
from aeon_core.journal.records import ApprovalPoint

_CALLS = frozenset({"tool", "budget"})
"""Points that are asked about with `tool`. The kernel itself knows when the others are."""


def about(approve: Sequence[str], approver: Approver | None) -> Approver | None:
    """Return an approver that is asked before calls only where `approve` has `tool`: else nobody can be.

    So it is where a decision from another terminal is waited for, too: to wait alone makes nobody askable.
    """
    if "tool" in approve or approver is None:
        return approver
    return lambda request: ask(None if request.point in _CALLS else approver, request)


def how_to_decide(run: str, point: ApprovalPoint) -> str:
    """Return the command that decides, and what else it takes; `run` names the run on the command line."""
    first, *others = ANSWERS[point]
    return f"`aeon-tui decide {escape_controls(shlex.quote(run))} {first}` (or {', '.join(others)})"


class RemoteApprover:
    """An approver that waits so many seconds for each decision; then it refuses, as where there was no one to ask.

    `run` names the run on the command line; `say` gets lines about what is waited for and what came of it. `pause`
    waits for some seconds, `clock` gives them.
    """

    def __init__(
        self,
        journal: Path,
        seconds: float,
        run: str,
        say: Callable[[str], None],
        show: Callable[[ApprovalRequest], None] | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal, self._seconds, self._run = journal, seconds, run
        self._say, self._show = say, show
        self._pause, self._clock = pause, clock
        self._ending = False

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what was decided elsewhere; `abort` once `abort` was called."""
        if self._show is not None:
            self._show(request)
        with Inbox(self._journal, request) as inbox:
            if inbox.problem:
                self._say(f"cannot take decisions from another terminal: {inbox.problem}")
                return _undecided(NOBODY)
            how = how_to_decide(self._run, request.point)
            self._say(f"waiting {self._seconds:g} s for a decision about {_what(request)}: {how}")
            decision = self._decided(inbox)
            return inbox.settle(decision) if decision is not None else _undecided(TOO_LATE)

    def _decided(self, inbox: Inbox) -> ApprovalDecision | None:
        """Return the decision, None where none comes in time."""
        deadline = self._clock() + self._seconds
        while not self._ending:
            if (decision := inbox.take()) is not None:
                self._say(f"decided in another terminal: {decision.decision}")
                return decision
            if (left := deadline - self._clock()) <= 0:
                self._say(f"no decision within {self._seconds:g} s")
                return None
            self._pause(min(left, POLL_SECONDS))
        return ApprovalDecision(decision="abort")

    def abort(self) -> None:
        """Answer what waits, and whatever else is asked, with `abort`; from any thread, and from a signal's handler."""
        self._ending = True


def _undecided(why: str) -> ApprovalDecision:
    return ApprovalDecision(decision="reject", feedback=why)


def _what(request: ApprovalRequest) -> str:
    """Return what is decided about, in a few words."""
    if request.point in ("plan", "pass"):
        return f"the plan of pass {request.pass_number}" if request.point == "plan" else f"pass {request.pass_number}"
    if request.point == "budget":
        return "the budget"
    if request.point == "gate":
        return f"gate {request.subject.get('gate')}"
    if request.point == "question":
        return f"this question: {escape_controls(str(request.subject.get('text')))}"
    return f"the call of {escape_controls(str(request.subject.get('tool_name')))!r}"
