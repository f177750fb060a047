"""A person's edit of a plan before it runs: another plan, and what a finished answer must satisfy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core import suggest
from aeon_core.errors import UsageError, ValidationError
from aeon_core.json_safe import clean_text
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import dump_plan, parse_plan, shown
from aeon_core.plan.refinement.tree import Tree
from aeon_core.regular_file import read_text
from aeon_core.yaml_file import load_yaml

REQUIREMENTS = "requirements"
"""The key of an edited plan that holds the requirements, next to `goal` and `steps`."""
_MAX_BYTES, MAX_REQUIREMENTS, MAX_REQUIREMENT = 1_000_000, 50, 1_000


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
        raise _invalid(f"{REQUIREMENTS}: expected a list of one sentence or more, got {shown(value)}")
    for number, text in enumerate(value):
        if not isinstance(text, str) or not text.strip():
            raise _invalid(f"{REQUIREMENTS}[{number}]: expected a sentence, got {shown(text)}")
    return _each_once(value)


def load_requirements(path: Path | str) -> list[str]:
    """Return the requirements of a text file, one per line; blank lines do not count (contract: --requirements).

    A .yml, .yaml or .json file holds them as a list. Raises UsageError in one line that names the file.
    """
    where = f"the requirements file {str(path)!r}"
    given = load_yaml(path, where) if Path(path).suffix.lower() in (".yml", ".yaml", ".json") else None
    if given is None:
        given = read_text(path, where, _MAX_BYTES).split("\n")
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


def _invalid(problem: str) -> ValidationError:
    return ValidationError(f"not a valid plan: {problem}", problems=[problem])


_DEFINES = ("description", "tool", "agent", "arguments", "replaces")


def reuse_executed_steps(edited: Plan, before: Plan | None) -> Plan:
    """Return the edited plan, in which each step that is still what was executed keeps its status.

    Every other step is pending: a new or changed one, one whose status is written as `pending`, one that depends on
    such a step, and one that contains such a substep. Steps are matched by id. If nothing was executed, `before` is
    None and all steps are pending.
    """
    known = {step.step_id: step for step in before.walk()} if before is not None else {}
    again: set[str] = set()
    for step in edited.walk():
        if not _is_as_it_was(step, known.get(step.step_id)):
            again.add(step.step_id)
    while new := {step.step_id for step in edited.walk() if step.step_id not in again and _hangs_on(step, again)}:
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


def _hangs_on(step: PlanStep, again: set[str]) -> bool:
    return not again.isdisjoint([*(step.depends_on or ()), *(substep.step_id for substep in step.substeps)])
