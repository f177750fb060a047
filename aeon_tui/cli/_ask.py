"""Asking a person at the terminal of a headless run (`--approve tool`)."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
from aeon_tui.cli._output import Output
from aeon_widgets.approval_panel import approval_blocks, title

QUESTION = "approve, reject or abort? [a, r, r and why, q] "
STYLES = {"bold": "bold", "muted": "dim", "complete": "green", "failed": "red"}
APPROVE, REJECT, ABORT = ("a", "approve", "y", "yes"), ("r", "reject", "n", "no"), ("q", "abort")


class _Interrupted(BaseException):
    """Ctrl-C or a termination while the question waits."""


class TerminalApprover:
    """Shows the question on stderr and reads the answer from standard input, both a terminal."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person types; the end of the input rejects, Ctrl-C aborts."""
        self._out.line((title(request.point, request.subject), "bold yellow"))
        for style, text in approval_blocks(request.point, request.subject):
            self._out.block(text, STYLES.get(style, ""), indent="  ")
        sys.stderr.write("\a")
        _forget_what_was_typed()
        try:
            with _interruptible():
                return _answer()
        except _Interrupted:
            sys.stderr.write("\n")
            return ApprovalDecision(decision="abort")


def _answer() -> ApprovalDecision:
    while True:
        sys.stderr.write(QUESTION)
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            return ApprovalDecision(decision="reject", feedback="the input ended before an answer")
        word, _, more = line.strip().partition(" ")
        word, more = word.lower(), more.strip()
        if word in REJECT:
            return ApprovalDecision(decision="reject", feedback=more or None)
        # With more words it is no plain yes: `a but not the last file` must not run anything.
        if not more and word in APPROVE + ABORT:
            return ApprovalDecision(decision="approve" if word in APPROVE else "abort")


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

    before = {}
    # Only the main thread takes signals.
    with contextlib.suppress(ValueError):
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
