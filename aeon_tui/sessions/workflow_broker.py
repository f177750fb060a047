"""Where the questions of a workflow wait for the person at the screen: its gates, commands, and what else comes up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aeon_core.regular_file import read_start
from system2.policies import GateDecision, GateDecisionType, GateReview, Question

if TYPE_CHECKING:
    from system2.changes import FileChange

MAX_ARTIFACT = 1_000_000
"""Bytes of an artifact that are read for the screen."""


@dataclass(frozen=True)
class PendingQuestion:
    """One pending question. The workflow's thread waits until it is answered or the broker is closed."""

    number: int
    """Counts the questions of a broker: an answer names the one that it is for."""
    kind: Literal["gate", "bash", "question"]
    text: str
    """A gate's summary, the command, or what is asked."""
    gate: int = 0
    artifact: str = ""
    """The gate's file, relative to the project root."""
    content: str = ""
    """What stands in it, or why it cannot be read."""
    changes: tuple[FileChange, ...] = ()
    """What changed since the gate before."""
    is_blocklisted: bool = False
    question: Question | None = None


@dataclass(frozen=True)
class QuestionAnswer:
    """What a person said: at a gate `approve`, `reject` or `abort`, of a command `run` or `refuse`, else a choice."""

    choice: str
    words: str | None = None


class WorkflowBroker:
    """The gate, Bash and question policies of a workflow, called on its thread and answered on the screen's.

    Once it is closed a gate is aborted, a command refused, and the safe choice made.
    """

    def __init__(self, project_root: Path) -> None:
        self._root = project_root
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._waiting: PendingQuestion | None = None
        self._answer: QuestionAnswer | None = None
        self._closed = False
        self.listener: Callable[[], object] = lambda: None
        """Called on the workflow's thread when a question has come or is answered; it returns at once."""

    @property
    def waiting(self) -> PendingQuestion | None:
        """The question that waits; None where nothing is asked."""
        return self._waiting

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:
        """Return what the person says at a gate."""
        return self.review(GateReview(gate, artifact_path, summary))

    def review(self, review: GateReview) -> GateDecision:
        """Return what the person says at a gate."""
        gate, content = review.gate, read_artifact(self._root / review.artifact)
        answer = self._asked(
            PendingQuestion(
                next(self._numbers), "gate", review.summary, gate, review.artifact, content, changes=review.changes
            )
        )
        said = GateDecisionType(answer.choice) if answer is not None else GateDecisionType.ABORT
        return GateDecision(gate, said, answer.words if answer is not None else None)

    def confirm(self, command: str, is_blocklisted: bool) -> bool | str:
        """Return whether the person wants a command to run, or why not."""
        answer = self._asked(PendingQuestion(next(self._numbers), "bash", command, is_blocklisted=is_blocklisted))
        if answer is None or answer.choice == "run":
            return answer is not None
        return answer.words or False

    def choose(self, question: Question) -> str:
        """Return the person's choice, the safe one where there is nobody any more."""
        answer = self._asked(PendingQuestion(next(self._numbers), "question", question.text, question=question))
        return answer.choice if answer is not None else question.safe

    def answer(self, number: int, answer: QuestionAnswer) -> bool:
        """Answer the question of that number; return whether it was the one that waits."""
        with self._changed:
            if self._waiting is None or self._waiting.number != number or self._answer is not None:
                return False
            self._answer = answer
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Answer what waits, and whatever is asked later, with what is safe."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _asked(self, asked: PendingQuestion) -> QuestionAnswer | None:
        with self._changed:
            self._waiting, self._answer = asked, None
        self.listener()
        with self._changed:
            self._changed.wait_for(lambda: self._answer is not None or self._closed)
            self._waiting = None
            answer = self._answer
        self.listener()
        return answer


def read_artifact(path: Path) -> str:
    """Return the text of a file for the screen, or in brackets why there is none. Reads: for a thread."""
    try:
        return read_start(path, MAX_ARTIFACT).decode("utf-8", "replace")
    except OSError as error:
        return f"({(error.strerror or str(error)).lower()})"
