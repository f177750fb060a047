"""Asking a person at the terminal of a headless run (`--approve tool`)."""

from __future__ import annotations

import sys

from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
from aeon_tui.cli._output import Output
from aeon_widgets.approval_panel import approval_blocks, title

QUESTION = "approve, reject or abort? [a/r/q, or r and why] "


class TerminalApprover:
    """Shows the question on stderr and reads the answer from standard input, which is a terminal."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person types; the end of the input rejects."""
        self._out.line((title(request.point, request.subject), "bold yellow"))
        for _, text in approval_blocks(request.point, request.subject):
            self._out.block(text, indent="  ")
        while True:
            sys.stderr.write(QUESTION)
            sys.stderr.flush()
            line = sys.stdin.readline()
            word, _, why = line.strip().partition(" ")
            if not line:
                return ApprovalDecision(decision="reject", feedback="the input ended before an answer")
            if word.lower() in ("a", "approve", "y", "yes"):
                return ApprovalDecision(decision="approve")
            if word.lower() in ("r", "reject", "n", "no"):
                return ApprovalDecision(decision="reject", feedback=why.strip() or None)
            if word.lower() in ("q", "abort"):
                return ApprovalDecision(decision="abort")
