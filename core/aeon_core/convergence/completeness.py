"""Completeness: every step done, every part of the goal addressed, every result told (adaptive FR-018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aeon_core.convergence.artifacts import Artifacts, Fact, StepView
from aeon_core.convergence.echo import asks_for_a_choice, says_nothing_new
from aeon_core.convergence.finding import Finding
from aeon_core.convergence.left_out import left_out
from aeon_core.convergence.quantities import quantities
from aeon_core.convergence.requirements import Part, asked_counts, counted_items, evasive, gives_up, goal_parts
from aeon_core.convergence.telling import TOLD_SHARE, Told
from aeon_core.convergence.words import content_stems, denied, sentences

_SERVED_SHARE = 0.5
_WITH_A_GAP = 0.75
"""The most that an answer scores which leaves out one thing of many: less than the default threshold."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """The score 0…1, the findings, and what the score was counted from."""

    score: float
    findings: list[Finding]
    steps: dict[str, Any]
    goal_parts: dict[str, Any]


def check_completeness(artifacts: Artifacts) -> Completeness:
    """Return the share of required steps that are done, times the share of what was asked that the answer tells."""
    findings = [_step_finding(view) for view in artifacts.steps if view.failed or view.missing]
    required = [view for view in artifacts.steps if not view.superseded]
    failed = [view.step_id for view in required if view.failed]
    missing = [view.step_id for view in required if view.missing]
    done = (len(required) - len(failed) - len(missing)) / len(required) if required else 0.0
    said = _said(artifacts)
    asked, missed = _coverage(artifacts, said)
    findings += [Finding(text) for text in missed]
    told = min(1 - len(missed) / asked, _WITH_A_GAP if missed else 1.0) if said else 0.0
    return Completeness(
        score=round(done * max(told, 0.0), 3),
        findings=findings,
        steps={"required": len(required), "failed": failed, "missing": missing},
        goal_parts={"asked": asked, "missed": len(missed)},
    )


def _step_finding(view: StepView) -> Finding:
    name = f"step {view.step_id!r}"
    if view.failed:
        why = f": {view.failures[0]}" if view.failures else ""
        return Finding(f"{name} failed{why}", code="failed_step")
    if view.step.status == "complete":
        return Finding(f"{name} is complete, but its output is missing", code="missing_step", flag="step")
    return Finding(f"{name} was not done: it is {view.step.status}", code="missing_step")


def _said(artifacts: Artifacts) -> str:
    """Return what of the answer says something: without the sentences that put off or give up."""
    kept = [line for line in sentences(artifacts.answer) if not evasive(line) or _is_a_finding(line, artifacts)]
    return "\n".join(kept)


def _is_a_finding(line: str, artifacts: Artifacts) -> bool:
    """Return whether a sentence that sounds evasive tells what an output says: that something is not there."""
    stems = content_stems(line)
    return any(_denies(fact) and _about_the_same(fact, stems) for facts in artifacts.facts.values() for fact in facts)


def _denies(fact: Fact) -> bool:
    return not fact.value if isinstance(fact.value, (bool, int, float)) else denied(fact.value) or evasive(fact.value)


def _about_the_same(fact: Fact, stems: frozenset[str]) -> bool:
    if isinstance(fact.value, str):
        return not evasive(fact.value) and len(content_stems(fact.value) & stems) >= 2
    return bool(fact.about & stems)


def _coverage(artifacts: Artifacts, said: str) -> tuple[int, list[str]]:
    """Return how many things were asked for, and what is said of each that the answer leaves out."""
    if not artifacts.answer:
        return 1, ["there is no answer"]
    if any(gives_up(line) for line in sentences(artifacts.answer)):
        return 1, ["the answer says itself that the task was not done"]
    if not said:
        return 1, ["the answer puts off or gives up in place of answering"]
    if (empty := says_nothing_new(artifacts, said)) is not None:
        return 1, [empty]
    told = Told(said, () if asks_for_a_choice(artifacts.goal) else artifacts.asked)
    parts = goal_parts(artifacts.goal)
    missed = [
        f"the answer leaves out a part of the goal: {part.text!r}"
        for part in parts
        if not _addressed(part, artifacts, told, alone=len(parts) == 1)
    ]
    counts = asked_counts(artifacts.goal)
    items = counted_items(said) if counts else None
    if len(counts) == 1 and items is not None and items < counts[0][0]:
        missed.append(f"the goal asks for {counts[0][0]} {counts[0][1]}, the answer lists {items}")
    missed += left_out(artifacts, told)
    owed = [step_id for step_id in sorted(artifacts.final_ids) if _to_be_told(artifacts.facts[step_id])]
    missed += [
        f"the answer does not tell the result of step {step_id!r}"
        for step_id in owed
        if not told.any_of(artifacts.facts[step_id])
    ]
    return max(len(parts) + len(counts) + len(owed), 1), missed


def _to_be_told(facts: tuple[Fact, ...]) -> bool:
    """Return whether an output is a bare value or a text, so that an answer without it tells nothing of it."""
    return any(not fact.about and not isinstance(fact.value, bool) for fact in facts)


def _addressed(part: Part, artifacts: Artifacts, told: Told, *, alone: bool) -> bool:
    """Return whether the answer speaks of a part, tells a value that goes by its name, or a step has seen to it."""
    wanted = part.stems if alone else part.heads
    common = part.stems & told.stems
    if len(wanted & told.stems) >= TOLD_SHARE * len(wanted) or len(common) >= max(2, TOLD_SHARE * len(part.stems)):
        return True
    least = _SERVED_SHARE * len(wanted)
    asked = [fact for about, facts in artifacts.by_about.items() if len(wanted & about) >= least for fact in facts]
    if asked:
        return told.any_of(asked)
    serving = _serving(part, artifacts, alone=alone)
    if not serving:
        return told.specifics_of(fact for step_id in artifacts.final_ids for fact in artifacts.facts[step_id])
    return any(
        step_id not in artifacts.final_ids
        or not _to_be_told(artifacts.facts[step_id])
        or _tells_added(step_id, artifacts, told)
        for step_id in serving
    )


def _tells_added(step_id: str, artifacts: Artifacts, told: Told) -> bool:
    """Return whether the answer tells a number that a step was the first to give; a fact where none of them is new."""
    facts, before = artifacts.facts[step_id], artifacts.numbers_before
    given = [fact.quantities for fact in facts if fact.quantities] if before.all else []
    new = [added for numbers in given if (added := [each for each in numbers if not before.has(each)])]
    return any(map(told.one_of, new)) if new else told.any_of(facts)


def _serving(part: Part, artifacts: Artifacts, *, alone: bool) -> list[str]:
    """Return the steps that are there for a part: of what it wants, of its numbers, or all there is."""
    described = artifacts.described
    for wanted in (part.heads, part.stems):
        least = _SERVED_SHARE * len(wanted)
        found = [step_id for step_id, stems in described.items() if len(wanted & stems) >= least]
        if found:
            return found
    if part.preparing and (found := [step_id for step_id, stems in described.items() if part.stems & stems]):
        return found
    found = [step_id for step_id, view in artifacts.sources.items() if _takes_numbers(view, part)]
    return found or (sorted(artifacts.final_ids) if alone else [])


def _takes_numbers(view: StepView, part: Part) -> bool:
    numbers = quantities(part.text)
    if len(numbers) < 2:
        return False
    given = quantities(view.step.description)
    return sum(any(number.same(other) for other in given) for number in numbers) >= 2
