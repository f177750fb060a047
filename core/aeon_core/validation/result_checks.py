"""Exact checks on a plan's results: statuses, ids, tools and memory; no text is interpreted (Decision 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from aeon_core.entities import Finding, IssueType
from aeon_core.plan import end_of_chain
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.validation.plan_checks import clip, end_order

Flag = Literal["plan", "step", "answer", "memory"]
_BLANK = {"none", "", "[]", "{}", "true", "false"}
"""Values next to an error, as text, that do not count as a result."""


@dataclass(frozen=True)
class Artifacts:
    """The artifacts of a pass: everything that is checked, judged and assessed."""

    goal: str
    plan: Plan
    results: Mapping[str, Any] = field(default_factory=dict)
    """Each executed step's output, by step_id."""
    answer: str = ""
    """Empty if there is none."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    failures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Why steps failed, by step_id."""
    tools: Collection[str] | None = None
    """The names of the registered tools; None if unknown."""

    @cached_property
    def superseded(self) -> frozenset[str]:
        """The invalid steps that another step replaces; their results do not count. A circle replaces nothing."""
        by = {step.replaces: step.step_id for step in self.plan.walk() if step.replaces is not None}
        invalid = [step.step_id for step in self.plan.walk() if step.status == "invalid"]
        return frozenset(step_id for step_id in invalid if step_id in by and end_of_chain(step_id, by) not in by)

    @cached_property
    def required(self) -> list[PlanStep]:
        """The steps whose result counts."""
        return [step for step in self.plan.walk() if step.step_id not in self.superseded]

    @cached_property
    def failed(self) -> list[str]:
        """The required steps that failed, by their status, their errors or their own output."""
        lost = {*filter(self.reported, self.results), *(key for key, errors in self.failures.items() if errors)}
        return [step.step_id for step in self.required if step.status == "failed" or step.step_id in lost]

    @cached_property
    def missing(self) -> list[str]:
        """The required steps without a result: not run, invalid without a replacement, or without output."""
        known = {*self.failed}
        left = [step for step in self.required if step.step_id not in known]
        empty = {step.step_id for step in left if step.subplan is None and self.results.get(step.step_id) is None}
        return [step.step_id for step in left if step.status != "complete" or step.step_id in empty]

    def reported(self, step_id: str, *, beside_result: bool = False) -> str | None:
        """Return the failure in an output's fields; with `beside_result`, one that another field contradicts."""
        output = self.results.get(step_id)
        if not isinstance(output, Mapping):
            return None
        error, success = output.get("error"), str(output.get("success")).casefold()
        wrong = bool(error) and re.search(r"[^\d\s.,+-]", str(error)) is not None
        if not wrong and success != "false":
            return None
        rest = {str(value).casefold() for key, value in output.items() if key not in ("error", "exit_code")} - _BLANK
        in_doubt = success == "true" or (bool(rest) and not (wrong and success == "false"))
        shown = error if isinstance(error, str) else json.dumps(error, sort_keys=True, ensure_ascii=False)
        problem = f"error is {clip(shown)}" if wrong else "success is false"
        return problem if in_doubt is beside_result else None


@dataclass(frozen=True, slots=True)
class ResultFinding:
    """A problem of a result. `flag` is the consistency flag that it breaks."""

    finding: Finding
    flag: Flag | None = None
    hallucinated: bool = False
    """Whether it is about a tool that does not exist."""


def check_result(artifacts: Artifacts) -> list[ResultFinding]:
    """Return every provable problem; failed and missing steps first (adaptive FR-018 to FR-021)."""
    checks = (_steps, _answer, _unplanned, _dependencies, _tools, _memory)
    return [found for check in checks for found in check(artifacts)]


def _steps(artifacts: Artifacts) -> Iterator[ResultFinding]:
    for step_id in artifacts.failed:
        why = "; ".join(artifacts.failures.get(step_id, ())) or artifacts.reported(step_id) or "no reason is known"
        repair = "Correct what made the step fail, or reach its result another way."
        yield _found("consistency", step_id, f"step {step_id!r} failed: {why}", repair)
    statuses = {step.step_id: step.status for step in artifacts.required}
    for step_id in artifacts.missing:
        lost = statuses[step_id] == "complete"
        described = "is complete, but has no output" if lost else f"was not done: it is {statuses[step_id]}"
        yield _found("consistency", step_id, f"step {step_id!r} {described}", "Run the step.", "step" if lost else None)


def _answer(artifacts: Artifacts) -> Iterator[ResultFinding]:
    if not artifacts.answer.strip():
        yield _found("consistency", None, "there is no answer", "Answer the task.", "answer", artifact="answer")


def _unplanned(artifacts: Artifacts) -> Iterator[ResultFinding]:
    known = {step.step_id for step in artifacts.plan.walk()}
    for step_id in sorted({*artifacts.results, *artifacts.failures} - known):
        described = f"there is a result for step {step_id!r}, which is not in the plan"
        yield _found("consistency", None, described, "Add the step to the plan, or drop its result.", "plan")


def _dependencies(artifacts: Artifacts) -> Iterator[ResultFinding]:
    order = end_order(artifacts.plan)
    lost = {*artifacts.failed, *artifacts.missing}
    for step in artifacts.required:
        for needed in step.depends_on or ():
            named, flag = f"step {step.step_id!r} depends on {needed!r}", "plan"
            if needed not in order:
                why = "which is not in the plan"
            elif order[needed] >= order[step.step_id]:
                why = "which does not end before it"
            elif step.status == "complete" and needed in lost:
                why, flag = "which is complete but has no result", "step"
            else:
                continue
            repair = f"Correct depends_on of {step.step_id!r}."
            yield _found("consistency", step.step_id, f"{named}, {why}", repair, flag)


def _tools(artifacts: Artifacts) -> Iterator[ResultFinding]:
    for step in artifacts.required:
        if step.tool is not None and artifacts.tools is not None and step.tool not in artifacts.tools:
            described = f"step {step.step_id!r} names the tool {step.tool[:100]!r}, which is not registered"
            repair = "Call a registered tool, or make it a reasoning step."
            made = _found("hallucination", step.step_id, described, repair, "plan")
            yield ResultFinding(made.finding, "plan", hallucinated=True)


def _memory(artifacts: Artifacts) -> Iterator[ResultFinding]:
    for step in artifacts.required:
        output = artifacts.results.get(step.step_id)
        if step.status != "complete" or output is None or step.step_id not in artifacts.memory:
            continue
        if artifacts.memory[step.step_id] not in _forms(output):
            described = f"memory has a different value for step {step.step_id!r} than the step returned"
            repair = "Store the step's output again."
            yield _found("consistency", step.step_id, described, repair, "memory", artifact="memory")


def _forms(output: Any) -> list[Any]:
    """Return an output in the forms in which it may be stored: as it is, or without the object around a single
    value.
    """
    single = isinstance(output, Mapping) and len(output) == 1
    return [output, {"result": output}, {"text": output}, *(output.values() if single else ())]


def _found(
    kind: IssueType, step_id: str | None, description: str, repair: str, flag: Any = None, artifact: Any = None
) -> ResultFinding:
    return ResultFinding(Finding(kind, "high", step_id, description, repair, artifact), flag)
