"""Making a plan: clauses that are understood become steps with tools, everything else a vague plan to think along."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aeon_core.llm.simulated.arithmetic import Calculation, Operand, Operation, Ref, Simple, count_calculations, flatten
from aeon_core.llm.simulated.opening import open_steps, request_of
from aeon_core.llm.simulated.outcomes import clip
from aeon_core.llm.simulated.parsing import MAX_CLAUSE, parse_arithmetic
from aeon_core.llm.simulated.rounding import decimals_asked
from aeon_core.llm.simulated.texts import TextTask, clauses, file_names, parse_text_task, quotations
from aeon_core.llm.simulated.tools import Arguments, Described, calculator, file_tool, named_tool, text_tool
from aeon_core.llm.simulated.vocabulary import listed

WirePlan = dict[str, Any]

MAX_GOAL = 300
_MAX_CLAUSES = 12
_MAX_CALCULATIONS = 20
_MAX_FILES = 5
_WRITING = frozenset({"write", "save", "store", "append", "create", "put"})
_READING = frozenset({"read", "open", "load", "show", "cat", "view", "display", "print", "look"})
_USING = listed(
    "summarise summarize count review explain analyse analyze check describe translate parse find list compare"
    " extract reverse uppercase lowercase"
)
_PRONOUN = re.compile(r"\b(?:it|that|this|them|the (?:result|answer|output))\b", re.IGNORECASE)
_SMALL_WORDS = listed("the a file files from contents content of and please at")


def make_plan(task: str, tools: Sequence[Described]) -> WirePlan:
    """Return a flat plan for a task: `goal`, and steps with `id`, `parent`, `description`, `tool`, `agent`, …

    Only listed tools are named, and only with arguments that meet their input_schema; arguments that depend on an
    earlier step's result are left for its `tool_call` cycle.
    """
    parts = clauses(task)
    draft = _Draft(tools)
    if len(parts) > _MAX_CLAUSES or not draft.take_all(parts):
        draft = _Draft(tools)
        for description in open_steps(task):
            draft.add(description, needs=draft.last)
    return {"goal": clip(task, MAX_GOAL) or "Answer the request", "steps": draft.steps}


class _Draft:
    """The steps so far."""

    def __init__(self, tools: Sequence[Described]) -> None:
        self.tools = tools
        self.steps: list[dict[str, Any]] = []

    @property
    def last(self) -> list[str]:
        return [self.steps[-1]["id"]] if self.steps else []

    def add(
        self,
        description: str,
        *,
        tool: Described | None = None,
        arguments: Arguments | None = None,
        needs: Sequence[str] = (),
    ) -> str:
        step_id = f"s{len(self.steps) + 1}"
        self.steps.append(
            {
                "id": step_id,
                "parent": None,
                "description": description,
                "tool": tool["name"] if tool else None,
                "agent": None if tool else "llm",
                "arguments": arguments if tool else None,
                "depends_on": list(needs),
            }
        )
        return step_id

    def take_all(self, parts: Sequence[str]) -> bool:
        """Add the steps of all clauses; False where none was understood."""
        return sum(self.take(part) for part in parts) > 0

    def take(self, clause: str) -> bool:
        """Add the steps of a clause; False where it was not understood and became a step of reasoning."""
        if self._text(clause) or self._arithmetic(clause) or self._file(clause) or self._named(clause):
            return True
        if request := request_of(clause):
            self._reasoning(request)
        return decimals_asked(clause) is not None and len(self.steps) > 1

    def _reasoning(self, request: str) -> None:
        if self.last:
            request = _PRONOUN.sub(f"the result of {self.last[0]}", request, count=1)
        self.add(clip(request, MAX_GOAL), needs=self.last)

    def _arithmetic(self, clause: str) -> bool:
        operation = parse_arithmetic(clause)
        if operation is None:
            return False
        if _refers(operation):
            if not self.last:
                return False
            operation = _referring_to(operation, self.last[0])
        if count_calculations(operation) > _MAX_CALCULATIONS:
            self.add(request_of(clause), needs=self.last if _refers(operation) else ())
        else:
            flatten(operation, self._calculation)
        return True

    def _calculation(self, calculation: Calculation) -> str:
        needs = [one.step_id for one in (calculation.a, calculation.b) if isinstance(one, Ref) and one.step_id]
        tool, arguments = calculator(calculation, self.tools) or (None, None)
        return self.add(
            calculation.description, tool=tool, arguments=None if needs else arguments, needs=list(dict.fromkeys(needs))
        )

    def _text(self, clause: str) -> bool:
        task = parse_text_task(clause)
        if task is None or _is_value(clause, task):
            return False
        if isinstance(task.text, Ref):
            if not self.last:
                return False
            task = TextTask(task.operation, Ref(self.last[0]))
        elif task.operation != "echo" and not task.quoted and (names := file_names(task.text)) == [task.text]:
            task = TextTask(task.operation, Ref(self._read(names[0])))
        tool, arguments = text_tool(task, self.tools) or (None, None)
        needs = [task.text.step_id] if isinstance(task.text, Ref) and task.text.step_id else []
        self.add(task.description(), tool=tool, arguments=None if needs else arguments, needs=needs)
        return True

    def _named(self, clause: str) -> bool:
        found = named_tool(clause, self.tools)
        if found is None:
            return False
        tool, arguments = found
        self.add(clip(request_of(clause) or clause, MAX_GOAL), tool=tool, arguments=arguments, needs=self.last)
        return True

    def _file(self, clause: str) -> bool:
        names = file_names(clause)[:_MAX_FILES]
        request = request_of(clause)
        verb = request.split(None, 1)[0].lower() if request else ""
        if not names:
            return False
        if verb in _WRITING:
            return self._write(clause, request, names[-1])
        if verb not in _READING and verb not in _USING:
            return False
        read = [self._read(name) for name in names]
        rest = [word for word in request.lower().split()[1:] if word not in _SMALL_WORDS]
        if verb in _USING or len(rest) > len(names) + 1:
            results = " and ".join(f"the result of {step_id}" for step_id in read)
            self.add(f"{clip(request, MAX_GOAL)}, using {results}", needs=read)
        return True

    def _read(self, name: str) -> str:
        tool, arguments = file_tool("read", name, None, self.tools) or (None, None)
        return self.add(f"Read {name}", tool=tool, arguments=arguments)

    def _write(self, clause: str, request: str, name: str) -> bool:
        texts = [text for text in quotations(clause) if text != name]
        content = texts[0] if texts else None
        if content is None and not self.last:
            self.add(f"Draft the content of {name}: {clip(request, MAX_GOAL)}")
        needs = self.last if content is None else []
        tool, arguments = file_tool("write", name, content, self.tools) or (None, None)
        what = f"the result of {needs[0]}" if needs else f'the text "{clip(content or "", MAX_CLAUSE)}"'
        self.add(f"Write {what} to {name}", tool=tool, arguments=None if needs else arguments, needs=needs)
        return True


def _is_value(clause: str, task: TextTask) -> bool:
    """Whether "print 5 + 3" asks for 8: printing is the one text task that may be meant so."""
    printing = request_of(clause[:MAX_CLAUSE]).lower().startswith("print")
    return printing and not task.quoted and isinstance(task.text, str) and parse_arithmetic(task.text) is not None


def _refers(operand: Operand) -> bool:
    if isinstance(operand, Operation):
        return any(_refers(item) for item in operand.operands)
    return isinstance(operand, Ref)


def _referring_to(operation: Operation, step_id: str) -> Operation:
    def resolved(operand: Operand) -> Operand | Simple:
        if isinstance(operand, Operation):
            return _referring_to(operand, step_id)
        return Ref(step_id) if isinstance(operand, Ref) else operand

    return Operation(operation.name, tuple(resolved(item) for item in operation.operands))
