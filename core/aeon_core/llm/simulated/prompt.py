"""What a request asks of the simulated model: the sections of its message, and the listed tool that a sentence means.

Replies are repaired with the listed tools as well.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from textwrap import indent
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import clean_text, parse_json
from aeon_core.llm.base import LLMRequest
from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    Operation,
    Ref,
    evaluate,
    file_names,
    parse_arithmetic,
    quotations,
    show_number,
)
from aeon_core.suggest import close
from aeon_core.tools.registry import is_number
from aeon_core.tools.schema import Schema, in_form

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


Described = dict[str, Any]
"""A tool as described in the prompt."""
Arguments = dict[str, Any]
Call = tuple[Described, Arguments | None]
"""A tool and its arguments; None if they depend on an earlier result."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,300}(?:\.\d{1,300})?(?![\w.])")
_RESULT = re.compile(
    r"\W*(?:it|this|that|(?:the )?(?:previous |last )?(?:result|answer)(?: of \S+)?)?\W*", re.IGNORECASE
)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def words_of(text: str) -> set[str]:
    """Return the words of a text or a name in lower case; `read_file` and `readFile` have two each."""
    return {word.lower() for word in _WORD.findall(text[:MAX_CLAUSE])}


def fits(tool: Described, arguments: Any) -> bool:
    """Return whether the arguments meet the tool's input_schema."""
    return not Schema(tool["input_schema"]).errors(arguments)


def _needed(tool: Described) -> dict[str, dict[str, Any]]:
    """Return the schemas of a tool's required arguments, by name."""
    known = tool["input_schema"].get("properties", {})
    required = tool["input_schema"].get("required", ())
    return {name: known[name] if isinstance(known.get(name), dict) else {} for name in required}


def find_call(sentence: str, tools: Sequence[Described], ids: Sequence[str] = ()) -> Call | None:
    """Return the call of a listed tool that does what a sentence asks; `ids` are the steps that it may refer to."""
    operation = parse_arithmetic(sentence, ids)
    return _named(sentence, tools) if operation is None else calculate(operation, tools)


def calculate(operation: Operation, tools: Sequence[Described]) -> Call | None:
    """Return the call of a tool that does a calculation on two values."""
    known = [one for one in operation.operands if isinstance(one, (int, float))]
    a, b = known if len(known) == 2 else (1, 1)
    for tool in tools:
        if (arguments := _calculation(tool, operation.name, a, b)) is not None:
            return tool, arguments if len(known) == 2 else None
    return None


def _calculation(tool: Described, name: str, a: float, b: float) -> Arguments | None:
    """Return the arguments with which a tool applies an operation to two numbers, or None if it cannot.

    Such a tool takes two numbers, and accepts the operation's name as another argument or has it in its own name.
    """
    needed = _needed(tool)
    numbers = [key for key, schema in needed.items() if schema.get("type") in ("number", "integer")]
    others = [key for key in needed if key not in numbers]
    if len(numbers) != 2 or len(others) > 1 or (not others and name not in words_of(tool["name"])):
        return None
    arguments = {**dict.fromkeys(others, name), **dict(zip(numbers, (a, b), strict=True))}
    return arguments if fits(tool, arguments) else None


def _named(sentence: str, tools: Sequence[Described]) -> Call | None:
    """Return the call of the tool that a sentence names, or whose name begins with the sentence's first word."""
    words = re.findall(r"\w+", sentence[:MAX_CLAUSE].lower())
    spoken = f" {' '.join(words)} ".replace("_", " ")
    named = [tool for tool in tools if f" {tool['name'].lower().replace('_', ' ')} " in spoken]
    verbs = [tool for tool in tools if words and [*_WORD.findall(tool["name"]), ""][0].lower() == words[0]]
    for tool in (*named, *verbs):
        arguments = _arguments(tool, sentence)
        if fits(tool, arguments):
            return tool, arguments
    return (named[0], None) if named else None


def _arguments(
    tool: Described, sentence: str, outcomes: Sequence[StepOutcome] = (), default: Arguments | None = None
) -> Arguments:
    """Return the arguments that a tool requires, from the sentence, else from earlier results, else the default.

    Each value is used once. If the sentence begins with the tool's name and quotes nothing, the rest of it is the text.
    """
    files, words = file_names(sentence), words_of(sentence)
    begins = sentence.lower().startswith(f"{tool['name'].lower()} ")
    rest = sentence[len(tool["name"]) :].strip() if begins else ""
    texts = quotations(sentence) or ([] if _RESULT.fullmatch(rest) else [rest])
    texts += [text_of(outcome) for outcome in reversed(outcomes)]
    stated = _NUMBER.findall(sentence[:MAX_CLAUSE])
    numbers: list[Any] = [float(one) if "." in one else int(one) for one in stated]
    numbers = numbers or [number for one in outcomes if (number := number_of(one)) is not None]
    arguments = dict(default or {})
    for key, schema in _needed(tool).items():
        source: list[Any] = []
        if isinstance(schema.get("enum"), list):
            source = [one for one in schema["enum"] if isinstance(one, str) and one.lower() in words]
        elif schema.get("type") in ("number", "integer"):
            source = numbers
        elif schema.get("type") == "string":
            source = files if files and words_of(key) & {"path", "file", "filename"} else texts
        if source:
            arguments[key] = source.pop(0)
    return arguments


def call_arguments(prompt: Prompt, tool: Described) -> Arguments:
    """Return the arguments for the current step. Raises MissingResultError, and ArithmeticError with a sentence."""
    given = prompt.step.get("arguments")
    if isinstance(given, dict) and fits(tool, given):
        return given
    operation = parse_arithmetic(prompt.description, prompt.ids)
    if operation is not None:
        a, b = (evaluate(operand, partial(earlier_number, prompt)) for operand in operation.operands)
        if (arguments := _calculation(tool, operation.name, a, b)) is not None:
            return arguments
    depends_on = prompt.step.get("depends_on")
    names = [name for name in depends_on if isinstance(name, str)] if isinstance(depends_on, list) else []
    outcomes = [earlier(prompt, name) for name in names] or [one for one in prompt.results if not one.errors]
    examples = tool.get("examples")
    example = examples[0] if isinstance(examples, list) and examples else Schema(tool["input_schema"]).example()
    default = {key: example[key] for key in _needed(tool) if key in example} if isinstance(example, dict) else {}
    return _arguments(tool, prompt.description, outcomes, default)


def fitting_tool(step: dict[str, Any], tools: Sequence[Described], ids: Sequence[str]) -> Described | None:
    """Return the listed tool with a name like the step's tool, else one that does what the step describes, or None."""
    names = {tool["name"]: tool for tool in tools}
    if near := close(str(step.get("tool")), names, 0.75):
        return names[near]
    found = find_call(str(step.get("description")), tools, ids)
    return found[0] if found is not None else None


def repair(prompt: Prompt) -> str:
    """Return the corrected JSON: with open brackets closed, and with a fitting tool for a step with an unlisted one.

    If it cannot be corrected, return the original.
    """
    original = prompt.text("original")
    try:
        value = parse_json(_closed(original))
    except ValueError:
        return original
    if isinstance(value, dict) and isinstance(value.get("description"), str) and value.get("tool") is not None:
        value = _with_listed_tool(value, prompt)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else original


def _closed(text: str) -> str:
    """Return a text with its open brackets closed."""
    missing: list[str] = []
    for sign in _BRACKET.findall(text):
        if sign in "[{":
            missing.append("]" if sign == "[" else "}")
        elif sign in "]}" and missing:
            missing.pop()
    return text + "".join(reversed(missing))


def _with_listed_tool(step: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
    needed = step.get("depends_on")
    ids = [*prompt.ids, *needed] if isinstance(needed, list) else prompt.ids
    tool = fitting_tool(step, prompt.tools, [one for one in ids if isinstance(one, str)])
    if tool is None or tool["name"] == step["tool"]:
        return step
    arguments = step.get("arguments")
    formed = in_form(arguments, tool["input_schema"]) if isinstance(arguments, dict) else None
    if formed and not fits(tool, formed):
        return step
    kept = {key: item for key, item in step.items() if key not in ("errors", "agent")}
    return kept | {"tool": tool["name"]} | ({"arguments": formed} if formed else {})
