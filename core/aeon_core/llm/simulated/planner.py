"""Working out a thing to be made: what belongs to each kind of thing, part by part, for what it is to serve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    Calculation,
    Operand,
    Operation,
    Ref,
    Simple,
    count_calculations,
    decimals_asked,
    flatten,
    listed,
    parse_arithmetic,
)
from aeon_core.llm.simulated.prompt import clip
from aeon_core.llm.simulated.texts import TextTask, clauses, file_names, parse_text_task, quotations, strip_politeness
from aeon_core.llm.simulated.tools import Arguments, Described, calculator, file_tool, named_tool, text_tool

_MAX_SUBJECT = 120

_API = {
    "resources": "the collection /{path}, and each of its members under its own address /{path}/{{id}}",
    "operations": "GET lists or reads, POST adds, PUT replaces and DELETE removes members of /{path}",
    "error replies": "a code, a sentence and the faulty field, whenever a request about {about} is faulty or unknown",
    "access rules": "every caller carries a token, with separate permissions to read and to change {about}",
}
_PROGRAM = {
    "inputs": "what the caller names for {about}: source, target and options, checked before anything is touched",
    "behaviour": "it reads, shows what it is going to do for {about}, and then does it once",
    "failures": "each fault concerning {about} ends with one line that names it, and leaves the originals untouched",
    "tests": "an ordinary case, an empty one, a faulty one and a repeated run, each with {about}",
}
_SITE = {
    "visitors": "people who look for {about}, on a phone first, often once only",
    "pages": "a start page about {about}, an overview, a page for every entry, and contact",
    "content": "texts and pictures about {about}, each with an owner who keeps it current",
    "operation": "hosting, backups and a monthly look at which pages about {about} are read",
}
_DATA = {
    "tables": "one for each kind of thing in {about}, one for what links them, and one for changes over time",
    "keys": "a surrogate number per row, plus a natural identifier within {about} that stays unique",
    "constraints": "mandatory columns are not null, references within {about} are enforced",
    "queries": "look up by identifier, list by date, and total per owner within {about}, each with an index",
}
_EVENT = {
    "guests": "who takes part when it comes to {about}, with confirmed and open replies, and who needs what",
    "place and time": "a start and an end that suit {about}, a room with enough seats, and another in case it rains",
    "programme": "welcome, the main part about {about}, a break with food, and a farewell",
    "costs": "rent, food, material and a reserve, added up for {about} against the money there is",
}
_KINDS_OF_THINGS = {
    noun: parts
    for nouns, parts in (
        ("api apis endpoint endpoints interface webservice", _API),
        ("tool program script library module app application command package service bot", _PROGRAM),
        ("website site homepage page portal blog shop", _SITE),
        ("database schema table tables datastore", _DATA),
        ("party wedding trip workshop meeting conference event celebration", _EVENT),
    )
    for noun in nouns.split()
}
"""The parts of each kind of thing, and what belongs there: `about` is what it serves, `path` the last word of that."""
_ARTICLES = listed("a an the my our your some new small simple good nice better modern great")
_SERVES = re.compile(r"\s+(?:for|of|about|on|with|to|that|which)\s+", re.IGNORECASE)
_DOING = re.compile(r"\b(?:that|which)\s+\w+(?:\s+(?:up|out|down|off|over|in|on|to))?\s+(?=\w)", re.IGNORECASE)
_BESIDE = re.compile(r"[,;:]| with ")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_PART = re.compile(r"Work out the (?P<part>[a-z ]{3,30}?) of (?P<subject>.+)")
_WHOLE = re.compile(r"Put the parts of (?P<subject>.+) together")


@dataclass(frozen=True)
class Elaboration:
    """The descriptions of the steps that work out a thing: its parts, and the one that puts them together."""

    parts: tuple[str, ...]
    whole: str


def elaboration(subject: str) -> Elaboration | None:
    """Return how a thing is worked out; None where its kind is unknown, or not said what it is to serve."""
    subject = clip(subject, _MAX_SUBJECT).rstrip(" .?!")
    kind = _kind(subject)
    if kind is None:
        return None
    return Elaboration(
        tuple(f"Work out the {part} of {subject}" for part in kind[0]), f"Put the parts of {subject} together"
    )


def worked_out(description: str) -> str | None:
    """Return what belongs to the part that a description asks for, None where it asks for none that is known."""
    match = _PART.fullmatch(description[:MAX_CLAUSE].strip().rstrip("."))
    kind = _kind(match["subject"]) if match else None
    if match is None or kind is None or match["part"] not in kind[0]:
        return None
    parts, about = kind
    path = _WORD.findall(about)[-1].lower()
    return f"{match['part'].capitalize()}: {parts[match['part']].format(about=about, path=path)}."


def part_of(description: str) -> str | None:
    """Return the thing that a description works out a part of, or None."""
    match = _PART.fullmatch(description[:MAX_CLAUSE].strip().rstrip("."))
    return match["subject"] if match else None


def whole_of(description: str) -> str | None:
    """Return the thing whose parts a description puts together, or None."""
    match = _WHOLE.fullmatch(description[:MAX_CLAUSE].strip().rstrip("."))
    return match["subject"] if match else None


def _kind(subject: str) -> tuple[dict[str, str], str] | None:
    """Return the parts of a thing of this kind, and what it serves: what follows it, else what qualifies it."""
    # "a script that backs up my photos" is one for my photos.
    head, *served = _SERVES.split(_DOING.sub("for ", subject, count=1), maxsplit=1)
    words = _WORD.findall(head.lower())
    place = next((index for index, word in reversed(list(enumerate(words))) if word in _KINDS_OF_THINGS), None)
    if place is None:
        return None
    about = (
        _BESIDE.split(served[0])[0].strip()
        if served
        else " ".join(word for word in words[:place] if word not in _ARTICLES)
    )
    return (_KINDS_OF_THINGS[words[place]], about) if _WORD.search(about) else None


_MAKING = (
    "Clarify what {} must achieve and for whom",
    "List the main parts of {}",
    "Work out each part of {} in more detail",
    "Check the parts of {} against the goal and look for gaps",
    "Put together the final version of {}",
)
_OPEN_WRITING = (
    "Collect what {} should say and to whom",
    "Outline {}",
    "Draft {}",
    "Revise the draft of {} and shorten it",
)
_FINDING_OUT = (
    "State precisely what has to be found out about {}",
    "Collect what is known about {}",
    "Weigh what speaks for and against each view of {}",
    "Look for what is missing or contradictory about {}",
    "Draw a conclusion about {}",
    "Summarise the findings about {} in a few sentences",
)
_ANYTHING = (
    "State what is asked for by {}",
    "Collect what is needed for {}",
    "Work on {} step by step",
    "Review the outcome of {} and put it together",
)
_OPEN_PRONOUN = re.compile(r"(?:it|this|that|them|these|those)\b(?!\s+\w+\s+\w)", re.IGNORECASE)
_VERBS = {
    _MAKING: "design build create implement develop make plan set organise organize prepare refactor migrate",
    _OPEN_WRITING: "write draft compose prepare formulate",
    _FINDING_OUT: "research analyse analyze compare explain find investigate evaluate review describe discuss study why"
    " how what who when where which is are does can should",
}
_KINDS = {verb: steps for steps, verbs in _VERBS.items() for verb in verbs.split()}


def request_of(clause: str) -> str:
    """Return a clause without the polite words before it, on one line, with a capital first."""
    request = clip(strip_politeness(clause[:MAX_CLAUSE]), MAX_CLAUSE).rstrip(" .")
    return request[:1].upper() + request[1:]


def made_thing(task: str) -> str | None:
    """Return the thing that a task wants made (`a REST API for invoices`), None where it wants something else."""
    first, _, rest = request_of(next(iter(clauses(task)), "")).partition(" ")
    made = _KINDS.get(first.lower()) is _MAKING and rest.strip()
    return clip(rest, _MAX_SUBJECT).rstrip(" ?!") if made else None


def open_steps(task: str) -> list[str]:
    """Return four to six descriptions of steps for a task that no rule understands."""
    request = request_of(task)
    first, _, rest = request.partition(" ")
    steps = _KINDS.get(first.lower().strip("?,:"))
    if steps is None or not rest.strip() or _OPEN_PRONOUN.match(rest):
        steps, rest = _ANYTHING, f"“{clip(request, _MAX_SUBJECT)}”" if request else "the request"
    elif steps is _FINDING_OUT and first.lower() not in ("research", "find", "investigate", "study"):
        rest = f"“{clip(request, _MAX_SUBJECT)}”"
    subject = clip(rest, _MAX_SUBJECT).rstrip(" ?!")
    return [step.format(subject) for step in steps]


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
