"""What the simulated model says of a task: what it can calculate, else what `behaviours.yml` has for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import resources
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from aeon_core.json_safe import parse_json
from aeon_core.llm.simulated.calculator import (
    TEXT_FUNCTIONS,
    Operation,
    Ref,
    clauses,
    described,
    evaluate,
    flatten,
    name_of,
    parse_arithmetic,
    parse_text_task,
    show_number,
    strip_lead,
)
from aeon_core.llm.simulated.prompt import (
    MAX_GOAL,
    MissingResultError,
    Prompt,
    StepOutcome,
    clip,
    earlier_number,
    number_of,
    text_of,
)
from aeon_core.llm.simulated.tool_use import (
    Arguments,
    Described,
    fitting_tool,
    given_text,
    tool_for_calculation,
    tool_for_text,
    tool_named,
)
from aeon_core.yaml_file import parse_yaml

_MAX_CLAUSES = 12
_MAX_REQUIREMENTS = 8
_MAX_SHOWN = 120
_MAX_TEXT = 8000
_MAX_ANSWER = 1500
_QUOTE = 80
"""Characters of the answer that are quoted as evidence."""
_JUDGE = "simulated judge, a plain rule"
_FIGURE = re.compile(r"-?\d+(?:\.\d+)?")
_WANTED = re.compile(r"[\"“'‘]([^\"”'’]+)[\"”'’]|(?<![\w.])(\d+(?:\.\d+)?)")

WirePlan = dict[str, Any]
Step = dict[str, Any]


class ScriptedStep(BaseModel):
    """A step of a behaviour, as `behaviours.yml` describes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    description: str
    text: str
    issue: str = ""
    repair: str = ""
    answer: str = ""
    reason: str = ""
    instead: tuple[ScriptedStep, ...] = ()


class Behaviour(BaseModel):
    """What the model says of the tasks that begin with a pattern, as `behaviours.yml` describes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    profile: dict[str, str]
    steps: tuple[ScriptedStep, ...]
    questions: tuple[str, ...] = ()

    def step(self, said: str) -> ScriptedStep | None:
        """Return the step with that description, whatever follows it."""
        every = (each for step in self.steps for each in (step, *step.instead))
        return next((each for each in every if said.startswith(each.description.partition("{")[0])), None)


@lru_cache(maxsize=1)
def behaviours() -> tuple[Behaviour, ...]:
    """Return the behaviours of `behaviours.yml`, in its order; the last one fits every task."""
    text = resources.files(__package__).joinpath("behaviours.yml").read_text(encoding="utf-8")
    return tuple(map(Behaviour.model_validate, parse_yaml(text)))


def behaviour_for(task: str) -> Behaviour:
    """Return the first behaviour whose pattern a task begins with."""
    return next(one for one in behaviours() if re.match(one.pattern, task.lstrip(' "'), re.IGNORECASE))


def _filled(text: str, *, task: str = "", step_id: str = "") -> str:
    return text.replace("{step_id}", step_id).replace("{task}", clip(task, _MAX_SHOWN))


def profile(prompt: Prompt) -> dict[str, Any]:
    """Return the profile of a task, what its answer must satisfy, and questions about it."""
    task = prompt.text("task")
    parts = clauses(task)[:_MAX_REQUIREMENTS] or [task]
    behaviour = behaviour_for(task)
    described: dict[str, Any] = dict(behaviour.profile)
    draft = _Draft(prompt.tools)
    if behaviour == behaviours()[-1] and draft.add_all(task):
        calls = sum(step["tool"] is not None for step in draft.steps)
        usage = "none" if not calls else "minimal" if calls <= 2 else "moderate" if calls <= 6 else "extensive"
        described |= {
            "reasoning_depth": "low" if len(draft.steps) <= 2 else "medium",
            "information_sufficiency": "high",
            "expected_tool_usage": usage,
            "raw_inference": "Each part of the task is a calculation, a function of a text or a call of a named tool.",
        }
    return {
        "profile_version": 1,
        "requirements": [f"The answer shows the result of: {clip(part, _MAX_SHOWN)}" for part in parts],
        **described,
        "follow_up_questions": list(behaviour.questions),
    }


def make_plan(task: str, tools: Sequence[Described]) -> WirePlan:
    """Return a flat plan for a task: `goal`, and steps with `id`, `parent`, `description`, `tool`, `agent`, …

    Only listed tools are named, and only with arguments that meet their input_schema; arguments that depend on an
    earlier step's result are left for its `tool_call` cycle.
    """
    behaviour = behaviour_for(task)
    draft = _Draft(tools)
    if behaviour != behaviours()[-1] or not draft.add_all(task):
        draft = _Draft(tools)
        for step in behaviour.steps:
            draft.add(_filled(step.description, task=task), needs=draft.ids[-1:])
    return {"goal": clip(task, MAX_GOAL) or "Answer the request", "steps": draft.steps}


_Call = tuple[Described, Arguments | None]


class _Draft:
    """The steps of a plan so far."""

    def __init__(self, tools: Sequence[Described]) -> None:
        self.tools = tools
        self.steps: list[Step] = []

    @property
    def ids(self) -> list[str]:
        return [step["id"] for step in self.steps]

    def add(self, said: str, found: _Call | None = None, needs: Sequence[str] = ()) -> str:
        """Add a step that runs on a tool, else on the model, and return its id."""
        tool, arguments = found or (None, None)
        step = thought(f"s{len(self.steps) + 1}", said, needs)
        if tool is not None:
            step |= {"tool": tool["name"], "agent": None, "arguments": arguments}
        self.steps.append(step)
        return str(step["id"])

    def add_all(self, task: str) -> bool:
        """Add the steps of all clauses of a task; return whether any of them could be worked out."""
        parts = clauses(task)
        return len(parts) <= _MAX_CLAUSES and sum(self._add_clause(part) for part in parts) > 0

    def _add_clause(self, clause: str) -> bool:
        """Add the steps of a clause; return whether it is more than a thought."""
        if (operation := parse_arithmetic(clause, self.ids)) is not None:
            flatten(operation, self._add_calculation)
            return True
        if (task := parse_text_task(clause, self.ids)) is not None:
            self._add_exact(task.description, tool_for_text(task, self.tools), [task.text])
            return True
        request = strip_lead(clause)
        request = request[:1].upper() + request[1:]
        named = tool_named(request, self.tools)
        usable = named is not None and (named[1] is not None or bool(self.steps))
        self.add(clip(request, MAX_GOAL), named if usable else None, self.ids[-1:])
        return usable

    def _add_calculation(self, operation: Operation) -> str:
        return self._add_exact(described(operation), tool_for_calculation(operation, self.tools), operation.operands)

    def _add_exact(self, said: str, found: _Call | None, used: Sequence[Any]) -> str:
        """Add a step on these values; where they are results, its `tool_call` cycle gives the arguments."""
        needs = [one.step_id for one in used if isinstance(one, Ref)]
        return self.add(said, (found[0], None) if found and needs else found, list(dict.fromkeys(needs)))


def thought(step_id: str, said: str, needs: Sequence[str] | None = (), parent: str | None = None) -> Step:
    """Return a step of reasoning as a plan or a refinement writes it."""
    return {
        "id": step_id,
        "parent": parent,
        "description": said,
        "tool": None,
        "agent": "llm",
        "arguments": None,
        "depends_on": None if needs is None else list(needs),
    }


def reason(prompt: Prompt, *, fallback: bool = False) -> str:
    """Return the result of the step at hand: scripted, calculated, or a sentence that says it is simulated."""
    said, goal = prompt.description, prompt.text("goal") or prompt.text("task")
    scripted = behaviour_for(goal).step(said)
    if scripted is not None:
        return _filled(scripted.text, task=goal)
    try:
        task = parse_text_task(said, prompt.ids)
        if task is not None:
            return TEXT_FUNCTIONS[task.function](given_text(prompt, task))[:_MAX_TEXT]
        operation = parse_arithmetic(said, prompt.ids)
        if operation is not None:
            resolve = partial(earlier_number, prompt)
            return f"The {name_of(operation, resolve)} is {show_number(evaluate(operation, resolve))}."
    except (MissingResultError, ArithmeticError) as error:
        return str(error)
    return f"{'Without a tool, a' if fallback else 'A'} simulated thought: {clip(said, MAX_GOAL) or 'none'}"


def _valid(prompt: Prompt) -> list[StepOutcome]:
    """Return what the steps gave, without those that others replace."""
    invalid = {step["step_id"] for step in prompt.steps if step.get("status") == "invalid"}
    return [result for result in prompt.results if result.step_id not in invalid]


def _last(prompt: Prompt) -> StepOutcome | None:
    """Return the last result of a step that is no substep: a substep's id begins with its parent's."""
    valid = _valid(prompt)
    outer = [result for result in valid if result.step_id.rpartition(".")[0] not in prompt.ids]
    return next(reversed(outer or valid), None)


def _script_of(prompt: Prompt, step_id: str) -> ScriptedStep | None:
    """Return what the script has for the step with that id."""
    step = next((one for one in prompt.steps if one["step_id"] == step_id), {})
    return behaviour_for(prompt.text("task") or prompt.text("goal")).step(str(step.get("description")))


def answer(prompt: Prompt) -> str:
    """Return the answer to the task: the last result first, then which steps failed, and why."""
    valid, last = _valid(prompt), _last(prompt)
    parts = ["There is no result." if last is None or last.failed else _stated(prompt, last)]
    failed = [result for result in valid if result.failed][:5]
    return "\n".join(parts + [f"Step {one.step_id} failed: {clip('; '.join(one.errors), MAX_GOAL)}" for one in failed])


def _stated(prompt: Prompt, last: StepOutcome) -> str:
    """Return the last result as a sentence; a number gets the name of what was asked for."""
    scripted = _script_of(prompt, last.step_id)
    if scripted is not None and scripted.answer:
        return _filled(scripted.answer, step_id=last.step_id)
    text = text_of(last)
    text = text if len(text) <= _MAX_ANSWER else f"{text[:_MAX_ANSWER]}…"
    number = number_of(last)
    if number is None or text != show_number(number):
        return text
    parts = clauses(prompt.text("task"))
    operation = parse_arithmetic(parts[0]) if len(parts) == 1 else None
    return f"The {'result' if operation is None else name_of(operation)} is {text}."


def judgement(prompt: Prompt) -> dict[str, Any]:
    """Return the judgement of a result: by what can be proved, else by the script, else that all is met.

    What can be proved: a step failed, the answer lacks a word or figure that a person's criterion quotes, or it lacks
    the figure of the last step.
    """
    said, last, suspicions = _unwrapped(prompt.text("answer")), _last(prompt), prompt.texts("suspicions")
    # Whole words, unless the first alone is too long.
    quote = (said if len(said) <= _QUOTE else said[:_QUOTE].rpartition(" ")[0] or said[:_QUOTE]) or "no answer"
    check = {"evidence": quote, "ok": True}
    lacking = {n: _lacking(text, said) for n, text in enumerate(prompt.texts("requirements"), 1)}
    found = [_issue("consistency", "answer", why, "Name it in the answer.") for why in lacking.values() if why]
    wanting = [_issue_of(prompt, result) for result in _valid(prompt)]
    undone = any(result.failed for result in _valid(prompt)) or any(wanting)
    figure = text_of(last) if last is not None and not last.failed else ""
    wrong = bool(said and figure and figure not in said and (suspicions or _FIGURE.fullmatch(figure)))
    if wrong:
        doubts = suspicions or ["the answer lacks the figure that the last step gave"]
        found += [_issue("hallucination", "answer", why, "Answer with the figures of the steps.") for why in doubts]
    issues = [issue for issue in wanting if issue is not None] + found
    return {
        "requirements": [
            {"n": n, "evidence": quote, "met": "no" if why or undone else "yes"} for n, why in lacking.items()
        ],
        "coherent": check,
        "consistent": {"plan": check, "step": check, "answer": {**check, "ok": not wrong}, "memory": check},
        "suspicions": [{"n": n, "evidence": quote, "stands": wrong} for n in range(1, len(suspicions) + 1)],
        "issues": [{"issue_id": f"j{number}", **issue} for number, issue in enumerate(issues, 1)],
    }


def _lacking(requirement: str, said: str) -> str:
    """Return what of a person's criterion, `name: description`, the answer does not show of what it quotes."""
    name, colon, rest = requirement.partition(": ")
    wanted = map("".join, _WANTED.findall(rest if colon and " " not in name else ""))
    missing = [text for text in wanted if text.casefold() not in said.casefold()]
    return f"{name}: the answer does not show {', '.join(map(repr, missing[:5]))}" if missing else ""


def _issue_of(prompt: Prompt, result: StepOutcome) -> dict[str, Any] | None:
    scripted = None if result.failed else _script_of(prompt, result.step_id)
    if scripted is None or not scripted.issue:
        return None
    problem = _filled(scripted.issue, step_id=result.step_id)
    return _issue("specificity", "results", problem, scripted.repair, result.step_id)


def _issue(kind: str, artifact: str, problem: str, proposed: str, step_id: str | None = None) -> dict[str, Any]:
    return {
        "type": kind,
        "severity": "high",
        "description": f"{_JUDGE}: {problem}",
        "location": {"artifact": artifact, "step_id": step_id},
        "proposed_repair": proposed,
    }


def _unwrapped(text: str) -> str:
    """Return a text that may be written as a JSON string."""
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def refinement(prompt: Prompt) -> dict[str, Any]:
    """Return the refinement: a listed tool, or reasoning, for a tool that is not listed, else what the script has."""
    actions, listed = [], [tool["name"] for tool in prompt.tools]
    shown = list(dict.fromkeys(str(fragment.get("step_id")) for fragment in prompt.fragments))
    for step in (one for step_id in shown for one in prompt.steps if one["step_id"] == step_id):
        step_id, said = step["step_id"], clip(str(step.get("description")), MAX_GOAL)
        scripted = _script_of(prompt, step_id)
        if step.get("status") == "pending" and step.get("tool") and step["tool"] not in listed:
            tool = fitting_tool(step, prompt.tools, prompt.ids)
            stand_in = thought(step_id, said, None)
            stand_in |= {"tool": tool["name"], "agent": None} if tool is not None else {}
            actions.append(action("step_modify", step_id, [stand_in], f"no tool {step['tool']!r} is registered"))
        elif step.get("status") == "complete" and scripted is not None and scripted.instead:
            whole, *parts = scripted.instead
            needs = step.get("depends_on")
            steps = [thought(step_id, whole.description, None)] + [
                thought(f"{step_id}.{n}", part.description, needs if isinstance(needs, list) else (), step_id)
                for n, part in enumerate(parts, 1)
            ]
            actions.append(action("step_mark_invalid", step_id, steps, scripted.reason))
    return {"actions": actions, "follow_up_questions": []}


def action(kind: str, target: str, steps: list[Step], reason: str) -> dict[str, Any]:
    """Return a refinement action."""
    return {"type": kind, "target": target, "changes": {"after": None, "steps": steps}, "reason": reason}
