"""Which of the listed tools does what a sentence says, with which arguments; and the repair of a reply with these."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.json_safe import MAX_DEPTH, json_safe, parse_json
from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    Operation,
    Ref,
    TextTask,
    evaluate,
    file_names,
    parse_arithmetic,
    parse_text_task,
    quotations,
)
from aeon_core.llm.simulated.prompt import Prompt, StepOutcome, earlier, earlier_number, number_of, text_of
from aeon_core.suggest import close
from aeon_core.tools.coercion import in_form
from aeon_core.tools.schema import Schema

Described = dict[str, Any]
"""A tool as the prompt shows it."""
Arguments = dict[str, Any]

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
_OPENING = re.compile(r"[\[{]")
_MAX_READ = 50_000
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,300}(?:\.\d{1,300})?(?![\w.])")


def words_of(text: str) -> set[str]:
    """Return the words of a text or a name in lower case, `read_file` and `readFile` taken apart."""
    return {word.lower() for word in _WORD.findall(text[:MAX_CLAUSE])}


def fits(tool: Described, arguments: Any) -> bool:
    """Return whether the arguments meet the tool's input_schema."""
    try:
        return not Schema(tool["input_schema"]).errors(arguments)
    except ValidationError:
        return False


def _needed(tool: Described) -> dict[str, dict[str, Any]]:
    """Return the schemas of the arguments that a tool must be given, by name."""
    known, required = tool["input_schema"].get("properties"), tool["input_schema"].get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    found = {name: known.get(name) if isinstance(known, dict) else None for name in names}
    return {name: schema if isinstance(schema, dict) else {} for name, schema in found.items()}


def _is_number(schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("number", "integer")


def calculation_arguments(tool: Described, name: str, a: float, b: float) -> Arguments | None:
    """Return the arguments with which a tool applies an operation to two numbers, or None if it does not.

    Such a tool takes two numbers, and has the operation's name as one of an enumeration, or in its own.
    """
    needed = _needed(tool)
    numbers = [key for key, schema in needed.items() if _is_number(schema)]
    others = [key for key in needed if key not in numbers]
    if len(numbers) != 2 or (not others and name not in words_of(tool["name"])):
        return None
    arguments = {**dict.fromkeys(others, name), **dict(zip(numbers, (a, b), strict=True))}
    return arguments if len(others) < 2 and fits(tool, arguments) else None


def tool_for_calculation(operation: Operation, tools: Sequence[Described]) -> tuple[Described, Arguments] | None:
    """Return a tool that does a calculation on two numbers, and its arguments, a reference as 1."""
    if len(operation.operands) != 2:
        return None
    a, b = (one if isinstance(one, (int, float)) else 1 for one in operation.operands)
    found = ((tool, calculation_arguments(tool, operation.name, a, b)) for tool in tools)
    return next(((tool, arguments) for tool, arguments in found if arguments is not None), None)


def tool_for_text(task: TextTask, tools: Sequence[Described]) -> tuple[Described, Arguments] | None:
    """Return a tool with the name of a text function, and its arguments, a reference as its name."""
    words = words_of(task.function) - {"in"}
    text = "text" if isinstance(task.text, Ref) else task.text
    for tool in tools:
        named, needed = words_of(tool["name"]), list(_needed(tool))
        alike = all(any(word.startswith(part) or part.startswith(word) for part in named) for word in words)
        if alike and len(needed) == 1 and fits(tool, {needed[0]: text}):
            return tool, {needed[0]: text}
    return None


def tool_named(clause: str, tools: Sequence[Described]) -> tuple[Described, Arguments | None] | None:
    """Return the tool that a clause names or whose name begins with its verb, and its arguments as far as it has them.

    The arguments are None if the clause does not hold them all.
    """
    words = re.findall(r"\w+", clause[:MAX_CLAUSE].lower())
    spoken = f" {' '.join(words)} "
    named = [tool for tool in tools if f" {tool['name'].lower().replace('_', ' ')} " in spoken.replace("_", " ")]
    verbs = [tool for tool in tools if words and [*_WORD.findall(tool["name"]), ""][0].lower() == words[0]]
    for tool in (*named, *verbs):
        arguments = _Source(clause).arguments(tool)
        if fits(tool, arguments):
            return tool, arguments
    return (named[0], None) if named else None


def fitting_tool(step: dict[str, Any], tools: Sequence[Described], ids: Sequence[str]) -> Described | None:
    """Return the listed tool that does what a step describes, else one that is named like the step's; or None."""
    sentence = str(step.get("description"))
    found: tuple[Described, Arguments | None] | None
    if (task := parse_text_task(sentence, ids)) is not None:
        found = tool_for_text(task, tools)
    elif (operation := parse_arithmetic(sentence, ids)) is not None:
        found = tool_for_calculation(operation, tools)
    else:
        names = {tool["name"]: tool for tool in tools}
        near = close(str(step.get("tool")), names, 0.75)
        found = (names[near], None) if near else tool_named(sentence, tools)
    return found[0] if found is not None else None


def given_text(prompt: Prompt, task: TextTask) -> str:
    """Return the text that a text function is applied to. Raises MissingResultError."""
    return text_of(earlier(prompt, task.text.step_id)) if isinstance(task.text, Ref) else task.text


def call_arguments(prompt: Prompt, tool: Described) -> Arguments:
    """Return the arguments for the step at hand. Raises MissingResultError, and ArithmeticError with a sentence."""
    given = prompt.step.get("arguments")
    if isinstance(given, dict) and fits(tool, given):
        return given
    needed = list(_needed(tool))
    task = parse_text_task(prompt.description, prompt.ids)
    if task is not None and len(needed) == 1 and fits(tool, {needed[0]: "text"}):
        return {needed[0]: given_text(prompt, task)}
    operation = parse_arithmetic(prompt.description, prompt.ids)
    if operation is not None and len(operation.operands) == 2:
        a, b = (evaluate(operand, partial(earlier_number, prompt)) for operand in operation.operands)
        arguments = calculation_arguments(tool, operation.name, a, b)
        if arguments is not None:
            return arguments
    depends_on = prompt.step.get("depends_on")
    names = [name for name in depends_on if isinstance(name, str)] if isinstance(depends_on, list) else []
    outcomes = [earlier(prompt, name) for name in names] or [one for one in prompt.results if not one.failed]
    examples = tool.get("examples")
    example = examples[0] if isinstance(examples, list) and examples else Schema(tool["input_schema"]).example()
    kept = {key: example[key] for key in needed if key in example} if isinstance(example, dict) else {}
    return _Source(prompt.description, outcomes).arguments(tool, kept)


class _Source:
    """What a sentence and earlier results hold that can be an argument, each value used once."""

    def __init__(self, sentence: str, outcomes: Sequence[StepOutcome] = ()) -> None:
        self.words = words_of(sentence)
        self.files = file_names(sentence)
        self.texts = quotations(sentence) + [text_of(outcome) for outcome in reversed(outcomes)]
        results = [number_of(outcome) for outcome in outcomes]
        said = _NUMBER.findall(sentence[:MAX_CLAUSE])
        self.numbers = [float(one) if "." in one else int(one) for one in said] or [
            one for one in results if one is not None
        ]

    def arguments(self, tool: Described, example: Arguments | None = None) -> Arguments:
        """Return an argument for each name that the tool needs, of `example` where there is none; else left out."""
        arguments = dict(example or {})
        for key, schema in _needed(tool).items():
            choices = schema.get("enum")
            if isinstance(choices, list):
                source: list[Any] = [one for one in choices if isinstance(one, str) and one.lower() in self.words]
            elif _is_number(schema):
                source = self.numbers
            elif schema.get("type") == "string" and self.files and words_of(key) & {"path", "file", "filename"}:
                source = self.files
            else:
                source = self.texts if schema.get("type") == "string" else []
            if source:
                arguments[key] = source.pop(0)
        return arguments


def repair(prompt: Prompt) -> str:
    """Return the corrected JSON, or the original where nothing can be made of it.

    A step whose tool is not listed gets one that does what it describes; a plan is only closed, and anything else
    brought into the form of the schema.
    """
    original = prompt.text("original")
    value = _read_leniently(original)
    if value is None:
        return original
    if isinstance(value, dict) and isinstance(value.get("description"), str) and value.get("tool") is not None:
        return json.dumps(_with_listed_tool(value, prompt), ensure_ascii=False)
    return json.dumps(value if "steps" in value else _formed(value, prompt.schema), ensure_ascii=False)


def _formed(value: Any, schema: Any) -> Any:
    try:
        Schema(schema)
    except ValidationError:
        return value
    return in_form(value, schema)


def _with_listed_tool(step: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
    needed = step.get("depends_on")
    ids = [*prompt.ids, *needed] if isinstance(needed, list) else prompt.ids
    tool = fitting_tool(step, prompt.tools, [one for one in ids if isinstance(one, str)])
    if tool is None or tool["name"] == step["tool"]:
        return step
    arguments = step.get("arguments")
    formed = _formed(arguments, tool["input_schema"]) if isinstance(arguments, dict) else None
    if formed and not fits(tool, formed):
        return step
    kept = {key: item for key, item in step.items() if key not in ("errors", "agent")}
    return kept | {"tool": tool["name"]} | ({"arguments": formed} if formed else {})


def _read_leniently(text: str) -> Any:
    """Return the JSON object or array that a text means, or None."""
    try:
        value = parse_json(text)
    except ValueError:
        opened = _OPENING.search(text)
        # On text that nests deeply the lenient reader takes quadratic time, and gives up in the end.
        if opened is None or len(text) > _MAX_READ or len(_OPENING.findall(text)) > MAX_DEPTH:
            return None
        import json_repair

        try:
            value = json_safe(json_repair.loads(text[opened.start() :]))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return None
    return value if isinstance(value, (dict, list)) and value else None
