"""Exact checks on a plan's results: statuses, ids, tools and memory; no text is interpreted (Decision 7).

What code finds suspicious but cannot decide, such as a figure from nowhere, is left to the judge.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
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
    """Return the forms in which an output may be stored: as it is, or without the object around a single value."""
    single = isinstance(output, Mapping) and len(output) == 1
    return [output, {"result": output}, {"text": output}, *(output.values() if single else ())]


def _found(
    kind: IssueType, step_id: str | None, description: str, repair: str, flag: Any = None, artifact: Any = None
) -> ResultFinding:
    return ResultFinding(Finding(kind, "high", step_id, description, repair, artifact), flag)


def suspicions_about(artifacts: Artifacts, requirements: Iterable[str] = ()) -> list[str]:
    """Return what code suspects but cannot decide: unsupported figures, failures next to a result, exit codes."""
    found = unsupported_figures(artifacts, requirements)
    for step in artifacts.required:
        output = artifacts.results.get(step.step_id)
        code = output.get("exit_code") if isinstance(output, Mapping) else None
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            found.append(f"step {step.step_id!r} ended with exit_code {code}, which the answer must account for")
        if (failure := artifacts.reported(step.step_id, beside_result=True)) is not None:
            found.append(f"step {step.step_id!r} gave a result, and yet {failure}, which the answer must account for")
    return found


MAX_SUSPICIONS = 10
_MOST_NUMBERS = 2000
_MOST_PAIRS = 150
"""The most known numbers combined in pairs."""
_MOST_CHARACTERS = 50_000
_GROUPING = re.compile(r"['’\u00a0\u202f ]")
_SMALL = 20
"""Up to this, a whole number is taken as a count that the reader can check."""
_NUMBER = re.compile(r"(?<![\w.,:/\-–])[-−]?\d+(?:[.,'’\u00a0\u202f ]\d{3})*(?:[.,]\d+)?(?![\w:/]|[.,\-–]\d)")
_SCALES = (1.0, 10.0, 60.0, 24.0, 7.0, 12.0, 100.0, 1000.0, 1024.0, 3600.0, 1e6, 1e9, 1024.0**2, 1024.0**3)
_UNITS = (1.609344, 1609.344, 0.3048, 2.54, 0.45359237)
"""Kilometres and metres in a mile, metres in a foot, centimetres in an inch, kilograms in a pound."""


def unsupported_figures(artifacts: Artifacts, requirements: Iterable[str] = ()) -> list[str]:
    """Return a sentence for each number of the answer that no output, goal or plan contains, rounds to or leads to.

    Small counts, dates and times are left out. A number follows from others by one sum, difference, product or
    quotient, a total or mean of a list, a percentage or a common change of unit.
    """
    figures = list(dict.fromkeys(_in_text(artifacts.answer)))
    if not figures:
        return []
    steps = [[step.description, step.arguments] for step in artifacts.plan.walk()]
    texts = (artifacts.goal, *requirements, artifacts.plan.goal, *chain.from_iterable(steps))
    sources = (*texts, dict(artifacts.results), dict(artifacts.memory))
    known = sorted({abs(number) for number in islice(chain.from_iterable(map(_numbers, sources)), _MOST_NUMBERS)})
    lonely = (text for text, readings, step in figures if not _supported(readings, step, known))
    return [
        f"the answer says {text!r}, which no output contains or leads to" for text in islice(lonely, MAX_SUSPICIONS)
    ]


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if abs(value) < 1e300:
            yield float(value)
    elif isinstance(value, str):
        for _, readings, _ in _in_text(value):
            yield from readings
        yield from map(float, re.findall(r"\d+", value[:_MOST_CHARACTERS])[:_MOST_NUMBERS])
    elif isinstance(value, Mapping):
        yield len(value)
        for item in value.values():
            yield from _numbers(item)
    elif isinstance(value, list | tuple):
        yield len(value)
        yield from _totals(value)
        for item in value:
            yield from _numbers(item)


def _totals(items: list[Any] | tuple[Any, ...]) -> Iterator[float]:
    columns: dict[Any, list[float]] = {}
    for item in items:
        for key, value in item.items() if isinstance(item, Mapping) else ((None, item),):
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
                columns.setdefault(key, []).append(float(value))
    for column in columns.values():
        yield sum(column)
        yield sum(column) / len(column)


def _in_text(text: str) -> Iterator[tuple[str, tuple[float, ...], float]]:
    """Yield each number in a text: as written, its possible values, and the weight of its last digit."""
    for found in _NUMBER.finditer(_western(text[:_MOST_CHARACTERS])):
        digits = found[0].lstrip("-−")
        if not digits.isdigit():
            digits = _GROUPING.sub("", digits)
        if digits.isdigit():
            if _SMALL < (value := float(digits)) < 1e300:
                yield found[0], (value,), 10.0 ** (len(digits) - len(digits.rstrip("0")))
        elif readings := sorted({read for point in ".," if (read := _value(digits, point)) is not None}):
            places = len(re.split("[.,]", digits)[-1])
            yield found[0], tuple(readings), 1.0 if places == 3 and len(readings) > 1 else 10.0**-places


def _value(digits: str, point: str) -> float | None:
    """Return a number's value if this is its decimal point, None if that cannot be."""
    group = "," if point == "." else "."
    whole, _, fraction = digits.partition(point)
    parts = whole.split(group)
    if point in fraction or group in fraction or not all(parts) or any(len(part) != 3 for part in parts[1:]):
        return None
    return float(f"{''.join(parts)}.{fraction or 0}")


def _western(text: str) -> str:
    """Return a text with the digits of every script as 0 to 9."""
    return text if text.isascii() else "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)


def _supported(readings: tuple[float, ...], step: float, known: list[float]) -> bool:
    return any(_led_to(value, max(step / 2, 1e-9 * value) * 1.000001, known) for value in readings)


def _led_to(value: float, near: float, known: list[float]) -> bool:
    """Return whether a number is among the sorted, unsigned known ones, or follows from one or two of them."""
    for scale in _SCALES + _UNITS:
        if _matches(known, value * scale, near * scale) or _matches(known, value / scale, near / scale):
            return True
    for by in (32, -32):
        # The sign may change between temperature scales.
        if _matches(known, (value + by) / 1.8, near / 1.8) or _matches(known, value * 1.8 + by, near * 1.8):
            return True
    some, share = known[-_MOST_PAIRS:], value / 100
    return any(
        _matches(some, value - one, near)
        or _matches(some, value / one, near / one)
        or _matches(some, value * one, near * one)
        or any(_matches(some, one * part, near * one / 100) for part in (share, 1 + share, 1 - share))
        for one in some
        if one
    )


def _matches(numbers: list[float], number: float, within: float) -> bool:
    """Return whether an unsigned number is in a sorted list, give or take `within`."""
    place = bisect_left(numbers, abs(number) - within)
    return place < len(numbers) and numbers[place] <= abs(number) + within
