"""How refinement actions edit the tree of a plan (adaptive: Refinement Action)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from aeon_core.plan import end_of_chain
from aeon_core.plan.models import MAX_NESTING_DEPTH
from aeon_core.plan.parsing import shown
from aeon_core.plan.refinement.actions import ANSWER, PLAN, RefinementAction
from aeon_core.plan.refinement.tree import (
    DEFINITION,
    Node,
    TooDeep,
    Tree,
    UnusableChanges,
    executed,
    fresh_id,
    new_steps,
    rewritten,
    stated_id,
    steps_of,
    subplan_of,
    substeps,
    subtree,
)

MAX_ACTIONS = 50
"""The most actions of one reply that are considered; the limits end refinement long before."""
_PLACES = ("after", "before")


def single_actions(actions: Iterable[RefinementAction], tree: Tree) -> list[RefinementAction]:
    """Return the actions of a reply, at most MAX_ACTIONS, each on one step or place.

    A plan_update becomes actions on the steps it changes; a step_mark_invalid takes the step_add that replaces its
    target; additions that follow one another at one place become one, so that they are one attempt on the plan.
    """
    given = list(map(_plain, islice(actions, MAX_ACTIONS)))
    replacing: dict[str, RefinementAction] = {}
    for action in given:
        if action.type == "step_add" and (replaced := _replaced_by(action)) is not None:
            replacing.setdefault(replaced, action)
    bare_marks = {action.target for action in given if action.type == "step_mark_invalid" and not action.changes}
    merged = [action for step_id, action in replacing.items() if step_id in bare_marks]
    found: list[RefinementAction] = []
    for action in islice(chain.from_iterable(_step_by_step(action, tree) for action in given), MAX_ACTIONS):
        if any(action is each for each in merged):
            continue
        if action.type == "step_mark_invalid" and not action.changes and action.target in replacing:
            action = action.model_copy(update={"changes": replacing[action.target].changes})
        if found and (joined := _joined(found[-1], action, tree)) is not None:
            found[-1] = joined
        else:
            found.append(action)
    return found


def _plain(action: RefinementAction) -> RefinementAction:
    """Return an action without changes that only repeat its type: the status of a mark, the name of a plan."""
    changes = action.changes
    if action.type == "step_mark_invalid" and changes.get("status") == "invalid":
        changes = {key: value for key, value in changes.items() if key != "status"}
    elif action.type == "plan_update" and isinstance(whole := changes.get("plan"), dict) and len(changes) == 1:
        changes = whole
    return action.model_copy(update={"changes": changes})


def _step_by_step(action: RefinementAction, tree: Tree) -> list[RefinementAction]:
    """Return a plan_update as actions on its steps: steps that it does not name stay, and complete ones always do.

    A failed step that it rewords is replaced (FR-069). One that changes nothing is left unchanged, to be refused.
    """
    if action.type != "plan_update" or _asks_for_answer(action):
        return [action]
    if tree.find(action.target) is not None:
        return [action.model_copy(update={"type": "step_modify"})]
    made: list[RefinementAction] = []
    previous: str | None = None
    for step in _readable_steps(action):
        step_id = stated_id(step)
        node = tree.find(step_id)
        changes: dict[str, Any] = {"step": step}
        if node is None:
            changes |= {"after": previous} if previous is not None else {}
            added: dict[str, Any] = {"type": "step_add", "target": step_id or PLAN, "changes": changes}
            made.append(action.model_copy(update=added))
        elif (not executed(node) or node["status"] == "failed") and _differs(step, node):
            made.append(action.model_copy(update={"type": "step_modify", "target": step_id, "changes": changes}))
        previous = step_id or previous
    return made or [action]


def _asks_for_answer(action: RefinementAction) -> bool:
    """Return whether an action leaves the steps unchanged and asks for another answer."""
    if action.type != "plan_update" or action.target != ANSWER or "goal" in action.changes:
        return False
    try:
        return not steps_of({key: value for key, value in action.changes.items() if key != "text"})
    except UnusableChanges:
        return False


def _readable_steps(action: RefinementAction) -> list[dict[str, Any]]:
    """Return the steps in an action's changes; none if they cannot be read."""
    try:
        return steps_of(action.changes)
    except UnusableChanges:
        return []


def _differs(step: dict[str, Any], node: Node) -> bool:
    given = {key: value for key, value in step.items() if value is not None and key in (*DEFINITION, "arguments_json")}
    return any(value != node.get(key) for key, value in given.items()) or "subplan" in step


def _replaced_by(action: RefinementAction) -> str | None:
    """Return the step that the one step of an action says it replaces, or None."""
    steps = _readable_steps(action)
    replaces = steps[0].get("replaces") if len(steps) == 1 else None
    return replaces if isinstance(replaces, str) else None


def _joined(first: RefinementAction, second: RefinementAction, tree: Tree) -> RefinementAction | None:
    """Return two additions as one, None if they are at different places."""
    earlier, later = _plain_steps(first), _plain_steps(second)
    if not earlier or not later or _fragment_of_addition(first, tree) != _fragment_of_addition(second, tree):
        return None
    same_place = all(first.changes.get(key) == second.changes.get(key) for key in _PLACES)
    after = second.changes.get("after")
    follows = isinstance(after, str) and after == stated_id(earlier[-1])
    if _parent_in(first) != _parent_in(second) or not (same_place or follows):
        return None
    places = {key: first.changes[key] for key in _PLACES if key in first.changes}
    reason = first.reason if second.reason in first.reason else f"{first.reason}; {second.reason}"
    target = first.target if tree.find(first.target) is not None else PLAN
    changes = {"steps": [*earlier, *later], **places}
    return first.model_copy(update={"target": target, "changes": changes, "reason": reason})


def _plain_steps(action: RefinementAction) -> list[dict[str, Any]]:
    """Return the steps that an action adds; none if it is something else, or if one replaces another."""
    steps = _readable_steps(action) if action.type == "step_add" else []
    return [] if any(step.get("replaces") is not None for step in steps) else steps


def _parent_in(action: RefinementAction) -> str | None:
    steps = _plain_steps(action)
    parent = steps[0].get("parent") if steps else None
    return parent if isinstance(parent, str) else None


def _fragment_of_addition(action: RefinementAction, tree: Tree) -> str:
    """Return the fragment that a step_add refines: the step it expands or is added next to, else PLAN.

    An executed step is no longer refined: what follows it is added to the plan.
    """
    for step_id in (_parent_in(action), action.target):
        node = tree.find(step_id)
        if node is not None and not executed(node):
            return step_id or PLAN
    return PLAN


@dataclass
class Change:
    """What an edit changed in a tree: steps by id, before and after."""

    done: str
    """In words."""
    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    """Pending steps with a new definition."""
    replaced: dict[str, str] = field(default_factory=dict)
    """The executed steps that became invalid, and the steps that replace them."""


@dataclass(frozen=True)
class Edit:
    """The edit that an action amounts to: `change` edits a tree. It raises Unusable or TooDeep."""

    fragment: str
    """The step that the attempt counts for, or PLAN."""
    change: Callable[[Tree], Change]


def edit_for(action: RefinementAction, tree: Tree) -> Edit:
    """Return the edit that an action asks for. Raises Unusable if its target does not exist or may not change."""
    if action.type == "plan_update":
        return _answer_again(action, tree)
    if action.type == "step_add":
        return _add(action, tree)
    step_id, node = action.target, tree.find(action.target)
    if node is None:
        raise UnusableChanges(f"target: no step of the plan has the id {shown(step_id)}")
    if node["status"] == "invalid":
        return edit_for(_on_replacement(action, tree), tree)
    around = [each["step_id"] for each in tree.ancestors(step_id) if each["status"] == "invalid"]
    if around and executed(node):
        raise UnusableChanges(f"step {shown(step_id)} is a part of {shown(around[0])}, which was replaced")
    if node["status"] == "running":
        raise UnusableChanges(f"step {shown(step_id)} is running")
    if action.type == "step_remove":
        return _remove(node)
    if executed(node):
        return _replace(action, step_id)
    if action.type == "step_mark_invalid":
        raise UnusableChanges(f"step {shown(step_id)} has not run; modify or remove it instead")
    return _expand(action, step_id) if action.type == "subplan_create" else _modify(action, step_id)


def _answer_again(action: RefinementAction, tree: Tree) -> Edit:
    """Return the edit that changes no step: what remains of a plan_update once its steps are separate actions."""
    if not _asks_for_answer(action):
        if not steps_of(action.changes):
            raise UnusableChanges("changes: expected 'steps'; a refinement keeps the goal")
        raise UnusableChanges(
            "changes: nothing would change; a step that is complete stays, unless it is marked invalid"
        )
    if not any(map(executed, tree.walk())):
        raise UnusableChanges("no step has run, so that there is no answer to give again")
    return Edit(PLAN, lambda _: Change("the steps stay, the task is answered again"))


def _on_replacement(action: RefinementAction, tree: Tree) -> RefinementAction:
    """Return an action on an invalid step as one on its pending replacement.

    An earlier action of the same reply may have replaced both. Raises Unusable if there is none, or nothing new.
    """
    replacement = tree.find(end_of_chain(action.target, tree.replacements()))
    steps = steps_of(action.changes)
    if not action.changes or action.type == "step_remove" or replacement is None or replacement["status"] != "pending":
        raise UnusableChanges(f"step {shown(action.target)} is already invalid: another step replaces it")
    target = replacement["step_id"]
    kind = "subplan_create" if action.type == "subplan_create" else "step_modify"
    first = steps[0] if steps and kind == "step_modify" else None
    own = next((each for each in steps if stated_id(each) == action.target), first)
    renamed = [{**each, "id": None, "step_id": target} if each is own else each for each in steps]
    changes = {"steps": renamed} if steps else action.changes
    return action.model_copy(update={"type": kind, "target": target, "changes": changes})


def _add(action: RefinementAction, tree: Tree) -> Edit:
    raw = steps_of(action.changes)
    if not raw:
        raise UnusableChanges("changes: expected the step to add")
    replaced = tree.find(_replaced_by(action))
    if replaced is not None and executed(replaced):
        if replaced["status"] == "invalid":
            raise UnusableChanges(f"step {shown(replaced['step_id'])} is already invalid: another step replaces it")
        return _replace(action, replaced["step_id"])
    first = stated_id(raw[0]) or fresh_id("new", tree.ids())
    raw = [{**raw[0], "id": None, "step_id": first}, *raw[1:]]

    def change(tree: Tree) -> Change:
        named = raw[0].get("parent")
        parent = tree.find(named) if isinstance(named, str) else None
        parent = parent if parent is not None and not executed(parent) else None
        nodes = new_steps(raw, tree, prefix=first, nesting=MAX_NESTING_DEPTH, depth=tree.depth_below(parent))
        if parent is None:
            siblings, place = _place_for(action, raw, tree)
            siblings[place:place] = nodes
        elif "subplan" in parent:
            substeps(parent).extend(nodes)
        else:
            parent["subplan"] = subplan_of(parent["step_id"], parent["description"], nodes)
        added = {node["step_id"]: node for node in nodes}
        return Change(f"added {', '.join(added)}", after=set(added), touched=_ids_under(nodes))

    return Edit(_fragment_of_addition(action, tree), change)


def _place_for(action: RefinementAction, raw: list[dict[str, Any]], tree: Tree) -> tuple[list[Node], int]:
    """Return where new steps are inserted: after or before the step that the action names, else at the end.

    Nothing is inserted inside an executed step or before a step's first substep, but after it.
    """
    anchor = tree.steps[-1]["step_id"]
    for key in _PLACES:
        named = action.changes.get(key)
        if isinstance(named, str) and tree.find(named) is not None:
            siblings, place = tree.siblings(named)
            if key == "before" and place == 0 and siblings is tree.steps:
                return siblings, 0
            anchor = siblings[place - 1]["step_id"] if key == "before" and place > 0 else named
            break
    else:
        if tree.find(action.target) is not None and stated_id(raw[0]) != action.target:
            anchor = action.target
    around = [node["step_id"] for node in tree.ancestors(anchor) if executed(node)]
    siblings, place = tree.siblings(around[-1] if around else anchor)
    return siblings, place + 1


def _remove(node: Node) -> Edit:
    step_id = node["step_id"]
    if any(map(executed, subtree(node))):
        raise UnusableChanges(f"step {shown(step_id)} was executed, or a part of it; what was executed stays")
    if "replaces" in node:
        raise UnusableChanges(f"step {shown(step_id)} replaces the invalid step {shown(node['replaces'])}")

    def change(tree: Tree) -> Change:
        siblings, place = tree.siblings(step_id)
        if len(siblings) == 1:
            raise UnusableChanges(
                f"step {shown(step_id)} is the only one there; a plan and a subplan keep at least one step"
            )
        del siblings[place]
        return Change(f"removed {step_id}", before={step_id})

    return Edit(step_id, change)


def _modify(action: RefinementAction, step_id: str) -> Edit:
    own, parts = _definition_and_parts(action, step_id)

    def change(tree: Tree) -> Change:
        target = _at(tree, step_id)
        made = rewritten(target, own) if own is not None else dict(target)
        target.clear()
        target.update(made)
        under = _set_subplan(tree, target, parts) if parts else set()
        return Change(f"rewrote {step_id}", {step_id}, {step_id}, {step_id} | under)

    return Edit(step_id, change)


def _expand(action: RefinementAction, step_id: str) -> Edit:
    raw = [step for step in steps_of(action.changes) if stated_id(step) != step_id]

    def change(tree: Tree) -> Change:
        target = _at(tree, step_id)
        if any(map(executed, subtree(target))):
            raise UnusableChanges(f"step {shown(step_id)} has substeps that were executed; what was executed stays")
        under = _set_subplan(tree, target, raw)
        goal = action.changes.get("subplan_goal")
        if isinstance(goal, str) and goal.strip():
            target["subplan"]["subplan_goal"] = goal
        count = len(substeps(target))
        done = f"expanded {step_id} into {count} substep{'' if count == 1 else 's'}"
        return Change(done, {step_id}, {step_id}, {step_id} | under)

    return Edit(step_id, change)


def _set_subplan(tree: Tree, target: Node, raw: list[dict[str, Any]]) -> set[str]:
    """Give a step new substeps; return the ids of all steps under it."""
    depth = tree.depth_below(target)
    if depth > MAX_NESTING_DEPTH:
        raise TooDeep
    target.pop("subplan", None)
    nodes = new_steps(raw, tree, prefix=target["step_id"], nesting=MAX_NESTING_DEPTH, depth=depth)
    target["subplan"] = subplan_of(target["step_id"], target["description"], nodes)
    return _ids_under(nodes)


def _replace(action: RefinementAction, step_id: str) -> Edit:
    """Return the edit that invalidates an executed step and replaces it with the action's step."""
    own, parts = _definition_and_parts(action, step_id)

    def change(tree: Tree) -> Change:
        target = _at(tree, step_id)
        wanted = stated_id(own) if own is not None else None
        fields = {key: value for key, value in (own or {}).items() if key not in ("id", "step_id", "replaces")}
        fields = {key: value for key, value in fields.items() if value is not None}
        made = rewritten(target, fields) if fields else target
        definition = {key: made[key] for key in DEFINITION if key in made}
        place: dict[str, Any] = {"nesting": MAX_NESTING_DEPTH, "depth": tree.depth_below(target)}
        inner = new_steps(parts, tree, prefix=wanted or step_id, **place) if parts else None
        replaced = _replace_executed(tree, step_id, definition, inner, wanted)
        pairs = ", ".join(f"{old} by {new}" for old, new in replaced.items())
        return Change(
            f"executed steps are invalid and replaced: {pairs}",
            before={step_id},
            after=set(replaced.values()),
            touched=({replaced[step_id]} if fields else set()) | _ids_under(inner or []),
            replaced=replaced,
        )

    return Edit(step_id, change)


def _definition_and_parts(action: RefinementAction, step_id: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the new definition that changes give a step, and its new substeps as written. Raises Unusable."""
    steps = steps_of(action.changes)
    if action.type == "subplan_create":
        return None, [step for step in steps if stated_id(step) != step_id]
    if not steps:
        if "text" not in action.changes and action.type == "step_modify":
            raise UnusableChanges("changes: expected a new description, tool, agent, arguments or depends_on")
        return ({"text": action.changes["text"]} if "text" in action.changes else None), []
    own = next((step for step in steps if stated_id(step) == step_id), steps[0])
    parts = [step for step in steps if step is not own]
    if own.get("subplan") is not None and not parts:
        parts = steps_of({"subplan": own["subplan"]})
    own = {key: value for key, value in own.items() if key not in ("subplan", "parent")}
    only_parts = all(own.get(key) is None for key in (*DEFINITION, "arguments_json"))
    return (None if only_parts and parts else own), parts


def _replace_executed(
    tree: Tree, target: str, definition: Mapping[str, Any], parts: list[Node] | None, wanted_id: str | None
) -> dict[str, str]:
    """Mark an executed step invalid and insert its replacement after it; return new ids by replaced id.

    `definition` is the new step's; `parts` are its substeps, None for those of the old step that have to run again.
    Executed steps whose results depend on the replaced one run again, too: each is replaced by a copy.
    """
    again = _to_run_again(tree, target, definition, has_parts=bool(parts))
    nodes = [node for node in tree.walk() if node["step_id"] in again]
    new_ids = _new_ids(tree, nodes, target, wanted_id)

    def replacement(node: Node) -> Node:
        step_id = node["step_id"]
        own = definition if step_id == target else {key: node[key] for key in DEFINITION if key in node}
        made: Node = {**copy.deepcopy(dict(own)), "step_id": new_ids[step_id], "status": "pending", "replaces": step_id}
        inner = parts if step_id == target and parts is not None else None
        inner = (
            inner if inner is not None else [replacement(part) for part in substeps(node) if part["step_id"] in again]
        )
        if inner:
            made["subplan"] = subplan_of(made["step_id"], made["description"], inner, "refinement")
        return made

    inside = {part["step_id"] for node in nodes for part in substeps(node)}
    made = [(node["step_id"], replacement(node)) for node in nodes if node["step_id"] not in inside]
    for node in nodes:
        node["status"] = "invalid"
    for step_id, node in made:
        tree.insert_after(step_id, [node])
    return new_ids


def _to_run_again(tree: Tree, target: str, definition: Mapping[str, Any], *, has_parts: bool) -> set[str]:
    """Return the steps to replace along with the target: those that depend on its result, and their parts."""
    again = {target}
    while True:
        before = len(again)
        for node in tree.walk():
            if executed(node) and node["status"] != "invalid" and _depends_on_any(node, again):
                again.add(node["step_id"])
        for node in tree.walk():
            if node["step_id"] in again and not (node["step_id"] == target and has_parts):
                again.update(_parts_to_gather(node, definition if node["step_id"] == target else node, again))
        if len(again) == before:
            return again


def _depends_on_any(node: Node, again: set[str]) -> bool:
    return not again.isdisjoint([*node.get("depends_on", ()), *(part["step_id"] for part in substeps(node))])


def _parts_to_gather(node: Node, own: Mapping[str, Any], again: set[str]) -> list[str]:
    """Return the substeps that have to run again: the failed ones, else all if the step consists only of them."""
    ran = [part for part in substeps(node) if part["status"] in ("complete", "failed")]
    failed = [part["step_id"] for part in ran if part["status"] == "failed"]
    if failed or "tool" in own or "agent" in own or any(part["step_id"] in again for part in substeps(node)):
        return failed
    return [part["step_id"] for part in ran]


def _new_ids(tree: Tree, nodes: list[Node], target: str, wanted_id: str | None) -> dict[str, str]:
    used = tree.ids()
    new_ids: dict[str, str] = {}
    for node in nodes:
        step_id = node["step_id"]
        first, number = tree.first_replaced(step_id), 1
        while (made := f"{first}-r{number}") in used:
            number += 1
        if step_id == target and wanted_id is not None and wanted_id not in used:
            made = wanted_id
        used.add(made)
        new_ids[step_id] = made
    return new_ids


def _at(tree: Tree, step_id: str) -> Node:
    node = tree.find(step_id)
    assert node is not None
    return node


def _ids_under(nodes: Iterable[Node]) -> set[str]:
    return {each["step_id"] for node in nodes for each in subtree(node)}
