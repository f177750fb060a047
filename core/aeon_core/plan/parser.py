"""Reading a plan out of any data, in both of its forms, without stopping at the first problem (core FR-010, FR-026)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aeon_core.plan.fields import (
    FLAT_FIELDS,
    PLAN_FIELDS,
    STEP_FIELDS,
    SUBPLAN_FIELDS,
    Problem,
    Problems,
    arguments_in,
    expectation,
    json_copy,
    shown,
    text_expectation,
)
from aeon_core.plan.models import MAX_NESTING_DEPTH

_NEVER_NULL = ("step_id", "description", "status")
_FIELD_OF = {"id": "step_id", "arguments_json": "arguments"}


@dataclass(eq=False)
class PlanEntry:
    """A step as it was read: `fields` holds those that are sound, under their names in PlanStep."""

    path: str
    fields: dict[str, Any]
    goal: str | None = None
    """The goal of its subplan, where that states one."""
    created_by: str = "plan"
    children: list[PlanEntry] = field(default_factory=list)
    parent: PlanEntry | None = None
    has_subplan: bool = False
    faulty: set[str] = field(default_factory=set)
    """Names of the fields that are there and not sound."""

    @property
    def step_id(self) -> str | None:
        return self.fields.get("step_id")

    @property
    def has_parts(self) -> bool:
        """Whether it is expanded by substeps, readable or not."""
        return self.has_subplan or bool(self.children)


class PlanReader:
    """What could be read of a plan: its goal, its steps as a tree, and every problem (the first `limit` of them).

    With `fresh` a step that says it has run already is a problem. Subplans below the deepest level are one too, unless
    `cuts`: then they are left out, `cut` names the steps that had them, and those take the place of their parts.
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
    def problems(self) -> list[Problem]:
        """Every problem, in the order in which they were found."""
        return self._problems.found

    def walk(self) -> Iterator[PlanEntry]:
        """Yield every step, each parent before its substeps."""
        stack = list(reversed(self.roots))
        while stack:
            entry = stack.pop()
            yield entry
            stack.extend(reversed(entry.children))

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
                self._take(entry, name, step[name], step_id)
        for name in (id_key, "description"):
            if name not in step:
                self._problems.missing(f"{path}.{name}", "a non-empty string", step_id)
        self._claim(entry, id_key)
        return entry

    def _take(self, entry: PlanEntry, name: str, value: Any, step_id: str | None) -> None:
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
        """Let what depends on a part that was left out depend on the step that had it."""
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
        """Find what hangs too deep, and what hangs on itself: the steps that no root leads to."""
        reached: set[PlanEntry] = set()
        level, depth = self.roots, 0
        while level:
            reached.update(level)
            depth += 1
            for entry in level:
                if entry.children and depth > MAX_NESTING_DEPTH:
                    below = list(_below(entry))
                    reached.update(below)
                    self._too_deep(entry.path, entry, (part.step_id for part in below if part.step_id is not None))
            level = [child for entry in level for child in entry.children]
        for entry in entries:
            if entry not in reached:
                finding = "is, over its parents, a part of itself"
                self._problems.add(f"{entry.path}.parent", finding, "Name a parent outside the cycle.", entry.step_id)


def _ids_in(subplan: Any) -> Iterator[str]:
    """Yield the ids of all steps in a subplan that is not read."""
    stack = [subplan]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(step_id := value.get("step_id"), str):
                yield step_id
            stack += [value.get("subplan"), value.get("substeps")]
        elif isinstance(value, list):
            stack += value


def _below(entry: PlanEntry) -> Iterator[PlanEntry]:
    stack = list(entry.children)
    while stack:
        child = stack.pop()
        yield child
        stack += child.children
