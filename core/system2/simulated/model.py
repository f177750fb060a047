"""The simulated agents as an adapter: they look around, write what is asked for through tools, and say so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from aeon_core.errors import ModelUnavailableError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ToolCallDict
from aeon_core.suggest import nearest
from system2.agent_contracts import DOCUMENTS
from system2.agents.tools import COMPLETION_TOOL
from system2.constants import LOG_FILE, POST_EXECUTION
from system2.simulated.documents import document, log_entry, module, module_test
from system2.simulated.task import Turns, Wanted, read_turns

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
