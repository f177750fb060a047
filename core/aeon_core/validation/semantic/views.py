"""The plan and the tools as the rules see them: every text taken apart once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aeon_core.plan.models import Plan, PlanStep
from aeon_core.validation.semantic.circles import circles
from aeon_core.validation.semantic.lazy import lazy
from aeon_core.validation.semantic.lexicon import ACTIONS, FUNCTION_WORDS
from aeon_core.validation.semantic.phrase import Phrase, phrase, phrase_words
from aeon_core.validation.semantic.stems import stem, words

if TYPE_CHECKING:
    from aeon_core.tools.base import Tool
    from aeon_core.tools.registry import ToolRegistry

_OPEN_PROPERTIES = words(
    "command cmd code script query sql expression prompt instruction instructions program statement"
)
_MAX_VALUES = 200


class ToolView:
    """A registered tool: the words of its name, its description and its schema."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        schema = tool.input_schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        self.properties: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
        self.name_words = [word for word in phrase_words(tool.name) if word not in FUNCTION_WORDS]
        self.name_stems = frozenset(map(stem, self.name_words))
        said = phrase(tool.description)
        self.choices = {
            name: [value for value in values if isinstance(value, str)]
            for name, values in ((name, _choices(described)) for name, described in self.properties.items())
            if values
        }
        offered = [word for values in self.choices.values() for value in values for word in phrase_words(value)]
        self.property_stems = frozenset(stem(word) for name in self.properties for word in phrase_words(name))
        self.stems = self.name_stems | said.stems | self.property_stems | frozenset(map(stem, offered))
        claimed = [self.name_stems, said.stems, map(stem, offered)]
        actions = frozenset(action for stems in claimed for word in stems for action in ACTIONS.get(word, ()))
        # Nearly every tool says that it returns something.
        self.actions = actions - {"output"} if len(actions) > 1 else actions

    @lazy
    def open_ended(self) -> bool:
        """Return whether what a call does stands in its arguments: a shell, an interpreter, a query language."""
        return not _OPEN_PROPERTIES.isdisjoint(name.lower() for name in self.properties)


def _choices(described: Any) -> list[Any]:
    if not isinstance(described, dict):
        return []
    values = described.get("enum")
    return values if isinstance(values, list) else []


@dataclass(eq=False)
class StepView:
    """A step: its description taken apart, its tool, and the values among its arguments."""

    step: PlanStep
    number: int
    """Its place among all steps, from 1."""
    said: Phrase
    tool: ToolView | None

    @property
    def step_id(self) -> str:
        return self.step.step_id

    @lazy
    def verb_stem(self) -> str | None:
        """Return the stem of the verb the description begins with."""
        return self.said.verb_stem

    @lazy
    def actions(self) -> frozenset[str]:
        """Return the kinds of action that the first verb may stand for."""
        return ACTIONS.get(self.verb_stem or "", frozenset())

    @lazy
    def objects(self) -> frozenset[str]:
        """Return the stems of what the step is about: no verb at its start, no word that stands for anything."""
        return self.said.objects

    @lazy
    def object_order(self) -> tuple[str, ...]:
        """Return the same in the order of the description."""
        return self.said.object_order

    @lazy
    def values(self) -> list[Any]:
        """Return the scalars among the arguments, at any depth."""
        return list(_scalars(self.step.arguments)) if self.step.arguments else []

    @lazy
    def texts(self) -> list[str]:
        """Return the non-empty strings among the arguments."""
        return [value for value in self.values if isinstance(value, str) and value.strip()]

    @lazy
    def argument_stems(self) -> frozenset[str]:
        """Return the stems of the words in the arguments."""
        if not self.texts:
            return frozenset()
        return frozenset(word for text in self.texts for word in phrase(text[:300]).stems)


def _scalars(value: Any) -> Iterator[Any]:
    stack, left = [value], _MAX_VALUES
    while stack and left:
        item = stack.pop()
        left -= 1
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        else:
            yield item


class PlanView:
    """A plan with its tools. `places` gives each step's place in the order in which steps end."""

    def __init__(self, plan: Plan, registry: ToolRegistry, tools: Mapping[str, ToolView], task: str | None) -> None:
        self.plan = plan
        self.registry = registry
        self.tools = tools
        self.goal = phrase(plan.goal if task is None or task == plan.goal else f"{plan.goal}. {task}")
        self.steps = [
            StepView(step, number, phrase(step.description), tools.get(step.tool) if step.tool is not None else None)
            for number, step in enumerate(plan.walk(), 1)
        ]
        self.by_id = {view.step_id: view for view in self.steps}
        self.places = {step_id: place for place, step_id in enumerate(_ending_order(plan.steps))}

    @lazy
    def circles(self) -> list[list[str]]:
        """Return one circle of dependencies for each group of steps that depend on each other, in the plan's order."""
        needs = {view.step_id: [n for n in view.step.depends_on or () if n in self.by_id] for view in self.steps}
        places = self.places
        if all(places[needed] < places[step_id] for step_id, known in needs.items() for needed in known):
            return []
        return circles(needs)

    @lazy
    def ending_order(self) -> list[str]:
        """Return the ids of the steps in the order in which they end."""
        return list(self.places)

    @lazy
    def pending(self) -> list[StepView]:
        """Return the steps whose definition can still change."""
        return [view for view in self.steps if not view.step.executed]


def _ending_order(steps: list[PlanStep]) -> Iterator[str]:
    stack = [(step, False) for step in reversed(steps)]
    while stack:
        step, left = stack.pop()
        if left or step.subplan is None:
            yield step.step_id
        else:
            stack.append((step, True))
            stack.extend((inner, False) for inner in reversed(step.subplan.substeps))


def tool_views(registry: ToolRegistry) -> dict[str, ToolView]:
    """Return a view of every registered tool by name."""
    return {tool.name: ToolView(tool) for tool in registry.list()}
