"""Why the repair of a plan is refused: it may correct, but add no tools, steps or meaning (core FR-031, FR-032)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aeon_core.plan.fields import shown
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.supervisor.coercion import equal
from aeon_core.supervisor.evidence import Evidence, acts_otherwise
from aeon_core.supervisor.guard import call_refusal
from aeon_core.supervisor.lenient import (
    Stated,
    as_json,
    as_text,
    goal_in,
    scalars,
    stated_arguments,
    step_id_in,
    steps_in,
    tool_in,
)
from aeon_core.supervisor.words import Clauses, Words, name_words, place_of, tokens, unescaped

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry

_PLAN_KEYS = frozenset({"goal", "steps"})
_STEP_KEYS = frozenset({"step_id", "id", "parent", "tool", "agent", "status", "arguments", "arguments_json", "errors"})
_STEP_KEYS |= {"depends_on", "subplan", "replaces"}
_MARK = re.compile(r"[\"'{}\[\]\n]")
_WORD = re.compile(r"\w*")
_REST = re.compile(r"[\s\"'}\],]*(?:\Z|[\w-]+[\"']?\s*:|[\[{])")


def plan_refusal(
    original: Any, text: str, repaired: Plan, registry: ToolRegistry, *, certain: bool, task: str = ""
) -> str | None:
    """Return why the repair of a plan is refused.

    `original` is what could be read of the reply `text`: with certainty, or leniently. Goal, count, ids, order,
    parents, descriptions, registered tools and arguments stay as far as they were read. A goal or description that is
    missing is made of words of the reply, the goal of words of the `task` too; steps of prose are its clauses. The
    step in which a reply breaks off is kept as far as it goes, and ended with what reply and task say.
    """
    check = _PlanCheck(text, registry, certain, task)
    goal = goal_in(original)
    if goal is not None:
        if not check.says_the_same(goal, repaired.goal):
            return f"the goal was changed to {shown(repaired.goal)}; a repair keeps {shown(goal)}"
    elif not Words([*(_texts(original, _PLAN_KEYS) or [text]), task]).tell(repaired.goal, prose=True):
        return f"the goal {shown(repaired.goal)} is made of words that neither the original nor the task holds"
    given, steps = steps_in(original), list(repaired.walk())
    if given is None:
        return next(filter(None, (check.of_prose(step) for step in steps)), None)
    if len(given) != len(steps):
        return f"the plan has {len(steps)} steps, the original {len(given)}; a repair adds and drops none"
    parents = _parents(repaired)
    broken_off = steps[-1] if not certain and _breaks_off(text) else None
    for was, now in zip(given, steps, strict=True):
        reason = check.step(was.fields, now) or _parent_refusal(was, now, parents)
        if reason and not (now is broken_off and check.ends(was.fields, now)):
            return reason
    return None


def _breaks_off(text: str) -> bool:
    return not text.rstrip("` \n\t\r").endswith(("}", "]"))


def _texts(value: Any, known: frozenset[str]) -> list[str]:
    """Return what an object says in keys that nothing else is read from."""
    listed = value.items() if isinstance(value, dict) else ()
    return [item for key, item in listed if key not in known and isinstance(item, str) and item.strip()]


def _parents(plan: Plan) -> dict[str, int]:
    """Return, of each step that has a parent, the place of that parent in the walk."""
    places = {step.step_id: place for place, step in enumerate(plan.walk())}
    parents = {}
    for step in plan.walk():
        for child in step.subplan.substeps if step.subplan is not None else ():
            parents[child.step_id] = places[step.step_id]
    return parents


def _parent_refusal(was: Stated, now: PlanStep, parents: dict[str, int]) -> str | None:
    if not was.certain or parents.get(now.step_id) == was.parent:
        return None
    return f"the parent of step {now.step_id!r} was changed; a repair keeps it"


class _PlanCheck:
    """Compares the steps of a repaired plan with the original ones, in order."""

    def __init__(self, text: str, registry: ToolRegistry, certain: bool, task: str) -> None:
        self._text = text
        self._task = task
        self._tokens = [tokens(text), tokens(unescaped(text))]
        self._clauses = Clauses(text)
        self._registry = registry
        self._certain = certain
        self._ids: set[str] = set()

    def says_the_same(self, was: str, now: str) -> bool:
        """Return whether a text was kept; where the original was read leniently, up to misplaced quotes."""
        if as_text(was).removesuffix(".") == as_text(now).removesuffix("."):
            return True
        if self._certain:
            return False
        after = tokens(now)
        if not any(place_of(after, reading) is not None for reading in self._tokens):
            return False
        before = tokens(was)
        if after[: len(before)] == before and (before or not was.strip()):
            return True
        cuts = [mark.start() for mark in _MARK.finditer(was)]
        return any(tokens(was[:cut]) == after for cut in cuts if _REST.match(was, cut))

    def of_prose(self, step: PlanStep) -> str | None:
        """Return why a step made of plain text is refused."""
        if not self._clauses.take(step.description):
            return f"the description of step {step.step_id!r} is no clause of the original"
        if step.arguments:
            return f"step {step.step_id!r} got arguments; a repair takes none out of prose"
        return self._tool(step.step_id, {}, step)

    def step(self, was: dict[str, Any], now: PlanStep) -> str | None:
        """Return why a step is refused that stands where `was` stood."""
        if not self._certain:
            was = _hoisted(was, now)
        return self._id(was, now) or self._description(was, now) or self._work(was, now)

    def ends(self, was: dict[str, Any], now: PlanStep) -> bool:
        """Return whether a step that the reply broke off in goes on as it began, with words of reply and task."""
        given = was.get("description")
        began = [(step_id_in(was), now.step_id), (tool_in(was.get("tool")), now.tool)]
        began.append((given if isinstance(given, str) else None, now.description))
        if not all(said is None or (whole or "").startswith(said.strip()) for said, whole in began):
            return False
        said = given.strip() if isinstance(given, str) else ""
        broken_word = _WORD.match(now.description, len(said)) if said else None
        whole_words = now.description[: broken_word.end()] if broken_word is not None else said
        if not Words([self._text, self._task, whole_words]).tell(now.description, prose=True):
            return False
        if now.tool is None:
            return not now.arguments
        if self._registry.get(now.tool) is None or acts_otherwise(now.tool, now.description, self._text):
            return False
        return self._end_of_arguments(_arguments(was), now.arguments or {}, now.tool, now.description)

    def _end_of_arguments(self, given: Any, now: dict[str, Any], tool: str, description: str) -> bool:
        said = list(given.items()) if isinstance(given, dict) else []
        for place, (key, value) in enumerate(said):
            if key in now and (equal(value, now[key]) or (place == len(said) - 1 and _begins(value, now[key]))):
                continue
            if place < len(said) - 1 or value or not any(name.startswith(key) for name in now):
                return False
        return not now or not call_refusal(
            None, now, tool, self._registry, Evidence(description, self._task, self._text)
        )

    def _id(self, was: dict[str, Any], now: PlanStep) -> str | None:
        step_id = step_id_in(was)
        if step_id is None or step_id in self._ids:
            return None
        self._ids.add(step_id)
        if step_id == as_text(now.step_id):
            return None
        return f"the id {shown(step_id)} was changed to {shown(now.step_id)}; a repair keeps ids and their order"

    def _description(self, was: dict[str, Any], now: PlanStep) -> str | None:
        given = was.get("description")
        if given is not None and not isinstance(given, (dict, list)) and as_text(given):
            if self.says_the_same(as_text(given) if self._certain else str(given), now.description):
                return None
            return f"the description of step {now.step_id!r} was changed; a repair keeps it"
        own = _texts(was, _STEP_KEYS)
        if own:
            own += [" ".join(name_words(str(was.get("tool")))), json.dumps(_arguments(was), ensure_ascii=False)]
        if Words(own or [self._text]).tell(now.description, prose=True):
            return None
        return f"the description of step {now.step_id!r} cannot be read and was made up"

    def _work(self, was: dict[str, Any], now: PlanStep) -> str | None:
        if as_text(was.get("agent")).casefold() == "llm" and now.agent != "llm":
            return f"the agent of step {now.step_id!r} was removed; a repair keeps it"
        needed = was.get("depends_on")
        readable = isinstance(needed, list) and all(isinstance(item, (str, int)) for item in needed)
        if readable and list(map(as_text, needed or ())) != list(map(as_text, now.depends_on or ())):
            return f"depends_on of step {now.step_id!r} was changed; a repair keeps it"
        return self._tool(now.step_id, was, now) or self._arguments(was, now)

    def _tool(self, step_id: str, was: dict[str, Any], now: PlanStep) -> str | None:
        given = tool_in(was.get("tool"))
        if now.tool == given:
            return None
        tool = now.tool or ""
        registered = self._registry.get(tool) is not None
        if given and self._registry.get(given) is not None:
            return f"the tool of step {step_id!r} was changed; a repair keeps {shown(given)}"
        if given:
            return None if registered else f"step {step_id!r} got {shown(now.tool)}, which is no registered tool"
        if not tool:
            return None
        named = any(tool == scalar for scalar in scalars(was))
        if registered and (named or (not self._certain and "tool" not in was and Words([self._text]).literally(tool))):
            return None
        return f"step {step_id!r} got the tool {shown(now.tool)}, which the original does not name"

    def _arguments(self, was: dict[str, Any], now: PlanStep) -> str | None:
        given = _arguments(was)
        if now.arguments is None:
            return f"the arguments of step {now.step_id!r} were dropped" if given else None
        if isinstance(given, dict) and given:
            if self._same_arguments(given, was, now.arguments):
                return None
            return f"the arguments of step {now.step_id!r} were changed; a repair keeps what is there"
        return self._arguments_out_of(given, was, now, now.arguments)

    def _same_arguments(self, given: dict[str, Any], was: dict[str, Any], now: dict[str, Any]) -> bool:
        if self._certain:
            return equal(given, now)
        # Where a bracket is missing or too many, keys of the arguments and of the step are read as one another's.
        expected = {**given, **{key: was[key] for key in now if key not in given and key in was}}
        return expected.keys() == now.keys() and all(self._same_value(expected[key], now[key]) for key in now)

    def _same_value(self, was: Any, now: Any) -> bool:
        if isinstance(was, dict) and isinstance(now, dict):
            return was.keys() == now.keys() and all(self._same_value(was[key], now[key]) for key in now)
        if isinstance(was, list) and isinstance(now, list):
            return len(was) == len(now) and all(map(self._same_value, was, now))
        if isinstance(was, str) and isinstance(now, str):
            return self.says_the_same(was, now)
        return equal(was, now) or (isinstance(was, str) and bool(was) and tokens(was) == tokens(json.dumps(now)))

    def _arguments_out_of(
        self, given: Any, was: dict[str, Any], now: PlanStep, arguments: dict[str, Any]
    ) -> str | None:
        """Return why arguments are refused where the original gives none that can be read as an object."""
        if not arguments:
            return None
        spread = {key: was[key] for key in arguments if key in was}
        if spread.keys() == arguments.keys() and equal(spread, arguments):
            return None
        made_up = f"the arguments of step {now.step_id!r} were made up; a repair keeps what is there"
        if now.tool is None or self._registry.get(now.tool) is None:
            return made_up
        own = "\n".join(as_text(item) for item in scalars(was))
        texts = [given] if isinstance(given, str) else [json.dumps(given)] if given else []
        evidence = Evidence(texts[0] if texts else now.description, "" if texts else own)
        return made_up if call_refusal(None, arguments, now.tool, self._registry, evidence) else None


def _begins(part: Any, whole: Any) -> bool:
    return not isinstance(part, (dict, list)) and as_text(whole).startswith(as_text(part))


def _arguments(step: dict[str, Any]) -> Any:
    return as_json(stated_arguments(step))


def _hoisted(was: dict[str, Any], now: PlanStep) -> dict[str, Any]:
    """Return a step with those of its keys that a missing bracket left among its arguments."""
    given = was.get("arguments")
    if not isinstance(given, dict) or now.arguments is None:
        return was
    known = _STEP_KEYS | {"description"}
    strays = {key: item for key, item in given.items() if key in known and key not in now.arguments and key not in was}
    return {**was, **strays, "arguments": {key: item for key, item in given.items() if key not in strays}}
