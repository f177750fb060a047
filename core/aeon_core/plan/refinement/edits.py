"""What each type of refinement action does to the tree of a plan (adaptive: Refinement Action)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon_core.plan.parsing import shown
from aeon_core.plan.refinement.actions import ANSWER, PLAN, RefinementAction, fragment_of
from aeon_core.plan.refinement.steps import TooDeep, Unusable, new_steps, rewritten, stated_id, steps_of, subplan_of
from aeon_core.plan.refinement.tree import Node, Tree, executed, fresh_id, substeps, subtree

_PLACES = ("after", "before")


def added_to(action: RefinementAction, tree: Tree) -> str:
    """Return the fragment that a step_add is an attempt on: the step it expands or is added beside, else PLAN.

    What was executed is not refined any more: what comes behind it is added to the plan.
    """
    for step_id in (_parent_in(action), action.target):
        node = tree.find(step_id) if step_id is not None else None
        if node is not None and not executed(node):
            return step_id or PLAN
    return PLAN


def merged(actions: Iterable[RefinementAction], tree: Tree) -> Iterator[RefinementAction]:
    """Yield the actions; additions that follow one another at one place become one, in the order they are written.

    So that a model that adds three steps has made one attempt on the plan and not three.
    """
    held: RefinementAction | None = None
    for action in actions:
        joined = _joined(held, action, tree) if held is not None else None
        if joined is None and held is not None:
            yield held
        held = joined if joined is not None else action
    if held is not None:
        yield held


def _joined(first: RefinementAction, second: RefinementAction, tree: Tree) -> RefinementAction | None:
    """Return two additions as one, None where they are not at one place."""
    earlier, later = _plain_steps(first), _plain_steps(second)
    if not earlier or not later or added_to(first, tree) != added_to(second, tree):
        return None
    if _parent_in(first) != _parent_in(second) or not (_same_place(first, second) or _follows(earlier, second)):
        return None
    places = {key: first.changes[key] for key in _PLACES if key in first.changes}
    reason = first.reason if second.reason in first.reason else f"{first.reason}; {second.reason}"
    target = first.target if tree.find(first.target) is not None else PLAN
    changes = {"steps": [*earlier, *later], **places}
    return first.model_copy(update={"target": target, "changes": changes, "reason": reason})


def _plain_steps(action: RefinementAction) -> list[dict[str, Any]]:
    """Return the steps that an action adds; none where it is something else, or where one replaces another."""
    if action.type != "step_add":
        return []
    try:
        steps = steps_of(action.changes)
    except Unusable:
        return []
    return [] if any(step.get("replaces") is not None for step in steps) else steps


def _parent_in(action: RefinementAction) -> str | None:
    steps = _plain_steps(action)
    parent = steps[0].get("parent") if steps else None
    return parent if isinstance(parent, str) else None


def _same_place(first: RefinementAction, second: RefinementAction) -> bool:
    return all(first.changes.get(key) == second.changes.get(key) for key in _PLACES)


def _follows(earlier: list[dict[str, Any]], second: RefinementAction) -> bool:
    after = second.changes.get("after")
    return isinstance(after, str) and after == stated_id(earlier[-1])


def place_for(action: RefinementAction, raw: list[dict[str, Any]], tree: Tree) -> tuple[Node | None, str | None]:
    """Return where new steps go: into the subplan of a step that is still to run, or behind a step, or at the end.

    Nothing goes inside a step that was executed: it goes behind that step.
    """
    named = raw[0].get("parent")
    parent = tree.find(named) if isinstance(named, str) else None
    if parent is not None and not executed(parent):
        return parent, None
    for key in ("after", "before"):
        anchor = action.changes.get(key)
        if isinstance(anchor, str) and tree.find(anchor) is not None:
            return None, _behind(anchor, tree) if key == "after" else _ahead(anchor, tree)
    if tree.find(action.target) is not None and stated_id(raw[0]) != action.target:
        return None, _behind(action.target, tree)
    return None, _behind(tree.steps[-1]["step_id"], tree)


def _behind(step_id: str, tree: Tree) -> str:
    around = [node["step_id"] for node in tree.ancestors(step_id) if executed(node)]
    return around[-1] if around else step_id


def _ahead(step_id: str, tree: Tree) -> str | None:
    """Return the step after which one must be inserted to come before another: None for the head of the plan.

    Nothing comes before the first substep of a step; it is inserted after that.
    """
    siblings = tree.siblings(step_id)
    place = next(index for index, node in enumerate(siblings) if node["step_id"] == step_id)
    if place > 0:
        return _behind(siblings[place - 1]["step_id"], tree)
    return None if siblings is tree.steps else _behind(step_id, tree)


def put(tree: Tree, nodes: list[Node], parent: Node | None, anchor: str | None) -> None:
    """Put new steps into the subplan of a step, behind a step, or at the head of the plan."""
    if parent is not None:
        inside = substeps(parent)
        if inside:
            inside.extend(nodes)
        else:
            parent["subplan"] = subplan_of(parent["step_id"], parent["description"], nodes)
    elif anchor is not None:
        tree.insert_after(anchor, nodes)
    else:
        tree.steps[:0] = nodes


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
    """Return whether an action leaves the steps as they are and wants the task answered again."""
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

    A failed step that it rewords is replaced (FR-069). One that changes nothing is yielded as it is, to be refused.
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


def replace_executed(
    tree: Tree, target: str, definition: Mapping[str, Any], parts: list[Node] | None, wanted_id: str | None
) -> dict[str, str]:
    """Mark an executed step invalid and put the step that replaces it behind it; return new ids by replaced id.

    `definition` is that of the new step; `parts` are its substeps, None where it has those of the old one that are
    wanting. Executed steps whose results rest on the replaced one are run again: each is replaced by its like.
    """
    wanting = _wanting(tree, target, definition, parts)
    nodes = [node for node, _ in tree.walk() if node["step_id"] in wanting]
    new_ids = _new_ids(tree, nodes, target, wanted_id)
    tops = [node for node in nodes if _parent_id(tree, node) not in wanting]

    def stand_in(node: Node) -> Node:
        step_id = node["step_id"]
        own = definition if step_id == target else {key: node[key] for key in DEFINITION if key in node}
        made: Node = {**copy.deepcopy(dict(own)), "step_id": new_ids[step_id], "status": "pending", "replaces": step_id}
        given = parts if step_id == target else None
        inner = given if given is not None else [stand_in(sub) for sub in substeps(node) if sub["step_id"] in wanting]
        if inner:
            made["subplan"] = {
                "parent_step_id": made["step_id"],
                "subplan_goal": made["description"],
                "substeps": inner,
                "created_by": "refinement",
            }
        return made

    grafts = [(node["step_id"], stand_in(node)) for node in tops]
    for node in nodes:
        node["status"] = "invalid"
    for step_id, graft in grafts:
        tree.insert_after(step_id, [graft])
    return new_ids


def follow_replacements(tree: Tree) -> None:
    """Make the steps that are still to run depend on the replacements of invalid steps."""
    stand_ins = {node["replaces"]: node["step_id"] for node, _ in tree.walk() if "replaces" in node}
    invalid = {node["step_id"] for node, _ in tree.walk() if node["status"] == "invalid"}
    for node, _ in tree.walk():
        if node["status"] == "pending" and "depends_on" in node:
            followed = (_last(needed, stand_ins, invalid) for needed in node["depends_on"])
            node["depends_on"] = list(dict.fromkeys(followed))


def last_stand_in(tree: Tree, step_id: str) -> str:
    """Return a step's replacement after all replacements; the step itself if it has none."""
    stand_ins = {node["replaces"]: node["step_id"] for node, _ in tree.walk() if "replaces" in node}
    return _last(step_id, stand_ins, {node["step_id"] for node, _ in tree.walk() if node["status"] == "invalid"})


def replaced_in(tree: Tree) -> dict[str, str]:
    """Return, by step_id, what each step replaces."""
    return {node["step_id"]: node["replaces"] for node, _ in tree.walk() if "replaces" in node}


def _last(step_id: str, stand_ins: Mapping[str, str], invalid: set[str]) -> str:
    seen = set()
    while step_id in invalid and step_id in stand_ins and step_id not in seen:
        seen.add(step_id)
        step_id = stand_ins[step_id]
    return step_id


def _wanting(tree: Tree, target: str, definition: Mapping[str, Any], parts: list[Node] | None) -> set[str]:
    wanting = {target}
    while True:
        before = len(wanting)
        for node, _ in tree.walk():
            if executed(node) and node["status"] != "invalid" and _rests_on(node, wanting):
                wanting.add(node["step_id"])
        for node, _ in tree.walk():
            if node["step_id"] in wanting and not (node["step_id"] == target and parts):
                own = definition if node["step_id"] == target else node
                wanting.update(_parts_to_gather(node, own, wanting))
        if len(wanting) == before:
            return wanting


def _rests_on(node: Node, wanting: set[str]) -> bool:
    return any(needed in wanting for needed in node.get("depends_on", ())) or any(
        sub["step_id"] in wanting for sub in substeps(node)
    )


def _parts_to_gather(node: Node, own: Mapping[str, Any], wanting: set[str]) -> list[str]:
    """Return the substeps that a step needs run again: the failed ones, else all where it is nothing but them."""
    ran = [sub for sub in substeps(node) if sub["status"] in ("complete", "failed")]
    failed = [sub["step_id"] for sub in ran if sub["status"] == "failed"]
    if failed or "tool" in own or "agent" in own or any(sub["step_id"] in wanting for sub in substeps(node)):
        return failed
    return [sub["step_id"] for sub in ran]


def _new_ids(tree: Tree, nodes: list[Node], target: str, wanted_id: str | None) -> dict[str, str]:
    taken, replaced = tree.ids(), replaced_in(tree)
    new_ids: dict[str, str] = {}
    for node in nodes:
        step_id = node["step_id"]
        first, number = fragment_of(step_id, replaced), 1
        while (made := f"{first}-r{number}") in taken:
            number += 1
        if step_id == target and wanted_id is not None and wanted_id not in taken:
            made = wanted_id
        taken.add(made)
        new_ids[step_id] = made
    return new_ids


def _parent_id(tree: Tree, node: Node) -> str | None:
    parent = tree.parent_of(node["step_id"])
    return parent["step_id"] if parent is not None else None


@dataclass
class Edit:
    """A change of a tree that can be made, and what it touches once it was."""

    fragment: str
    """The step that the attempt counts for, or PLAN."""
    change: Callable[[Edit, Tree], None]
    touched: set[str] = field(default_factory=set)
    """Pending steps with a new definition."""
    before: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    replaced: dict[str, str] = field(default_factory=dict)
    done: str = ""

    def make(self, tree: Tree) -> None:
        """Change the tree. Raises Unusable, TooDeep."""
        self.change(self, tree)


def edit_for(action: RefinementAction, tree: Tree, nesting: int) -> Edit:
    """Return the change that an action asks for. Raises Unusable where its target is not there or may not change."""
    if asks_for_answer(action):
        return _answer_again(tree)
    if action.type == "plan_update":
        if not steps_of(action.changes):
            raise Unusable("changes: expected 'steps'; a refinement keeps the goal")
        raise Unusable("changes: nothing would change; a step that is complete stays, unless it is marked invalid")
    if action.type == "step_add":
        return _add(action, tree, nesting)
    node = tree.find(action.target)
    if node is None:
        raise Unusable(f"target: no step of the plan has the id {shown(action.target)}")
    if node["status"] == "invalid":
        return edit_for(_on_stand_in(action, tree), tree, nesting)
    if (around := [each for each in tree.ancestors(action.target) if each["status"] == "invalid"]) and executed(node):
        raise Unusable(f"step {shown(action.target)} is a part of {shown(around[0]['step_id'])}, which was replaced")
    if node["status"] == "running":
        raise Unusable(f"step {shown(action.target)} is running")
    if action.type == "step_remove":
        return _remove(node)
    if executed(node):
        return _replace(action, node, nesting)
    if action.type == "step_mark_invalid":
        raise Unusable(f"step {shown(action.target)} has not run; modify or remove it instead")
    return _subplan(action, node, nesting) if action.type == "subplan_create" else _modify(action, node, nesting)


def _on_stand_in(action: RefinementAction, tree: Tree) -> RefinementAction:
    """Return an action on an invalid step as one on its replacement that is still to run.

    An earlier action of the same reply may have replaced both. Raises Unusable where there is none, or nothing new.
    """
    stand_in = tree.find(last_stand_in(tree, action.target))
    steps = steps_of(action.changes)
    if not action.changes or action.type == "step_remove" or stand_in is None or stand_in["status"] != "pending":
        raise Unusable(f"step {shown(action.target)} is already invalid: another step replaces it")
    target = stand_in["step_id"]
    kind = "subplan_create" if action.type == "subplan_create" else "step_modify"
    first = steps[0] if steps and kind == "step_modify" else None
    own = next((each for each in steps if stated_id(each) == action.target), first)
    renamed = [{**each, "id": None, "step_id": target} if each is own else each for each in steps]
    changes = {"steps": renamed} if steps else action.changes
    return action.model_copy(update={"type": kind, "target": target, "changes": changes})


def _answer_again(tree: Tree) -> Edit:
    """Return the change that changes no step: its acceptance makes the next pass answer again."""
    if not any(executed(node) for node, _ in tree.walk()):
        raise Unusable("no step has run, so that there is no answer to give again")

    def change(edit: Edit, _: Tree) -> None:
        edit.done = "the steps stay, the task is answered again"

    return Edit(PLAN, change)


def _add(action: RefinementAction, tree: Tree, nesting: int) -> Edit:
    raw = steps_of(action.changes)
    if not raw:
        raise Unusable("changes: expected the step to add")
    replaced = replaces_in(action)
    if replaced is not None and (node := tree.find(replaced)) is not None and executed(node):
        if node["status"] == "invalid":
            raise Unusable(f"step {shown(replaced)} is already invalid: another step replaces it")
        return _replace(action, node, nesting)
    first = stated_id(raw[0]) or fresh_id("new", tree.ids())
    raw = [{**raw[0], "id": None, "step_id": first}, *raw[1:]]

    def change(edit: Edit, tree: Tree) -> None:
        parent, anchor = place_for(action, raw, tree)
        depth = tree.depth_below(parent["step_id"] if parent is not None else None)
        nodes = new_steps(raw, tree, prefix=first, nesting=nesting, depth=depth)
        put(tree, nodes, parent, anchor)
        _note(edit, nodes)
        edit.done = f"added {', '.join(node['step_id'] for node in nodes)}"

    return Edit(added_to(action, tree), change)


def _remove(node: Node) -> Edit:
    step_id = node["step_id"]
    if any(executed(each) for each in subtree(node)):
        raise Unusable(f"step {shown(step_id)} was executed, or a part of it; what was executed stays")
    if "replaces" in node:
        raise Unusable(f"step {shown(step_id)} replaces the invalid step {shown(node['replaces'])}")

    def change(edit: Edit, tree: Tree) -> None:
        siblings = tree.siblings(step_id)
        if len(siblings) == 1:
            raise Unusable(f"step {shown(step_id)} is the only one there; a plan and a subplan keep at least one step")
        siblings[:] = [each for each in siblings if each["step_id"] != step_id]
        edit.before = {step_id}
        edit.done = f"removed {step_id}"

    return Edit(step_id, change)


def _modify(action: RefinementAction, node: Node, nesting: int) -> Edit:
    step_id = node["step_id"]
    own, parts = _definition_and_parts(action, step_id)

    def change(edit: Edit, tree: Tree) -> None:
        target = _target(tree, step_id)
        made = rewritten(target, own) if own is not None else dict(target)
        target.clear()
        target.update(made)
        edit.before, edit.shown, edit.touched = {step_id}, {step_id}, {step_id}
        if parts:
            _expand(edit, tree, target, parts, nesting)
        edit.done = f"rewrote {step_id}"

    return Edit(step_id, change)


def _subplan(action: RefinementAction, node: Node, nesting: int) -> Edit:
    step_id = node["step_id"]
    raw = [step for step in steps_of(action.changes) if stated_id(step) != step_id]

    def change(edit: Edit, tree: Tree) -> None:
        target = _target(tree, step_id)
        if any(executed(each) for each in subtree(target)):
            raise Unusable(f"step {shown(step_id)} has substeps that were executed; what was executed stays")
        edit.before, edit.shown, edit.touched = {step_id}, {step_id}, {step_id}
        _expand(edit, tree, target, raw, nesting)
        goal = action.changes.get("subplan_goal")
        if isinstance(goal, str) and goal.strip():
            target["subplan"]["subplan_goal"] = goal
        edit.done = f"expanded {step_id} into {_counted(substeps(target))}"

    return Edit(step_id, change)


def _expand(edit: Edit, tree: Tree, target: Node, raw: list[dict[str, Any]], nesting: int) -> None:
    depth = tree.depth_below(target["step_id"])
    if depth > nesting:
        raise TooDeep
    target.pop("subplan", None)
    nodes = new_steps(raw, tree, prefix=target["step_id"], nesting=nesting, depth=depth)
    target["subplan"] = subplan_of(target["step_id"], target["description"], nodes)
    edit.touched |= {each["step_id"] for node in nodes for each in subtree(node)}


def _replace(action: RefinementAction, node: Node, nesting: int) -> Edit:
    """Return the change for an executed step: it becomes invalid, and the action's step replaces it."""
    step_id = node["step_id"]
    own, parts = _definition_and_parts(action, step_id)

    def change(edit: Edit, tree: Tree) -> None:
        target = _target(tree, step_id)
        wanted = stated_id(own) if own is not None else None
        definition = {key: value for key, value in (own or {}).items() if key not in ("id", "step_id", "replaces")}
        fields = {key: value for key, value in definition.items() if value is not None and key != "parent"}
        made = rewritten(target, fields) if fields else target
        new = {key: copy.deepcopy(made[key]) for key in DEFINITION if key in made}
        depth = tree.depth_below(step_id)
        inner = new_steps(parts, tree, prefix=wanted or step_id, nesting=nesting, depth=depth) if parts else None
        edit.replaced = replace_executed(tree, step_id, new, inner, wanted)
        edit.before = {step_id}
        edit.shown = set(edit.replaced.values())
        edit.touched = {edit.replaced[step_id]} if fields else set()
        edit.touched |= {each["step_id"] for part in inner or () for each in subtree(part)}
        pairs = ", ".join(f"{old} by {new}" for old, new in edit.replaced.items())
        edit.done = f"executed steps are invalid and replaced: {pairs}"

    return Edit(step_id, change)


def _definition_and_parts(action: RefinementAction, step_id: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the new definition that changes give a step, and its new substeps as they are written. Raises Unusable."""
    steps = steps_of(action.changes)
    if action.type == "subplan_create":
        return None, [step for step in steps if stated_id(step) != step_id]
    if not steps:
        said = {key: value for key, value in action.changes.items() if key == "text"}
        if not said and action.type == "step_modify":
            raise Unusable("changes: expected a new description, tool, agent, arguments or depends_on")
        return (said or None), []
    own = next((step for step in steps if stated_id(step) == step_id), steps[0])
    parts = [step for step in steps if step is not own]
    subplan = own.get("subplan")
    if subplan is not None and not parts:
        parts = steps_of({"subplan": subplan})
    own = {key: value for key, value in own.items() if key not in ("subplan", "parent")}
    only_parts = all(own.get(key) is None for key in (*DEFINITION, "arguments_json"))
    return (None if only_parts and parts else own), parts


def _target(tree: Tree, step_id: str) -> Node:
    node = tree.find(step_id)
    assert node is not None
    return node


def _counted(parts: list[Node]) -> str:
    return "1 substep" if len(parts) == 1 else f"{len(parts)} substeps"


def _note(edit: Edit, nodes: list[Node]) -> None:
    edit.shown = {node["step_id"] for node in nodes}
    edit.touched = {each["step_id"] for node in nodes for each in subtree(node)}
