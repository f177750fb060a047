"""Asks the person at the terminal: at gates, before commands, and other questions (REQ-027, REQ-042, AD-7).

Questions go to one stream and answers come from another, so that a test can replace both.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from contextlib import suppress
from itertools import accumulate
from typing import Any, TextIO

from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.escape import escape_blanks, escape_controls
from aeon_core.paths import program
from aeon_core.process import drop_typed_ahead
from aeon_core.units import count
from system2.changes import FileChange, diffs_of
from system2.constants import GATES
from system2.policies import Question, decision_on, question_of

MAX_LINES = 300
"""Lines of an artifact that a gate shows; the file has all of it."""
MAX_DIFF = 2_000
"""Lines of all diffs or other details that a question shows; the app has all of them."""
MAX_TEXT = 400_000
"""Characters of these lines together."""
MAX_WIDTH = 10_000
"""Characters of one of these lines, or of an artifact's."""
_APPROVE = frozenset({"a", "approve", "yes"})
_REJECT = frozenset({"w", "reject", "refuse", "no"})
_ABORT = frozenset({"abort", "quit"})
_END = "X"
"""The letters are those of the app, where `r` runs something again, `q` quits and `x` exports."""


class Terminal:
    """An approver: the person who reads `shown` and types into `typed`. A hang-up is no answer."""

    def __init__(self, typed: TextIO, shown: TextIO) -> None:
        self._typed, self._shown = typed, shown

    def show(self, text: str) -> None:
        """Show a text, with control characters made visible."""
        self._write(f"{escape_controls(text, keep=chr(10))}\n")

    def ask(self, question: str) -> str | None:
        """Return the line typed, without surrounding blanks; None if the input has ended."""
        self._write(question)
        try:
            line = self._typed.readline()
        except (OSError, ValueError):
            return None
        if not line:
            self._write("\n")  # Ctrl-D ends no line
        return line.strip() if line else None

    def ask_lines(self, question: str, first: str = "") -> str:
        """Return the lines typed up to an empty one; or, given a `first` line, that and the lines pasted with it."""
        lines = [first] if first else []
        if not first:
            self.show(f"{question} (an empty line ends it)")
        while not first or self._is_more_typed():
            line = self.ask("" if first else "> ")
            if line is None or not (line or self._is_more_typed()):
                break
            lines.append(line)
        return "\n".join(lines).strip()

    def _is_more_typed(self) -> bool:
        try:
            return bool(select.select([self._typed], [], [], 0)[0])
        except (OSError, ValueError):
            # The stream has no file descriptor, or the terminal hung up.
            return False

    def _write(self, text: str) -> None:
        # Reading will notice that the terminal is gone.
        with suppress(OSError, ValueError):
            self._shown.write(text)
            self._shown.flush()

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return what the person decides; the end of the input aborts at a gate, else makes the safe choice."""
        drop_typed_ahead(self._typed)
        self.present(request)
        if request.point == "gate":
            return self._gate()
        question = question_of(request.point, request.subject, request.step_id)
        if question.kind == "bash":
            return self._command(is_blocklisted=bool(request.subject.get("blocklisted")))
        return self._choose(question)

    def present(self, request: ApprovalRequest) -> None:
        """Show what is decided on: a gate's artifact and what changed, a whole command, or another question."""
        if request.point == "gate":
            self._present_gate(request.subject)
            return
        question = question_of(request.point, request.subject, request.step_id)
        if question.kind == "bash":
            self.show(f"\nThe agent wants to run:\n{escape_blanks(question.text)}")
            if request.subject.get("blocklisted"):
                self.show("WARNING: this command is on the list of destructive commands.")
            return
        details = [f"  {line}" for detail in question.details for line in detail.split("\n")]
        self.show("\n".join([f"\n{question.text}", *_cut(details)]))

    def _present_gate(self, subject: Mapping[str, Any]) -> None:
        gate, artifact = subject["gate"], subject["artifact"]
        # The summary comes last: on a small screen a long artifact scrolls away what is above it.
        self.show(f"\n{_excerpt(artifact, subject.get('content', ''))}")
        changes = [FileChange(**change) for change in subject.get("changes") or ()]
        # The excerpt of a new artifact shows all that its diff would.
        if lines := list(diffs_of(each for each in changes if (each.path, each.status) != (artifact, "created"))):
            self.show("\n".join(["", *_cut(lines)]))
        self.show(f"\n=== Gate {gate} ({GATES[gate].title}) ===\n{subject['summary']}\n")

    def _gate(self) -> ApprovalDecision:
        while True:
            typed = self.ask("approve, reject or abort? [a, w REASON, X] ")
            if typed is None:
                return ApprovalDecision(decision="abort", feedback="the input ended without an answer")
            word, _, more = typed.partition(" ")
            if (word == _END or word.lower() in _ABORT) and not more:
                return ApprovalDecision(decision="abort")
            # Followed by more words, it is not a plain yes.
            if word.lower() in _APPROVE and not more:
                return ApprovalDecision(decision="approve")
            if feedback := self._reason(typed, "what should change?"):
                return ApprovalDecision(decision="reject", feedback=feedback)
            self.show("type a to approve, w with what should change, or X to abort")

    def _command(self, *, is_blocklisted: bool) -> ApprovalDecision:
        """Return whether the command may run, or why not; a blocklisted one needs the word `run`."""
        prompt = (
            "type 'run' to run it, or w with the reason to refuse it: " if is_blocklisted else "run it? [a, w REASON] "
        )
        typed = self.ask(prompt) or ""
        if typed == "run" if is_blocklisted else typed.lower() in _APPROVE:
            return ApprovalDecision(decision="approve")
        return ApprovalDecision(decision="reject", feedback=self._reason(typed, "what should it do instead?") or None)

    def _reason(self, typed: str, question: str) -> str:
        """Return the reason of a refusal, asking for it if only the word was typed; "" if it is not a refusal."""
        word, _, reason = typed.partition(" ")
        return self.ask_lines(question, reason.strip()) if word.lower() in _REJECT else ""

    def _choose(self, question: Question) -> ApprovalDecision:
        """Return the choice that the person types in full or in part, or why not; the safe one if nothing is typed."""
        answers = [*question.choices, *(["w REASON"] if question.takes_reason else [])]
        while True:
            typed = self.ask(f"{', '.join(answers)}? [{question.safe}] ")
            if not typed:
                return decision_on(question, question.safe)
            if question.takes_reason and typed not in question.choices and typed.split()[0].lower() in _REJECT:
                reason = self._reason(typed, "what should it do instead?")
                return ApprovalDecision(decision="reject", feedback=reason or None)
            # A single letter is not enough: elsewhere it means something else, which may cost money.
            fitting = [choice for choice in question.choices if len(typed) > 1 and choice.startswith(typed.lower())]
            if len(fitting) == 1:
                return decision_on(question, fitting[0])


def _cut(lines: list[str]) -> list[str]:
    shown = list(map(_shorten, lines[:MAX_DIFF]))
    fitting = sum(total <= MAX_TEXT for total in accumulate(map(len, shown)))
    tail = f"--- and {count(len(lines) - fitting, 'more line')}: see `{program()} watch last`"
    return [*shown[:fitting], tail] if len(lines) > fitting else shown


def _shorten(line: str) -> str:
    more = len(line) - MAX_WIDTH
    tail = f"… and {count(more, 'more character')}: see `{program()} watch last`"
    return line[:MAX_WIDTH] + tail if more > 0 else line


def _excerpt(artifact_path: str, content: str) -> str:
    """Return the beginning of an artifact, in the version that is decided on."""
    lines = content.splitlines()
    more = len(lines) - MAX_LINES
    tail = f"--- and {count(more, 'more line')} in {artifact_path}" if more > 0 else f"--- end of {artifact_path}"
    return "\n".join([f"--- {artifact_path}", *map(_shorten, lines[:MAX_LINES]), tail])
