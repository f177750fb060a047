"""A rule-based model that plays the thirteen agents: no key, no network, always labelled as simulated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any
from unicodedata import combining, normalize

from aeon_core.errors import ModelUnavailableError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Message, ToolCallDict
from aeon_core.llm.simulated.model import simulated_reply
from aeon_core.suggest import nearest
from aeon_core.tools.files import LINE_NUMBER
from system2.constants import COMPLETION_TOOL, LOG_FILE, POST_EXECUTION
from system2.contracts import DOCUMENTS

SIMULATED_WORKFLOWS = {
    "default": "writes every document, a module and its test, and finds no problems",
    "blockers": "the same, but the reviewer reports a blocker, which the executor fixes",
}
NOTE = "> Written by the simulated model: a placeholder that shows the steps of a workflow without doing the work."
BLOCKER = "the module does not say that it is simulated"
REPAIR = "# Simulated: a placeholder for the real change.\n"
_MODULE = '''"""A placeholder for the real work, written by the simulated model."""

TASK = {task!r}


def describe() -> str:
    """Return the task."""
    return TASK
'''
_TEST = """import runpy
from pathlib import Path

MODULE = Path(__file__).parents[1] / "src" / "{slug}.py"


def test_{slug}() -> None:
    assert runpy.run_path(str(MODULE))["describe"]() == {task!r}


if __name__ == "__main__":
    test_{slug}()
"""
_REPORTS = {path: agent for agent, path in DOCUMENTS.items() if agent in POST_EXECUTION}
"""The author of each report, who also adds an entry to the log."""
_SECTION = re.compile(r"^## (Objective|Inputs|Outputs|Constraints|Completion Summary Requirements)\n\n", re.MULTILINE)
_TASK = re.compile(r"The task, in the person's words: (.*)", re.DOTALL)
_FEEDBACK = re.compile(r"What was said:\n\n(.*?)(?:\n\nTake it into account|\Z)", re.DOTALL)
_MAX_WORDS = 4
_MAX_FILES = 20


@dataclass(frozen=True)
class Work:
    """What an agent must do, and what it has done since the last user message."""

    task: str
    outputs: list[str]
    """The paths among the outputs."""
    is_execution: bool
    """Whether it must carry out tasks, rather than write a document."""
    blockers: bool
    """Whether it must repair what another agent reported."""
    check: int
    """The number of its check of the work, from 1."""
    feedback: str | None
    """What a person said after the work was done."""
    done: list[Mapping[str, Any]]
    """The calls since: `name`, `arguments`, `result`, `failed`."""

    @property
    def slug(self) -> str:
        """The task as the name of a module."""
        plain = "".join(char for char in normalize("NFKD", self.task.lower()) if not combining(char))
        words = re.findall("[a-z0-9]+", plain)[:_MAX_WORDS]
        return "_".join(words) if words and not words[0][0].isdigit() else "_".join(["task", *words])

    @property
    def new_slug(self) -> str:
        """The slug, with a number if the project has such files already."""
        numbered = (f"{self.slug}_{number}" for number in count(2))
        return next(
            slug
            for slug in chain([self.slug], numbered)
            if not {f"src/{slug}.py", f"tests/test_{slug}.py"} & {*self.files}
        )

    @property
    def files(self) -> list[str]:
        """The files of the project, as Glob listed them."""
        listed = next((call["result"] for call in self.calls_of("Glob") if not call["failed"]), "")
        return [line for line in listed.splitlines() if line and " " not in line and not line.startswith("[")]

    def calls_of(self, *names: str) -> list[Mapping[str, Any]]:
        return [call for call in self.done if call["name"] in names]

    def read(self, path: str) -> str | None:
        """Return what Read returned for a file, or None if it failed or was not called."""
        calls = (call for call in self.calls_of("Read") if call["arguments"].get("file_path") == path)
        return next((LINE_NUMBER.sub("", call["result"]) for call in calls if not call["failed"]), None)

    def document(self, path: str) -> str:
        title = PurePosixPath(path).stem.replace("-", " ").capitalize()
        files = "\n".join(f"- `{file}`" for file in self.files[:_MAX_FILES]) or "The repository is empty."
        text = f"# {title}\n\n{NOTE}\n\n## Task\n\n{self.task}\n\n## Project files\n\n{files}\n"
        revision = f"\n## Revision\n\nFeedback on the previous version: {self.feedback}\n"
        return text + (revision if self.feedback is not None else "")


def read_work(messages: Sequence[Message]) -> Work | None:
    """Return the work that a conversation asks for and its progress, or None if it has no delegation contract."""
    user_turns = [index for index, message in enumerate(messages) if message["role"] == "user"]
    first = next((index for index in user_turns if _SECTION.search(messages[index]["content"])), None)
    if first is None:
        return None
    parts = _SECTION.split(messages[first]["content"])
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    objective = sections.get("Objective", "").strip()
    task, check = _TASK.search(objective), re.search(r"\(check (\d+)\)", objective)
    outputs = re.findall("^- (.*)", sections.get("Outputs", ""), re.MULTILINE)
    words = messages[user_turns[-1]]["content"]
    feedback = _FEEDBACK.search(words)
    return Work(
        task=" ".join((task[1] if task else objective).split()),
        outputs=[output for output in outputs if " " not in output and "." in output],
        is_execution=any(output.startswith(("the files that", "the repaired files")) for output in outputs),
        blockers="\n- blocker of " in f"\n{sections.get('Inputs', '')}",
        check=int(check[1]) if check else 1,
        feedback=None if user_turns[-1] == first else feedback[1].strip() if feedback else words,
        done=list(_calls(messages[user_turns[-1] + 1 :])),
    )


def _calls(messages: Sequence[Message]) -> Iterator[Mapping[str, Any]]:
    results = {message.get("tool_call_id", ""): message for message in messages if message["role"] == "tool"}
    for call in (call for message in messages for call in message.get("tool_calls", ())):
        arguments = call["arguments"] if isinstance(call["arguments"], dict) else {}
        result = results.get(call.get("id", ""), {"role": "tool", "content": "", "is_error": True})
        failed = result.get("is_error", False)
        yield {"name": call["name"], "arguments": arguments, "result": result["content"], "failed": failed}


class SimulatedAgents(LLMAdapter):
    """Answers as an agent would. A conversation always gets the same reply, without network, clock or randomness.

    `name` is one of SIMULATED_WORKFLOWS. Raises ModelUnavailableError for another.
    """

    simulated = True

    def __init__(self, name: str = "default") -> None:
        if name not in SIMULATED_WORKFLOWS:
            hint = nearest(name[:60], tuple(SIMULATED_WORKFLOWS))
            raise ModelUnavailableError(f"no simulated model {name[:60]!r} for workflows{hint}")
        self.model: str = f"simulated:{name}"
        self._blocks = name == "blockers"

    def complete(self, request: LLMRequest) -> LLMResponse:
        work = read_work(request.messages)
        tools = {tool["name"] for tool in request.tools}
        text = "Summary: the task and the contract are unchanged, and the work continues."
        calls: list[ToolCallDict] = []
        if work is not None and tools:
            text, calls = self._next(work, tools)
        for number, call in enumerate(calls):
            call["id"] = f"simulated_{len(request.messages)}_{number}"
        return simulated_reply(self.model, request, text, calls)

    def _next(self, work: Work, tools: set[str]) -> tuple[str, list[ToolCallDict]]:
        if not work.calls_of("Glob") and "Glob" in tools:
            reads = [LOG_FILE] if _REPORTS.keys() & set(work.outputs) else []
            reads += [f"src/{work.slug}.py"] if work.blockers else []
            looks = [_call("Read", file_path=path) for path in reads if "Read" in tools]
            return "First, I'll look at the project.", [_call("Glob", pattern="**/*"), *looks]
        if not work.calls_of("Write", "Edit") and (
            calls := [call for call in self._work(work) if call["name"] in tools]
        ):
            return "I'll revise it based on the feedback." if work.feedback else "I'll write it now.", calls
        if work.is_execution and not work.calls_of("Bash") and "Bash" in tools:
            slug = work.slug if work.blockers or work.feedback is not None else work.new_slug
            return "I'll run the test.", [_call("Bash", command=f"python3 tests/test_{slug}.py")]
        return "Done.", [self._completion(work)]

    def _work(self, work: Work) -> Iterator[ToolCallDict]:
        if work.blockers:
            module = f"src/{work.slug}.py"
            if REPAIR not in (work.read(module) or REPAIR):
                yield _call("Edit", file_path=module, old_string="TASK = ", new_string=f"{REPAIR}TASK = ")
        elif work.is_execution and work.feedback is None:
            # An earlier workflow may have had the same task, and one that changes no file is not complete.
            slug = work.new_slug
            for path, text in {f"src/{slug}.py": _MODULE, f"tests/test_{slug}.py": _TEST}.items():
                yield _call("Write", file_path=path, content=text.format(slug=slug, task=work.task))
        elif work.is_execution:
            yield _call("Write", file_path=f"src/{work.slug}.md", content=work.document("notes.md"))
        for path in work.outputs:
            yield _call("Write", file_path=path, content=work.document(path))
            if path in _REPORTS:
                found = "; ".join(self._found(work)) or "none"
                result = "pass" if found == "none" else "blockers"
                entry = f"## {_REPORTS[path]}\n- Result: {result}\n- Blockers: {found}\n"
                before = (work.read(LOG_FILE) or "# Post-execution log").rstrip()
                yield _call("Write", file_path=LOG_FILE, content=f"{before}\n\n{entry}")

    def _found(self, work: Work) -> list[str]:
        reviews = DOCUMENTS["code-reviewer"] in work.outputs
        return [BLOCKER] if self._blocks and reviews and work.check == 1 else []

    def _completion(self, work: Work) -> ToolCallDict:
        changed = [call["arguments"]["file_path"] for call in work.calls_of("Write", "Edit") if not call["failed"]]
        failed = [call["result"] for call in work.calls_of("Write", "Edit", "Bash") if call["failed"]]
        blockers, files = self._found(work), ", ".join(dict.fromkeys(changed))
        summary = f"Simulated: {f'wrote {files}' if files else 'there was nothing to write'}."
        if failed:
            summary += " Failed: " + "; ".join(text.splitlines()[0] for text in failed if text)
        return _call(
            COMPLETION_TOOL,
            status="blockers" if blockers else "success",
            files_changed=list(dict.fromkeys(changed)),
            summary=summary,
            blockers=blockers,
        )


def _call(tool: str, /, **arguments: Any) -> ToolCallDict:
    return {"name": tool, "arguments": arguments}
