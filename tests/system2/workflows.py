"""Whole workflows for tests: a project, policies that say what is scripted, the simulated agents watched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from system2.logs import Log
from system2.orchestrator import Orchestrator
from system2.policies import GateDecision, GateDecisionType
from system2.simulated import SimulatedAgents
from system2.transcript import TranscriptEntries
from system2.view import WorkflowView
from tests.system2.kit import Answers, Confirms

TASK = "build a REST API for invoices"
APPROVE, REJECT, ABORT = GateDecisionType.APPROVE, GateDecisionType.REJECT, GateDecisionType.ABORT
FIRST_FIVE = ["repo-governor", "spec-coordinator", "requirements-engineer", "design-architect", "task-planner"]
CHECKS = ["test-engineer", "security-sentinel", "docs-release", "code-reviewer"]
"""Those that are needed when the executor has written code."""
ALL = [*FIRST_FIVE, "executor", *CHECKS]


@dataclass
class SaidAtGates:
    """Says what is scripted for a gate, one after the other, then approves; keeps what was asked."""

    by_gate: Mapping[int, list[tuple[GateDecisionType, str | None]]] = field(default_factory=dict)
    asked: list[tuple[int, str, str]] = field(default_factory=list)
    on_ask: Callable[[int], object] = lambda _: None
    on_entry: Callable[[dict[str, Any]], object] = lambda _: None
    """Gets each entry of the transcript."""

    def decide(self, gate: int, artifact_path: str, summary: str) -> GateDecision:
        self.asked.append((gate, artifact_path, summary))
        self.on_ask(gate)
        said = self.by_gate.get(gate, [])
        decision, feedback = said.pop(0) if said else (APPROVE, None)
        return GateDecision(gate, decision, feedback)


class Watched(LLMAdapter):
    """The simulated agents, or those of a function, with every request kept."""

    simulated = True
    model = "simulated:default"

    def __init__(self, name: str = "default", reply: Callable[[LLMRequest], LLMResponse | None] | None = None) -> None:
        self._agents = SimulatedAgents(name)
        self._reply = reply
        self.requests: list[LLMRequest] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(request)
        own = self._reply(request) if self._reply is not None else None
        return own or self._agents.complete(request)


class Dear(Watched):
    """Three dollars a call in a project of `dear_project`."""

    simulated = False
    model = "openai:nobody-knows-it"

    def complete(self, request: LLMRequest) -> LLMResponse:
        reply = super().complete(request)
        return reply.model_copy(update={"usage": {"input_tokens": 100_000, "output_tokens": 0}})


def dear_project(root: Path) -> Path:
    """A project that gives the price of `Dear`."""
    (root / ".system2").mkdir()
    prices = json.dumps({Dear.model: {"input": 30, "output": 0}})
    (root / ".system2" / "config.yml").write_text(f"providers: {{bedrock: {{orchestrator: {{prices: {prices}}}}}}}\n")
    return root


class Case:
    """An orchestrator over a project, and what came of it."""

    def __init__(self, root: Path, model: LLMAdapter | str | None = None, **options: Any) -> None:
        self.root = root
        self.model = model if model is not None or "base_url" in options else Watched()
        self.gates = options.pop("gate_policy", None) or SaidAtGates()
        self.bash = options.pop("bash_policy", None) or Confirms(answer=False)
        self.questions = options.pop("question_policy", None) or Answers()
        self.logged: list[str] = []
        self.lines: list[dict[str, Any]] = []
        self.completed: list[str] = []
        self.orchestrator = Orchestrator(
            root,
            options.pop("config_path", None),
            self.gates,
            self.bash,
            options.pop("on_agent_complete", lambda result: self.completed.append(result.agent)),
            question_policy=self.questions,
            model=self.model,
            log=Log(self.logged.append),
            listener=self._note,
            sleep=options.pop("sleep", lambda seconds: None),
            trust=options.pop("trust", "apply"),
            **options,
        )

    def _note(self, line: bytes) -> None:
        entry = json.loads(line)
        self.lines.append(entry)
        getattr(self.gates, "on_entry", lambda _: None)(entry)

    def kinds(self, *types: str) -> list[dict[str, Any]]:
        """The records of some types, as the listener got them."""
        return [line for line in self.lines if line["type"] in types]


def agents_of(records: list[dict[str, Any]]) -> list[str]:
    """Whose rounds began, in order."""
    return [record["agent"] for record in records if record["type"] == "agent_start"]


def transcript(path: Path | None) -> list[dict[str, Any]]:
    """The records of a transcript."""
    assert path is not None
    return list(read_records(path))


def last_transcript(root: Path) -> Path:
    """The newest transcript of a project."""
    return max((root / ".system2" / "runs").glob("*.jsonl"))


def files_of(root: Path) -> dict[str, bytes]:
    """Every file of a project, with its content."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def read_entries(path: Path | None) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a workflow's journal or transcript."""
    assert path is not None
    entries = TranscriptEntries()
    for record in read_records(path):
        yield from entries.of(record)


def view_of(entries: Iterable[Mapping[str, Any]]) -> WorkflowView:
    """Return the state of a workflow after all these entries."""
    view = WorkflowView()
    for entry in entries:
        view.apply(entry)
    return view


def read_workflow(path: Path | None) -> WorkflowView:
    """Return the state of the workflow in a journal or a transcript."""
    return view_of(read_entries(path))
