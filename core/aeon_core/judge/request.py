"""Asking a model for an object, and reading its reply (contract: `judge`, `review`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from aeon_core.errors import LLMError, RunEnding, SupervisorError, ValidationError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.loose_json import Doubt, read_reply
from aeon_core.tools.coercion import in_form

T = TypeVar("T")


class Judge(Protocol):
    """A model that judges: any LLMAdapter."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply."""


class Ask(Protocol):
    """Asks a model, and returns what `read` makes of the JSON of its reply. Raises LLMError, SupervisorError."""

    def __call__(self, request: LLMRequest, what: str, read: Callable[[Any], T]) -> T: ...


def ask_of(judge: Judge | Ask | None) -> Ask | None:
    """Return how a judge is asked: an adapter's reply is parsed as it comes, near forms of JSON included.

    The result raises LLMError where the adapter fails and SupervisorError where its reply cannot be used.
    """
    if judge is None or not hasattr(judge, "complete"):
        return judge

    def ask(request: LLMRequest, what: str, read: Callable[[Any], T]) -> T:
        def certain(value: Any, doubt: Doubt) -> T:
            if doubt:
                problem = "it is not certain that all of it is there"
                raise ValidationError(problem, problems=[problem])
            try:
                return read(value)
            except ValidationError:
                return read(in_form(value, request.schema or {}))

        try:
            response = judge.complete(request)
        except (RunEnding, LLMError):
            raise
        except Exception as error:
            raise LLMError(f"the judge failed: {type(error).__name__}: {error}") from None
        if response.stop_reason == "refusal":
            raise SupervisorError(f"{what} was refused: {response.text[:200].strip() or 'without a reason'}")
        try:
            return read_reply(response.text, certain, cut=response.stop_reason == "max_tokens")[0]
        except ValidationError as error:
            raise SupervisorError(f"{what} cannot be read: {error.message}") from None

    return ask
