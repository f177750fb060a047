"""Finds the listed tool and arguments for what a sentence asks, and repairs replies with them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from aeon_core.json_safe import parse_json
from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    Operation,
    evaluate,
    file_names,
    parse_arithmetic,
    quotations,
)
from aeon_core.llm.simulated.prompt import Prompt, StepOutcome, earlier, earlier_number, number_of, text_of
from aeon_core.suggest import close
from aeon_core.tools.schema import Schema, in_form

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
