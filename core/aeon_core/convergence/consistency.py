"""Whether plan, steps and memory fit together (adaptive FR-020; what the answer says is checked in `claims`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from aeon_core.convergence.artifacts import Artifacts, facts_of
from aeon_core.convergence.finding import CONTRADICTION, SERIOUS, Finding
from aeon_core.convergence.outputs import differ
from aeon_core.convergence.quantities import quantities
from aeon_core.convergence.words import content_stems


def check_consistency(artifacts: Artifacts, tools: Collection[str] | None) -> list[Finding]:
    """Return where the artifacts do not fit together. `tools` are the registered names, None where not known."""
    return [
        *_unplanned(artifacts),
        *_other_goal(artifacts),
        *_dependencies(artifacts),
        *_statuses(artifacts),
        *_unknown_tools(artifacts, tools),
        *_memory_of_steps(artifacts),
        *_memory_of_facts(artifacts),
    ]


def _unplanned(artifacts: Artifacts) -> Iterator[Finding]:
    for step_id in sorted({*artifacts.results, *artifacts.failures} - artifacts.by_id.keys()):
        yield Finding(f"there is a result of step {step_id!r}, which the plan does not have", flag="plan")


def _other_goal(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where the plan has nothing in common with the goal, in no word and no number: it serves another one."""
    asked, planned = content_stems(artifacts.goal), content_stems(artifacts.plan.goal)
    if len(asked) < 2 or not planned or asked & planned:
        return
    described = [view.step.description for view in artifacts.steps]
    if any(asked & content_stems(text) for text in described):
        return
    numbers = [number for text in (artifacts.plan.goal, *described) for number in quantities(text)]
    if not any(number.same(other) for number in quantities(artifacts.goal) for other in numbers):
        yield Finding("the plan has nothing in common with the goal", flag="plan", weight=SERIOUS)


def _dependencies(artifacts: Artifacts) -> Iterator[Finding]:
    place = {view.step_id: number for number, view in enumerate(artifacts.steps)}
    for view in artifacts.steps:
        for needed in view.step.depends_on or ():
            name = f"step {view.step_id!r} builds on {needed!r}"
            other = artifacts.by_id.get(needed)
            if other is None:
                yield Finding(f"{name}, which the plan does not have", flag="plan")
            elif place[needed] >= place[view.step_id]:
                yield Finding(f"{name}, which does not come before it", flag="plan")
            elif view.step.status == "complete" and (other.failed or other.missing):
                yield Finding(f"{name}, which has no result, and yet is complete", flag="step")


def _statuses(artifacts: Artifacts) -> Iterator[Finding]:
    for view in artifacts.steps:
        status = view.step.status
        if status in ("pending", "running") and view.output is not None:
            yield Finding(f"step {view.step_id!r} is {status}, but has an output", flag="step")
        if status == "complete" and view.failures:
            yield Finding(f"step {view.step_id!r} is complete, but errors are recorded for it", flag="step")


def _unknown_tools(artifacts: Artifacts, tools: Collection[str] | None) -> Iterator[Finding]:
    for view in artifacts.steps:
        tool = view.step.tool
        if tools is not None and tool is not None and tool not in tools and not view.superseded:
            description = f"step {view.step_id!r} names the tool {tool!r}, which is not registered"
            yield Finding(description, code="hallucinated_tool", flag="plan", weight=SERIOUS)


def _memory_of_steps(artifacts: Artifacts) -> Iterator[Finding]:
    for step_id, view in artifacts.sources.items():
        if step_id in artifacts.memory and artifacts.memory[step_id] not in _forms(view.output):
            yield Finding(
                f"memory holds another value for step {step_id!r} than the step gave",
                flag="memory",
                weight=CONTRADICTION,
            )


def _forms(output: Any) -> list[Any]:
    """Return an output as it may be kept: as it is, or out of the object that a single value is wrapped in."""
    single = isinstance(output, dict) and len(output) == 1
    return [output, {"result": output}, {"text": output}, *(output.values() if single else ())]


def _memory_of_facts(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield entries of memory that another value stands against: in an output under the same key, or in the answer."""
    outputs = [fact for facts in artifacts.facts.values() for fact in facts if fact.about and not fact.sentence]
    for kept in artifacts.memory_facts:
        if not kept.about or kept.sentence:
            continue
        same = [fact for fact in outputs if fact.about == kept.about]
        if same and all(differ(kept, fact) for fact in same):
            gave = f"step {same[0].source!r} gave {same[0].text[:60]!r}"
            yield Finding(
                f"memory has {kept.text[:60]!r} for {kept.source!r}, {gave}",
                flag="memory",
                weight=CONTRADICTION,
            )
        elif not same and _answered_otherwise(kept.about, kept.quantities, artifacts.answer):
            yield Finding(
                f"memory has {kept.text[:60]!r} for {kept.source!r}, the answer says otherwise", flag="memory"
            )


def _answered_otherwise(about: frozenset[str], kept: tuple[Any, ...], answer: str) -> bool:
    facts = [fact for fact in facts_of("answer", answer) if about <= content_stems(fact.text) and fact.quantities]
    said = [number for fact in facts for number in fact.quantities]
    if not kept or len(said) != 1:
        return False
    return said[0].kind == kept[0].kind and not said[0].same(kept[0])
