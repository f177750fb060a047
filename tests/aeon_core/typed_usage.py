"""A program that uses the public names, for type checkers: `./dev lint` checks it under `mypy --strict`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, assert_type

import aeon_core
import aeon_widgets
import system2
from aeon_core import (
    AdditionalCriterion,
    AeonError,
    ApprovalDecision,
    ApprovalRequest,
    ConvergenceAssessment,
    ConvergenceCriteria,
    ConvergenceEngine,
    ExecutionPass,
    Fork,
    InMemoryStore,
    LLMAdapter,
    LLMRequest,
    LLMResponse,
    Orchestrator,
    Plan,
    PlanStep,
    RunConfig,
    RunRequest,
    RunResult,
    RunSummary,
    SemanticValidator,
    StepResult,
    Supervisor,
    SupervisorAction,
    Tool,
    ToolRegistry,
    ValidationIssue,
    connect,
    lint_plan,
    list_runs,
    open_history,
    replay,
    resume,
    tool,
)


@tool(effect="pure")
def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def shout(text: str) -> str:
    """Return a text in capitals."""
    return text.upper()


class Reverse(Tool):
    """A tool as a class."""

    name = "reverse"
    description = "Reverses a text."
    input_schema = {"type": "object", "properties": {"text": {"type": "string"}}}  # noqa: RUF012
    output_schema = {"type": "object"}  # noqa: RUF012

    def invoke(self, text: str) -> dict[str, Any]:
        return {"text": text[::-1]}


class Echo(LLMAdapter):
    """A model of one's own."""

    model = "echo"

    def complete(self, request: LLMRequest) -> LLMResponse:
        return LLMResponse(text=request.messages[-1]["content"])


class Entries:
    """A store of one's own, of no particular class."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}

    def write(self, key: str, value: Any) -> None:
        self.entries[key] = value

    def read(self, key: str) -> Any | None:
        return self.entries.get(key)

    def search(self, prefix: str) -> list[tuple[str, Any]]:
        return sorted(item for item in self.entries.items() if item[0].startswith(prefix))


def approve(request: ApprovalRequest) -> ApprovalDecision:
    """Approve whatever is asked."""
    return ApprovalDecision(decision="approve", feedback=request.point)


def run(journal: Path) -> RunResult:
    """Use an Orchestrator and what it gives."""
    assert_type(word_count("to be"), int)
    orchestrator = Orchestrator("simulated:default", tools=[word_count, shout, Reverse()], config={"ttl": 20})
    Orchestrator(["simulated:default", "simulated:flaky"], ToolRegistry([shout]), InMemoryStore(), RunConfig(ttl=5))
    criteria = ConvergenceCriteria(additional=[AdditionalCriterion(name="polite", description="It greets first.")])
    Orchestrator(Echo(), memory=Entries(), approver=approve, journal=False, on_record=print, criteria=criteria)
    records = orchestrator.stream("use word_count on 'to be'")
    for record in records:
        assert_type(record, dict[str, Any])
    assert_type(records.result, RunResult)
    step = PlanStep(step_id="s1", description="say hello", agent="llm")
    plan = Plan(goal="greet", steps=[step])
    result = Orchestrator(connect("simulated:default"), journal=journal).run("greet", plan=plan)
    assert_type(result.answer, str | None)
    assert_type([each.output for each in result.steps], list[dict[str, Any] | None])
    done = replay(journal, request=RunRequest("greet", "simulated:default"))
    if done.difference is not None:
        assert_type(done.difference.where, str)
    assert_type(open_history(journal).passes, list[ExecutionPass])
    assert_type(list_runs(journal.parent), list[RunSummary])
    assert_type(result.steps, list[StepResult])
    assert_type(Fork(result.run_id, 1, config={"ttl": 30}).run(), RunResult)
    report = SemanticValidator(ToolRegistry([word_count]), judge=None).validate_plan(plan)
    assert_type(report.issues, list[ValidationIssue])
    assessment = ConvergenceEngine(ConvergenceCriteria()).assess(goal="greet", plan=plan, results={}, answer="hello")
    assert_type(assessment, ConvergenceAssessment)
    actions: list[SupervisorAction] = []
    Supervisor(Echo(), registry=[word_count], on_action=lambda action, _: actions.append(action))
    try:
        lint_plan("plan.json", [word_count])
    except AeonError as error:
        assert_type(error.message, str)
    return resume(journal, "simulated:default")


async def run_async() -> AsyncIterator[str]:
    """Use the async twins."""
    orchestrator = Orchestrator("simulated:default")
    assert_type(await orchestrator.arun("add 5 and 10"), RunResult)
    async with orchestrator.astream("add 5 and 10") as records:
        async for record in records:
            yield str(record["type"])
    assert_type(records.result.converged, bool)


def misspelt() -> None:
    """Use names that do not exist, which a checker must find."""
    print(aeon_core.Orchestratr)  # type: ignore[attr-defined]
    print(system2.Orchestratr)  # type: ignore[attr-defined]
    print(aeon_widgets.PlanTre)  # type: ignore[attr-defined]
