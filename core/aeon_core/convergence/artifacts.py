"""The artifacts of a run, as the checks read them: steps, outputs as single facts, answer and memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from aeon_core.convergence.numbers import Numbers
from aeon_core.convergence.quantities import Quantity, of_value, quantities
from aeon_core.convergence.words import content_stems, frame, sentences, specific
from aeon_core.plan.models import Plan, PlanStep

MAX_FACTS = 400
"""How many facts of one output are looked at; a table of a million rows is not gone through."""
MAX_CHARACTERS = 20_000
"""How much of one text is read."""
_COUNTABLE_BITS = 1000
"""A longer integer is no float: it is read as the text of its digits."""
_LONG = 10
"""Words from which a text is read sentence by sentence, and no longer is a value."""


def countable(value: Any) -> bool:
    """Return whether a value is a number that can be compared with others."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, float) or value.bit_length() <= _COUNTABLE_BITS


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of an output: a number, a truth value, a short text, or one sentence of a long one.

    `about` are the stems of its keys; `subject` those of the short texts that stand beside it.
    """

    source: str
    value: bool | float | str
    about: frozenset[str]
    subject: frozenset[str]
    quantities: tuple[Quantity, ...] = ()
    sentence: bool = False

    @property
    def text(self) -> str:
        """The value as a person would read it."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, slots=True)
class StepView:
    """One step with what became of it. `superseded` is set where it is invalid and another step stands in for it."""

    step: PlanStep
    output: Any
    failures: tuple[str, ...]
    superseded: bool

    @property
    def step_id(self) -> str:
        """The step's id."""
        return self.step.step_id

    @property
    def is_parent(self) -> bool:
        """Whether its work is done by the steps of its subplan."""
        return self.step.subplan is not None

    @property
    def missing(self) -> bool:
        """Whether its result is not there: it was not run, was invalidated for nothing, or left no output."""
        if self.superseded or self.failed:
            return False
        return self.step.status != "complete" or (self.output is None and not self.is_parent)

    @property
    def failed(self) -> bool:
        """Whether it failed, by its status or by what is recorded of it."""
        return not self.superseded and (self.step.status == "failed" or bool(self.failures))


@dataclass(frozen=True)
class Artifacts:
    """Everything that an assessment looks at."""

    goal: str
    plan: Plan
    steps: tuple[StepView, ...]
    results: Mapping[str, Any]
    answer: str
    memory: Mapping[str, Any]
    failures: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The texts that ask for something: the goal, the plan's goal, the steps' descriptions."""
        return tuple(dict.fromkeys((self.goal, self.plan.goal, *(view.step.description for view in self.steps))))

    @cached_property
    def by_id(self) -> dict[str, StepView]:
        """The steps by their id."""
        return {view.step_id: view for view in self.steps}

    @cached_property
    def sources(self) -> dict[str, StepView]:
        """The steps whose output counts: complete, neither superseded nor the parent of those that did the work."""
        return {
            view.step_id: view
            for view in self.steps
            if view.step.status == "complete" and view.output is not None and not view.is_parent
        }

    @cached_property
    def facts(self) -> dict[str, tuple[Fact, ...]]:
        """The facts in each output that counts."""
        return {step_id: tuple(facts_of(step_id, view.output)) for step_id, view in self.sources.items()}

    @cached_property
    def by_about(self) -> dict[frozenset[str], list[Fact]]:
        """The same facts by the stems of their keys."""
        found: dict[frozenset[str], list[Fact]] = defaultdict(list)
        for facts in self.facts.values():
            for fact in facts:
                found[fact.about].append(fact)
        return found

    @cached_property
    def described(self) -> dict[str, frozenset[str]]:
        """The stems of the description of each step whose output counts."""
        return {step_id: content_stems(view.step.description) for step_id, view in self.sources.items()}

    @cached_property
    def numbers_before(self) -> Numbers:
        """The numbers in outputs that other steps build on."""
        before = (facts for step_id, facts in self.facts.items() if step_id not in self.final_ids)
        return Numbers(number for facts in before for fact in facts for number in fact.quantities)

    @cached_property
    def memory_facts(self) -> tuple[Fact, ...]:
        """The facts in memory that are no step's output."""
        return tuple(
            fact
            for key in sorted(self.memory)
            if key not in self.by_id
            for fact in facts_of(key, {key: self.memory[key]})
        )

    @cached_property
    def final_ids(self) -> frozenset[str]:
        """The steps whose output no other step builds on; without dependencies in the plan, the last one."""
        used = {needed for view in self.sources.values() for needed in view.step.depends_on or ()}
        if not used:
            return frozenset(list(self.sources)[-1:])
        return frozenset(step_id for step_id in self.sources if step_id not in used)

    @cached_property
    def told_apart(self) -> dict[str, frozenset[str]]:
        """The words in the description of a step that steps with values under the same keys do not have in theirs."""
        alike: dict[frozenset[frozenset[str]], list[str]] = defaultdict(list)
        for step_id, facts in self.facts.items():
            keys = frozenset(fact.about for fact in facts if fact.quantities and not fact.sentence)
            if keys and all(not fact.sentence for fact in facts):
                alike[keys].append(step_id)
        found: dict[str, frozenset[str]] = {}
        for steps in alike.values():
            words = {step_id: frame(self.sources[step_id].step.description) for step_id in steps}
            shared = frozenset.intersection(*words.values())
            if len(steps) > 1:
                found |= {step_id: stems - shared for step_id, stems in words.items()}
        return found

    @cached_property
    def known(self) -> tuple[Quantity, ...]:
        """Every number that the answer may rest on: of the outputs, the goal, the plan and the memory; some twice."""
        texts = [self.goal, self.plan.goal, *(view.step.description for view in self.steps)]
        found = [quantity for text in texts for quantity in quantities(text)]
        for view in self.steps:
            given = facts_of("", view.step.arguments) if view.step.arguments else ()
            found += [quantity for fact in given for quantity in fact.quantities]
        for facts in (*self.facts.values(), self.memory_facts):
            found += [quantity for fact in facts for quantity in fact.quantities]
        for view in self.sources.values():
            found += [of_value(length) for length in _lengths(view.output)]
        return tuple(found)


def gather(
    *,
    goal: str,
    plan: Plan,
    results: Mapping[str, Any],
    answer: str | None,
    memory: Mapping[str, Any],
    failures: Mapping[str, Sequence[str]],
) -> Artifacts:
    """Return the artifacts of a run."""
    steps = list(plan.walk())
    replaced = {step.replaces for step in steps if step.replaces is not None}
    views = tuple(
        StepView(
            step,
            results.get(step.step_id),
            tuple(failures.get(step.step_id, ())),
            step.status == "invalid" and step.step_id in replaced,
        )
        for step in steps
    )
    return Artifacts(goal, plan, views, results, (answer or "").strip(), memory, failures)


def facts_of(source: str, output: Any) -> Iterator[Fact]:
    """Yield the facts of one output, in an order that does not depend on that of its keys."""
    left = MAX_FACTS
    for value, keys, subject in _leaves(output, (), frozenset()):
        key = " ".join(keys)
        for fact in _read(source, value, key, subject):
            if left == 0:
                return
            left -= 1
            yield fact


def _read(source: str, value: Any, key: str, subject: frozenset[str]) -> Iterator[Fact]:
    about = specific(content_stems(key))
    if isinstance(value, bool):
        yield Fact(source, value, about, subject)
    elif isinstance(value, (int, float)):
        yield Fact(source, value, about, subject, (of_value(value, key),))
    else:
        yield from _said(source, value, about, subject)


@lru_cache(maxsize=4096)
def _said(source: str, text: str, about: frozenset[str], subject: frozenset[str]) -> tuple[Fact, ...]:
    """Return a text as a fact, or each of its sentences where it is a long one."""
    lines = sentences(text)
    if len(lines) == 1 and len(text.split()) < _LONG:
        return (Fact(source, text, about, subject, quantities(text)),)
    return tuple(Fact(source, line, about, subject, quantities(line), sentence=True) for line in lines)


def _leaves(
    value: Any, keys: tuple[str, ...], subject: frozenset[str]
) -> Iterator[tuple[Any, list[str], frozenset[str]]]:
    if isinstance(value, str):
        if text := value[:MAX_CHARACTERS].strip():
            yield text, list(keys), subject
    elif isinstance(value, (dict, Mapping)):
        texts = {key: content_stems(text) for key, text in value.items() if isinstance(text, str) and len(text) < 60}
        for key in sorted(value, key=str) if len(value) > 1 else value:
            beside = frozenset().union(subject, *(stems for other, stems in texts.items() if other != key))
            yield from _leaves(value[key], (*keys, str(key)), beside)
    elif isinstance(value, (list, tuple)):
        for item in value[:MAX_FACTS]:
            yield from _leaves(item, keys, subject)
    elif isinstance(value, int) and value.bit_length() > _COUNTABLE_BITS:
        yield str(value), list(keys), subject
    elif value is not None:
        yield value, list(keys), subject


def _lengths(value: Any) -> Iterator[int]:
    if isinstance(value, str):
        return
    if isinstance(value, (dict, Mapping)):
        for item in value.values():
            yield from _lengths(item)
    elif isinstance(value, (list, tuple)):
        yield len(value)
        for item in value[:MAX_FACTS]:
            yield from _lengths(item)
