"""Reading replies: the strict parser first, then the local repair; the shapes of a tool call and of a step."""

from __future__ import annotations

from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.plain import parse_json
from aeon_core.plan.fields import FLAT_FIELDS, STEP_FIELDS, shown
from aeon_core.plan.models import PlanStep
from aeon_core.plan.parsing import parse_plan
from aeon_core.reasoning import without_thinking
from aeon_core.supervisor.lenient import means_none, tool_in
from aeon_core.supervisor.local import repair_locally

_KEPT = ("status", "errors", "parent", "subplan")
"""What a repaired step takes from the original, whatever the reply says."""
_STEP_KEYS = frozenset((*STEP_FIELDS, *FLAT_FIELDS))
_WRAPPED = 3
_NO_TOOL_FITS = "the model says that no tool does what the step asks"


class NothingFits(ValueError):
    """A model's answer to a repair that there is none: final, so that it is not asked again."""


def read_json(text: str) -> tuple[Any, bool]:
    """Return the value that a reply holds, and whether it took a local repair. Raises ValueError: one line, why not."""
    text = without_thinking(text)
    try:
        return parse_json(text, unique_keys=True), False
    except ValueError as error:
        strict = error
    try:
        return repair_locally(text), True
    except ValueError as error:
        raise ValueError(f"not JSON: {strict}; no lossless local repair: {error}") from None


def as_object(value: Any) -> dict[str, Any]:
    """Return what an entity keeps of a value: objects as they are, text as {"text": …}, all else as {"value": …}."""
    if isinstance(value, dict):
        return value
    return {"text": value} if isinstance(value, str) else {"value": value}


def read_call(value: Any, tool: str) -> dict[str, Any]:
    """Return the arguments of a call in the form {"tool_name", "arguments"}. Raises ValidationError with problems."""
    if not isinstance(value, dict):
        raise invalid([f"expected an object with 'tool_name' and 'arguments', got {shown(value)}"])
    problems = [f"unknown key {shown(key)}, expected 'tool_name' and 'arguments'" for key in value if key not in _CALL]
    problems += [f"{key}: missing" for key in _CALL if key not in value]
    if "tool_name" in value and value["tool_name"] != tool:
        problems.append(f"tool_name: expected {tool!r}, the tool of the step, got {shown(value['tool_name'])}")
    if "arguments" in value:
        try:
            return _sound(problems, read_arguments(value["arguments"])[0])
        except ValueError as error:
            problems.append(f"arguments: {error}")
    raise invalid(problems)


_CALL = ("tool_name", "arguments")


def read_arguments(raw: Any) -> tuple[dict[str, Any], bool]:
    """Return arguments that came as an object or as its text, and whether it took a local repair. Raises ValueError."""
    local = False
    if isinstance(raw, str):
        # Some servers send no text at all where a tool takes nothing.
        raw, local = read_json(raw) if raw.strip() else ({}, False)
    if not isinstance(raw, dict):
        raise ValueError(f"expected an object, got {shown(raw)}")
    return raw, local


def read_step(value: Any, original: PlanStep) -> PlanStep:
    """Return the step a repair names; what it leaves out, and status and subplan, are the original's.

    The step comes without errors. Raises ValidationError with problems, NothingFits where the reply says that no tool
    does what the step asks: by naming none, or by giving the step back unchanged.
    """
    if value is None:
        raise NothingFits(_NO_TOOL_FITS)
    given = _bare_step(value)
    if given.get("subplan") is not None and original.subplan is None:
        raise invalid(["subplan: a repair adds no steps"])
    no_tool = "tool" in given and (
        given["tool"] is None or (isinstance(given["tool"], str) and not tool_in(given["tool"]))
    )
    given = {key: item for key, item in given.items() if key not in _KEPT and item not in (None, "", [], {})}
    if no_tool:
        raise NothingFits(_NO_TOOL_FITS)
    if "id" not in given:
        given.setdefault("step_id", original.step_id)
    given.setdefault("description", original.description)
    read = _parsed_step(_in_form(given))
    fields = {name: getattr(read, name) for name in read.model_fields_set - {"status"}}
    if _same_text(read.description, original.description):
        fields["description"] = original.description
    if read.tool in (None, original.tool) and (read.agent == "llm" or _adds_nothing(fields, original)):
        raise NothingFits(_NO_TOOL_FITS)
    kept = {name: getattr(original, name) for name in original.model_fields_set}
    return PlanStep(**{**kept, **fields, "status": original.status, "errors": None})


def _bare_step(value: Any) -> dict[str, Any]:
    """Return the one step inside an array, a plan, or an object around it."""
    for _ in range(_WRAPPED):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and isinstance(value.get("step"), dict):
            value = value["step"]
        elif isinstance(value, dict) and isinstance(value.get("steps"), list):
            if len(value["steps"]) != 1:
                raise invalid([f"expected one step, got {shown(value['steps'])}"])
            value = value["steps"][0]
        elif isinstance(value, dict) and not _STEP_KEYS & set(value):
            objects = [item for item in value.values() if isinstance(item, dict)]
            value = objects[0] if len(objects) == 1 else value
    if not isinstance(value, dict) or not value:
        raise invalid([f"expected the step as an object, got {shown(value)}"])
    return value


def _in_form(given: dict[str, Any]) -> dict[str, Any]:
    """Return a step's fields as a plan has them: arguments as an object, an array where only one id is named."""
    step = dict(given)
    written = step.pop("arguments_json", None)
    if "arguments" not in step and written is not None:
        step["arguments"] = written
    if isinstance(step.get("arguments"), str):
        try:
            step["arguments"] = read_arguments(step["arguments"])[0]
        except ValueError as error:
            raise invalid([f"step.arguments: {error}"]) from None
    if isinstance(step.get("depends_on"), str):
        step["depends_on"] = [step["depends_on"]]
    if isinstance(agent := step.get("agent"), str) and means_none(agent):
        step["agent"] = "llm" if agent.strip().casefold() == "llm" else None
    return {key: item for key, item in step.items() if item not in (None, {})}


def _adds_nothing(fields: dict[str, Any], original: PlanStep) -> bool:
    return all(item == getattr(original, name) for name, item in fields.items())


def _same_text(one: str, other: str) -> bool:
    return " ".join(one.split()).removesuffix(".") == " ".join(other.split()).removesuffix(".")


def _parsed_step(given: dict[str, Any]) -> PlanStep:
    try:
        return parse_plan({"goal": "repair", "steps": [given]}).steps[0]
    except ValidationError as error:
        raise invalid([f"step{line.removeprefix('steps[0]')}" for line in error.context["problems"]]) from None


def invalid(problems: list[str]) -> ValidationError:
    """Return the error that carries these problems."""
    return ValidationError(problems[0], problems=problems)


def _sound(problems: list[str], arguments: dict[str, Any]) -> dict[str, Any]:
    if problems:
        raise invalid(problems)
    return arguments
