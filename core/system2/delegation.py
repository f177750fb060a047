"""Delegation: which agents are needed, and handing work to one at a time (REQ-045, 047, 092, 120, N05)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aeon_core.errors import RunAborted
from aeon_core.journal.records import AgentRecord
from system2.agents import AgentDefinition
from system2.changes import SPEC_FOLDER
from system2.context import WorkflowContext
from system2.contracts import DelegationContract
from system2.policies import Question
from system2.session import AgentResult, AgentSession


class Delegation:
    """The agents of one workflow. Sessions are kept so that an agent can continue after a rejection (REQ-043)."""

    def __init__(self, context: WorkflowContext) -> None:
        self._context = context
        self._sessions: dict[str, AgentSession] = {}

    def work(self, agent: str, contract: DelegationContract, feedback: str | None = None) -> AgentResult:
        """Have an agent work on a contract from the start, and return how that ended.

        With `feedback` from a gate it continues its conversation. If it stops early or reports failure, a person can
        retry, skip or abort. Raises RunAborted for an abort, UsageError if there is no such agent, and what a
        model's call raises.
        """
        while True:
            if feedback is None:
                self._sessions.pop(agent, None)
            result = self._session(agent).run(contract, feedback)
            self._notify(result)
            is_done = result.completion is not None and result.completion.status != "failure"
            if is_done or self._choice(result) == "skip":
                return result
            feedback = None

    def skip(self, agent: str, reason: str) -> None:
        """Record that an agent is skipped, and why (REQ-047)."""
        rounds = self._sessions[agent].rounds if agent in self._sessions else 0
        self._context.effects.emit(AgentRecord(agent=agent, state="skipped", pass_number=rounds, reason=reason))

    def _session(self, agent: str) -> AgentSession:
        """Return the agent's session; it is new if the agent has not worked, as after keeping an earlier document."""
        if agent not in self._sessions:
            self._sessions[agent] = AgentSession(self._definition(agent), self._context)
        return self._sessions[agent]

    def _definition(self, agent: str) -> AgentDefinition:
        """Return the agent as its file defines it now; a person must allow a file that changed during the workflow.

        Another agent may have changed it with a command. Raises RunAborted if it is refused.
        """
        found = self._context.effects.observe("agent", lambda: self._read(agent))
        definition = AgentDefinition(**{**found["definition"], "source_path": Path(found["definition"]["source_path"])})
        if found["was_changed"]:
            what = f"the agent file {str(definition.source_path)!r} has changed since the workflow started"
            question = Question("protected_file", agent, f"{what}; use the new version?", ("refuse", "allow"), "refuse")
            if self._context.choose(question) != "allow":
                raise RunAborted(f"{what}, and you have not allowed it; check it, then resume the workflow")
        return definition

    def _read(self, agent: str) -> dict[str, Any]:
        library = self._context.library
        assert library is not None
        definition = library.get(agent)
        definition_dict = {**vars(definition), "source_path": str(definition.source_path)}
        return {"definition": definition_dict, "was_changed": library.was_changed(definition)}

    def _notify(self, result: AgentResult) -> None:
        context = self._context
        if context.on_complete is not None and not context.effects.recording:
            try:
                context.on_complete(result)
            except Exception as error:
                context.warn(f"on_agent_complete failed: {type(error).__name__}: {error}")

    def _choice(self, result: AgentResult) -> str:
        """Return `retry` or `skip`. Raises RunAborted."""
        asked_at = self._context.effects.next_seq
        # What the agent has said and changed, for the person who decides.
        said = result.completion.summary if result.completion is not None else result.text
        details = (*([said] if said.strip() else []), *(f"changed: {path}" for path in result.files_changed))
        question = Question("agent_halted", result.agent, _why(result), ("abort", "retry", "skip"), "abort", details)
        choice = self._context.choose(question)
        if choice == "abort":
            self._context.effects.resumes_from(asked_at)
            raise RunAborted(_why(result))
        return choice


def _why(result: AgentResult) -> str:
    if result.completion is not None:
        return f"the agent {result.agent!r} reports that it failed"
    return f"the agent {result.agent!r} stopped before it finished ({(result.halted or '').replace('_', ' ')})"


_DOCUMENT = re.compile(r"\.(?:md|mdx|rst|adoc|txt)$", re.IGNORECASE)
_DEPENDENCIES = re.compile(r"(?:^|/)(?:requirements[\w.-]*|constraints[\w.-]*|CMakeLists)\.txt$", re.IGNORECASE)
"""Those with the suffix of a document."""
_CODE = re.compile(
    r"^(?!.*\.(?:md|mdx|rst|adoc|txt|png|jpe?g|gif|webp|ico|bmp|pdf|mp[34]|wav|ogg|webm|mov|woff2?|ttf|otf|csv|tsv)$)",
    re.IGNORECASE | re.DOTALL,
)
"""Code, dependencies and configuration: any file but documents, media and tables, as no list has every language."""
_PROMPTS = re.compile(r"prompt|(?:^|/)(?:agents?|evals?|llms?)(?:/|\.|_)|\.(?:prompt|j2|jinja2?)$", re.IGNORECASE)

_INCIDENT = re.compile(
    r"\b(?:incidents?|post-?mortems?|outages?|root[ -]cause|regression in production|rolled? back)\b", re.I
)
_MCP = re.compile(r"\bMCP\b|\bmodel context protocol\b", re.IGNORECASE)


def skip_reason(agent: str, task: str, scope: str, changed: Iterable[str]) -> str | None:
    """Return why an agent is not needed, or None if it is.

    An agent of _BY_CHANGES is needed if a `changed` path outside `spec/` concerns it; the evaluator also if `scope`,
    the document approved at Gate 0, names it with yes and any such path changed. An agent of _BY_TASK is needed if the
    scope names it with yes, or if the scope does not decide and the task contains its words. All other agents are
    always needed.
    """
    if agent in _BY_CHANGES:
        files = [path for path in changed if not path.startswith(SPEC_FOLDER)]
        kinds, needs = _BY_CHANGES[agent]
        wanted = any(kind.search(path) for kind in kinds for path in files)
        if wanted or (agent == "eval-engineer" and files and _scope_verdict(agent, scope)):
            return None
        more = f" and {len(files) - 3} more" if len(files) > 3 else ""
        return f"{needs}; the executor changed {', '.join(files[:3]) or 'no files'}{more}"
    if agent in _BY_TASK:
        pattern, needs = _BY_TASK[agent]
        verdict = _scope_verdict(agent, scope)
        wanted = verdict if verdict is not None else pattern.search(task) is not None
        if wanted:
            return None
        return "the approved scope says that it is not needed" if verdict is False else needs
    return None


_BY_CHANGES = {
    "security-sentinel": ((_CODE, _DEPENDENCIES), "it reviews changes of code, dependencies and configuration"),
    "eval-engineer": ((_PROMPTS,), "it evaluates changes of prompts and models"),
    "docs-release": ((_CODE, _DOCUMENT), "it documents changes of behaviour and of documents"),
}
_BY_TASK = {
    "postmortem-scribe": (_INCIDENT, "the task speaks of no incident"),
    "mcp-toolsmith": (_MCP, "the task speaks of no MCP tools"),
}


OPTIONAL = frozenset([*_BY_CHANGES, *_BY_TASK])
"""The agents that may not be needed."""


def _scope_verdict(agent: str, scope: str) -> bool | None:
    """Return whether the scope names an agent with yes or no, or None if with neither."""
    found = re.search(
        rf"^[^\n]*(?<![\w-]){re.escape(agent)}(?![\w-])[^\w\n]*\b(yes|no)\b", scope, re.IGNORECASE | re.MULTILINE
    )
    return None if found is None else found[1].lower() == "yes"
