"""A workflow's parts for tests: a project, a scripted model, policies that keep what they were asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon_core.config.schema import RunConfig
from aeon_core.effects.port import Effects
from aeon_core.effects.secret_recovery import RunSecrets
from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ToolCallDict
from aeon_core.runs.setup import run_vault
from system2.agents import AgentDefinition
from system2.context import WorkflowContext, own_files, project_tools
from system2.contracts import DelegationContract
from system2.cost import CostRecord, prices_of
from system2.logs import Log, WorkflowProgress
from system2.policies import BashPolicy, PolicyApprover, Question, QuestionPolicy
from system2.session import RETRIES, AgentSession
from system2.settings import WorkflowSettings
from system2.transcript import TranscriptFile
from system2.workflow_journal import WorkflowJournal

Reply = LLMResponse | str | Exception
USAGE = {"input_tokens": 1000, "output_tokens": 100}

CONTRACT = DelegationContract(
    objective="Describe the context",
    inputs=["the task: build a REST API"],
    outputs=["spec/context.md"],
    constraints=["stay inside the project"],
    completion_requirements=["say what you did"],
)


def uses(
    *calls: tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str], text: str = "", **fields: Any
) -> LLMResponse:
    """A reply with tool uses, each a name, its input and perhaps an id."""
    made: list[ToolCallDict] = [
        {"id": call[2] if len(call) > 2 else f"use_{number}", "name": call[0], "arguments": call[1]}  # type: ignore[misc]
        for number, call in enumerate(calls, 1)
    ]
    return LLMResponse(**{"text": text, "tool_calls": made, "usage": USAGE, "stop_reason": "tool_use", **fields})


def said(text: str, stop: str = "end", **fields: Any) -> LLMResponse:
    """A reply without tool uses."""
    return LLMResponse(**{"text": text, "usage": USAGE, "stop_reason": stop, **fields})


def done(summary: str = "done", **fields: Any) -> LLMResponse:
    """A reply that signals completion."""
    return uses(("signal_completion", {"status": "success", "files_changed": [], "summary": summary, **fields}))


class Scripted(LLMAdapter):
    """Gives the replies one after the other, the last one for ever; an exception is raised."""

    model = "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0"

    def __init__(self, *replies: Reply | Callable[[LLMRequest], Reply]) -> None:
        self._replies = list(replies)
        self.requests: list[LLMRequest] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        reply = reply(request) if callable(reply) else reply
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, LLMResponse) else said(reply)


@dataclass
class Answers:
    """Chooses as told by kind, else the safe choice; keeps the questions."""

    by_kind: Mapping[str, str | list[str]] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)

    def choose(self, question: Question) -> str:
        self.asked.append(question)
        answer = self.by_kind.get(question.kind, question.safe)
        return answer if isinstance(answer, str) else answer.pop(0)


@dataclass
class Confirms:
    """Confirms every command, or none; keeps what was asked."""

    answer: bool = True
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def confirm(self, command: str, is_blocklisted: bool) -> bool:
        self.asked.append((command, is_blocklisted))
        return self.answer


def agent(*tools: str, name: str = "spec-coordinator", prompt: str = "You write the context.") -> AgentDefinition:
    return AgentDefinition(name, "writes", list(tools), prompt, prompt, Path(f"{name}.md"))


class Bench:
    """A workflow context over a scripted model, and what came out of it."""

    def __init__(
        self,
        root: Path,
        *replies: Reply | Callable[[LLMRequest], Reply],
        questions: QuestionPolicy | None = None,
        bash: BashPolicy | None = None,
        model: LLMAdapter | None = None,
        unsafe_bash: bool = False,
        **settings: Any,
    ) -> None:
        self.root = root
        self.model = model or Scripted(*(replies or ("nothing is scripted",)))
        self.logged: list[str] = []
        self.waits: list[float] = []
        self.lines: list[dict[str, Any]] = []
        self.settings = WorkflowSettings(**settings)
        warn = self.logged.append
        self.progress = WorkflowProgress(Log(warn), lambda line: self.lines.append(json.loads(line)), root)
        self.transcript = TranscriptFile(root / self.settings.transcript_dir / "20260101-000000.jsonl", warn)
        self.progress.restore((), self.transcript)
        registry = project_tools(root, self.settings, own_files(root, self.settings))
        prices, _ = prices_of([] if self.model.simulated else [self.model.model], self.settings.prices)
        config = RunConfig(
            budget=self.settings.cost_ceiling_usd,
            budget_warning=self.settings.cost_warning_usd,
            prices=prices,
            on_unknown="ask",
            context_window=self.model.context_window or self.settings.context_window_tokens,
        )
        self.spent: list[CostRecord] = []
        effects = Effects(
            WorkflowJournal(None, "run", self.progress.on_line),
            llm=self.model,
            config=config,
            approver=PolicyApprover(None, bash, questions),
            secrets=RunSecrets(run_vault(self.model, registry, config)),
            tools=registry,
            retries=RETRIES,
            on_cost=lambda *call: self.spent.append(CostRecord.of_call(*call)),
            sleep=self.waits.append,
        )
        self.context = WorkflowContext(
            root,
            self.settings,
            self.settings,
            effects,
            registry,
            self.spent,
            unsafe_bash=unsafe_bash,
        )

    @property
    def requests(self) -> list[LLMRequest]:
        assert isinstance(self.model, Scripted)
        return self.model.requests

    def close(self) -> None:
        """Release what the model and the tools hold."""
        self.model.close()
        self.context.registry.close()

    def session(self, *tools: str, **fields: Any) -> AgentSession:
        return AgentSession(
            agent(*(tools or ("Read", "Write", "Edit", "Grep", "Glob", "Bash")), **fields), self.context
        )

    def records(self, *types: str) -> list[dict[str, Any]]:
        """The transcript's records, those of some types or all."""
        assert self.transcript.path is not None
        return [each for each in read_records(self.transcript.path) if not types or each["type"] in types]


def check_order(turns: Iterable[Mapping[str, Any]]) -> None:
    """Assert that a conversation is one that Converse takes: roles in turn, results first, every tool use answered."""
    open_uses: list[str] = []
    seen: set[str] = set()
    role = "user"
    for turn in turns:
        assert turn["role"] == role
        assert turn["content"]
        kinds = [
            "toolResult" if "toolResult" in block else "toolUse" if "toolUse" in block else "text"
            for block in turn["content"]
        ]
        if role == "user":
            results = [block["toolResult"]["toolUseId"] for block in turn["content"] if "toolResult" in block]
            assert results == open_uses
            assert kinds == sorted(kinds, key=["toolResult", "text"].index)
        else:
            open_uses = [block["toolUse"]["toolUseId"] for block in turn["content"] if "toolUse" in block]
            assert not seen.intersection(open_uses)
            assert len(set(open_uses)) == len(open_uses)
            seen.update(open_uses)
        role = "assistant" if role == "user" else "user"
