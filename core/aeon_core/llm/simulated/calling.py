"""Supplying a tool call: arguments from the step's description, earlier results and the tool's schema."""

from __future__ import annotations

from typing import Any

from aeon_core.errors import ValidationError
from aeon_core.llm.simulated.arithmetic import Operation, Ref, evaluate
from aeon_core.llm.simulated.numbers import is_number, tokens
from aeon_core.llm.simulated.outcomes import earlier, number_of, number_resolver, text_of
from aeon_core.llm.simulated.parsing import MAX_CLAUSE, parse_arithmetic
from aeon_core.llm.simulated.prompt import Prompt, StepOutcome
from aeon_core.llm.simulated.texts import TextTask, file_names, parse_text_task, quotations
from aeon_core.llm.simulated.tools import (
    Arguments,
    Described,
    calculation_arguments,
    fits,
    kind_of,
    only_text,
    properties,
    required,
    words_of,
)
from aeon_core.tools.schema import Schema


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
