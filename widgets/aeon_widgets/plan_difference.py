"""What became of the plan between two passes: its steps field by field, and what caused each change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aeon_core.journal.values import str_of
from aeon_core.journal.view import formatting
from aeon_core.journal.view.model import RefinementView, RunView, StepView
from aeon_core.journal.view.reducer import describe, nodes
from aeon_core.journal.view.step_issues import refinements_of
from aeon_widgets.icons import SEVERITY_ICONS, STATUS_ICONS
from aeon_widgets.issues import GAP
from aeon_widgets.text import Block, count, one_line, pretty

ADDED, REMOVED, CHANGED, INVALID = "+", "−", "~", STATUS_ICONS["invalid"]
_FIELDS = ("description", "tool", "agent", "arguments", "depends_on", "replaces", "parent")
"""Fields of a step that say what it does and where it is; of its status, only that it became invalid."""
_WORDS = {
    ADDED: ("added", "complete"),
    REMOVED: ("removed", "high"),
    CHANGED: ("changed", "accent"),
    INVALID: ("invalid", "medium"),
}
_NOTHING = "none"
_INDENT = "  "
_SHORT = 40
"""The longest two values that are shown side by side, in characters."""


def difference_blocks(before: RunView, after: RunView, named: tuple[str, str], keys: str) -> list[Block]:
    """Return what is different in the plan of `after`; both are views of one run, named as a person knows them.

    `keys` says how other passes are chosen.
    """
    head: list[Block] = [("accent bold", f"━━ Plan · {named[0]} → {named[1]}"), ("muted", keys)]
    return head + changes(before, after)


def changes(before: RunView, after: RunView) -> list[Block]:
    """Return what is different in the plan of `after`, on one line and in full."""
    changed: list[Block] = []
    for step_id in _order(before, after):
        if difference := list(_step(before, after, step_id)):
            since = (each for each in refinements_of(after, step_id) if each.accepted and each.seq > before.last_seq)
            changed += [*difference, *(block for each in since for block in _refinement(each)), GAP]
    refused = [each for each in after.refinements if not each.accepted and each.seq > before.last_seq]
    head = list(_field("goal", before.goal, after.goal)) if before.goal != after.goal else []
    body = [*(changed or [("muted", "No step was added, removed or changed.")]), *_ran(before, after)]
    told = [block for each in refused for block in (*_refinement(each), GAP)]
    refusals: list[Block] = [GAP, ("accent bold", "━━ Refused"), *told[:-1]] if told else []
    return [*head, ("", _summary(before, after)), GAP, *body, *refusals]


def plan_change(
    plan: Mapping[str, Any], refinements: Sequence[RefinementView], later: Sequence[RefinementView] = ()
) -> tuple[str, list[Block]]:
    """Return what refinements changed, in a line and in full. `plan` is the one that they led to, and `later` ones."""
    after = _undone(plan_view(plan), later)
    before = _undone(after, refinements)
    blocks: list[Block] = []
    for step_id in _order(before, after):
        blocks += _step(before, after, step_id)
    done = dict.fromkeys(one_line(each.reason, 500) for each in refinements if each.accepted and each.reason)
    blocks += [("muted", f"because: {reason}") for reason in done]
    for each in refinements:
        if not each.accepted:
            what = f"✖ refused: {formatting.refinement_words(each)}"
            blocks.append(("medium", f"{what}: {one_line(each.explanation, 500)}"))
    return _summary(before, after), blocks


def plan_view(plan: Mapping[str, Any]) -> RunView:
    """Return a view that has only a plan."""
    view = RunView(goal=str_of(plan.get("goal")))
    for node, depth, parent in nodes(plan):
        step = view.steps[str(node["step_id"])] = StepView(step_id=str(node["step_id"]), description="")
        describe(step, node, depth, parent)
    return view


def _undone(view: RunView, refinements: Sequence[RefinementView]) -> RunView:
    """Return the plan as it was before refinements: what they added is gone, what they changed is as it was."""
    steps = dict(view.steps)
    for each in reversed(refinements):
        if not each.accepted:
            continue
        before = {str(node["step_id"]): node for node, _, _ in nodes({"steps": each.before})}
        for node, _, _ in nodes({"steps": each.after}):
            if node["step_id"] not in before:
                steps.pop(str(node["step_id"]), None)
        for step_id, node in before.items():
            known = steps.get(step_id)
            steps[step_id] = step = StepView(step_id=step_id, description="")
            describe(step, node, known.depth if known else 0, known.parent if known else None)
    return RunView(steps=steps)


def _step(before: RunView, after: RunView, step_id: str) -> Iterator[Block]:
    """Yield a step that is different, with what a person needs to see of it."""
    old, new = before.steps.get(step_id), after.steps.get(step_id)
    sign, step = _kind(old, new), new or old
    if not sign or step is None:
        return
    indent = _INDENT * step.depth
    yield _WORDS[sign][1], f"{indent}{sign} {one_line(step_id, 40)} {one_line(step.description, 300)}"
    if sign == CHANGED and old is not None and new is not None:
        for name in _fields(old, new):
            if name == "arguments":
                yield from _arguments(old.arguments or {}, new.arguments or {})
            else:
                yield from _field(name.replace("_", " "), getattr(old, name), getattr(new, name))
    elif sign == ADDED and step.tool is not None:
        yield "muted", f"{indent}{_INDENT}calls {one_line(step.tool, 100)}"
        yield from _arguments({}, step.arguments or {})
    elif sign == INVALID and (instead := _instead(after, step_id)):
        yield "muted", f"{indent}{_INDENT}replaced by {', '.join(instead)}"


def _arguments(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Block]:
    """Yield each argument that is another."""
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield from _field(one_line(name, 100), before.get(name), after.get(name))


def _order(before: RunView, after: RunView) -> list[str]:
    """Return all steps in the order of the later plan; a removed step follows the one that it followed."""
    order = list(after.steps)
    previous: str | None = None
    for step_id in before.steps:
        if step_id not in after.steps:
            order.insert(order.index(previous) + 1 if previous is not None else 0, step_id)
        previous = step_id
    return order


def _kind(before: StepView | None, after: StepView | None) -> str:
    """Return the sign of what became of a step, empty where it is as it was."""
    if before is None or after is None:
        return ADDED if before is None else REMOVED
    if after.status == "invalid" and before.status != "invalid":
        return INVALID
    return CHANGED if _fields(before, after) else ""


def _fields(before: StepView, after: StepView) -> list[str]:
    return [name for name in _FIELDS if getattr(before, name) != getattr(after, name)]


def _summary(before: RunView, after: RunView) -> str:
    kinds = [_kind(before.steps.get(step_id), after.steps.get(step_id)) for step_id in _order(before, after)]
    told = [f"{sign} {kinds.count(sign)} {word}" for sign, (word, _) in _WORDS.items() if sign in kinds]
    return " · ".join([*told, f"{count(kinds.count(''), 'step')} as before"])


def _instead(view: RunView, step_id: str) -> list[str]:
    return [one_line(step.step_id, 40) for step in view.steps.values() if step.replaces == step_id]


def _field(name: str, before: Any, after: Any) -> Iterator[Block]:
    old, new = _told(before), _told(after)
    if len(old) + len(new) <= _SHORT and "\n" not in old + new:
        yield "", f"{_INDENT}{name}: {old} → {new}"
        return
    yield "muted", f"{_INDENT}{name}"
    yield "high", f"{_INDENT}− {old}"
    yield "complete", f"{_INDENT}+ {new}"


def _told(value: Any) -> str:
    if value in (None, "", []):
        return _NOTHING
    if isinstance(value, str):
        return value.replace("\n", f"\n{_INDENT}  ")
    if isinstance(value, Mapping):
        short = json.dumps(value, ensure_ascii=False, default=str)
        if len(short) <= _SHORT:
            return short
        return pretty(value).replace("\n", f"\n{_INDENT}")
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(one_line(each, 80) for each in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _refinement(shown: RefinementView) -> Iterator[Block]:
    """Yield why a refinement was made, the words of the issues that it goes back to, and what was done or why not."""
    icon, outcome = (STATUS_ICONS["complete"], "accepted") if shown.accepted else ("✖", "refused")
    what = f"{formatting.refinement_words(shown)}, {outcome} in pass {shown.pass_number}"
    yield "accent" if shown.accepted else "medium", f"{icon} {what}: {one_line(shown.reason, 500)}"
    for issue in shown.issues:
        style = issue.severity if issue.severity in SEVERITY_ICONS else ""
        icon = SEVERITY_ICONS.get(issue.severity, "?")
        yield style, f"{icon} {formatting.issue_head(issue)}: {one_line(issue.description, 500)}"
    if shown.explanation:
        yield "muted", f"{'done' if shown.accepted else 'why not'}: {one_line(shown.explanation, 500)}"


def _ran(before: RunView, after: RunView) -> list[Block]:
    """Return in one line which steps have got another status without being changed; a plan is not different by that."""
    ran = [
        f"{one_line(step_id, 40)} {old.status} → {new.status}"
        for step_id, new in after.steps.items()
        if (old := before.steps.get(step_id)) is not None and old.status != new.status and new.status != "invalid"
    ]
    return [("muted", f"ran: {' · '.join(ran)}")] if ran else []
