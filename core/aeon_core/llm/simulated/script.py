"""The simulated model's replies: what it can calculate, else what `behaviours.yml` says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import resources
from typing import Any

from pydantic import BaseModel

from aeon_core.json_safe import parse_json
from aeon_core.llm.simulated.calculator import (
    Operation,
    Ref,
    clauses,
    described,
    evaluate,
    flatten,
    name_of,
    parse_arithmetic,
    show_number,
    strip_lead,
)
from aeon_core.llm.simulated.prompt import (
    MAX_GOAL,
    Call,
    Described,
    MissingResultError,
    Prompt,
    StepOutcome,
    calculate,
    clip,
    earlier_number,
    find_call,
    fitting_tool,
    number_of,
    text_of,
)
from aeon_core.yaml_file import parse_yaml

_MAX_CLAUSES = 12
_MAX_REQUIREMENTS = 8
_MAX_SHOWN = 120
_MAX_ANSWER = 1500
_QUOTE = 80
"""The most characters of the answer quoted as evidence."""
_JUDGE = "simulated judge, a plain rule"
_FIGURE = re.compile(r"-?\d+(?:\.\d+)?")
_WANTED = re.compile(r"[\"“'‘]([^\"”'’]+)[\"”'’]|(?<![\w.])(\d+(?:\.\d+)?)")

WirePlan = dict[str, Any]
Step = dict[str, Any]


class ScriptedStep(BaseModel):
    """A step of a behaviour in `behaviours.yml`."""

    description: str
    text: str
    issue: str = ""
    repair: str = ""
    answer: str = ""
    reason: str = ""
    instead: tuple[ScriptedStep, ...] = ()


class Behaviour(BaseModel):
    """The model's replies to tasks that begin with a pattern, from `behaviours.yml`."""

    pattern: str
    profile: dict[str, str]
    steps: tuple[ScriptedStep, ...]
    questions: tuple[str, ...] = ()

    def step(self, said: str) -> ScriptedStep | None:
        """Return the step whose description, up to a placeholder, is how `said` begins."""
        every = (each for step in self.steps for each in (step, *step.instead))
        return next((each for each in every if said.startswith(each.description.partition("{")[0])), None)


@lru_cache(maxsize=1)
def behaviours() -> tuple[Behaviour, ...]:
    """Return the behaviours in `behaviours.yml`, in order; the last one matches every task."""
    text = resources.files(__package__).joinpath("behaviours.yml").read_text(encoding="utf-8")
    return tuple(map(Behaviour.model_validate, parse_yaml(text)))


def behaviour_for(task: str) -> Behaviour:
    """Return the first behaviour whose pattern matches the beginning of a task."""
    return next(one for one in behaviours() if re.match(one.pattern, task.lstrip(' "'), re.IGNORECASE))


def _filled(text: str, *, task: str = "", step_id: str = "") -> str:
    return text.replace("{step_id}", step_id).replace("{task}", clip(task, _MAX_SHOWN))


def profile(prompt: Prompt) -> dict[str, Any]:
    """Return the profile of a task, with requirements and follow-up questions."""
    task = prompt.text("task")
    parts = clauses(task)[:_MAX_REQUIREMENTS] or [task]
    behaviour = behaviour_for(task)
    dimensions: dict[str, Any] = dict(behaviour.profile)
    if steps := _worked_out(task, prompt.tools):
        calls = sum(step["tool"] is not None for step in steps)
        usage = "none" if not calls else "minimal" if calls <= 2 else "moderate" if calls <= 6 else "extensive"
        dimensions |= {
            "reasoning_depth": "low" if len(steps) <= 2 else "medium",
            "information_sufficiency": "high",
            "expected_tool_usage": usage,
            "raw_inference": "Each part of the task is a calculation or a call of a named tool.",
        }
    return {
        "profile_version": 1,
        "requirements": [f"The answer shows the result of: {clip(part, _MAX_SHOWN)}" for part in parts],
        **dimensions,
        "follow_up_questions": list(behaviour.questions),
    }


def make_plan(task: str, tools: Sequence[Described]) -> WirePlan:
    """Return a flat plan for a task: `goal`, and steps with `id`, `parent`, `description`, `tool`, `agent`, …

    Only listed tools are used, and only with arguments that meet their input_schema; arguments that depend on an
    earlier result are left to the step's `tool_call` cycle.
    """
    steps = _worked_out(task, tools)
    if not steps:
        for number, step in enumerate(behaviour_for(task).steps, 1):
            needs = [f"s{number - 1}"] if number > 1 else []
            steps.append(thought(f"s{number}", _filled(step.description, task=task), needs))
    return {"goal": clip(task, MAX_GOAL) or "Answer the request", "steps": steps}


def _worked_out(task: str, tools: Sequence[Described]) -> list[Step]:
    """Return the steps of a task without a script, if any part of it is a calculation or names a tool; else none."""
    parts, draft = clauses(task), _Draft(tools)
    if behaviour_for(task) != behaviours()[-1] or len(parts) > _MAX_CLAUSES:
        return []
    return draft.steps if sum(map(draft.add_clause, parts)) else []


class _Draft:
    """The steps of a plan so far."""

    def __init__(self, tools: Sequence[Described]) -> None:
        self._tools = tools
        self.steps: list[Step] = []

    def add_clause(self, clause: str) -> bool:
        """Add the steps of a clause; return whether it is a calculation or a tool call rather than a thought."""
        ids = [step["id"] for step in self.steps]
        if (operation := parse_arithmetic(clause, ids)) is not None:
            flatten(operation, self._add_calculation)
            return True
        request = strip_lead(clause)
        request = request[:1].upper() + request[1:]
        call = find_call(request, self._tools, ids)
        usable = call is not None and (call[1] is not None or bool(ids))
        self._add(clip(request, MAX_GOAL), call if usable else None, ids[-1:])
        return usable

    def _add_calculation(self, operation: Operation) -> str:
        needs = dict.fromkeys(one.step_id for one in operation.operands if isinstance(one, Ref))
        return self._add(described(operation), calculate(operation, self._tools), list(needs))

    def _add(self, said: str, call: Call | None, needs: Sequence[str]) -> str:
        """Add a step that runs on a tool, else on the model, and return its id."""
        step = thought(f"s{len(self.steps) + 1}", said, needs)
        if call is not None:
            step |= {"tool": call[0]["name"], "agent": None, "arguments": call[1]}
        self.steps.append(step)
        return str(step["id"])


def thought(step_id: str, said: str, needs: Sequence[str] | None = (), parent: str | None = None) -> Step:
    """Return a reasoning step in the form of a plan or a refinement."""
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
    """Return the result of the current step: scripted, calculated, or a sentence that says it is simulated."""
    said, goal = prompt.description, prompt.text("goal") or prompt.text("task")
    scripted = behaviour_for(goal).step(said)
    if scripted is not None:
        return _filled(scripted.text, task=goal)
    try:
        operation = parse_arithmetic(said, prompt.ids)
        if operation is not None:
            resolve = partial(earlier_number, prompt)
            return f"The {name_of(operation, resolve)} is {show_number(evaluate(operation, resolve))}."
    except (MissingResultError, ArithmeticError) as error:
        return str(error)
    return f"{'Without a tool, a' if fallback else 'A'} simulated thought: {clip(said, MAX_GOAL) or 'none'}"


def _valid(prompt: Prompt) -> list[StepOutcome]:
    """Return the outcomes of the steps, except for invalid ones."""
    invalid = {step["step_id"] for step in prompt.steps if step.get("status") == "invalid"}
    return [result for result in prompt.results if result.step_id not in invalid]


def _last(prompt: Prompt) -> StepOutcome | None:
    """Return the last outcome of a step that is not a substep, whose id begins with its parent's."""
    valid = _valid(prompt)
    outer = [result for result in valid if result.step_id.rpartition(".")[0] not in prompt.ids]
    return next(reversed(outer or valid), None)


def _script_of(prompt: Prompt, step_id: str) -> ScriptedStep | None:
    """Return the scripted step for the step with that id."""
    step = next((one for one in prompt.steps if one["step_id"] == step_id), {})
    return behaviour_for(prompt.text("task") or prompt.text("goal")).step(str(step.get("description")))


def answer(prompt: Prompt) -> str:
    """Return the answer to the task: the last result first, then which steps failed, and why."""
    valid, last = _valid(prompt), _last(prompt)
    parts = ["There is no result." if last is None or last.errors else _stated(prompt, last)]
    failed = [result for result in valid if result.errors][:5]
    return "\n".join(parts + [f"Step {one.step_id} failed: {clip('; '.join(one.errors), MAX_GOAL)}" for one in failed])


def _stated(prompt: Prompt, last: StepOutcome) -> str:
    """Return the last result as a sentence; a number is preceded by the name of the calculation."""
    scripted = _script_of(prompt, last.step_id)
    if scripted is not None and scripted.answer:
        return _filled(scripted.answer, step_id=last.step_id)
    text = text_of(last)
    text = text if len(text) <= _MAX_ANSWER else f"{text[:_MAX_ANSWER]}…"
    number = number_of(last)
    if number is None or text != show_number(number):
        return text
    operation = parse_arithmetic(prompt.text("task"))
    return f"The {'result' if operation is None else name_of(operation, partial(earlier_number, prompt))} is {text}."


def judgement(prompt: Prompt) -> dict[str, Any]:
    """Return the judgement of a result: by what can be proved, else by the script, else that everything is met.

    It can be proved that a step failed, that the answer lacks a word or figure quoted in a person's criterion, or that
    it lacks the figure of the last step.
    """
    said, last, valid = _unwrapped(prompt.text("answer")), _last(prompt), _valid(prompt)
    suspicions = [str(entry.get("text")) for entry in prompt.entries("suspicions")]
    # Whole words, unless the first one is too long.
    quote = said if len(said) <= _QUOTE else f"{said[:_QUOTE].rpartition(' ')[0] or said[:_QUOTE]} …"
    quote = quote or "no answer"
    check = {"evidence": quote, "ok": True}
    lacking = [_lacking(str(entry.get("text")), said) for entry in prompt.entries("requirements")]
    issues = [_issue("consistency", "answer", why, "Name it in the answer.") for why in lacking if why]
    scripted = {one.step_id: _script_of(prompt, one.step_id) for one in valid if not one.errors}
    issues += [
        _issue("specificity", "results", _filled(script.issue, step_id=step_id), script.repair, step_id)
        for step_id, script in scripted.items()
        if script is not None and script.issue
    ]
    undone = len(issues) > len(list(filter(None, lacking))) or any(one.errors for one in valid)
    figure = text_of(last) if last is not None and not last.errors else ""
    wrong = bool(said and figure and figure not in said and (suspicions or _FIGURE.fullmatch(figure)))
    if wrong:
        doubts = suspicions or ["the answer lacks the figure that the last step gave"]
        issues += [_issue("hallucination", "answer", why, "Answer with the figures of the steps.") for why in doubts]
    return {
        "requirements": [
            {"n": n, "evidence": quote, "met": "no" if why or undone else "yes"} for n, why in enumerate(lacking, 1)
        ],
        "coherent": check,
        "consistent": {"plan": check, "step": check, "answer": {**check, "ok": not wrong}, "memory": check},
        "suspicions": [{"n": n, "evidence": quote, "stands": wrong} for n in range(1, len(suspicions) + 1)],
        "issues": [{"issue_id": f"j{number}", **issue} for number, issue in enumerate(issues, 1)],
    }


def _lacking(requirement: str, said: str) -> str:
    """Return a sentence about what a person's criterion, `name: description`, quotes and the answer lacks, else ""."""
    name, colon, rest = requirement.partition(": ")
    wanted = map("".join, _WANTED.findall(rest if colon and " " not in name else ""))
    missing = [text for text in wanted if text.casefold() not in said.casefold()]
    return f"{name}: the answer does not show {', '.join(map(repr, missing[:5]))}" if missing else ""


def _issue(kind: str, artifact: str, problem: str, proposed: str, step_id: str | None = None) -> dict[str, Any]:
    return {
        "type": kind,
        "severity": "high",
        "description": f"{_JUDGE}: {problem}",
        "location": {"artifact": artifact, "step_id": step_id},
        "proposed_repair": proposed,
    }


def _unwrapped(text: str) -> str:
    """Return a text, decoded if it is a JSON string."""
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def refinement(prompt: Prompt, *, insists: bool = False) -> dict[str, Any]:
    """Return the refinement: a listed tool, or reasoning, in place of an unlisted tool, else what the script says.

    A model that `insists` repeats every executed step instead.
    """
    shown = {str(fragment.get("step_id")): None for fragment in prompt.entries("fragments")}
    steps = [step for step_id in shown for step in prompt.steps if step["step_id"] == step_id]
    actions = [_again(step) if insists else _refined(step, prompt) for step in steps]
    return {"actions": [action for action in actions if action is not None], "follow_up_questions": []}


def _again(step: dict[str, Any]) -> dict[str, Any] | None:
    if step.get("status") not in ("failed", "complete"):
        return None
    return _action("step_mark_invalid", step, [_stand_in(step, step.get("tool"))], "it is to be done once more")


def _refined(step: dict[str, Any], prompt: Prompt) -> dict[str, Any] | None:
    scripted = _script_of(prompt, step["step_id"])
    unknown = step.get("tool") and step["tool"] not in [tool["name"] for tool in prompt.tools]
    if step.get("status") == "pending" and unknown:
        tool = fitting_tool(step, prompt.tools, prompt.ids)
        instead = _stand_in(step, None if tool is None else tool["name"])
        return _action("step_modify", step, [instead], f"no tool {step['tool']!r} is registered")
    if step.get("status") != "complete" or scripted is None or not scripted.instead:
        return None
    whole, *parts = scripted.instead
    step_id, needs = step["step_id"], step.get("depends_on")
    steps = [thought(step_id, whole.description, None)] + [
        thought(f"{step_id}.{n}", part.description, needs if isinstance(needs, list) else (), step_id)
        for n, part in enumerate(parts, 1)
    ]
    return _action("step_mark_invalid", step, steps, scripted.reason)


def _stand_in(step: dict[str, Any], tool: str | None) -> Step:
    """Return a step that does the same with the given tool, or by reasoning."""
    step_instead = thought(step["step_id"], clip(str(step.get("description")), MAX_GOAL), None)
    return step_instead | ({"tool": tool, "agent": None} if tool else {})


def _action(kind: str, target: dict[str, Any], steps: list[Step], reason: str) -> dict[str, Any]:
    return {"type": kind, "target": target["step_id"], "changes": {"after": None, "steps": steps}, "reason": reason}
