"""Steps that say one thing and call a tool that does another (adaptive FR-038)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import ACTIONS, OPPOSITES
from aeon_core.validation.semantic.stems import stem, stems, words
from aeon_core.validation.semantic.views import PlanView, StepView, ToolView

_DISTINCT = words("delete send write translate plot schedule restart resize")
"""Actions that only a tool made for them takes."""

_DRASTIC = words("delete send restart")
_WITH_FILE = frozenset({"write"})
_PASSIVE = words("read arithmetic statistics sort convert")
_LOOKING = stems("search fetch download open load browse query read")
_SAYING = frozenset({"output", "send"})
_SOFT_DELETION = stem("remove")
_VERBS_OF_USE = r"\b(?:use|using|call|calling|invoke|invoking|via|with|run|running)\s+(?:the\s+)?[`'\"]?{}[`'\"]?"


def wrong_tools(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step whose tool does something else than its description says."""
    for step in view.pending:
        found = _named_instead(step, view)
        if found is None and step.tool is not None:
            found = _other_action(step, step.tool, view) or _better_tool(step, step.tool, view)
        if found is not None:
            yield found


def _named_instead(step: StepView, view: PlanView) -> Finding | None:
    """Find a registered tool that the description says it uses, and the step does not call."""
    text = step.said.text
    for name in [known for known in view.tools if known in text]:
        tool = view.tools[name]
        if name == step.step.tool or not _says_it_uses(text, name):
            continue
        if step.step.tool is not None and step.step.tool in text:
            continue
        called = f"the tool {clip(step.step.tool)}" if step.step.tool is not None else "no tool"
        return _finding(step, f"says that it uses {tool.name!r} and calls {called}", f"Set its tool to {tool.name!r}")
    return None


def _says_it_uses(text: str, name: str) -> bool:
    if re.search(rf"\b{re.escape(name)}\s+tool\b", text):
        return True
    return re.search(_VERBS_OF_USE.format(re.escape(name)) + r"(?!\w)", text, re.IGNORECASE) is not None


def _other_action(step: StepView, tool: ToolView, view: PlanView) -> Finding | None:
    if tool.open_ended:
        return None
    if not tool.actions or not step.actions:
        return _opposite_action(step, tool, view)
    said = frozenset(action for verb in step.said.verbs for action in ACTIONS.get(stem(verb), ()))
    if said & tool.actions or not _conflict(step, tool):
        return _opposite_action(step, tool, view)
    return _mismatch(step, tool, view)


def _conflict(step: StepView, tool: ToolView) -> bool:
    """Return whether what the first verb says and what the tool does exclude each other."""
    if step.verb_stem == _SOFT_DELETION and not step.said.files:
        return False
    distinct = step.actions & _DISTINCT
    if distinct and distinct == step.actions - _SAYING:
        return not (distinct == _WITH_FILE and "output" in tool.actions and not step.said.files)
    if step.actions & _SAYING and "send" in step.actions:
        return "output" not in tool.actions and not step.said.numbers
    if step.verb_stem in _LOOKING and _looks_at_nothing(step, tool):
        return True
    if step.actions & _PASSIVE:
        return _does_more_than_look(step, tool) or _only_repeats(step, tool) or _only_runs(step, tool)
    return False


def _does_more_than_look(step: StepView, tool: ToolView) -> bool:
    """Return whether a tool acts on the world, and nothing in a description that only looks or computes hints at it."""
    acts = tool.actions & _DISTINCT
    if not acts or tool.actions & _PASSIVE:
        return False
    if any(acts & ACTIONS.get(word, frozenset()) for word in step.said.stems):
        return False
    if step.verb_stem in _LOOKING and "write" in acts:
        return True
    return bool(acts & _DRASTIC) or not step.said.stems & (tool.stems | step.argument_stems)


def _looks_at_nothing(step: StepView, tool: ToolView) -> bool:
    """Return whether a tool only computes or repeats, and the description speaks of none of that."""
    named = step.said.names or step.said.verb != "read"
    blind = tool.actions <= {"arithmetic", "statistics", "output"}
    return bool(blind and named) and step.said.stems.isdisjoint(tool.stems) and not step.said.numbers


def _only_repeats(step: StepView, tool: ToolView) -> bool:
    return "arithmetic" in step.actions and tool.actions <= {"output", "read"} and "output" in tool.actions


def _only_runs(step: StepView, tool: ToolView) -> bool:
    """Return whether a tool runs something, and a description that looks at something speaks of nothing like it."""
    return "run" in tool.actions and tool.actions.isdisjoint(_PASSIVE) and step.said.stems.isdisjoint(tool.name_stems)


def _opposite_action(step: StepView, tool: ToolView, view: PlanView) -> Finding | None:
    verb = step.verb_stem or ""
    contrary = OPPOSITES.get(verb, frozenset()) & tool.name_stems
    if contrary and verb not in tool.stems and not contrary & step.said.stems:
        return _mismatch(step, tool, view)
    return None


def _better_tool(step: StepView, tool: ToolView, view: PlanView) -> Finding | None:
    """Find a step that shares nothing with its tool, while another tool is named after what it says."""
    if tool.open_ended or step.said.stems & tool.stems or step.actions & tool.actions:
        return None
    for other in view.tools.values():
        subject = other.name_stems - _LONE
        if subject and subject <= step.said.stems:
            return _mismatch(step, tool, view, other)
    return None


_LONE = frozenset(ACTIONS)


def _mismatch(step: StepView, tool: ToolView, view: PlanView, other: ToolView | None = None) -> Finding:
    other = other or _fitting(step, view)
    what = f"says {clip(step.step.description)} and calls {tool.name!r}, which does something else"
    repair = f"Set its tool to {other.name!r}" if other else "Set its tool to one that does this, or its agent to 'llm'"
    return _finding(step, what, repair)


def _fitting(step: StepView, view: PlanView) -> ToolView | None:
    fitting = [tool for tool in view.tools.values() if tool.name_stems & step.said.stems or step.actions & tool.actions]
    ranked = sorted(
        fitting, key=lambda tool: -len(step.said.stems & tool.stems) - 2 * bool(step.actions & tool.actions)
    )
    return next((tool for tool in ranked if tool.name != step.step.tool), None)


def _finding(step: StepView, what: str, repair: str) -> Finding:
    return Finding(
        "do_say_mismatch",
        "high",
        step.step_id,
        f"step {step.step_id!r} {what}",
        f"{repair}, or describe what the step really does.",
    )
