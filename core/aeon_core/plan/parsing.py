"""Converts data to a Plan and back: strict, and reporting every problem (core FR-006, FR-010, FR-026; Decision 3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import pydantic

from aeon_core.errors import UsageError, ValidationError
from aeon_core.json_safe import MAX_DEPTH, NotJsonSafeError, clean_text, json_safe, parse_json
from aeon_core.plan import StepStatus
from aeon_core.plan.forms import in_sequence, normal_plan
from aeon_core.plan.models import MAX_NESTING_DEPTH, Plan, PlanStep, Subplan
from aeon_core.suggest import close
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import describe, properties

STATUSES: tuple[str, ...] = get_args(StepStatus)
PLAN_FIELDS = tuple(Plan.model_fields)
STEP_FIELDS = tuple(PlanStep.model_fields)
SUBPLAN_FIELDS = tuple(Subplan.model_fields)
FLAT_FIELDS = (
    "id",
    "parent",
    *(name for name in STEP_FIELDS if name not in ("step_id", "subplan")),
    "step_id",
    "arguments_json",
)

_MAX_SHOWN = 60
_MAX_PATH = 160
_MAX_INTEGER_BITS = 14_000
"""What Python converts to decimal digits on its own."""


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """One problem of a plan: where, what, and how to fix it."""

    path: str
    finding: str
    repair: str
    step_id: str | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.finding}"


class Problems:
    """The problems found so far, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self.found: list[PlanProblem] = []
        self.limit = limit

    @property
    def full(self) -> bool:
        return len(self.found) >= self.limit

    def add(self, path: str, finding: str, repair: str, step_id: str | None = None) -> None:
        if not self.full:
            self.found.append(PlanProblem(_clipped(path), finding, repair, step_id))

    def expected(self, path: str, expectation: str, value: Any, step_id: str | None = None) -> None:
        """Note that the value at `path` should have been something else."""
        self.add(path, f"expected {expectation}, got {shown(value)}", f"Make {_clipped(path)} {expectation}.", step_id)

    def missing(self, path: str, expectation: str, step_id: str | None = None) -> None:
        self.add(path, f"missing, expected {expectation}", f"Add {_clipped(path)}: {expectation}.", step_id)

    def unknown_keys(self, path: str, keys: Iterable[str], known: tuple[str, ...], step_id: str | None = None) -> None:
        for key in keys:
            if self.full:
                return
            if key not in known:
                near = close(key, known, 0.0)
                finding = f"unknown key {shown(key)}, the nearest known one is {near!r}"
                self.add(path, finding, f"Rename the key {shown(key)} to {near!r}, or remove it.", step_id)


def shown(value: Any) -> str:
    """Return a short description of any value on one line, of an object without its keys."""
    return "an object" if isinstance(value, dict) and value else describe(value)


def key_path(path: str, key: str) -> str:
    """Return the path of a key inside the object at `path`; the plan itself has the empty path."""
    if not key.isidentifier() or len(key) > _MAX_SHOWN:
        return f"{path}[{shown(key)}]"
    return f"{path}.{key}" if path else key


def json_copy(value: Any, path: str, problems: Problems, depth: int = 0) -> Any:
    """Return a copy of `value` as plain JSON with clean text; what has no JSON form is a problem and becomes null."""
    if value is None:
        return None
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int) and value.bit_length() <= _MAX_INTEGER_BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if not isinstance(value, (dict, list, tuple)):
        problems.expected(path, "a JSON value", value)
        return None
    if depth >= MAX_DEPTH:
        problems.add(path, f"nested deeper than {MAX_DEPTH} levels", "Flatten what is nested there.")
        return None
    if isinstance(value, dict):
        return _object_copy(value, path, problems, depth)
    return [json_copy(item, f"{path}[{index}]", problems, depth + 1) for index, item in enumerate(value)]


def _object_copy(value: dict[Any, Any], path: str, problems: Problems, depth: int) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            problems.add(path, f"expected keys that are strings, got {shown(key)}", f"Quote the key {shown(key)}.")
            continue
        name = clean_text(key)
        if name in copy:
            problems.add(path, f"the key {shown(name)} occurs twice", "Rename one of them.")
        copy[name] = json_copy(item, key_path(path, name), problems, depth + 1)
    return copy


def expectation(name: str, value: Any) -> str | None:
    """Return what the field `name` of a step must be, or None if `value` is fine."""
    if name in ("step_id", "id", "parent", "description", "tool", "replaces"):
        return text_expectation(value)
    if name == "status":
        return None if value in STATUSES else f"one of {', '.join(STATUSES)}"
    if name == "agent":
        return None if value == "llm" else "'llm'"
    if name in ("arguments", "subplan"):
        return None if isinstance(value, dict) else "an object"
    if name == "arguments_json":
        return None if isinstance(arguments_in(value), dict) else "a JSON object written as a string"
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "an array of strings"
    return None if name == "errors" or all(map(_not_blank, value)) else "an array of non-empty strings"


def text_expectation(value: Any) -> str | None:
    """Return what a text must be, or None if `value` is one."""
    if not isinstance(value, str):
        return "a string"
    return None if _not_blank(value) else "a non-empty string"


def arguments_in(value: Any) -> Any:
    """Return the JSON value that a string holds, or None if it holds none."""
    try:
        return parse_json(value, unique_keys=True) if isinstance(value, str) else None
    except ValueError:
        return None


def _not_blank(text: str) -> bool:
    return bool(text.strip())


def _clipped(path: str) -> str:
    half = _MAX_PATH // 2
    path = path or "plan"
    return path if len(path) <= _MAX_PATH else f"{path[:half]}…{path[-half:]}"


def object_in(reply: Any, expected: str) -> dict[str, Any]:
    """Return the object of a reply: parsed from its text, or the value it holds. Raises ValueError with the reason in
    one line.
    """
    try:
        value = parse_json(reply) if isinstance(reply, str) else json_safe(reply)
    except NotJsonSafeError:
        raise
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected {expected}, got {shown(value)}")
    return value


_NEVER_NULL = ("step_id", "description", "status")
_FIELD_OF = {"id": "step_id", "arguments_json": "arguments"}


@dataclass(eq=False)
class PlanEntry:
    """A step as it was read: `fields` holds the valid ones, under their names in PlanStep."""

    path: str
    fields: dict[str, Any]
    goal: str | None = None
    """The goal of its subplan, if that states one."""
    created_by: str = "plan"
    children: list[PlanEntry] = field(default_factory=list)
    parent: PlanEntry | None = None
    has_subplan: bool = False
    faulty: set[str] = field(default_factory=set)
    """Names of the fields that are invalid."""

    @property
    def step_id(self) -> str | None:
        return self.fields.get("step_id")

    @property
    def has_parts(self) -> bool:
        """Whether it is expanded by substeps, readable or not."""
        return self.has_subplan or bool(self.children)


class PlanReader:
    """What could be read of a plan: its goal, its steps as a tree, and every problem (the first `limit`).

    With `fresh`, a step that has already run is a problem. So are subplans below the deepest level, unless `cuts`: then
    they are left out, and `cut` names the steps that had them, which stand for their parts.
    """

    def __init__(self, data: Any, *, fresh: bool, limit: int, cuts: bool = False) -> None:
        self._problems = Problems(limit)
        self._cuts = cuts
        self._left_out: dict[str, str] = {}
        self.cut: list[str] = []
        self._fresh = fresh
        self._ids: dict[str, PlanEntry] = {}
        self.goal: str | None = None
        self.roots: list[PlanEntry] = []
        self._read(json_copy(data, "", self._problems))
        if self._left_out:
            self._follow_cuts()

    @property
    def problems(self) -> list[PlanProblem]:
        """Every problem, in the order in which they were found."""
        return self._problems.found

    def walk(self) -> Iterator[PlanEntry]:
        """Yield every step, each parent before its substeps."""
        return _walk(self.roots)

    def _read(self, data: Any) -> None:
        if not isinstance(data, dict):
            if not self.problems:
                self._problems.expected("", "an object with 'goal' and 'steps'", data)
            return
        self._problems.unknown_keys("", data, PLAN_FIELDS)
        self.goal = self._text(data, "goal", "goal")
        steps = self._steps(data, "steps", "steps")
        if any(isinstance(step, dict) and ("id" in step or "parent" in step) for step in steps):
            self._read_flat(steps)
        else:
            self.roots = self._read_nested(steps, "steps", None, 0)

    def _text(self, data: dict[str, Any], name: str, path: str, step_id: str | None = None) -> str | None:
        if name not in data:
            self._problems.missing(path, "a non-empty string", step_id)
            return None
        if (expected := text_expectation(data[name])) is not None:
            self._problems.expected(path, expected, data[name], step_id)
            return None
        return str(data[name])

    def _steps(self, data: dict[str, Any], name: str, path: str, step_id: str | None = None) -> list[Any]:
        if name not in data:
            self._problems.missing(path, "an array of at least one step", step_id)
            return []
        steps = data[name]
        if not isinstance(steps, list) or not steps:
            self._problems.expected(path, "an array of at least one step", steps, step_id)
            return []
        return steps

    def _entry(self, step: Any, path: str, known: tuple[str, ...], id_key: str) -> PlanEntry | None:
        if not isinstance(step, dict):
            self._problems.expected(path, "an object", step)
            return None
        step_id = step.get(id_key) if isinstance(step.get(id_key), str) else None
        self._problems.unknown_keys(path, step, known, step_id)
        entry = PlanEntry(path, {})
        for name in known:
            if name in step and (step[name] is not None or name in _NEVER_NULL):
                self._set_field(entry, name, step[name], step_id)
        for name in (id_key, "description"):
            if name not in step:
                self._problems.missing(f"{path}.{name}", "a non-empty string", step_id)
        self._claim(entry, id_key)
        return entry

    def _set_field(self, entry: PlanEntry, name: str, value: Any, step_id: str | None) -> None:
        path = f"{entry.path}.{name}"
        field_name = _FIELD_OF.get(name, name)
        if (expected := expectation(name, value)) is not None:
            self._problems.expected(path, expected, value, step_id)
        elif field_name in entry.fields:
            self._problems.add(path, f"says the same as {field_name!r}", "Keep one of the two.", step_id)
        elif self._fresh and name == "status" and value != "pending":
            self._problems.expected(path, "'pending', the status of a step that has not run", value, step_id)
        elif self._fresh and name == "errors" and value:
            self._problems.expected(path, "no errors of a step that has not run", value, step_id)
        else:
            entry.fields[field_name] = arguments_in(value) if name == "arguments_json" else value
            return
        entry.faulty.add(field_name)

    def _claim(self, entry: PlanEntry, id_key: str) -> None:
        step_id = entry.step_id
        if step_id is None:
            return
        first = self._ids.setdefault(step_id, entry)
        if first is not entry:
            finding = f"{shown(step_id)} is the id of {first.path} already; ids must be unique over the whole plan"
            self._problems.add(f"{entry.path}.{id_key}", finding, "Give the step an id of its own.", step_id)

    def _read_nested(self, steps: list[Any], path: str, parent: PlanEntry | None, depth: int) -> list[PlanEntry]:
        entries = []
        for index, step in enumerate(steps):
            if self._problems.full:
                break
            entry = self._entry(step, f"{path}[{index}]", STEP_FIELDS, "step_id")
            if entry is not None:
                entry.parent = parent
                entries.append(entry)
                if (subplan := entry.fields.pop("subplan", None)) is not None:
                    self._read_subplan(entry, subplan, depth + 1)
        return entries

    def _read_subplan(self, entry: PlanEntry, subplan: dict[str, Any], depth: int) -> None:
        path, step_id = f"{entry.path}.subplan", entry.step_id
        entry.has_subplan = True
        if depth > MAX_NESTING_DEPTH:
            self._too_deep(path, entry, _ids_in(subplan))
            return
        self._problems.unknown_keys(path, subplan, SUBPLAN_FIELDS, step_id)
        named = self._text(subplan, "parent_step_id", f"{path}.parent_step_id", step_id)
        if named is not None and step_id is not None and named != step_id:
            self._problems.expected(f"{path}.parent_step_id", f"{shown(step_id)}, the id of its step", named, step_id)
        entry.goal = self._text(subplan, "subplan_goal", f"{path}.subplan_goal", step_id)
        level = subplan.get("depth_level", depth)
        if type(level) is not int or level != depth:
            self._problems.expected(f"{path}.depth_level", str(depth), level, step_id)
        if "created_by" in subplan:
            entry.created_by = self._text(subplan, "created_by", f"{path}.created_by", step_id) or "plan"
        substeps = self._steps(subplan, "substeps", f"{path}.substeps", step_id)
        entry.children = self._read_nested(substeps, f"{path}.substeps", entry, depth)

    def _too_deep(self, path: str, entry: PlanEntry, parts: Iterable[str]) -> None:
        step_id = entry.step_id
        if not self._cuts or step_id is None:
            repair = "Merge the deepest steps into their parents."
            self._problems.add(path, f"nested deeper than {MAX_NESTING_DEPTH} levels of subplans", repair, step_id)
            return
        self._left_out |= dict.fromkeys(parts, step_id)
        self.cut.append(step_id)
        entry.has_subplan, entry.children = False, []
        if "tool" not in entry.fields:
            entry.fields.setdefault("agent", "llm")

    def _follow_cuts(self) -> None:
        """Make what depends on an omitted part depend on the step that had it."""
        for entry in self.walk():
            if needs := entry.fields.get("depends_on"):
                followed = dict.fromkeys(self._left_out.get(needed, needed) for needed in needs)
                entry.fields["depends_on"] = [needed for needed in followed if needed != entry.step_id]

    def _read_flat(self, steps: list[Any]) -> None:
        entries = []
        for index, step in enumerate(steps):
            if self._problems.full:
                break
            if isinstance(step, dict):
                step = {key: value for key, value in step.items() if value is not None}
            id_key = "step_id" if isinstance(step, dict) and "step_id" in step and "id" not in step else "id"
            entry = self._entry(step, f"steps[{index}]", FLAT_FIELDS, id_key)
            if entry is not None:
                entries.append(entry)
        for entry in entries:
            self._adopt(entry)
        self.roots = [entry for entry in entries if entry.parent is None]
        self._measure(entries)

    def _adopt(self, entry: PlanEntry) -> None:
        named = entry.fields.pop("parent", None)
        if named is None:
            return
        path, parent = f"{entry.path}.parent", self._ids.get(named)
        if parent is None:
            self._problems.expected(path, "the id of a step of this plan, or null", named, entry.step_id)
            return
        entry.parent = parent
        parent.children.append(entry)

    def _measure(self, entries: list[PlanEntry]) -> None:
        """Find what nests too deeply, and the steps that no root leads to."""
        reached: set[PlanEntry] = set()
        level, depth = self.roots, 0
        while level:
            reached.update(level)
            depth += 1
            for entry in level:
                if entry.children and depth > MAX_NESTING_DEPTH:
                    below = list(_walk(entry.children))
                    reached.update(below)
                    self._too_deep(entry.path, entry, (part.step_id for part in below if part.step_id is not None))
            level = [child for entry in level for child in entry.children]
        for entry in entries:
            if entry not in reached:
                finding = "is, over its parents, a part of itself"
                self._problems.add(f"{entry.path}.parent", finding, "Name a parent outside the cycle.", entry.step_id)


def _walk(entries: list[PlanEntry]) -> Iterator[PlanEntry]:
    stack = entries[::-1]
    while stack:
        entry = stack.pop()
        yield entry
        stack.extend(reversed(entry.children))


def _ids_in(subplan: Any) -> Iterator[str]:
    """Yield the ids of all steps in a subplan that is left out."""
    stack = [subplan]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(step_id := value.get("step_id"), str):
                yield step_id
            stack += [value.get("subplan"), value.get("substeps")]
        elif isinstance(value, list):
            stack += value


MAX_PROBLEMS = 20


def parse_plan(data: Any, *, fresh: bool = True) -> Plan:
    """Return the Plan that `data` describes: nested as Plan is, or flat, with `id` and `parent` (core FR-010).

    With `fresh`, every step must be pending and without errors. Nothing is coerced and no key ignored; text is cleaned.
    Five levels of subplans are kept; `Plan.cut` names the steps whose parts were left out (adaptive FR-082). Raises
    ValidationError; its context holds `problems`, at most MAX_PROBLEMS lines of path and expectation.
    """
    reading = PlanReader(data, fresh=fresh, limit=MAX_PROBLEMS, cuts=True)
    if reading.problems:
        raise invalid_plan([str(problem) for problem in reading.problems])
    built = {"goal": reading.goal, "steps": [_built(entry, 1) for entry in reading.roots]}
    try:
        return Plan.model_validate(built).cut_at(reading.cut)
    except pydantic.ValidationError as error:
        details = error.errors()[:MAX_PROBLEMS]
        problems = [f"{'.'.join(map(str, each['loc'])) or 'plan'}: {each['msg']}" for each in details]
        raise invalid_plan(problems) from None


def parse_loosely(value: Any, tools: ToolRegistry, *, exact: bool = False) -> tuple[Plan, bool]:
    """Return the plan in a reply's value, and whether it had to be normalized (Decision 4).

    With `exact`, no key may be dropped and every declared call must fit its tool. Raises ValidationError as
    `parse_plan`.
    """
    try:
        ordered = in_sequence(value)
        plan, changed = parse_plan(ordered), ordered is not value
    except ValidationError:
        normal, dropped = normal_plan(value, arguments_by_tool(tools))
        if exact and dropped:
            raise
        plan, changed = parse_plan(normal), True
    if exact:
        for step in plan.walk():
            known = step.tool is not None and step.tool in tools and step.arguments is not None
            if known and (errors := tools.input_schema(str(step.tool)).errors(step.arguments)):
                raise invalid_plan([f"the arguments of step {step.step_id!r} do not fit: {errors[0]}"])
    return plan, changed


def arguments_by_tool(tools: ToolRegistry) -> dict[str, list[str]]:
    """Return the argument names of each registered tool."""
    return {tool.name: list(properties(tools.input_schema(tool.name).schema)) for tool in tools}


def given_plan(plan: Plan | Mapping[str, Any] | None) -> Plan | None:
    """Return the caller's plan: a Plan object itself, or the Plan that a dict describes.

    Raises UsageError if it is neither, was already executed, became invalid after it was made, or cannot be written as
    JSON; ValidationError for an invalid dict.
    """
    if plan is None:
        return None
    if isinstance(plan, Mapping):
        return parse_plan(dict(plan))
    executed = [step.step_id for step in checked_plan(plan).walk() if step.status != "pending"]
    if executed:
        raise UsageError(f"the plan was already executed (steps {', '.join(executed[:5])}); pass a fresh one")
    return plan


def checked_plan(plan: Any) -> Plan:
    """Return the caller's Plan. Raises UsageError for anything else, and for a Plan that was changed since it was made
    so that it breaks a rule of plans or cannot be written as JSON.
    """
    if not isinstance(plan, Plan):
        kind = type(plan).__name__
        raise UsageError(f"the plan is of type {kind}, expected a Plan or a dict; json.load reads a plan file")
    try:
        Plan.model_validate_json(plan.model_dump_json(warnings="error"))
        for step in plan.walk():
            json_safe(step.arguments)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the plan is invalid: {' '.join(str(error).split())[:300]}") from None
    return plan


def dump_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain JSON, without null fields; nulls inside arguments stay."""
    return plan.model_dump(mode="json", exclude_none=True)


def _built(entry: PlanEntry, depth: int) -> dict[str, Any]:
    step = dict(entry.fields)
    if entry.children:
        step["subplan"] = {
            "parent_step_id": step["step_id"],
            "subplan_goal": entry.goal if entry.goal is not None else step["description"],
            "substeps": [_built(child, depth + 1) for child in entry.children],
            "depth_level": depth,
            "created_by": entry.created_by,
        }
    return step


def invalid_plan(problems: list[str]) -> ValidationError:
    """Return the error for a plan with these `problems`."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return ValidationError(f"not a valid plan: {problems[0]}{more}", problems=problems)
