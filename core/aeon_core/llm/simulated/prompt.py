"""Parses a request for the simulated model: the named sections of its user message."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import indent
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import clean_text, parse_json
from aeon_core.llm.base import LLMRequest
from aeon_core.llm.simulated.calculator import Ref, show_number
from aeon_core.tools.registry import is_number
from aeon_core.tools.schema import Schema

MAX_GOAL = 300
"""The most characters of a goal or description in a plan."""
_SECTION = re.compile(r"<(\w+)>\n(.*?)\n</\1>(?:\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class StepOutcome:
    """The outcome of an earlier step: `output` (any JSON), `errors`, or the beginning of a long output."""

    step_id: str
    output: Any = None
    errors: tuple[str, ...] = ()
    clipped: str | None = None


@dataclass
class Prompt:
    """The sections of one request, parsed on demand."""

    sections: dict[str, str]
    native_tools: list[dict[str, Any]] = field(default_factory=list)

    def text(self, name: str) -> str:
        """Return a section's text, empty if it is missing."""
        return self.sections.get(name, "")

    def entries(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the objects in a section, one per line; other lines are skipped."""
        for line in self.text(name).split("\n"):
            try:
                value = parse_json(line) if line.strip() else None
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that may be used, in order; invalid entries are left out."""
        listed = [*self.entries("tools"), *self.native_tools]
        named = {tool["name"]: tool for tool in reversed(listed) if _is_tool(tool)}
        return list(reversed(named.values()))

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The plan's steps, each parent before its substeps."""
        return [entry for entry in self.entries("plan") if isinstance(entry.get("step_id"), str)]

    @cached_property
    def results(self) -> list[StepOutcome]:
        """The outcomes of the executed steps, in the plan's order."""
        return [_outcome(entry) for entry in self.entries("results") if isinstance(entry.get("step_id"), str)]

    @cached_property
    def step(self) -> dict[str, Any]:
        """The current step, empty if there is none."""
        return next(self.entries("step"), {})

    @property
    def description(self) -> str:
        """The description of the current step; without one, the task."""
        description = self.step.get("description")
        return description if isinstance(description, str) else self.text("task")

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all steps that a description may refer to; the last one is that of the last result, `it`."""
        results = [result.step_id for result in self.results]
        return [*(step["step_id"] for step in self.steps if step["step_id"] not in results), *results]


def read_prompt(request: LLMRequest) -> Prompt:
    """Return the sections of the request's last user message; a message that contains anything else is the task."""
    users = [message["content"] for message in request.messages if message["role"] == "user"]
    content = clean_text(users[-1]) if users else ""
    sections: dict[str, str] = {}
    place = 0
    while (section := _SECTION.match(content, place)) is not None:
        sections.setdefault(section[1], section[2])
        place = section.end()
    return Prompt(sections if sections and place == len(content) else {"task": content}, list(request.tools))


def _is_tool(entry: dict[str, Any]) -> bool:
    try:
        Schema(entry["input_schema"])
    except (LookupError, ValidationError):
        return False
    return isinstance(entry.get("name"), str)


def _outcome(entry: dict[str, Any]) -> StepOutcome:
    errors, clipped = entry.get("errors"), entry.get("output_clipped")
    return StepOutcome(
        step_id=entry["step_id"],
        output=entry.get("output"),
        errors=tuple(map(str, errors)) if isinstance(errors, list) else (),
        clipped=clipped if isinstance(clipped, str) else None,
    )


_ANY = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])", re.IGNORECASE)
_TEXT_KEYS = ("text", "content", "result", "value", "output", "answer")
_MAX_READ = 4000
_CLIPPED_TEXT = '{"text": "'


class MissingResultError(Exception):
    """A step needs a result that is missing; the message is a sentence that says why."""


def earlier(prompt: Prompt, step_id: str) -> StepOutcome:
    """Return the outcome of a step. Raises MissingResultError if it has not run or failed."""
    found = next((result for result in prompt.results if result.step_id == step_id), None)
    if found is None:
        raise MissingResultError(f"The result of {step_id} is missing: it has not run.")
    if found.errors:
        raise MissingResultError(f"The result of {step_id} is missing, because {step_id} failed: {found.errors[0]}")
    return found


def earlier_number(prompt: Prompt, ref: Ref) -> float:
    """Return the number that a reference stands for. Raises MissingResultError if there is none."""
    found = earlier(prompt, ref.step_id)
    number = number_of(found)
    if number is None:
        raise MissingResultError(f"The result of {found.step_id} is no number: {clip(text_of(found), 80)}")
    return number


def number_of(outcome: StepOutcome) -> float | None:
    """Return the number in a step's outcome: a tool's value, or the last one in its text."""
    output = outcome.output
    values = [output.get("result"), *output.values()] if isinstance(output, dict) else [output]
    found = next((value for value in values if is_number(value)), None)
    if found is not None:
        return int(found) if isinstance(found, int) else float(found)
    stated = _ANY.findall(text_of(outcome)[-_MAX_READ:])
    number = float(stated[-1]) if stated else math.inf
    return (int(number) if number.is_integer() else number) if math.isfinite(number) else None


def text_of(outcome: StepOutcome) -> str:
    """Return a step's output for people: the text or number of a simple object, or a list for others."""
    if outcome.clipped is not None:
        return f"{outcome.clipped.removeprefix(_CLIPPED_TEXT)}…"
    value = outcome.output
    if isinstance(value, dict):
        key = next((key for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
        if key is None and len(value) > 1:
            given = ((name, each) for name, each in value.items() if each not in (None, "", [], {}))
            return "\n".join(f"- {name.replace('_', ' ')}: {_field(each)}" for name, each in given)
        value = value[key] if key is not None else next(iter(value.values()), value)
    if is_number(value):
        return show_number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _field(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if "\n" not in text else indent(f"\n\n```\n{text.rstrip()}\n```\n", "  ")


def clip(text: str, length: int) -> str:
    """Return the text on one line, cut to `length` characters."""
    text = " ".join(text[: 2 * length + 100].split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
