"""Asks the person at the terminal: at the gates, before commands, and what else comes up (REQ-027, REQ-042, AD-7).

Questions go to one stream and answers come from another, so that a test can play both.
"""

from __future__ import annotations

import select
from pathlib import Path
from typing import TextIO

from aeon_core.escape import escape_controls
from aeon_core.regular_file import read_start
from aeon_core.stdio import drop_typed_ahead
from system2.changes import FileChange, diffs_of
from system2.constants import GATES
from system2.policies import GateDecision, GateDecisionType, GateReview, Question

MAX_LINES = 300
"""Lines of an artifact that a gate shows; the file has all of it."""
MAX_BYTES = 1_000_000
"""Of an artifact, that are looked at for those lines."""
MAX_DIFF = 2_000
"""Lines of all diffs that a gate shows; the app has all of them."""
_APPROVE = frozenset({"a", "approve", "yes"})
_REJECT = frozenset({"w", "reject", "refuse", "no"})
_ABORT = frozenset({"abort", "quit"})
_END = "X"
"""The letters are those of the app: `r` would run something again there, `q` leaves it, and `x` exports."""
_ASK_WHY = "what should change? (an empty line ends it)"


class Terminal:
    """A person who reads `shown` and types into `typed`, as the policy for gates, commands and questions.

    One who hangs up has said nothing.
    """

    def __init__(self, typed: TextIO, shown: TextIO, project_root: Path) -> None:
        self._typed, self._shown, self._root = typed, shown, project_root

    def say(self, text: str) -> None:
        """Show a text, with control characters made visible."""
        self._show(f"{escape_controls(text, keep=chr(10))}\n")

    def ask(self, question: str) -> str | None:
        """Return what is typed, without its blanks; None where the input has ended."""
        self._show(question)
        try:
            line = self._typed.readline()
        except (OSError, ValueError):
            return None
        return line.strip() if line else None

    def ask_lines(self, question: str, first: str = "") -> str:
        """Return what is typed in several lines, up to an empty one; behind a `first` line, what was pasted with it."""
        lines = [first] if first else []
        if not first:
            self.say(question)
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
            # It has no file behind it, or hung up.
            return False

    def _show(self, text: str) -> None:
        try:
            self._shown.write(text)
            self._shown.flush()
        except (OSError, ValueError):
            # The end of its input tells that the terminal is gone.
            return

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:
        """Return what the person says of an artifact: approve, reject with words, or abort."""
        return self.review(GateReview(gate, artifact_path, summary))

    def review(self, review: GateReview) -> GateDecision:
        """Show the artifact and what changed, and return what the person says; the end of the input aborts."""
        gate = review.gate
        drop_typed_ahead(self._typed)
        # What is decided about stands last: on a small screen a long artifact pushes out what is above it.
        self.say(f"\n{self._excerpt(review.artifact)}")
        if lines := list(diffs_of(change for change in review.changes if not _is_shown(change, review))):
            left = len(lines) - MAX_DIFF
            tail = [f"--- and {left:,} more lines: decide in `aeon-tui workflow --resume last`"] if left > 0 else []
            self.say("\n".join(["", *lines[:MAX_DIFF], *tail]))
        self.say(f"\n=== Gate {gate} ({GATES[gate].title}) ===\n{review.summary}\n")
        while True:
            said = self.ask("approve, reject or abort? [a, w REASON, X] ")
            if said is None:
                return GateDecision(gate, GateDecisionType.ABORT, "the input ended without an answer")
            word, _, more = said.partition(" ")
            if (word == _END or word.lower() in _ABORT) and not more:
                return GateDecision(gate, GateDecisionType.ABORT)
            # With more words it is no plain yes.
            if word.lower() in _APPROVE and not more:
                return GateDecision(gate, GateDecisionType.APPROVE)
            if word.lower() in _REJECT and (feedback := self.ask_lines(_ASK_WHY, more.strip())):
                return GateDecision(gate, GateDecisionType.REJECT, feedback)
            self.say("type a to approve, w with what should change, or X to abort")

    def _excerpt(self, artifact_path: str) -> str:
        try:
            lines = read_start(self._root / artifact_path, MAX_BYTES).decode("utf-8", "replace").splitlines()
        except OSError as error:
            return f"{artifact_path}: {error.strerror}"
        more = len(lines) - MAX_LINES
        head = f"--- {artifact_path}"
        tail = f"--- and {more:,} more lines in {artifact_path}" if more > 0 else f"--- end of {artifact_path}"
        return "\n".join([head, *lines[:MAX_LINES], tail])

    def confirm(self, command: str, is_blocklisted: bool) -> bool | str:
        """Show the command whole; return whether it may run, or why not. A blocklisted one needs the word `run`."""
        drop_typed_ahead(self._typed)
        self.say(f"\nThe agent wants to run:\n{command}")
        if is_blocklisted:
            self.say("WARNING: this command is on the list of destructive commands.")
            said = self.ask("type 'run' to run it, or w with the reason to refuse it: ")
            return said == "run" or self._reason(said)
        said = self.ask("run it? [a, w REASON] ")
        return (said is not None and said.lower() in _APPROVE) or self._reason(said)

    def _reason(self, said: str | None) -> bool | str:
        word, _, more = (said or "").partition(" ")
        if word.lower() not in _REJECT:
            return False
        return self.ask_lines("what should it do instead? (an empty line ends it)", more.strip()) or False

    def choose(self, question: Question) -> str:
        """Return the choice that the person types, or the beginning of; the safe one where nothing is typed."""
        drop_typed_ahead(self._typed)
        details = [f"  {line}" for detail in question.details for line in detail.split("\n")]
        self.say("\n".join([f"\n{question.text}", *details]))
        while True:
            said = self.ask(f"{', '.join(question.choices)}? [{question.safe}] ")
            if not said:
                return question.safe
            # No single letter: elsewhere it may mean something else, and be paid for.
            fitting = [choice for choice in question.choices if len(said) > 1 and choice.startswith(said.lower())]
            if len(fitting) == 1:
                return fitting[0]


def _is_shown(change: FileChange, review: GateReview) -> bool:
    """Return whether a change is a new artifact, of which the excerpt shows all that the diff would."""
    return change.path == review.artifact and change.status == "created"
