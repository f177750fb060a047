"""Asks a person through the injected policies, and writes questions and answers to the transcript (REQ-073)."""

from __future__ import annotations

from typing import Literal

from aeon_core.json_safe import clean_text
from system2.entries import QuestionEntry
from system2.policies import BashPolicy, Question, QuestionPolicy, answer_of
from system2.transcript import Transcript


class HumanInput:
    """The policies of one workflow. Raises AeonError where one of them fails: nobody has decided then."""

    def __init__(self, questions: QuestionPolicy, bash: BashPolicy, transcript: Transcript) -> None:
        self._questions, self._bash, self._transcript = questions, bash, transcript

    def choose(self, question: Question) -> str:
        """Return one of the question's choices; whatever else a policy says counts as the safe one."""
        self._write(question, "asked")
        choice = answer_of("question policy", lambda: self._questions.choose(question))
        if choice not in question.choices:
            choice = question.safe
        self._write(question, "decided", choice)
        return choice

    def decided(self, question: Question, choice: str) -> None:
        """Write a choice down that was made before it was asked about."""
        self._write(question, "decided", choice)

    def confirm_bash(self, agent: str, command: str, why_blocklisted: str | None) -> bool | str:
        """Return whether a command may run (REQ-027), or what a person says against it.

        It is blocklisted where a reason for that is given.
        """
        details = (why_blocklisted,) if why_blocklisted else ()
        question = Question("bash", agent, command, ("refuse", "run"), "refuse", details)
        self._write(question, "asked")
        said = answer_of("Bash policy", lambda: self._bash.confirm(command, why_blocklisted is not None))
        may_run = said is True
        reason = clean_text(said.strip()) if isinstance(said, str) else ""
        self._write(question, "decided", "run" if may_run else "refuse", reason or None)
        return reason or may_run

    def _write(
        self,
        question: Question,
        state: Literal["asked", "decided"],
        choice: str | None = None,
        feedback: str | None = None,
    ) -> None:
        self._transcript.write(
            QuestionEntry(
                agent=question.agent,
                kind=question.kind,
                text=question.text,
                state=state,
                choices=list(question.choices),
                details=list(question.details) or None,
                choice=choice,
                feedback=feedback,
            )
        )
