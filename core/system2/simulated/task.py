"""What the simulated agents read out of a conversation: the task, what is wanted, and what came back so far."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import combining, normalize

from aeon_core.llm.base import Message

_SECTION = re.compile(r"^## (Objective|Inputs|Outputs|Constraints|Completion Summary Requirements)\n\n", re.MULTILINE)
_TASK = re.compile(r"The task, in the person's words: (.*)", re.DOTALL)
_CHECK = re.compile(r"\(check (\d+)\)")
_WORD = re.compile(r"[a-z0-9]+")
_MAX_WORDS = 4


@dataclass(frozen=True)
class Wanted:
    """What a contract asks for."""

    task: str
    outputs: list[str]
    """The paths among the outputs."""
    is_execution: bool
    """Whether tasks are to be carried out, rather than a document written."""
    blockers: list[str] = field(default_factory=list)
    check: int = 1

    @property
    def slug(self) -> str:
        """The task as the name of a module."""
        plain = "".join(char for char in normalize("NFKD", self.task.lower()) if not combining(char))
        words = _WORD.findall(plain)[:_MAX_WORDS]
        return "_".join(words) if words and not words[0][0].isdigit() else "_".join(["task", *words])


@dataclass(frozen=True)
class Turns:
    """Where a conversation stands: what the person said last, and what was done since."""

    wanted: Wanted
    feedback: str | None
    """What a person said after the work was done; None before."""
    done: list[Mapping[str, Any]]
    """The calls since: `name`, `arguments`, `result`, `failed`."""

    def made(self, *names: str) -> list[Mapping[str, Any]]:
        """Return the calls of some tools since the person spoke."""
        return [call for call in self.done if call["name"] in names]


def read_turns(messages: Sequence[Message]) -> Turns | None:
    """Return where the conversation stands, None where it holds no delegation contract."""
    texts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    contract = next((index for index in texts if _SECTION.search(messages[index]["content"])), None)
    if contract is None:
        return None
    last = texts[-1]
    feedback = _feedback(messages[last]["content"]) if last > contract else None
    results = {
        message.get("tool_call_id", ""): message for message in messages[last + 1 :] if message["role"] == "tool"
    }
    done: list[Mapping[str, Any]] = []
    for message in messages[last + 1 :]:
        for call in message.get("tool_calls", ()):
            result = results.get(call.get("id", ""))
            done.append(
                {
                    "name": call["name"],
                    "arguments": call["arguments"] if isinstance(call["arguments"], dict) else {},
                    "result": result["content"] if result is not None else "",
                    "failed": result is None or result.get("is_error", False),
                }
            )
    return Turns(_wanted(messages[contract]["content"]), feedback, done)


def _feedback(text: str) -> str:
    """Return what a person said, out of the words around it."""
    said = text.partition("What was said:\n\n")[2] or text
    return said.partition("\n\nTake it into account")[0].strip()


def _wanted(contract: str) -> Wanted:
    parts = _SECTION.split(contract)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    objective = sections.get("Objective", "").strip()
    found = _TASK.search(objective)
    outputs = [line.removeprefix("- ") for line in sections.get("Outputs", "").splitlines() if line.startswith("- ")]
    inputs = [line.removeprefix("- ") for line in sections.get("Inputs", "").splitlines()]
    check = _CHECK.search(objective)
    return Wanted(
        task=" ".join((found.group(1) if found else objective).split()),
        outputs=[output for output in outputs if " " not in output and "." in output],
        is_execution=any(output.startswith(("the files that", "the repaired files")) for output in outputs),
        blockers=[line.partition(": ")[2] for line in inputs if line.startswith("blocker of ")],
        check=int(check.group(1)) if check else 1,
    )
