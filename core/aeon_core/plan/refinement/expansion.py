"""From the actions of a reply to those that are applied one by one: what belongs together, what means several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aeon_core.plan.refinement.actions import ANSWER, PLAN, RefinementAction
from aeon_core.plan.refinement.additions import merged
from aeon_core.plan.refinement.steps import Unusable, stated_id, steps_of
from aeon_core.plan.refinement.tree import Node, Tree, executed

MAX_ACTIONS = 50
"""Actions of one reply that are looked at; the limits end refinement long before."""

DEFINITION = ("description", "tool", "agent", "arguments", "depends_on")
"""The fields of a step that say what it does."""


def expanded(actions: Iterable[RefinementAction], tree: Tree) -> Iterator[RefinementAction]:
    """Yield the actions to apply, at most MAX_ACTIONS.

    A plan_update becomes actions on the steps it changes; a step_mark_invalid takes the step that replaces its target;
    additions at one place are one.
    """
    yield from merged(_single([_plainly(action) for action in list(actions)[:MAX_ACTIONS]], tree), tree)


def _plainly(action: RefinementAction) -> RefinementAction:
    """Return an action without what its changes only repeat of its type: the status of a mark, the name of a plan."""
    changes = action.changes
    if action.type == "step_mark_invalid" and changes.get("status") == "invalid":
        changes = {key: value for key, value in changes.items() if key != "status"}
    elif action.type == "plan_update" and isinstance(whole := changes.get("plan"), dict) and len(changes) == 1:
        changes = whole
    return action if changes is action.changes else action.model_copy(update={"changes": changes})


def _single(given: list[RefinementAction], tree: Tree) -> Iterator[RefinementAction]:
    stand_ins = _stand_ins(given)
    bare_marks = {action.target for action in given if action.type == "step_mark_invalid" and not action.changes}
    count = 0
    for action in given:
        for each in _parts(action, tree):
            if count == MAX_ACTIONS:
                return
            count += 1
            replaces = replaces_in(each)
            if each.type == "step_add" and replaces in bare_marks and stand_ins.get(replaces or "") is each:
                continue
            if each.type == "step_mark_invalid" and not each.changes and each.target in stand_ins:
                each = each.model_copy(update={"changes": stand_ins[each.target].changes})
            yield each


def asks_for_answer(action: RefinementAction) -> bool:
    """Return whether an action leaves the steps as they are and wants the task answered once more."""
    if action.type != "plan_update" or action.target != ANSWER or "goal" in action.changes:
        return False
    try:
        return not steps_of({key: value for key, value in action.changes.items() if key != "text"})
    except Unusable:
        return False


def _stand_ins(actions: list[RefinementAction]) -> dict[str, RefinementAction]:
    """Return the first step_add that replaces a step, by the step it replaces."""
    found: dict[str, RefinementAction] = {}
    for action in actions:
        replaces = replaces_in(action)
        if action.type == "step_add" and replaces is not None:
            found.setdefault(replaces, action)
    return found


def replaces_in(action: RefinementAction) -> str | None:
    """Return the step that the one step of an action says it replaces, or None."""
    try:
        steps = steps_of(action.changes)
    except Unusable:
        return None
    replaces = steps[0].get("replaces") if len(steps) == 1 else None
    return replaces if isinstance(replaces, str) else None


def _parts(action: RefinementAction, tree: Tree) -> Iterator[RefinementAction]:
    """Yield what a plan_update means step by step: a step that it does not name stays, a complete one always.

    A failed step that it words anew is replaced (FR-069). One that changes nothing is yielded as it is, to be refused.
    """
    if action.type != "plan_update" or asks_for_answer(action):
        yield action
        return
    if tree.find(action.target) is not None:
        yield action.model_copy(update={"type": "step_modify"})
        return
    parts = list(_changed_steps(action, tree))
    yield from parts or [action]


def _changed_steps(action: RefinementAction, tree: Tree) -> Iterator[RefinementAction]:
    try:
        steps = steps_of(action.changes)
    except Unusable:
        yield action
        return
    previous: str | None = None
    for step in steps:
        step_id = stated_id(step)
        node = tree.find(step_id) if step_id is not None else None
        if node is None:
            after = {"after": previous} if previous is not None else {}
            yield action.model_copy(
                update={"type": "step_add", "target": step_id or PLAN, "changes": {"step": step, **after}}
            )
        elif (not executed(node) or node["status"] == "failed") and _differs(step, node):
            yield action.model_copy(update={"type": "step_modify", "target": step_id, "changes": {"step": step}})
        previous = step_id or previous


def _differs(step: dict[str, Any], node: Node) -> bool:
    given = {key: value for key, value in step.items() if value is not None and key in (*DEFINITION, "arguments_json")}
    return any(value != node.get(key) for key, value in given.items()) or "subplan" in step
