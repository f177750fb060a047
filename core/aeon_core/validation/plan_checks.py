"""Exact checks on a plan: what code can prove, in any language, without a model (Decision 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from difflib import SequenceMatcher
from itertools import permutations
from posixpath import basename, dirname, isabs, normpath, splitext
from typing import TYPE_CHECKING, Any, TypeVar

from aeon_core.entities import Finding
from aeon_core.errors import UsageError
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import PlanEntry
from aeon_core.suggest import check_type, close

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry


_FIGURE = r"(?<![\w.,:/–-])(?<!\d[ \u00a0\u202f'’])(\d+(?:\.\d+)?)"
_NUMBER = re.compile(_FIGURE + r"(?![\w:/-]|[.,]\d)")
_MEASURE = re.compile(
    _FIGURE + r"[ \u00a0]?(%|°[CF]|[€$£¥]|[kKMGT]?i?B|[mck]?m|[mµk]?g|[mcd]?[lL]|[mµn]?s|min|h|px|[kM]?Wh?|k?V|"
    r"[kMG]?Hz)(?!\w)"
)
_PRICE = re.compile(r"([€$£¥])(\d+(?:\.\d+)?)(?!\w|[.,]\d)")
_KINDS = {
    "URL": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>`)\]}]*[^\s\"'<>`)\]}.,;:!?]", re.IGNORECASE),
    "email address": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "date": re.compile(r"(?<![\d-])\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.Z+-]*)?(?![\d-])"),
    # Three parts or a number at the end: db.example.org, 10.0.0.1, host-7, Q3.
    "name": re.compile(
        r"(?<![\w@:/.+-])(?:(?:\d{1,3}\.){3}\d{1,3}|(?=[\w.-]*[^\W\d_]{2})[\w-]+(?:\.[\w-]+){2,}|"
        r"(?=[\w-]*[^\W\d_])[\w-]*\d)(?![\w@/-]|[.,:]\w)"
    ),
    "path": re.compile(
        r"(?<![\w@:/.+-])(?:(?:~|\.{1,2})?/)?(?:(?:[\w@.+-]+/)+[\w@+-][\w@.+-]*|"
        r"[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,5})(?<![.,])(?![\w@/])"
    ),
}
_QUOTED = re.compile(
    r"(`)([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|«([^»\n]{2,80})»|„([^“”\n]{2,80})[“”]|「([^」\n]{2,80})」"
)
_WORD = re.compile(
    "[\u3040-\u30ff\u3400-\u9fff]|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{1,4}|"
    "[^\\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff][^\\s\u3040-\u30ff\u3400-\u9fff]*"
)
"""A word; in a script without spaces, about as much."""
_MANY, _LONGEST = 50, 5_000
"""The most text arguments of a step that are checked; characters of each, and of a description."""
_FEW, _FEWER = 4, 2
"""So few words around a literal that it can hardly be just related to the other; and so few that it almost cannot."""
_SCALES = (1e-3, 1e-2, 0.1, 10, 100, 1e3, 60, 1 / 60, 3600, 1 / 3600, 24, 7, 86400)
Mismatch = tuple[str, str, str, bool]
"""Kind, described and passed literal, and whether almost no words surround it."""


def mismatch(description: str, arguments: dict[str, Any], *, reads: bool) -> Mismatch | None:
    """Return the literal that the arguments provably contradict; `reads` says that the tool changes nothing."""
    if len(description) > _LONGEST:
        return None
    texts, bare = list(_texts(arguments)), description
    for kind, pattern in _KINDS.items():
        passed = {text for text in texts if pattern.fullmatch(text)}
        described = set(pattern.findall(bare)) if len(passed) == 1 else set()
        bare = pattern.sub(" ", bare)
        # A path among other texts may be where they are written to rather than what they are about.
        if len(described) == len(passed) == 1 and (kind != "path" or reads or len(texts) == 1):
            one, other = described.pop(), passed.pop()
            is_explained = any(one in text for text in texts if text != other) or other in description.replace(one, " ")
            words = _words(*description.split(one, 1))
            if not is_explained and (_days if kind == "date" else _apart)(one, other, words, kind):
                return kind, one, other, words <= _FEWER
    return _measure(description, bare, texts) or _number(bare, arguments) or _quote(description, texts)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts among the arguments, at most _MANY."""
    stack, left = [value], _MANY
    while stack and left:
        item = stack.pop()
        if isinstance(item, str):
            left -= 1
            yield item[:_LONGEST].strip()
        elif isinstance(item, dict | list):
            stack.extend(item.values() if isinstance(item, dict) else item)


def _words(*sides: str) -> int:
    """Return how many words surround a literal; more than any limit if _FEW are on one side."""
    counts = [len(_WORD.findall(side)) for side in sides]
    return sum(counts) if max(counts) < _FEW else sum(counts) + _FEW


def _apart(one: str, other: str, words: int, kind: str) -> bool:
    """Return whether two literals differ: the numbers are far apart, or few words could relate them."""
    one, other = (normpath(re.sub("[?#]", "/", text.casefold())) for text in (one, other))
    parts, others = re.split(r"(\d{1,18})", one), re.split(r"(\d{1,18})", other)
    gaps = [abs(int(a) - int(b)) for a, b in zip(parts[1::2], others[1::2], strict=False) if a != b]
    if parts[::2] == others[::2] and len(gaps) < 2:
        return sum(gaps) > 1 or (sum(gaps) == 1 and words <= _FEWER)
    one = re.sub("^http:", "https:", one)
    if any(f"/{a.strip('/')}/" in f"/{b.strip('/')}/" for a, b in ((one, other), (other, one))):
        return False
    if kind in ("URL", "email address"):
        sites = [re.split("[/@]", text)[1].split(".")[-2:] for text in (one, other)]
        return words <= _FEW or sites[0] != sites[1]
    if kind == "name":
        labels = [text.split(".") for text in (one, other)]
        alike = len(labels[0]) == len(labels[1]) > 2 and sum(map(str.__ne__, *labels)) == 1
        return words <= _FEW and (alike or not re.search(r"[^\d.]", one + other))
    (stem, ending), (other_stem, other_ending) = splitext(basename(one)), splitext(basename(other))
    near = stem == other_stem or dirname(one) == dirname(other)
    far = stem not in other_stem and (ending != "" or (isabs(one) and isabs(other)))
    return words <= _FEW and ending == other_ending and (near or far)


def _days(one: str, other: str, words: int, _kind: str) -> bool:
    """Return whether two dates differ, not just by a day, week or month, or with few words around; times may differ in
    zone.
    """
    try:
        first, second = date.fromisoformat(one[:10]), date.fromisoformat(other[:10])
    except ValueError:
        return False
    days = abs((first - second).days)
    step = days < 7 or days % 7 == 0 or first.day == second.day or {first.day, second.day} <= {1, 28, 29, 30, 31}
    return days > (len(one) != len(other)) and (words <= _FEWER or not step)


def _measure(description: str, bare: str, texts: list[str]) -> Mismatch | None:
    """Return a figure that differs from the description's only one with the same unit."""
    bare, *texts = (_PRICE.sub(r"\2 \1", text) for text in (bare, *texts))
    found = _MEASURE.findall(bare)
    passed = [m for text in texts if (m := _MEASURE.fullmatch(text)) and found and m[2] == found[0][1]]
    if not len(found) == len(passed) == len(re.findall(r"\d+(?:\.\d+)?", bare)) == 1:
        return None
    [(number, unit)], value = found, passed[0][1]
    # A part of it, or the rest to a hundred, may be what the description asks for.
    parts = [float(number) / part for part in (1, 2, 3, 4)] + [100 - float(number)] * (unit == "%")
    alone = _words(*description.split(number, 1)) <= _FEWER
    return None if float(value) in parts else ("figure", f"{number} {unit}", passed[0][0], alone)


def _number(description: str, arguments: dict[str, Any]) -> Mismatch | None:
    """Return the only one of a few numbers that no other leads to; a single one if its argument's name follows it."""
    described = {float(number) for number in _NUMBER.findall(description)}
    passed = {name: x for name, x in arguments.items() if isinstance(x, int | float) and not isinstance(x, bool)}
    given = {float(value) for value in passed.values() if abs(value) < 1e300}
    one, other, words = described - given, given - described, _words(_NUMBER.sub(" ", description))
    if not len(one) == len(other) == 1 or not len(described) == len(given) == len(passed) <= 9 or words > _FEW:
        return None
    number, value = one.pop(), other.pop()
    if len(described) == 1 and not any(f"{number:g} {name}" in description for name in passed if words <= _FEWER):
        return None
    led_to = {0.0, *(number * scale for scale in _SCALES if len(described) > 1)}
    led_to |= {number + 1, number - 1} if words > _FEWER else set()
    for a, b in permutations(described, 2):
        led_to |= {a + b, a - b, a - b + 1, a - b - 1, a * b, (a - 1) * b, a / (b or 1)}
    return None if value in led_to else ("number", f"{number:g}", f"{value:g}", words <= _FEWER)


def _quote(description: str, texts: list[str]) -> Mismatch | None:
    """Return a quoted text for which another version is passed, or code in backticks for which other code is."""
    code, text = next(((groups[0], "".join(groups[1:])) for groups in _QUOTED.findall(description)), ("", ""))
    texts = [passed for passed in texts if not code or not passed.isalpha()]
    words = _words(*description.split(text, 1)) if text and len(_QUOTED.findall(description)) == 1 else _LONGEST
    if len(texts) != 1 or words > _FEW:
        return None
    one, other = ("".join(filter(str.isalnum, each.casefold())) for each in (text, texts[0]))
    alike = len(other) <= 2 * len(one) and SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.6
    differs = (alike or (code and words <= _FEWER and not text.isalpha())) and one not in other and other not in one
    return ("text", text, texts[0], words <= _FEWER) if differs else None


_MAX_NAME = 200
_Step = TypeVar("_Step", PlanStep, PlanEntry)


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Whether something is valid, with every reason if not."""

    valid: bool
    errors: list[str] = field(default_factory=list)


def validate_step_tool(step: PlanStep, registry: ToolRegistry) -> ValidationResult:
    """Return whether the step can be executed as it is, and set `step.errors` accordingly (Decision 12).

    A tool must be registered and takes precedence over the agent; without a tool, `agent: llm` or a subplan suffices.
    `step.errors` becomes None if the step is valid; the status stays (core FR-058). Raises UsageError for anything but
    a PlanStep and a registry.
    """
    check_type(step, PlanStep, "the step")
    if not callable(getattr(registry, "get", None)):
        raise UsageError(f"the registry is of type {type(registry).__name__}, expected a ToolRegistry")
    if step.tool is not None:
        error = None if registry.get(step.tool) is not None else _not_found(step.tool)
    elif step.agent is None and step.subplan is None:
        error = "Step has neither a tool nor agent 'llm'"
    else:
        error = None
    if error is None:
        if step.errors is not None:
            step.errors = None
        return ValidationResult(True)
    step.errors = [error]
    return ValidationResult(False, [error])


def validate_tool_call(name: str, arguments: Any, registry: ToolRegistry) -> ValidationResult:
    """Return whether the tool is registered and the arguments fit its input_schema (core FR-025)."""
    if registry.get(name) is None:
        return ValidationResult(False, [_not_found(name)])
    if not isinstance(arguments, dict):
        return ValidationResult(False, [f"arguments: expected an object, got {type(arguments).__name__}"])
    errors = registry.input_schema(name).errors(arguments)
    return ValidationResult(not errors, errors)


def validate_plan_tools(plan: Plan, registry: ToolRegistry) -> dict[str, list[str]]:
    """Return the errors of every invalid step of the tree by step_id, and set each step's `errors` (core FR-063).

    Steps that have been executed are left alone.
    """
    invalid = {}
    for step in plan.walk():
        if not step.executed and not (result := validate_step_tool(step, registry)).valid:
            invalid[step.step_id] = result.errors
    return invalid


def _not_found(name: str) -> str:
    return f"Tool {name[:_MAX_NAME]!r} not found in registry"


_MAX_SHOWN = 80


def clip(text: str) -> str:
    """Return a text on one line for a message, at most 80 characters and quoted."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…")


def check_plan(plan: Plan, registry: ToolRegistry) -> list[Finding]:
    """Return the problems of pending steps; executed ones can no longer change.

    Unregistered tools, arguments that do not fit the tool's input_schema, dependencies on unknown or later steps, calls
    that repeat an earlier one, and literals that the arguments contradict (adaptive FR-037 to FR-040).
    """
    order, to_run = end_order(plan), [step for step in plan.walk() if not step.executed]
    found = [finding for step in to_run for finding in check_tool(step, registry)]
    found += [finding for step in to_run for finding in check_dependencies(step, order)]
    return [*found, *check_calls(plan, registry)]


def check_tool(step: PlanStep, registry: ToolRegistry) -> Iterator[Finding]:
    """Yield a tool that is not registered, and each argument that does not fit its input_schema."""
    if step.tool is None:
        return
    if registry.get(step.tool) is None:
        near = close(step.tool, [known.name for known in registry], 0.5)
        repair = f"Call {near!r} instead." if near else "Set tool to null and agent to 'llm', or register the tool."
        yield Finding("hallucination", "high", step.step_id, f"the tool {step.tool[:100]!r} is not registered", repair)
    elif step.arguments is not None:
        for error in registry.input_schema(step.tool).errors(step.arguments):
            repair = f"Change the arguments to fit the input_schema of {step.tool!r}: {error}."
            yield Finding("consistency", "high", step.step_id, f"the arguments do not fit: {error}", repair)


def check_dependencies(step: PlanStep, order: dict[str, int]) -> Iterator[Finding]:
    """Yield dependencies on steps that do not exist or do not end before the step runs, which includes every cycle.

    `order` has each step's position in the order in which steps end.
    """
    for needed in dict.fromkeys(step.depends_on or ()):
        if needed not in order:
            why, repair = "no step has that id", "name an earlier step"
        elif order[needed] >= order.get(step.step_id, len(order)):
            why, repair = "that step does not end before this one runs", "move this step after it"
        else:
            continue
        description = f"depends_on names {needed[:100]!r}: {why}"
        proposed = f"Remove {needed[:100]!r} from depends_on, or {repair}."
        yield Finding("consistency", "high", step.step_id, description, proposed)


def check_calls(plan: Plan, registry: ToolRegistry) -> Iterator[Finding]:
    """Yield calls whose outcome an earlier step has already, and arguments that contradict a literal."""
    seen: dict[str, str] = {}
    calls = ""
    for step in plan.walk():
        tool = registry.get(step.tool) if step.tool is not None else None
        if tool is None or tool.effect != "pure":
            # Any other step may change what a call returns.
            seen = {} if step.tool is not None else seen
        if tool is None or step.arguments is None:
            continue
        call = json.dumps([tool.name, step.arguments], sort_keys=True, ensure_ascii=False)
        if tool.effect == "pure" and not step.executed and call in seen:
            description = f"the step repeats the call of step {seen[call]!r}: same tool, same arguments"
            repair = f"Remove the step, and use the result of {seen[call]!r}."
            yield Finding("relevance", "low", step.step_id, description, repair)
        seen.setdefault(call, step.step_id)
        found = None if step.executed else mismatch(step.description, step.arguments, reads=tool.effect == "pure")
        # A value that an earlier call or the goal also names may be this step's starting point.
        is_explained = found is not None and (
            (not found[3] and found[1] in calls) or all(x in plan.goal for x in found[1:3])
        )
        if found is not None and not is_explained:
            kind, described, passed, alone = found
            description = f"the description names the {kind} {clip(described)}, the arguments {clip(passed)}"
            repair = f"Make description and arguments name the same {kind}."
            yield Finding("do_say_mismatch", "high" if alone else "medium", step.step_id, description, repair)
        calls += call


def end_order(plan: Plan) -> dict[str, int]:
    """Return each step_id's position in the order in which the plan's steps end."""
    return completion_order(plan.steps, lambda step: step.substeps)


def completion_order(steps: list[_Step], substeps: Callable[[_Step], list[_Step]]) -> dict[str, int]:
    """Return each step_id's position in the order in which steps end: substeps before their parent."""
    stack, last_first = list(steps), []
    while stack:
        last_first.append(stack.pop())
        stack.extend(substeps(last_first[-1]))
    order: dict[str, int] = {}
    for step in reversed(last_first):
        if step.step_id is not None:
            order.setdefault(step.step_id, len(order))
    return order
