"""Refining a plan: concrete words for vague steps, subplans for steps of several parts, mended calculations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from aeon_core.llm.simulated.calculator import MAX_CLAUSE, Operation, evaluate, parse_arithmetic
from aeon_core.llm.simulated.judging import parts_left_out
from aeon_core.llm.simulated.planner import MAX_GOAL, elaboration, made_thing, make_plan, part_of, request_of, whole_of
from aeon_core.llm.simulated.prompt import MissingResultError, Prompt, clip, number_resolver
from aeon_core.llm.simulated.reasoner import hollow, is_exact, lacks_tool, undone
from aeon_core.llm.simulated.repair import fitting_tool
from aeon_core.llm.simulated.texts import clauses, file_names
from aeon_core.llm.simulated.tools import calculation_arguments, known_ids

Action = dict[str, Any]
Step = dict[str, Any]

_MAX_SHOWN = 100
_RESULT_OF = re.compile(r"(?<=the result of )[\w.-]*\w")


def refinement(prompt: Prompt) -> dict[str, Any]:
    """Return the refinement: `actions` on the fragments where something helps, and `follow_up_questions`."""
    work = _Refining(prompt)
    for fragment in prompt.fragments:
        work.refine(fragment)
    return {"actions": work.actions, "follow_up_questions": list(dict.fromkeys(work.questions))}


class _Refining:
    """The actions and questions so far."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt = prompt
        self.task = prompt.text("task")
        self.steps: dict[str, Step] = {step["step_id"]: step for step in prompt.steps}
        self.actions: list[Action] = []
        self.questions: list[str] = []
        self._shown = clip(self.task, _MAX_SHOWN)
        self._planned = self._covered = False
        self._replaced: set[str] = set()

    def refine(self, fragment: dict[str, Any]) -> None:
        """Add what helps a fragment, if anything does. What rests on a replaced step is replaced along with it."""
        step = self.steps.get(str(fragment.get("step_id")))
        if step is None:
            return
        if self._replaced.intersection(_needs(step)):
            self._replaced.add(step["step_id"])
        elif step.get("status") == "pending":
            self._pending(step, fragment)
        elif step.get("status") == "failed":
            self._mended(step, attempts=fragment.get("attempts"))
        elif step.get("status") == "complete":
            self._better(step)

    def _pending(self, step: Step, fragment: dict[str, Any]) -> bool:
        if step.get("tool") and step["tool"] not in [tool["name"] for tool in self.prompt.tools]:
            tool = fitting_tool(step, self.prompt)
            stand_in = {**_thought(step["step_id"], _description(step)), "depends_on": None}
            stand_in |= {"tool": tool["name"], "agent": None} if tool is not None else {}
            return self._act("step_modify", step, [stand_in], f"no tool {step['tool']!r} is registered")
        reasons = fragment.get("reasons")
        vague = isinstance(reasons, list) and any("vague" in str(reason) for reason in reasons)
        return self._several(step) or (vague and self._concrete(step))

    def _act(self, kind: str, step: Step, steps: Sequence[Step], reason: str) -> bool:
        changes = {"after": None, "steps": list(steps)}
        if kind == "step_mark_invalid":
            self._replaced.add(step["step_id"])
        self.actions.append({"type": kind, "target": step["step_id"], "changes": changes, "reason": reason})
        return True

    def _several(self, step: Step) -> bool:
        """Expand a step of several clauses into one substep for each."""
        parts = clauses(_description(step))
        if len(parts) < 2 or step.get("tool"):
            return False
        planned = make_plan(_description(step), self.prompt.tools)["steps"]
        if not any(map(_is_certain, planned)):
            planned = [_thought(f"s{number}", request_of(part)) for number, part in enumerate(parts, 1)]
            for earlier, later in itertools.pairwise(planned):
                later["depends_on"] = [earlier["id"]]
        return self._act("subplan_create", step, self._inside(step, planned), "the step holds several actions")

    def _concrete(self, step: Step) -> bool:
        """Put what the task says and the plan leaves out in place of a vague step."""
        if self._covered and len(self.steps) > 1:
            return self._act("step_remove", step, [], "other steps do all that the task asks for")
        if self._planned or part_of(_description(step)) or whole_of(_description(step)):
            return False
        said = {_description(each) for each in self.prompt.steps}
        planned = make_plan(self.task, self.prompt.tools)["steps"]
        new = [each for each in planned if each["description"] not in said] if any(map(_is_certain, planned)) else []
        self._planned = True
        self._covered = bool(new)
        reason = "the step does not say what is done with what; the task does"
        if len(new) == 1:
            return self._act("step_modify", step, [{**new[0], "id": step["step_id"], "depends_on": None}], reason)
        if new:
            return self._act("subplan_create", step, self._inside(step, new), reason)
        return self._worked_out("step_modify", step, reason)

    def _better(self, step: Step) -> bool:
        """Replace a step that gave nothing by its parts, or by a tool's work; ask where neither can help."""
        outcome = self.prompt.outcome(step["step_id"])
        if outcome is None:
            return False
        if lacks_tool(outcome):
            tool = fitting_tool(step, self.prompt) if not step.get("tool") else None
            if tool is not None:
                with_tool = {**_thought(step["step_id"], _description(step)), "tool": tool["name"], "agent": None}
                return self._act("step_mark_invalid", step, [with_tool], f"{tool['name']} does what the step says")
            names = file_names(_description(step))
            self.questions += [f"What does {name!r} hold? No registered tool gets it." for name in names]
            return False
        if undone(outcome):
            self.questions.append(f"Which values or texts are meant in “{self._shown}”?")
            return False
        if not hollow(self.prompt, outcome):
            return self._added(step)
        if self._worked_out("step_mark_invalid", step, "its result only repeats what is asked for"):
            return True
        self.questions.append(f"What should the result of “{self._shown}” rest on? No step knows it.")
        return False

    def _added(self, step: Step) -> bool:
        """Add the parts of the task that the plan leaves out behind a step."""
        parts = [] if self._planned else parts_left_out(self.prompt)
        self._planned = True
        new = [_thought(f"{step['step_id']}-{number}", request_of(part)) for number, part in enumerate(parts, 1)]
        for each in new:
            action = {"after": step["step_id"], "steps": [{**each, "depends_on": [step["step_id"]]}]}
            reason = "the plan leaves out a part of the task"
            self.actions.append({"type": "step_add", "target": step["step_id"], "changes": action, "reason": reason})
        return bool(new)

    def _worked_out(self, kind: str, step: Step, reason: str) -> bool:
        """Expand a step into the parts of the thing that the task wants made; False where its kind is not known."""
        thing = made_thing(_description(step)) or made_thing(self.task)
        made = elaboration(thing) if thing is not None else None
        if made is None or any(whole_of(_description(each)) for each in self.prompt.steps):
            return False
        parts = [_thought(f"s{number}", text) for number, text in enumerate(made.parts, 1)]
        whole = {**_thought(step["step_id"], made.whole), "depends_on": None}
        return self._act(kind, step, [whole, *self._inside(step, parts)], reason)

    def _mended(self, step: Step, attempts: Any) -> bool:
        """Replace a failed calculation where the step, or else the task, says one that can be done."""
        operation = parse_arithmetic(_description(step)[:MAX_CLAUSE], known_ids(self.prompt))
        if operation is None or attempts:
            return False
        stand_in = self._calculated(step, operation) or self._meant(operation)
        if stand_in is None:
            return False
        stand_in = {**stand_in, "id": step["step_id"], "agent": None, "depends_on": None}
        return self._act("step_mark_invalid", step, [stand_in], "it failed, and what was meant can be calculated")

    def _calculated(self, step: Step, operation: Operation) -> Step | None:
        """Return the step with the arguments that its own words give."""
        resolve = number_resolver(self.prompt)
        tool = next((tool for tool in self.prompt.tools if tool["name"] == step.get("tool")), None)
        try:
            evaluate(operation, resolve)
            values = [evaluate(operand, resolve) for operand in operation.operands]
        except (MissingResultError, ArithmeticError):
            return None
        if tool is None or len(values) != 2:
            return None
        arguments = calculation_arguments(tool, operation.name, *values)
        return (
            None
            if arguments is None
            else {**_thought("", _description(step)), "tool": tool["name"], "arguments": arguments}
        )

    def _meant(self, operation: Operation) -> Step | None:
        """Return the calculation of the task of that kind that the plan does not have, if there is just one."""
        said = {_description(each) for each in self.prompt.steps}
        planned = make_plan(self.task, self.prompt.tools)["steps"]
        found = [each for each in planned if each["description"] not in said and _can_be_done(each, operation.name)]
        return found[0] if len(found) == 1 else None

    def _inside(self, step: Step, planned: Sequence[Step]) -> list[Step]:
        """Return steps as substeps: with ids under the step's own, the first ones building on what it builds on."""
        outer = [needed for needed in _needs(step) if needed in self.steps]
        ids: dict[str, str] = {}
        for each in planned:
            number = len(ids) + 1
            while (made := f"{step['step_id']}.{number}") in self.steps or made in ids.values():
                number += 1
            ids[each["id"]] = made
        return [
            {
                **each,
                "id": ids[each["id"]],
                "parent": step["step_id"],
                "description": _renamed(each["description"], ids),
                "depends_on": [ids.get(needed, needed) for needed in each["depends_on"]] or outer,
            }
            for each in planned
        ]


def _thought(step_id: str, description: str) -> Step:
    return {
        "id": step_id,
        "parent": None,
        "description": clip(description, MAX_GOAL),
        "tool": None,
        "agent": "llm",
        "arguments": None,
        "depends_on": [],
    }


def _renamed(description: str, ids: dict[str, str]) -> str:
    """Return a description with the results that it refers to under their new ids."""
    return _RESULT_OF.sub(lambda match: ids.get(match[0], match[0]), description)


def _description(step: Step) -> str:
    description = step.get("description")
    return description if isinstance(description, str) else ""


def _needs(step: Step) -> list[str]:
    needed = step.get("depends_on")
    return [one for one in needed if isinstance(one, str)] if isinstance(needed, list) else []


def _is_certain(step: Step) -> bool:
    return bool(step.get("tool")) or is_exact(_description(step))


def _can_be_done(step: Step, operation_name: str) -> bool:
    operation = parse_arithmetic(_description(step))
    if operation is None or operation.name != operation_name or step["arguments"] is None:
        return False
    try:
        evaluate(operation, lambda _: 1)
    except ArithmeticError:
        return False
    return True
