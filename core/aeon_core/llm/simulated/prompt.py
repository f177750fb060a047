"""Reading a request back: the named sections of the user message, as the simulated model needs them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aeon_core.json_safe import clean_text, parse_json
from aeon_core.llm.base import LLMRequest
from aeon_core.llm.simulated.calculator import Ref, is_number, show_number

_SECTIONS = (
    "task",
    "goal",
    "requirements",
    "suspicions",
    "known",
    "doubts",
    "tools",
    "plan",
    "results",
    "memory",
    "step",
    "ttl",
    "context",
    "arguments",
    "answer",
    "assessment",
    "fragments",
    "limits",
    "reasoning",
    "errors",
    "original",
    "schema",
)
_FREE_TEXT = frozenset({"task", "goal", "context", "answer", "errors", "original"})
"""Sections that may hold any line, even one that looks like a section's end."""


@dataclass(frozen=True)
class StepOutcome:
    """What an earlier step gave: `output` (any JSON), `errors`, or the beginning of a long output."""

    step_id: str
    output: Any = None
    errors: tuple[str, ...] = ()
    clipped: str | None = None

    @property
    def failed(self) -> bool:
        return bool(self.errors)


@dataclass
class Prompt:
    """The sections of one request, parsed on demand."""

    sections: dict[str, str]
    native_tools: list[dict[str, Any]] = field(default_factory=list)

    def text(self, name: str) -> str:
        """Return a section's text, empty where it was left out."""
        return self.sections.get(name, "")

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that may be used, in their order; entries that are no tools are left out."""
        listed = [*self._objects("tools"), *self.native_tools]
        named = {tool["name"]: tool for tool in reversed(listed) if _is_tool(tool)}
        return list(reversed(named.values()))

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The plan's steps, each parent before its substeps."""
        return [entry for entry in self._objects("plan") if isinstance(entry.get("step_id"), str)]

    @cached_property
    def results(self) -> list[StepOutcome]:
        """What the executed steps gave, in the plan's order."""
        return [_outcome(entry) for entry in self._objects("results") if isinstance(entry.get("step_id"), str)]

    @cached_property
    def memory(self) -> dict[str, Any]:
        """Entries of the memory that are no step results."""
        return {
            entry["key"]: entry.get("value", entry.get("value_clipped"))
            for entry in self._objects("memory")
            if isinstance(entry.get("key"), str)
        }

    @cached_property
    def step(self) -> dict[str, Any]:
        """The step at hand, empty where there is none."""
        return next(self._objects("step"), {})

    @cached_property
    def fragments(self) -> list[dict[str, Any]]:
        """The steps that are to be refined, and why."""
        return list(self._objects("fragments"))

    @cached_property
    def requirements(self) -> list[str]:
        """What a finished answer must satisfy."""
        return [str(entry.get("text")) for entry in self._objects("requirements")]

    @cached_property
    def suspicions(self) -> list[str]:
        """What a program found odd about the result."""
        return [str(entry.get("text")) for entry in self._objects("suspicions")]

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema that a repair must meet."""
        try:
            schema = parse_json(self.text("schema"))
        except ValueError:
            return None
        return schema if isinstance(schema, dict) else None

    @property
    def description(self) -> str:
        """The description of the step at hand; without a step the whole message, as a person would ask."""
        description = self.step.get("description")
        return description if isinstance(description, str) else self.text("task")

    def outcome(self, step_id: str) -> StepOutcome | None:
        """Return what the step with that id gave, or None."""
        return next((result for result in self.results if result.step_id == step_id), None)

    def _objects(self, section: str) -> Iterator[dict[str, Any]]:
        for line in self.text(section).split("\n"):
            try:
                value = parse_json(line) if line.strip() else None
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def read_prompt(request: LLMRequest) -> Prompt:
    """Return the sections of the request's last user message; a message without sections is a task."""
    users = [message["content"] for message in request.messages if message["role"] == "user"]
    content = clean_text(users[-1]) if users else ""
    return Prompt(_split(content) or {"task": content}, list(request.tools))


def _split(content: str) -> dict[str, str]:
    """Return the sections, read from the end, so that no text inside one can forge another.

    Sections of JSON lines hold no line that looks like a tag; of a free text's possible beginnings the first counts.
    """
    sections: dict[str, str] = {}
    while content:
        name = next((name for name in _SECTIONS if content.endswith(f"\n</{name}>")), None)
        if name is None or name in sections:
            return {}
        content = content.removesuffix(f"\n</{name}>")
        opening = f"<{name}>\n"
        begins = 0 if content.startswith(opening) else -1
        if begins < 0 or name not in _FREE_TEXT:
            inner = "\n\n" + opening
            found = content.find(inner) if name in _FREE_TEXT else content.rfind(inner)
            begins = found + 2 if found >= 0 else begins
        if begins < 0:
            return {}
        sections[name] = content[begins + len(opening) :]
        content = content[:begins].removesuffix("\n\n")
    return dict(reversed(sections.items()))


def _is_tool(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("name"), str) and isinstance(entry.get("input_schema"), dict)


def _outcome(entry: dict[str, Any]) -> StepOutcome:
    errors, clipped = entry.get("errors"), entry.get("output_clipped")
    return StepOutcome(
        step_id=entry["step_id"],
        output=entry.get("output"),
        errors=tuple(str(error) for error in errors) if isinstance(errors, list) else (),
        clipped=clipped if isinstance(clipped, str) else None,
    )


_SAID = re.compile(r"(?:\bis|=|:)\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w])", re.IGNORECASE)
_ANY = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])", re.IGNORECASE)
_VALUE_KEYS = ("result", "value", "answer", "total", "sum")
_TEXT_KEYS = ("text", "content", "result", "value", "output", "answer")
_MAX_READ = 4000


class MissingResultError(Exception):
    """A step needs a result that is not there; the message is a sentence that says why."""


def earlier(prompt: Prompt, ref: Ref) -> StepOutcome:
    """Return the outcome a reference means: the named step's, else that of the last step this one depends on.

    Raises MissingResultError where there is none, or where that step failed.
    """
    step_id = ref.step_id or _last_dependency(prompt) or (prompt.results[-1].step_id if prompt.results else None)
    if step_id is None:
        raise MissingResultError("There is no earlier result to build on.")
    found = prompt.outcome(step_id)
    if found is None:
        raise MissingResultError(f"The result of {step_id} is missing: it has not run.")
    if found.failed:
        raise MissingResultError(f"The result of {step_id} is missing, because {step_id} failed: {found.errors[0]}")
    return found


def _last_dependency(prompt: Prompt) -> str | None:
    needed = prompt.step.get("depends_on")
    names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    return names[-1] if names else None


def number_resolver(prompt: Prompt) -> Callable[[Ref], float]:
    """Return what turns a reference into the number it means. It raises MissingResultError."""

    def resolve(ref: Ref) -> float:
        found = earlier(prompt, ref)
        number = number_of(found)
        if number is None:
            raise MissingResultError(f"The result of {found.step_id} is no number: {clip(text_of(found), 80)}")
        return number

    return resolve


def number_of(outcome: StepOutcome) -> float | None:
    """Return the number that a step gave: a tool's value, or the last one that a text states."""
    output = outcome.output
    if isinstance(output, dict):
        values = [output[key] for key in _VALUE_KEYS if key in output] + list(output.values())
        for value in values:
            if is_number(value):
                return float(value) if isinstance(value, float) else int(value)
    if is_number(output):
        return float(output) if isinstance(output, float) else int(output)
    return _number_in(text_of(outcome)[:_MAX_READ])


def _number_in(text: str) -> float | None:
    said = _SAID.findall(text) or _ANY.findall(text)
    if not said:
        return None
    digits = said[-1]
    number = int(digits) if digits.lstrip("-").isdecimal() else float(digits)
    return number if isinstance(number, int) or math.isfinite(number) else None


def text_of(outcome: StepOutcome) -> str:
    """Return a step's output as a person reads it."""
    if outcome.clipped is not None:
        return _beginning(outcome.clipped)
    return text_of_value(outcome.output)


def _beginning(clipped: str) -> str:
    """Return what can be read of an output that was cut: the beginning of its text, else of its JSON."""
    opening = '{"text": "'
    if clipped.startswith(opening):
        # A cut escape sequence is up to six characters long.
        for end in range(len(clipped), max(len(opening), len(clipped) - 6), -1):
            try:
                text = json.loads(clipped[len(opening) - 1 : end] + '"')
                return clean_text(text) + "…"
            except ValueError:
                continue
    return f"{clipped}…"


def text_of_value(value: Any) -> str:
    """Return a value as a person reads it: the text or number of a simple object, other ones as JSON."""
    if isinstance(value, dict):
        keys = [key for key in _TEXT_KEYS if key in value] or list(value)[:1]
        if len(value) == 1 or (keys and isinstance(value[keys[0]], str)):
            return text_of_value(value[keys[0]])
    if isinstance(value, str):
        return value
    if is_number(value):
        return show_number(value)
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def clip(text: str, length: int) -> str:
    """Return the text on one line, cut where it is longer."""
    text = " ".join(text[: 2 * length + 100].split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
