"""How the plans of two runs, or of two passes of one run, differ step by step, and what caused each change."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aeon_core.journal.values import str_of
from aeon_core.journal.view import formatting
from aeon_core.journal.view.model import RefinementView, RunView, StepView, refinements_of
from aeon_core.journal.view.reducer import describe, nodes
from aeon_core.units import count
from aeon_widgets.icons import SEVERITY_ICONS, STATUS_ICONS
from aeon_widgets.text import GAP, Block, one_line, pretty, readable, spaced

ADDED, REMOVED, CHANGED, INVALID = "+", "−", "~", STATUS_ICONS["invalid"]
ALIKE = 0.5
"""The least share of common words with which two steps may correspond; 1 means that all words are the same."""
MOST_PAIRS = 40_000
"""If there are more pairs of unmatched steps to compare, steps correspond only by their ids."""
_DEFINED = ("description", "tool", "agent", "arguments")
"""What a plan says about a step, in display order."""
_BECAME = ("status", "mode", "output", "errors")
"""What became of a step."""
_WORD = re.compile(r"\w+")
_READ = 2_000
"""Characters of a description that are compared."""
_OWN_TOOL = 2
"""The number of words that the tool counts as."""
_PLANNED = (*_DEFINED, "depends_on", "replaces", "parent")
"""Fields that say what a step does and where it is; of its status, only becoming invalid counts."""
_WORDS = {
    ADDED: ("added", "complete"),
    REMOVED: ("removed", "high"),
    CHANGED: ("changed", "accent"),
    INVALID: ("invalid", "medium"),
}
_NOTHING = "none"
_INDENT = "  "
_SHORT = 40
"""The longest two values that are shown on one line, in characters."""


@dataclass(frozen=True)
class StepPair:
    """Corresponding steps of two plans, or a step that only one has, and the fields in which they differ."""

    left: StepView | None
    right: StepView | None
    changed: tuple[str, ...] = ()

    @property
    def step(self) -> StepView:
        """The step of the right plan, else that of the left one."""
        step = self.right or self.left
        assert step is not None
        return step

    @property
    def differs(self) -> bool:
        """Whether a field differs, or one of the plans lacks the step."""
        return self.left is None or self.right is None or bool(self.changed)


def pair_steps(left: Mapping[str, StepView], right: Mapping[str, StepView], *, outputs: bool = True) -> list[StepPair]:
    """Return the steps of two runs' plans, each with its counterpart.

    That is a step with the same id that is alike, else the most alike one, else one with the same id. Without `outputs`
    only the plan and statuses are compared, which even a view of only a journal's end knows.
    """
    return _pairs(left, right, _partners(left, right), (*_DEFINED, *_BECAME) if outputs else (*_DEFINED, "status"))


def _pairs(
    left: Mapping[str, StepView], right: Mapping[str, StepView], partner: Mapping[str, str], fields: Sequence[str]
) -> list[StepPair]:
    """Return the steps in the order of the right plan; one of only the left plan follows its predecessor there."""
    of_right = {other: step_id for step_id, other in partner.items()}
    following: dict[str | None, list[StepPair]] = defaultdict(list)
    before: str | None = None
    for step in left.values():
        if step.step_id in partner:
            before = step.step_id
        else:
            following[before].append(StepPair(step, None))
    pairs = following.pop(None, [])
    for step in right.values():
        mate = of_right.get(step.step_id)
        if mate is None:
            pairs.append(StepPair(None, step))
        else:
            changed = tuple(name for name in fields if _differs(name, left[mate], step))
            pairs += [StepPair(left[mate], step, changed), *following[mate]]
    return pairs


def _differs(name: str, left: StepView, right: StepView) -> bool:
    # A fork does not know how the steps before it were done; the status says if one was not done.
    if name == "mode" and None in (left.mode, right.mode):
        return False
    one, other = (_in_order(name, getattr(step, name)) for step in (left, right))
    return one != other


def _in_order(name: str, value: Any) -> str:
    """Return a field's text, independent of the order of an object's keys."""
    return pretty(value, in_order=True) if isinstance(value, dict) else value_text(name, value)


def _partners(left: Mapping[str, StepView], right: Mapping[str, StepView]) -> dict[str, str]:
    """Return the id of the right counterpart of each left step."""
    shared = [step_id for step_id in left if step_id in right]
    partner = {step_id: step_id for step_id in shared if likeness(left[step_id], right[step_id]) >= ALIKE}
    free = [step for step in left.values() if step.step_id not in partner]
    others = [step for step in right.values() if step.step_id not in partner]
    # The most alike first, then those nearest to each other.
    found = sorted(
        (-how, abs(place - there), step.step_id, other.step_id)
        for place, step in enumerate(free)
        for there, other in enumerate(others if len(free) * len(others) <= MOST_PAIRS else ())
        if (how := likeness(step, other)) >= ALIKE
    )
    partners = set(partner.values())
    for step_id, other_id in [*((each[2], each[3]) for each in found), *((step_id, step_id) for step_id in shared)]:
        if step_id not in partner and other_id not in partners:
            partner[step_id] = other_id
            partners.add(other_id)
    return partner


def likeness(one: StepView, other: StepView) -> float:
    """Return the similarity of two steps, 0…1: the share of words, including the tool, that both have."""
    words, others = _words_of(one.description, one.tool), _words_of(other.description, other.tool)
    total = sum(words.values()) + sum(others.values())
    return 2 * sum((words & others).values()) / total if total else 1.0


@lru_cache(maxsize=4_096)
def _words_of(description: str, tool: str | None) -> Counter[str]:
    words = Counter(_WORD.findall(description[:_READ].casefold()))
    if tool is not None:
        words[f"tool:{tool}"] = _OWN_TOOL
    return words


def value_text(name: str, value: Any) -> str:
    """Return a field of a step as text for a comparison."""
    if value is None or value == []:
        return "–"
    if name == "output":
        return readable(value)
    if name == "errors":
        return "\n".join(value)
    if name == "status":
        return f"{STATUS_ICONS.get(value, '?')} {value}"
    return value if isinstance(value, str) else pretty(value)


def difference_blocks(before: RunView, after: RunView, named: tuple[str, str], keys: str) -> list[Block]:
    """Return what differs in the plan of `after`, a later view of the same run; `named` are names of the views.

    `keys` says which keys choose other passes.
    """
    head: list[Block] = [("accent bold", f"━━ Plan · {named[0]} → {named[1]}"), ("muted", keys)]
    return head + changes(before, after)


def changes(before: RunView, after: RunView) -> list[Block]:
    """Return what differs in the plan of `after`, on one line and in full."""
    changed: list[Block] = []
    pairs = _planned(before, after)
    for pair in pairs:
        if difference := list(_step(pair, after)):
            touched = refinements_of(after, pair.step.step_id)
            since = (each for each in touched if each.accepted and each.seq > before.last_seq)
            changed += [*difference, *(block for each in since for block in _refinement(each)), GAP]
    refused = [each for each in after.refinements if not each.accepted and each.seq > before.last_seq]
    head = list(_field("goal", before.goal, after.goal)) if before.goal != after.goal else []
    body = [*(changed or [("muted", "No step was added, removed or changed.")]), *_ran(before, after)]
    refusals: list[Block] = [GAP, ("accent bold", "━━ Refused"), *spaced(map(_refinement, refused))] if refused else []
    return [*head, ("", _summary(pairs)), GAP, *body, *refusals]


def plan_change(
    plan: Mapping[str, Any], refinements: Sequence[RefinementView], later: Sequence[RefinementView] = ()
) -> tuple[str, list[Block]]:
    """Return what refinements changed, on one line and in full; `plan` is the result of these and the `later` ones."""
    after = _undone(plan_view(plan), later)
    before = _undone(after, refinements)
    pairs = _planned(before, after)
    blocks: list[Block] = [block for pair in pairs for block in _step(pair, after)]
    done = dict.fromkeys(one_line(each.reason, 500) for each in refinements if each.accepted and each.reason)
    blocks += [("muted", f"because: {reason}") for reason in done]
    for each in refinements:
        if not each.accepted:
            what = f"✖ refused: {formatting.refinement_words(each)}"
            blocks.append(("medium", f"{what}: {one_line(each.explanation, 500)}"))
    return _summary(pairs), blocks


def plan_view(plan: Mapping[str, Any]) -> RunView:
    """Return a view with only a plan."""
    view = RunView(goal=str_of(plan.get("goal")))
    for node, depth, parent in nodes(plan):
        step = view.steps[str(node["step_id"])] = StepView(step_id=str(node["step_id"]), description="")
        describe(step, node, depth, parent)
    return view


def _undone(view: RunView, refinements: Sequence[RefinementView]) -> RunView:
    """Return the plan as it was before refinements: without what they added, and with what they changed restored."""
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


def _planned(before: RunView, after: RunView) -> list[StepPair]:
    """Return the step pairs of two plans of one run, in which a step keeps its id."""
    return _pairs(before.steps, after.steps, {each: each for each in before.steps if each in after.steps}, _PLANNED)


def _step(pair: StepPair, after: RunView) -> Iterator[Block]:
    """Yield a step that changed, with its differences."""
    old, new, step, sign = pair.left, pair.right, pair.step, _kind(pair)
    if not sign:
        return
    indent = _INDENT * step.depth
    yield _WORDS[sign][1], f"{indent}{sign} {one_line(step.step_id, 40)} {one_line(step.description, 300)}"
    if sign == CHANGED and old is not None and new is not None:
        for name in pair.changed:
            if name == "arguments":
                yield from _arguments(old.arguments or {}, new.arguments or {})
            else:
                yield from _field(name.replace("_", " "), getattr(old, name), getattr(new, name))
    elif sign == ADDED and step.tool is not None:
        yield "muted", f"{indent}{_INDENT}calls {one_line(step.tool, 100)}"
        yield from _arguments({}, step.arguments or {})
    elif sign == INVALID:
        instead = [one_line(each.step_id, 40) for each in after.steps.values() if each.replaces == step.step_id]
        yield from [("muted", f"{indent}{_INDENT}replaced by {', '.join(instead)}")] if instead else ()


def _arguments(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Block]:
    """Yield each argument that differs."""
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield from _field(one_line(name, 100), before.get(name), after.get(name))


def _kind(pair: StepPair) -> str:
    """Return the sign of how a step changed, empty if it did not."""
    if pair.left is None or pair.right is None:
        return ADDED if pair.left is None else REMOVED
    if pair.right.status == "invalid" and pair.left.status != "invalid":
        return INVALID
    return CHANGED if pair.changed else ""


def _summary(pairs: Sequence[StepPair]) -> str:
    kinds = [*map(_kind, pairs)]
    counts = [f"{sign} {kinds.count(sign)} {word}" for sign, (word, _) in _WORDS.items() if sign in kinds]
    same = [f"{count(kinds.count(''), 'step')} as before"] if "" in kinds else []
    return " · ".join([*counts, *same]) or "no steps"


def _field(name: str, before: Any, after: Any) -> Iterator[Block]:
    old, new = _described(before), _described(after)
    if len(old) + len(new) <= _SHORT and "\n" not in old + new:
        yield "", f"{_INDENT}{name}: {old} → {new}"
        return
    yield "muted", f"{_INDENT}{name}"
    yield "high", f"{_INDENT}− {old}"
    yield "complete", f"{_INDENT}+ {new}"


def _described(value: Any) -> str:
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
    """Yield why a refinement was made, the issues that caused it, and what was done or why not."""
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
    """Return on one line which steps only changed their status, which does not make the plan different."""
    ran = [
        f"{one_line(step_id, 40)} {old.status} → {new.status}"
        for step_id, new in after.steps.items()
        if (old := before.steps.get(step_id)) is not None and old.status != new.status and new.status != "invalid"
    ]
    return [("muted", f"ran: {' · '.join(ran)}")] if ran else []
