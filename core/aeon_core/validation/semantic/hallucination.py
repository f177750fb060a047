"""Tools and operations that do not exist, and arguments that a tool cannot take (adaptive FR-039)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import FUNCTION_WORDS
from aeon_core.validation.semantic.phrase import phrase_words
from aeon_core.validation.semantic.stems import stem, words
from aeon_core.validation.semantic.views import PlanView, StepView, ToolView

_NAMED_TOOL = re.compile(
    r"\b(?:use|using|with|via|call|calling|invoke|invoking|through|run|running|by)\s+(?:the\s+|a\s+|an\s+|our\s+)?"
    r"[`'\"]?(?P<before>[A-Za-z][\w.-]{1,60})[`'\"]?\s+tool\b"
    r"|\bthe\s+[`'\"]?(?P<shaped>[A-Za-z]\w*_\w{1,60})[`'\"]?\s+tool\b"
    r"|\btool\s+(?:named\s+|called\s+)?[`'\"](?P<quoted>[A-Za-z][\w.-]{1,60})[`'\"]"
    r"|\btool\s+(?:named\s+|called\s+)?(?P<after>[A-Za-z]\w*_\w{1,60})\b",
    re.IGNORECASE,
)
_NO_NAMES = words(
    """appropriate right correct proper suitable available relevant best given same following other necessary command
    line cli power hand search editing drawing web online internal external dedicated special specialized
    specialised new existing custom simple standard registered built-in favourite favorite"""
)


def unknown_tools(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each tool that a pending step calls, or says it uses, and that is not registered."""
    for step in view.pending:
        name = step.step.tool
        if name is not None and name not in view.tools:
            yield Finding(
                "hallucination",
                "high",
                step.step_id,
                f"step {step.step_id!r} calls the tool {clip(name)}, which is not registered",
                _replacement(step, name, view),
                structural=True,
            )
        for said in dict.fromkeys(_named_tools(step)):
            if said != name and not _is_known(said, view):
                yield Finding(
                    "hallucination",
                    "medium",
                    step.step_id,
                    f"step {step.step_id!r} speaks of a tool {clip(said)}, which is not registered",
                    _replacement(step, said, view),
                )


def unknown_operations(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each argument of a pending step that asks its tool for a choice it does not offer."""
    for step in view.pending:
        if step.tool is None or not step.step.arguments:
            continue
        for name, value in step.step.arguments.items():
            offered = step.tool.choices.get(name)
            if offered and isinstance(value, str) and value not in offered:
                near = _near_choice(step, value, offered)
                change = f"Set arguments.{name} to {near!r}" if near else f"Choose one of {', '.join(offered)}"
                yield Finding(
                    "hallucination",
                    "high",
                    step.step_id,
                    f"step {step.step_id!r}: the tool {step.tool.name!r} has no {name} {clip(value)}",
                    f"{change}, or use another tool.",
                    structural=True,
                )


def misfit_arguments(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each reason why a pending step's arguments do not fit its tool's input_schema."""
    for step in view.pending:
        arguments = step.step.arguments
        if step.tool is None or arguments is None:
            continue
        for error in view.registry.input_schema(step.tool.name).errors(arguments):
            if not is_unknown_choice(error, step.tool, arguments):
                yield Finding(
                    "consistency",
                    "high",
                    step.step_id,
                    f"step {step.step_id!r}: arguments do not fit the tool {step.tool.name!r}: {error}",
                    f"Change the arguments to fit the input_schema of {step.tool.name!r}: {error}.",
                    structural=True,
                )


def is_unknown_choice(error: str, tool: ToolView, arguments: Mapping[str, object]) -> bool:
    """Return whether a schema error is about a text that is none of the choices which the tool offers there."""
    name = error.partition(":")[0]
    offered = tool.choices.get(name)
    return bool(offered) and isinstance(arguments.get(name), str) and arguments[name] not in (offered or ())


def _named_tools(step: StepView) -> Iterator[str]:
    if "tool" not in step.said.lower:
        return
    for match in _NAMED_TOOL.finditer(step.said.text):
        name = match["before"] or match["shaped"] or match["quoted"] or match["after"]
        if name.lower() not in _NO_NAMES and name.lower() not in FUNCTION_WORDS:
            yield name


def _is_known(said: str, view: PlanView) -> bool:
    words = frozenset(map(stem, phrase_words(said)))
    return any(words <= tool.stems for tool in view.tools.values())


def _replacement(step: StepView, name: str, view: PlanView) -> str:
    near = difflib.get_close_matches(name[:100], view.tools, n=1, cutoff=0.6)
    best = near[0] if near else _fitting(step, name, view)
    if best is not None:
        return f"Set the tool of step {step.step_id!r} to {best!r}."
    return f"Register the tool {clip(name)}, or remove it from step {step.step_id!r} and set its agent to 'llm'."


def _fitting(step: StepView, name: str, view: PlanView) -> str | None:
    """Return the registered tool that shares most words with what the step says, None where none shares two."""
    wanted = step.said.stems | frozenset(map(stem, phrase_words(name)))
    shared = {known: len(wanted & tool.stems) + bool(step.actions & tool.actions) for known, tool in view.tools.items()}
    best = max(shared, key=lambda known: shared[known], default=None)
    return best if best is not None and shared[best] > 1 else None


def _near_choice(step: StepView, value: str, offered: list[str]) -> str | None:
    near = difflib.get_close_matches(value[:100].lower(), offered, n=1, cutoff=0.6)
    if near:
        return near[0]
    said = [choice for choice in offered if frozenset(map(stem, phrase_words(choice))) & step.said.stems]
    return said[0] if len(said) == 1 else None
