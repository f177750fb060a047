"""What a person writes about a plan: plan files, files of requirements, and edits of a plan before it runs.

Files are JSON or YAML, read as plain data: no code, tags, anchors or guesses (core FR-009).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core import suggest
from aeon_core.errors import UsageError, ValidationError
from aeon_core.json_safe import clean_text, no_constant, parse_json
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import dump_plan, invalid_plan, parse_plan, shown
from aeon_core.plan.refinement.tree import Tree
from aeon_core.regular_file import read_text
from aeon_core.yaml_file import (
    UNMATCHED,
    Bounds,
    YamlError,
    brackets_match,
    load_yaml,
    parse_yaml,
    without_schema_line,
    yaml_fault,
)

MAX_BYTES = 10_000_000
MAX_YAML_BYTES = 1_000_000
"""YAML is about ten times slower to read than JSON."""
_BOUNDS = Bounds(nodes=200_000)


class NotPlainDataError(UsageError):
    """A JSON or YAML file holds something that is not plain data; `reason` says what and where."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{str(path)!r} is not a valid plan: {reason}")
        self.reason = reason


_PROBLEMS_IN_A_LINE = 3


def load_plan_file(path: Path) -> Plan:
    """Return the plan of a JSON or YAML file. Raises UsageError, one line with the file and the first problems."""
    data = read_plan_data(path)
    try:
        return parse_plan(data)
    except ValidationError as error:
        problems = error.context["problems"]
        line = "; ".join(problems[:_PROBLEMS_IN_A_LINE])
        more = len(problems) - _PROBLEMS_IN_A_LINE
        raise UsageError(
            f"{str(path)!r} is not a valid plan: {line}{f'; and {more} more' if more > 0 else ''}"
        ) from None


def read_plan_data(path: Path) -> Any:
    """Return the content of a plan file, valid or not. Raises UsageError if it is neither JSON nor YAML."""
    return without_schema_line(read_data(path))


def read_data(path: Path) -> Any:
    """Return the content of a JSON or YAML file as plain JSON data. Raises as `parse_data` does."""
    return parse_data(read_text(path, repr(str(path)), MAX_BYTES), path)


def parse_data(text: str, path: Path) -> Any:
    """Return a file's JSON or YAML text as plain JSON data.

    Raises NotPlainDataError for JSON or YAML with a duplicate key, an anchor, a tag, a number out of range or too many
    levels, UsageError for anything else: one line with the file, the place if known, and the problem.
    """
    try:
        return parse_json(text, unique_keys=True)
    except ValueError as error:
        reason = str(error)
    if (fault := _json_fault(text)) is None:
        raise NotPlainDataError(path, reason)
    if path.suffix.lower() == ".json":
        raise UsageError(f"{str(path)!r} is not JSON: {fault}")
    if len(text) > MAX_YAML_BYTES:
        raise UsageError(
            f"{str(path)!r} is not JSON ({fault}), and too large for YAML: "
            f"{len(text)} characters, at most {MAX_YAML_BYTES}; write it as JSON"
        )
    try:
        return parse_yaml(text, _BOUNDS)
    except YamlError as error:
        problem = yaml_fault(text) if error.valid else error
        if problem is None:
            raise NotPlainDataError(path, _described(error)) from None
    raise UsageError(f"{str(path)!r} is neither JSON nor YAML: {_described(problem)}")


def _described(error: YamlError) -> str:
    return str(error) if error.line is None else f"line {error.line}, column {error.column}: {error}"


_JSON_FAULTS = {
    "Expecting value": "expected a value; write one here, with text in double quotes, or remove the comma before",
    "Expecting property name": "expected a key in double quotes; write one, or remove the comma before",
    "Expecting ','": "expected a comma or a closing bracket; write one here",
    "Expecting ':'": "expected a colon after the key; write one here",
    "Extra data": "the JSON has ended before this; remove what follows",
    "Unterminated string": "this text has no end; close it with a double quote",
    "Invalid control": "a text contains a control character; write a line break as \\n, a tab as \\t",
    "Invalid \\": "a backslash starts no known escape here; write \\\\ for a backslash",
    "Illegal trailing comma": "a comma with nothing after it; remove it",
    "Unexpected UTF-8 BOM": "a second byte order mark; remove it",
}
"""What is wrong and what to do, by how the parser's message begins."""


def _json_fault(text: str) -> str | None:
    """Return where and why a text is not JSON; None if it is, whatever its values.

    One that nests more deeply than the parser reads is only asked whether its brackets match.
    """
    try:
        json.loads(text, parse_constant=no_constant, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        told = next((told for words, told in _JSON_FAULTS.items() if error.msg.startswith(words)), error.msg)
        return f"line {error.lineno}, column {error.colno}: {told}"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return None if brackets_match(text) else UNMATCHED
    return None


REQUIREMENTS = "requirements"
"""The key of an edited plan that holds the requirements, next to `goal` and `steps`."""
_REQUIREMENTS_BYTES, MAX_REQUIREMENTS, MAX_REQUIREMENT = 1_000_000, 50, 1_000


@dataclass(frozen=True)
class PlanEdit:
    """An edited plan, edited requirements, or both; None for what is unchanged."""

    plan: Plan | None = None
    requirements: list[str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the edit in the form that `parse_plan_edit` reads: the plan's keys, and `requirements`."""
        # A status that nobody wrote is omitted: `pending` would let an executed step run again.
        plan = self.plan.model_dump(mode="json", exclude_unset=True, exclude_none=True) if self.plan is not None else {}
        return plan if self.requirements is None else {REQUIREMENTS: list(self.requirements), **plan}

    def whole(self) -> dict[str, Any]:
        """Return the same with every status, for editing."""
        plan = dump_plan(self.plan) if self.plan is not None else {}
        return plan if self.requirements is None else {REQUIREMENTS: list(self.requirements), **plan}


def parse_plan_edit(data: Any) -> PlanEdit:
    """Return the edit that `data` describes: a plan, possibly with executed steps, and optional `requirements`.

    `requirements` alone leave the plan unchanged. The subject of a question, which has the plan under `plan`, is read
    too. Raises ValidationError as `parse_plan` does.
    """
    if isinstance(data, Mapping) and isinstance(data.get("plan"), Mapping):
        data = {**data["plan"], **({REQUIREMENTS: data[REQUIREMENTS]} if data.get(REQUIREMENTS) else {})}
    if not isinstance(data, Mapping) or REQUIREMENTS not in data:
        return PlanEdit(parse_plan(data, fresh=False))
    requirements = parse_requirements(data[REQUIREMENTS])
    rest = {key: value for key, value in data.items() if key != REQUIREMENTS}
    return PlanEdit(parse_plan(rest, fresh=False) if rest else None, requirements)


def parse_requirements(value: Any) -> list[str]:
    """Return the requirements without duplicates, each on one line. Raises ValidationError, with `problems`."""
    if not isinstance(value, list) or not value:
        raise invalid_plan([f"{REQUIREMENTS}: expected a list of one sentence or more, got {shown(value)}"])
    for number, text in enumerate(value):
        if not isinstance(text, str) or not text.strip():
            raise invalid_plan([f"{REQUIREMENTS}[{number}]: expected a sentence, got {shown(text)}"])
    return _each_once(value)


def load_requirements(path: Path | str) -> list[str]:
    """Return the requirements of a text file, one per line; blank lines do not count (contract: --requirements).

    A .yml, .yaml or .json file holds them as a list. Raises UsageError in one line that names the file.
    """
    where = f"the requirements file {str(path)!r}"
    if Path(path).suffix.lower() in (".yml", ".yaml", ".json"):
        given = load_yaml(path, where) or []
    else:
        given = read_text(path, where, _REQUIREMENTS_BYTES).splitlines()
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise UsageError(f"{where} is {suggest.shown(given)}; expected a list such as `- The answer names a date`")
    if not (found := _each_once(given)):
        raise UsageError(f"{where} has no requirements; write one per line")
    if len(found) > MAX_REQUIREMENTS or max(map(len, found)) > MAX_REQUIREMENT:
        most = f"at most {MAX_REQUIREMENTS} of at most {MAX_REQUIREMENT} characters"
        raise UsageError(f"{where} has more than a judge can answer; write {most}, one per line")
    return found


def _each_once(texts: list[str]) -> list[str]:
    lines = (" ".join(clean_text(text).split()) for text in texts)
    return list(dict.fromkeys(line for line in lines if line))


_DEFINES = ("description", "tool", "agent", "arguments", "replaces")


def reuse_executed_steps(edited: Plan, before: Plan | None) -> Plan:
    """Return the edited plan, in which each step that is still what was executed keeps its status.

    Every other step is pending: a new or changed one, one whose status is written as `pending`, one that depends on
    such a step, and one that contains such a substep. Steps are matched by id. If nothing was executed, `before` is
    None and all steps are pending.
    """
    known = {step.step_id: step for step in before.walk()} if before is not None else {}
    again = {step.step_id for step in edited.walk() if not _is_as_it_was(step, known.get(step.step_id))}
    while new := {step.step_id for step in edited.walk() if step.step_id not in again and _depends_on_any(step, again)}:
        again |= new
    plan = edited.model_dump(mode="json", exclude_none=True)
    for node in Tree(plan).walk():
        was = known.get(node["step_id"])
        is_kept = was is not None and node["step_id"] not in again
        node["status"] = was.status if was is not None and is_kept else "pending"
        node["errors"] = was.errors if was is not None and is_kept else None
    return Plan.model_validate(plan)


def _is_as_it_was(step: PlanStep, was: PlanStep | None) -> bool:
    if was is None or not was.executed or any(getattr(step, name) != getattr(was, name) for name in _DEFINES):
        return False
    if _parts(step, was) != _parts(was, was):
        return False
    return not ("status" in step.model_fields_set and step.status == "pending")


def _parts(step: PlanStep, was: PlanStep) -> set[str]:
    """Return the ids of a step's substeps, without those that became invalid."""
    given_up = {substep.step_id for substep in was.substeps if substep.status == "invalid"}
    return {substep.step_id for substep in step.substeps} - given_up


def _depends_on_any(step: PlanStep, again: set[str]) -> bool:
    return not again.isdisjoint([*(step.depends_on or ()), *(substep.step_id for substep in step.substeps)])
