"""A model by rules that plays the thirteen agents: no key, no network, always labelled as simulated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import combining, normalize

from aeon_core.errors import ModelUnavailableError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Message, ToolCallDict
from aeon_core.suggest import nearest
from system2.agents.tools import COMPLETION_TOOL
from system2.constants import LOG_FILE, POST_EXECUTION
from system2.contracts import DOCUMENTS

NOTE = "> Written by the simulated model: it shows how the workflow goes, and does not do the work.\n"


def document(path: str, wanted: Wanted, files: Sequence[str]) -> str:
    """Return the text of a document by its path; `files` are those of the project."""
    if path in _REPORT_TITLES:
        looked = "\n".join(f"- `{file}`" for file in files if wanted.slug in file) or "- no file of the task"
        title, sections = _REPORT_TITLES[path], {"Looked at": looked, "Findings": "- none"}
    else:
        title, given = _DOCUMENTS.get(path, ("Notes", {"Task": "TASK"}))
        there = "\n".join(f"- `{file}`" for file in files[:20]) or "The repository is empty."
        more = f"\n- and {len(files) - 20:,} more" if len(files) > 20 else ""
        filled = {"FILES": there + more, "SLUG": wanted.slug, "TASK": wanted.task}
        fill = re.compile("|".join(filled))
        sections = {head: fill.sub(lambda found: filled[found[0]], text) for head, text in given.items()}
    return "\n".join([f"# {title}", "", NOTE, *(f"## {head}\n\n{text}\n" for head, text in sections.items())])


_DOCUMENTS = {
    "spec/scope.md": (
        "Scope",
        {
            "Task": "TASK",
            "What is there": "FILES",
            "Commands": "| command | purpose | source |\n| --- | --- | --- |\n| not found | test | – |",
            "In scope": "- TASK",
            "Out of scope": "- releases and deployments",
            "Who is needed": "- executor: yes\n- test-engineer: yes\n- code-reviewer: yes\n"
            "- eval-engineer: no, no prompt or model changes\n- mcp-toolsmith: no, no tools for models are built\n"
            "- postmortem-scribe: no, there was no incident",
            "Open questions": "- none that would change the scope",
        },
    ),
    "spec/context.md": (
        "Context",
        {
            "Problem": "There is no such thing yet: TASK",
            "Goals": "- G1: the task is described by code that can be run. Measured by: its test passes.",
            "Not goals": "- anything that the task does not name",
            "Acceptance criteria": "- AC-1 (G1): `describe()` returns the task.",
            "Open questions": "- none",
        },
    ),
    "spec/requirements.md": (
        "Requirements",
        {
            "Functions": "| id | requirement | priority | traces to |\n| --- | --- | --- | --- |\n"
            "| REQ-001 | The module shall return the task in the person's words. | must | G1, AC-1 |",
            "Validation": "- REQ-001: a unit test compares the two texts.",
        },
    ),
    "spec/design.md": (
        "Design",
        {
            "Overview": "One module with one function, and its test.",
            "Parts": "- `src/SLUG.py`: the task as text (new)\n- `tests/test_SLUG.py`: its test (new)",
            "Interfaces": "`describe() -> str`",
            "Decisions": "- AD-1: plain text rather than a file of data, as nothing else reads it.",
            "Verification": "- REQ-001: the test",
        },
    ),
    "spec/tasks.md": (
        "Tasks",
        {
            "TASK-001 The module says its task": "- **Files**: `src/SLUG.py`, `tests/test_SLUG.py`\n"
            "- **Depends on**: none\n- **Verification**: `python3 tests/test_SLUG.py` ends with exit code 0\n"
            "- **Requirements**: REQ-001\n- **Size**: S"
        },
    ),
}
"""Titles and sections; FILES, SLUG and TASK stand for the project's files, the task as a name, and the task."""
_REPORT_TITLES = {
    "spec/test-report.md": "Test report",
    "spec/security-review.md": "Security review",
    "spec/evals.md": "Evaluation",
    "spec/release-notes.md": "Release notes",
    "spec/code-review.md": "Code review",
    "spec/postmortem.md": "Postmortem",
    "spec/mcp-tools.md": "Tools",
}


def module(wanted: Wanted) -> str:
    """Return the module that the simulated executor writes."""
    return (
        f'"""Stands for the work on a task. Written by the simulated model."""\n\n'
        f"TASK = {wanted.task!r}\n\n\n"
        f"def describe() -> str:\n"
        f'    """Return what the task is."""\n'
        f"    return TASK\n"
    )


def module_test(path: str, wanted: Wanted) -> str:
    """Return the test of that module, which runs with pytest and alone."""
    name = f"test_{wanted.slug}_says_its_task"
    return (
        f"import runpy\nfrom pathlib import Path\n\n"
        f"MODULE = Path(__file__).parents[1] / {path!r}\n\n\n"
        f"def {name}() -> None:\n"
        f'    assert runpy.run_path(str(MODULE))["describe"]() == {wanted.task!r}\n\n\n'
        f'if __name__ == "__main__":\n    {name}()\n'
    )


def log_entry(agent: str, blockers: Sequence[str], left_open: str) -> str:
    """Return what an agent adds to the log of the checks."""
    result = "blockers" if blockers else "pass"
    found = "; ".join(blockers) or "none"
    return (
        f"## {agent}\n- Result: {result}\n- Checked: the changed files\n- Blockers: {found}\n- Left open: {left_open}\n"
    )


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
    """How far a conversation has come: what the person said last, and what was done since."""

    wanted: Wanted
    feedback: str | None
    """What a person said after the work was done; None before."""
    done: list[Mapping[str, Any]]
    """The calls since: `name`, `arguments`, `result`, `failed`."""

    def made(self, *names: str) -> list[Mapping[str, Any]]:
        """Return the calls of some tools since the person spoke."""
        return [call for call in self.done if call["name"] in names]


def read_turns(messages: Sequence[Message]) -> Turns | None:
    """Return how far the conversation has come, None where it holds no delegation contract."""
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


SIMULATED_WORKFLOWS = {
    "default": "writes every document, a module and its test, and finds nothing wrong with them",
    "blockers": "the same, but the reviewer finds a blocker, which the executor repairs",
}
BLOCKER = "the module does not say that it is simulated"
REPAIR = "# Simulated: it stands for the work.\n"
_CHARACTERS_PER_TOKEN = 4
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
"""What Read puts before each line."""
_REPORTS = {path: agent for agent, path in DOCUMENTS.items() if agent in POST_EXECUTION}
"""Whose report a file is: its writer adds an entry to the log, too."""


class SimulatedAgents(LLMAdapter):
    """Answers as an agent would: the same conversation gets the same reply, without network, clock or chance.

    `name` is one of SIMULATED_WORKFLOWS. Raises ModelUnavailableError for another.
    """

    simulated = True

    def __init__(self, name: str = "default") -> None:
        if name not in SIMULATED_WORKFLOWS:
            known = tuple(SIMULATED_WORKFLOWS)
            hint = nearest(name[:60], known)
            raise ModelUnavailableError(f"no simulated model {name[:60]!r} for workflows{hint}")
        self.model: str = f"simulated:{name}"
        self._blocks = name == "blockers"

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the next turn of the agent."""
        turns = read_turns(request.messages)
        tools = {tool["name"] for tool in request.tools}
        calls: list[ToolCallDict] = []
        if turns is None or not tools:
            text = "Summary: the work went on as the contract says; nothing is lost that matters."
        else:
            text, calls = self._next(turns, tools)
        if request.on_delta is not None:
            request.on_delta(text)
        if request.on_call is not None:
            for call in calls:
                for part in ("", json.dumps(call["arguments"])):
                    request.on_call(call["name"], part)
        said = len(request.system) + sum(len(json.dumps(message)) for message in request.messages)
        written = len(text) + len(json.dumps(calls))
        return LLMResponse(
            text=text,
            tool_calls=[_numbered(call, len(request.messages), index) for index, call in enumerate(calls)],
            usage={"input_tokens": _tokens(said), "output_tokens": _tokens(written)},
            stop_reason="tool_use" if calls else "end",
            model=self.model,
        )

    def _next(self, turns: Turns, tools: set[str]) -> tuple[str, list[ToolCallDict]]:
        wanted = turns.wanted
        if not turns.made("Glob") and "Glob" in tools:
            looks = [_call("Glob", pattern="**/*")]
            if _REPORTS.keys() & set(wanted.outputs) and "Read" in tools:
                looks.append(_call("Read", file_path=LOG_FILE))
            if wanted.blockers and "Read" in tools:
                looks.append(_call("Read", file_path=f"src/{wanted.slug}.py"))
            return "I look at what is there first.", looks
        if not turns.made("Write", "Edit") and (calls := [call for call in self._work(turns) if call["name"] in tools]):
            return _SAID[bool(turns.feedback)], calls
        if wanted.is_execution and not turns.made("Bash") and "Bash" in tools:
            return "I run the test.", [_call("Bash", command=f"python3 tests/test_{wanted.slug}.py")]
        return "That is done.", [self._completion(turns)]

    def _work(self, turns: Turns) -> Iterator[ToolCallDict]:
        wanted, files = turns.wanted, _files(turns)
        if wanted.blockers:
            yield from _repair(turns)
        elif wanted.is_execution and turns.feedback is None:
            path = f"src/{wanted.slug}.py"
            if path not in files:
                yield _call("Write", file_path=path, content=module(wanted))
            if f"tests/test_{wanted.slug}.py" not in files:
                content = module_test(path, wanted)
                yield _call("Write", file_path=f"tests/test_{wanted.slug}.py", content=content)
        elif wanted.is_execution:
            notes = f"# Notes on the work\n\nSaid about it: {turns.feedback}\n"
            yield _call("Write", file_path=f"src/{wanted.slug}.md", content=notes)
        for path in wanted.outputs:
            text = document(path, wanted, files)
            if turns.feedback is not None:
                text += f"\n## Revision\n\nSaid about the version before: {turns.feedback}\n"
            yield _call("Write", file_path=path, content=text)
            if (agent := _REPORTS.get(path)) is not None:
                yield _log(turns, log_entry(agent, self._found(agent, wanted), "what a real model would see"))

    def _found(self, agent: str, wanted: Wanted) -> list[str]:
        return [BLOCKER] if self._blocks and agent == "code-reviewer" and wanted.check == 1 else []

    def _completion(self, turns: Turns) -> ToolCallDict:
        made = turns.made("Write", "Edit")
        changed = list(dict.fromkeys(call["arguments"]["file_path"] for call in made if not call["failed"]))
        failed = [call["result"] for call in turns.made("Write", "Edit", "Bash") if call["failed"]]
        reporter = next((_REPORTS[path] for path in turns.wanted.outputs if path in _REPORTS), None)
        blockers = self._found(reporter, turns.wanted) if reporter is not None else []
        summary = f"Simulated: {', '.join(changed) if changed else 'nothing had to be written'}."
        if failed:
            summary += " Not done: " + "; ".join(text.splitlines()[0] for text in failed if text)
        return _call(
            COMPLETION_TOOL,
            status="blockers" if blockers else "success",
            files_changed=changed,
            summary=summary,
            blockers=blockers,
        )


_SAID = {False: "I write what is asked for.", True: "I write it again with what was said."}


def _repair(turns: Turns) -> Iterator[ToolCallDict]:
    path = f"src/{turns.wanted.slug}.py"
    there = next((call for call in turns.made("Read") if call["arguments"].get("file_path") == path), None)
    if there is not None and not there["failed"] and REPAIR not in there["result"]:
        anchor = "TASK = "
        yield _call("Edit", file_path=path, old_string=anchor, new_string=f"{REPAIR}{anchor}")


def _log(turns: Turns, entry: str) -> ToolCallDict:
    """Return the call that adds an entry to the log, keeping what others wrote."""
    there = next((call for call in turns.made("Read") if call["arguments"].get("file_path") == LOG_FILE), None)
    before = "# After execution"
    if there is not None and not there["failed"]:
        before = _LINE_NUMBER.sub("", there["result"]).rstrip()
    return _call("Write", file_path=LOG_FILE, content=f"{before}\n\n{entry}")


def _files(turns: Turns) -> list[str]:
    listed = next((call["result"] for call in turns.made("Glob") if not call["failed"]), "")
    return [line for line in listed.splitlines() if line and " " not in line and not line.startswith("[")]


def _call(tool: str, /, **arguments: Any) -> ToolCallDict:
    return {"name": tool, "arguments": arguments}


def _numbered(call: ToolCallDict, messages: int, index: int) -> ToolCallDict:
    return {"id": f"simulated_{messages}_{index}", "name": call["name"], "arguments": call["arguments"]}


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)
