"""Asks a model for an object and reads its reply (contract: `judge`, `review`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aeon_core.errors import LLMError, RunEnding, SupervisorError, ValidationError
from aeon_core.judge.judgement import REVIEW_SCHEMA
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMRequest, LLMResponse
from aeon_core.loose_json import Doubt, read_reply
from aeon_core.plan.models import Plan
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import plan_section, requirements_section, to_line, tools_section
from aeon_core.tools.schema import in_form

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry


T = TypeVar("T")


class Judge(Protocol):
    """A model that judges: any LLMAdapter."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply."""


class Ask(Protocol):
    """Asks a model, and returns the result of `read` on its reply's JSON. Raises LLMError, SupervisorError."""

    def __call__(self, request: LLMRequest, what: str, read: Callable[[Any], T]) -> T: ...


def ask_of(judge: Judge | Ask | None) -> Ask | None:
    """Return the function that asks a judge. An adapter's reply is parsed directly, accepting near forms of JSON.

    The function raises LLMError if the adapter fails and SupervisorError if its reply cannot be used.
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
            return read_reply(response.text, certain, cut=lambda: response.stop_reason == "max_tokens")[0]
        except ValidationError as error:
            raise SupervisorError(f"{what} cannot be read: {error.message}") from None

    return ask


def review_request(
    plan: Plan,
    registry: ToolRegistry,
    *,
    task: str | None = None,
    requirements: Sequence[str] = (),
    folder: Path | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
) -> LLMRequest:
    """Return the request to review a plan that is about to run, against the task and its requirements."""
    arguments = (step for step in plan.walk() if step.arguments is not None)
    sections = {
        "task": task or plan.goal,
        "requirements": requirements_section(requirements),
        "tools": tools_section(registry.export_tools_for_llm()),
        "plan": plan_section(plan),
        "arguments": "\n".join(to_line({"step_id": step.step_id, "arguments": step.arguments}) for step in arguments),
    }
    return build_request("review", sections, schema=REVIEW_SCHEMA, max_tokens=max_tokens, folder=folder)
