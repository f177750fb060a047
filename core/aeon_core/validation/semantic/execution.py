"""What came of a plan against the plan itself: results, failures and memory (adaptive FR-041)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aeon_core.validation.report import Severity
from aeon_core.validation.semantic.answers import answer_findings
from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import SYNONYMS
from aeon_core.validation.semantic.phrase import phrase_words
from aeon_core.validation.semantic.rules import MAX_FINDINGS
from aeon_core.validation.semantic.stems import stem
from aeon_core.validation.semantic.views import PlanView, StepView


@dataclass(frozen=True, slots=True)
class Execution:
    """A plan and what came of it, outputs and errors by step_id."""

    plan: PlanView
    results: Mapping[str, Any]
    failures: Mapping[str, Sequence[str]]
    answer: str | None
    memory: Mapping[str, Any]


def execution_findings(execution: Execution) -> list[Finding]:
    """Return what contradicts what, at most MAX_FINDINGS: plan against results, these against memory and answer."""
    found = [*_of_results(execution), *_of_memory(execution)]
    for step in execution.plan.steps:
        found += _of_step(step, execution)
    found += answer_findings(execution.plan, execution.results, execution.failures, execution.answer, execution.memory)
    return found[:MAX_FINDINGS]


def _of_results(execution: Execution) -> Iterator[Finding]:
    for step_id in [*execution.results, *execution.failures]:
        if step_id not in execution.plan.by_id:
            yield Finding(
                "consistency",
                "medium",
                None,
                f"there is a result of {clip(step_id)}, and the plan has no such step",
                f"Remove the result of {clip(step_id)}, or add the step it came from to the plan.",
                artifact="results",
            )


def _of_memory(execution: Execution) -> Iterator[Finding]:
    for key, value in execution.memory.items():
        if key in execution.results and value != execution.results[key]:
            yield Finding(
                "consistency",
                "high",
                key if key in execution.plan.by_id else None,
                f"memory holds another value under {clip(key)} than the step gave",
                f"Write the result of {clip(key)} to memory again, or run the step once more.",
                artifact="memory",
            )


def _of_step(step: StepView, execution: Execution) -> Iterator[Finding]:
    step_id, done = step.step_id, step.step.status == "complete"
    if done and step_id in execution.failures:
        yield _finding(step, "is marked complete, and it failed", "Mark it invalid and run a step in its place.")
    if done and execution.results and step_id not in execution.results and step_id not in execution.failures:
        yield _finding(
            step, "is marked complete, and has no result", "Run the step again, or supply its result.", "medium"
        )
    if step_id not in execution.results:
        return
    for needed in step.step.depends_on or ():
        if needed in execution.failures and needed not in execution.results:
            why = f"gave a result, and {needed!r}, which it depends on, failed"
            yield _finding(step, why, f"Repair step {needed!r}, then run {step_id!r} again.", "medium")
    yield from _of_output(step, execution.results[step_id], execution.plan)


def _of_output(step: StepView, output: Any, view: PlanView) -> Iterator[Finding]:
    if step.tool is None or not isinstance(output, dict) or set(output) == {"text"}:
        return
    for error in view.registry.output_schema(step.tool.name).errors(output):
        why = f"gave a result that does not fit the output_schema of {step.tool.name!r}: {error}"
        yield _finding(step, why, f"Run the step again, or correct the tool {step.tool.name!r}.")
    expected = _expected(step)
    given = [value for value in output.values() if _is_number(value)]
    if expected is not None and len(given) == 1 and not math.isclose(given[0], expected, rel_tol=1e-6, abs_tol=1e-9):
        why = f"gave {given[0]:.12g}, and its arguments make {expected:.12g}"
        yield _finding(step, why, f"Run the step again and use {expected:.12g}.")


def _expected(step: StepView) -> float | None:
    """Return what a call of one basic operation on two numbers gives, None where the step is none."""
    numbers = [float(value) for value in step.values if _is_number(value)]
    words = {stem(word) for text in step.texts for word in phrase_words(text)}
    named = [place for place, group in enumerate(SYNONYMS[:4]) if group & words]
    if len(numbers) != 2 or len(step.texts) != 1 or len(named) != 1 or len(step.step.arguments or {}) != 3:
        return None
    first, second = numbers
    if named[0] == 3:
        return first / second if second else None
    return (first + second, first - second, first * second)[named[0]]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _finding(step: StepView, why: str, repair: str, severity: Severity = "high") -> Finding:
    return Finding("consistency", severity, step.step_id, f"step {step.step_id!r} {why}", repair, artifact="results")
