"""Which of the listed tools does what a clause asks, and with which arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    SYNONYMS,
    Calculation,
    Operation,
    Ref,
    evaluate,
    is_number,
    listed,
    parse_arithmetic,
    tokens,
)
from aeon_core.llm.simulated.prompt import Prompt, StepOutcome, earlier, number_of, number_resolver, text_of
from aeon_core.llm.simulated.texts import TextTask, file_names, parse_text_task, quotations
from aeon_core.tools.schema import Schema

Described = dict[str, Any]
"""A tool as the prompt shows it."""
Arguments = dict[str, Any]

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
_URL = re.compile(r"https?://[^\s\"'<>]+")
_TEXT_WORDS = {
    "echo": frozenset({"echo", "say", "repeat", "parrot"}),
    "reverse": frozenset({"reverse"}),
    "uppercase": frozenset({"uppercase", "upper", "capitalize"}),
    "lowercase": frozenset({"lowercase", "lower"}),
    "count words": frozenset({"wordcount", "words"}),
    "count characters": frozenset({"characters", "chars", "length"}),
    "count lines": frozenset({"lines"}),
}
_PATHS = frozenset({"path", "file", "filename", "filepath", "file_path", "file_name", "target"})
_CONTENTS = frozenset({"content", "contents", "text", "data", "body"})
_FILE_WORDS = {
    "read": frozenset({"read", "open", "load", "cat", "view"}),
    "write": frozenset({"write", "save", "create", "store", "append"}),
}
_COMMON = listed("the a an of and or to in for with from by on at is as it its that this given returns tool")


def words_of(text: str) -> set[str]:
    """Return the words of a text or a name in lower case, `read_file` and `readFile` taken apart."""
    return {word.lower() for word in _WORD.findall(text[:MAX_CLAUSE])}


def fits(tool: Described, arguments: Any) -> bool:
    """Whether the arguments meet the tool's input_schema."""
    try:
        return not Schema(tool["input_schema"]).errors(arguments)
    except ValidationError:
        return False


def properties(tool: Described) -> dict[str, dict[str, Any]]:
    """Return the schemas of the tool's arguments by name."""
    listed = tool["input_schema"].get("properties")
    named = listed if isinstance(listed, dict) else {}
    return {name: schema if isinstance(schema, dict) else {} for name, schema in named.items()}


def required(tool: Described) -> list[str]:
    """Return the names of the arguments that the tool must be given."""
    names = tool["input_schema"].get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def kind_of(schema: dict[str, Any]) -> str:
    """Return the JSON type that an argument has; the first that is not null where several are allowed."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    if kind is None and isinstance(schema.get("enum"), list):
        kind = "string"
    return kind if isinstance(kind, str) else "any"


def description_of(tool: Described) -> str:
    """Return what the tool says of itself."""
    description = tool.get("description")
    return description if isinstance(description, str) else ""


def calculator(calculation: Calculation, tools: Iterable[Described]) -> tuple[Described, Arguments] | None:
    """Return a tool that does this calculation, and its arguments (references stand as 1)."""
    a, b = (1 if isinstance(operand, Ref) else operand for operand in (calculation.a, calculation.b))
    named: tuple[Described, Arguments] | None = None
    for tool in tools:
        arguments = calculation_arguments(tool, calculation.name, a, b)
        if arguments is None:
            continue
        if len(arguments) == 3:
            return tool, arguments
        named = named or (tool, arguments)
    return named


def calculation_arguments(tool: Described, name: str, a: float, b: float) -> Arguments | None:
    """Return the arguments with which the tool applies the operation to a and b, or None where it does not.

    A fitting tool takes two numbers, and either the operation's name as one of an enumeration, or has it as its own.
    """
    listed = properties(tool)
    wanted = required(tool) or list(listed)
    numbers = [key for key in wanted if kind_of(listed.get(key, {})) in ("number", "integer")]
    others = [key for key in wanted if key not in numbers]
    if len(numbers) != 2 or len(others) > 1:
        return None
    arguments: Arguments = dict(zip(numbers, (a, b), strict=True))
    if others:
        choices = listed.get(others[0], {}).get("enum")
        chosen = [one for one in choices if one in SYNONYMS[name]] if isinstance(choices, list) else []
        if not chosen:
            return None
        arguments = {others[0]: chosen[0], **arguments}
    elif not words_of(tool["name"]) & set(SYNONYMS[name]):
        return None
    return arguments if fits(tool, arguments) else None


def text_tool(task: TextTask, tools: Iterable[Described]) -> tuple[Described, Arguments] | None:
    """Return a tool that does this text task, and its arguments (a reference stands as its name)."""
    text = "text" if isinstance(task.text, Ref) else task.text
    for tool in tools:
        if words_of(tool["name"]) & _TEXT_WORDS[task.operation]:
            key = only_text(tool)
            if key is not None and fits(tool, {key: text}):
                return tool, {key: text}
    return None


def only_text(tool: Described) -> str | None:
    """Return the name of the tool's only needed argument where that is a free text."""
    listed = properties(tool)
    wanted = required(tool) or list(listed)
    if len(wanted) != 1:
        return None
    schema = listed.get(wanted[0], {})
    return wanted[0] if kind_of(schema) == "string" and "enum" not in schema else None


def file_tool(
    action: str, path: str, content: str | None, tools: Iterable[Described]
) -> tuple[Described, Arguments] | None:
    """Return a tool that reads or writes a file, and its arguments (an unknown content stands as `text`)."""
    for tool in tools:
        about = words_of(tool["name"])
        if not about & _FILE_WORDS[action] or not (about | words_of(description_of(tool))) & {"file", "files", "path"}:
            continue
        arguments: Arguments = {}
        for key in required(tool) or list(properties(tool)):
            if key.lower() in _PATHS:
                arguments[key] = path
            elif action == "write" and key.lower() in _CONTENTS:
                arguments[key] = "text" if content is None else content
        if path in arguments.values() and len(arguments) == (2 if action == "write" else 1) and fits(tool, arguments):
            return tool, arguments
    return None


def named_tool(clause: str, tools: Iterable[Described]) -> tuple[Described, Arguments] | None:
    """Return the tool whose words a clause uses, where the clause holds every argument that it needs."""
    said = {_stem(word) for word in words_of(clause)} - _COMMON
    best: tuple[int, Described, Arguments] | None = None
    for tool in tools:
        score = _likeness(said, tool)
        if score and (best is None or score > best[0]) and (arguments := quoted_arguments(clause, tool)) is not None:
            best = (score, tool, arguments)
    return None if best is None else best[1:]


def _likeness(said: set[str], tool: Described) -> int:
    name = {_stem(word) for word in words_of(tool["name"])} - _COMMON
    about = {_stem(word) for word in words_of(description_of(tool))} - _COMMON
    if not name:
        return 0
    if name <= said:
        return 10 + len(name) + len(about & said)
    return len(about & said) if name & said and len((name | about) & said) >= 3 else 0


def likely_tool(description: str, tools: Iterable[Described]) -> Described | None:
    """Return the tool whose words a description uses most clearly, or None."""
    said = {_stem(word) for word in words_of(description)} - _COMMON
    scored = [(score, -place, tool) for place, tool in enumerate(tools) if (score := _likeness(said, tool))]
    return max(scored, key=lambda entry: entry[:2])[2] if scored else None


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def quoted_arguments(clause: str, tool: Described) -> Arguments | None:
    """Return the needed arguments from quotations, addresses, file names and numbers of a clause, or None."""
    texts = [*quotations(clause), *_URL.findall(clause[:MAX_CLAUSE]), *file_names(clause)]
    numbers = [token.number for token in tokens(clause[:MAX_CLAUSE]) if is_number(token.number)]
    arguments: Arguments = {}
    listed = properties(tool)
    for key in required(tool):
        schema = listed.get(key, {})
        kind = kind_of(schema)
        choices = schema.get("enum")
        if isinstance(choices, list):
            said = [one for one in choices if isinstance(one, str) and one.lower() in words_of(clause)]
            source: list[Any] = said
        else:
            source = numbers if kind in ("number", "integer") else texts if kind == "string" else []
        if not source:
            return None
        arguments[key] = source.pop(0)
    return arguments if fits(tool, arguments) else None


def call_arguments(prompt: Prompt, tool: Described) -> Arguments:
    """Return the arguments for the step at hand. Raises MissingResultError, and ArithmeticError with a sentence."""
    given = prompt.step.get("arguments")
    if isinstance(given, dict) and fits(tool, given):
        return given
    ids = known_ids(prompt)
    key = only_text(tool)
    task = parse_text_task(prompt.description, ids) if key is not None else None
    if key is not None and task is not None:
        return {key: payload(prompt, task)}
    operation = parse_arithmetic(prompt.description, ids)
    if operation is not None and len(operation.operands) == 2:
        found = _calculated(prompt, operation, tool)
        if found is not None:
            return found
    return _filled(prompt, tool)


def known_ids(prompt: Prompt) -> list[str]:
    """Return the ids of all steps that a description may refer to."""
    ids = [step["step_id"] for step in prompt.steps] + [result.step_id for result in prompt.results]
    return list(dict.fromkeys(ids))


def payload(prompt: Prompt, task: TextTask) -> str:
    """Return the text that a text task is about. Raises MissingResultError."""
    return text_of(earlier(prompt, task.text)) if isinstance(task.text, Ref) else task.text


def _calculated(prompt: Prompt, operation: Operation, tool: Described) -> Arguments | None:
    resolve = number_resolver(prompt)
    a, b = (evaluate(operand, resolve) for operand in operation.operands)
    return calculation_arguments(tool, operation.name, a, b)


def _filled(prompt: Prompt, tool: Described) -> Arguments:
    """Fill every needed argument by its type: what the description quotes, else what earlier steps gave."""
    return _Filler(prompt, tool).arguments()


class _Filler:
    def __init__(self, prompt: Prompt, tool: Described) -> None:
        description = prompt.description[:MAX_CLAUSE]
        self.description = prompt.description
        self.tool = tool
        self.said = words_of(description)
        self.files = file_names(description)
        self.texts: list[str] = quotations(description)
        self.outcomes = _needed(prompt)
        self.numbers = [token.number for token in tokens(description) if is_number(token.number)]
        numbers = [number_of(outcome) for outcome in self.outcomes]
        self.results: list[Any] = [number for number in numbers if number is not None]

    def arguments(self) -> Arguments:
        listed = properties(self.tool)
        example = self._example()
        return {key: self._value(key, listed.get(key, {}), example) for key in required(self.tool)}

    def _example(self) -> Arguments:
        examples = self.tool.get("examples")
        if isinstance(examples, list) and examples and isinstance(examples[0], dict):
            return examples[0]
        try:
            example = Schema(self.tool["input_schema"]).example()
        except ValidationError:
            return {}
        return example if isinstance(example, dict) else {}

    def _value(self, key: str, schema: dict[str, Any], example: Arguments) -> Any:
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            said = [one for one in choices if isinstance(one, str) and one.lower() in self.said]
            return said[0] if said else choices[0]
        for outcome in reversed(self.outcomes):
            if isinstance(outcome.output, dict) and key in outcome.output:
                return outcome.output[key]
        kind = kind_of(schema)
        if kind in ("number", "integer"):
            return self._number(kind, example.get(key, 0))
        if kind == "string":
            return self._text(key)
        return example.get(key, {"boolean": False, "array": [], "object": {}}.get(kind))

    def _number(self, kind: str, default: Any) -> Any:
        source = self.numbers or self.results
        number = source.pop(0) if source else default
        return int(number) if kind == "integer" and isinstance(number, float) and number.is_integer() else number

    def _text(self, key: str) -> str:
        if self.files and ("path" in key.lower() or "file" in key.lower()):
            return self.files.pop(0)
        if self.texts:
            return self.texts.pop(0)
        return text_of(self.outcomes[-1]) if self.outcomes else self.description


def _needed(prompt: Prompt) -> list[StepOutcome]:
    """Return the outcomes that the step depends on, else all. Raises MissingResultError where one it needs failed."""
    needed = prompt.step.get("depends_on")
    names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    if names:
        return [earlier(prompt, Ref(name)) for name in names]
    return [result for result in prompt.results if not result.failed]
