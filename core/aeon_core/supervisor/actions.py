"""The attempts of a repair, each of them a SupervisorAction (core FR-028, FR-050, FR-051; Decision 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from aeon_core.entities import SupervisorAction
from aeon_core.errors import SupervisorError, ValidationError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse

ActionType = Literal["json_repair", "tool_call_repair", "plan_repair"]
Method = Literal["local", "llm"]
Listener = Callable[[SupervisorAction, Method], None]
MAX_ATTEMPTS = 2

T = TypeVar("T")


class NothingFitsError(ValidationError):
    """A model's answer that there is no repair: final, so that it is not asked again."""


@dataclass(slots=True)
class Fault:
    """What has to be repaired: the output as it came, and what is wrong with it."""

    subject: str
    """What the output should have been, for messages: `the plan`."""
    action_type: ActionType
    original: dict[str, Any]
    text: str
    """The original as the model is shown it."""
    problems: list[str]
    context: dict[str, Any] = field(default_factory=dict)
    """Where it happened, for the error."""

    def unrecoverable(self, attempts: int, problems: list[str]) -> SupervisorError:
        """Return the structured error of a repair that failed (core FR-051)."""
        tried = f"in {attempts} attempt{'s' if attempts > 1 else ''}" if attempts else "at all"
        return SupervisorError(
            f"{self.subject} could not be repaired {tried}: {problems[0]}",
            unrecoverable=True,
            attempts=attempts,
            problems=problems,
            **self.context,
        )


def now() -> str:
    """Return the current time, ISO 8601 in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class Repairs:
    """Makes repairs and reports each attempt to a listener."""

    llm: LLMAdapter
    on_action: Listener | None
    clock: Callable[[], str]

    def local(self, action_type: ActionType, original: dict[str, Any], repaired: dict[str, Any]) -> None:
        """Report a local repair that succeeded."""
        self._report("local", action_type, original, 1, repaired_output=repaired)

    def by_model(
        self,
        fault: Fault,
        request: Callable[[list[str]], LLMRequest],
        accept: Callable[[LLMResponse], tuple[T, dict[str, Any]]],
    ) -> T:
        """Return what `accept` makes of the model's reply; it raises ValidationError for one that is not good enough.

        `request` makes the request of an attempt from the problems so far; the second is told why the first
        failed. Raises SupervisorError after two failed attempts, or one that is final; LLMError where the adapter does.
        """
        failed: list[str] = []
        for attempt in range(1, MAX_ATTEMPTS + 1):
            reply = self.llm.complete(request([*fault.problems, *failed]))
            try:
                result, repaired = accept(reply)
            except ValidationError as error:
                problems = error.context["problems"]
                failed = [f"the previous reply was refused: {problem}" for problem in problems]
                described = {"error_type": "ValidationError", "message": problems[0], "problems": problems}
                self._report("llm", fault.action_type, fault.original, attempt, error=described)
                if isinstance(error, NothingFitsError):
                    raise fault.unrecoverable(attempt, problems) from None
            else:
                self._report("llm", fault.action_type, fault.original, attempt, repaired_output=repaired)
                return result
        raise fault.unrecoverable(MAX_ATTEMPTS, problems)

    def _report(
        self, method: Method, action_type: ActionType, original: dict[str, Any], attempt: int, **outcome: Any
    ) -> None:
        if self.on_action is not None:
            action = SupervisorAction(
                action_type=action_type,
                original_output=original,
                attempt_number=attempt,
                timestamp=self.clock(),
                **outcome,
            )
            self.on_action(action, method)
