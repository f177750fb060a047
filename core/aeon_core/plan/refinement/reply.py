"""Reading what a model says about how a plan is to be refined (adaptive FR-073)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pydantic

from aeon_core.errors import ValidationError
from aeon_core.plan.parsing import object_in, shown
from aeon_core.plan.refinement.actions import MAX_QUESTIONS, RefinementAction

_MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class RefinementReply:
    """What a reply asks for. `problems` says which actions could not be read, and why."""

    actions: list[RefinementAction]
    follow_up_questions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def errors(self) -> list[dict[str, Any]]:
        """Return the problems as a cycle's errors."""
        return [{"error_type": "ValidationError", "message": f"refinement: {problem}"} for problem in self.problems]


def read_refinement(reply: Any) -> RefinementReply:
    """Return the actions and questions of a reply: its text, or the value it holds.

    Text where `changes` should be an object counts as {"text": …}. Actions that cannot be read are left out and named.
    Raises ValidationError, with `problems`, where the reply has not the form at all or holds no action to use.
    """
    value = _object(reply)
    given = value.get("actions")
    if not isinstance(given, list):
        raise _invalid([f"actions: expected an array of refinement actions, got {shown(given)}"])
    actions: list[RefinementAction] = []
    problems: list[str] = []
    for index, item in enumerate(given):
        try:
            actions.append(_action(item))
        except ValueError as error:
            problems.append(f"actions[{index}]: {error}")
    if problems and not actions:
        raise _invalid(problems)
    return RefinementReply(actions, read_questions(value.get("follow_up_questions")), problems[:_MAX_PROBLEMS])


def _object(reply: Any) -> dict[str, Any]:
    try:
        return object_in(reply, "an object with 'actions' and 'follow_up_questions'")
    except ValueError as error:
        raise _invalid([str(error)]) from None


def _action(item: Any) -> RefinementAction:
    if not isinstance(item, dict):
        raise ValueError(f"expected an object, got {shown(item)}")
    made = {key: item[key] for key in RefinementAction.model_fields if item.get(key) is not None}
    changes = made.get("changes")
    if isinstance(changes, str):
        made["changes"] = {"text": changes}
    elif isinstance(changes, list):
        made["changes"] = {"steps": changes}
    elif isinstance(changes, dict):
        made["changes"] = {key: value for key, value in changes.items() if value is not None}
    made["semantic_validation_input"] = _cited(made.get("semantic_validation_input"))
    made.pop("inconsistency_detected", None)
    if not isinstance(made.get("reason"), str) or not made["reason"].strip():
        made["reason"] = "the model gave no reason"
    try:
        return RefinementAction.model_validate(made)
    except pydantic.ValidationError as error:
        detail = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}") from None


def _cited(value: Any) -> list[dict[str, Any]]:
    """Return the issues a model names, by their id or in full."""
    cited: Sequence[Any] = value if isinstance(value, list) else [value]
    ids = [{"issue_id": item} for item in cited if isinstance(item, str)]
    return [*ids, *(item for item in cited if isinstance(item, dict))]


def read_questions(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else []
    said = [" ".join(item.split()) for item in listed if isinstance(item, str) and item.strip()]
    return list(dict.fromkeys(said))[:MAX_QUESTIONS]


def _invalid(problems: list[str]) -> ValidationError:
    return ValidationError(f"not a valid refinement: {problems[0]}", problems=problems[:_MAX_PROBLEMS])
