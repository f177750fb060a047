"""Runs of every kind, each with its journal: what replay, recovery and damage are tried on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon_core import (
    ApprovalDecision,
    ApprovalRequest,
    ConvergenceCriteria,
    InMemoryStore,
    LLMError,
    LLMResponse,
    Orchestrator,
    RunConfig,
    RunResult,
    ToolRegistry,
    tool,
)
from aeon_core.llm.base import LLMAdapter, ModelChain
from aeon_core.llm.simulated import SimulatedModel
from tests.aeon_core.kernel.test_passes import MENDED, NOTHING, TASK, model, plan
from tests.fakes import ScriptedModel, add, call, steps

Run = Callable[[Path], RunResult]
KEY = "sk-" + "ant-" + "r3c0rd3d" * 4
"""A secret, in arguments, results and replies."""
ISSUE = {
    "issue_id": "j1",
    "type": "do_say_mismatch",
    "severity": "medium",
    "description": "the figure was never checked",
    "location": {"artifact": "results", "step_id": "s1"},
    "proposed_repair": "check the figure",
}


def _run(
    path: Path, llm: LLMAdapter, given: Any = None, *, task: str = TASK, criteria: Any = None, **options: Any
) -> RunResult:
    config = RunConfig(**{"durability": "off", **options.pop("config", {})})
    orchestrator = Orchestrator(llm, journal=path, config=config, criteria=criteria, **options)
    return orchestrator.run(task, given)


def _priced(*names: str) -> dict[str, Any]:
    return {"prices": {name: {"input": 3.0, "output": 15.0} for name in names}}


def _used(text: str) -> LLMResponse:
    return LLMResponse(text=text, usage={"input_tokens": 900, "output_tokens": 40}, model="m", stop_reason="end_turn")


class _Named(ScriptedModel):
    def __init__(self, name: str, **scripts: Any) -> None:
        super().__init__(**scripts)
        self.model = name


def _one_pass(path: Path) -> RunResult:
    scripted = ScriptedModel(
        plan=steps(
            add(1, 0),
            {"tool": "calculator"},
            {"agent": "llm"},
            {"tool": "nope"},
            {"tool": "calculator", "arguments": {"operation": "add", "a": "five", "b": 1}},
            {"tool": "echo", "arguments": {"text": f"the key {KEY}"}},
        ),
        tool_call=call("calculator", operation="divide", a=1, b=0),
        reason=_used(f"long {KEY} " * 30),
        repair=["no", "no", {"tool_name": "calculator", "arguments": {"operation": "add", "a": 5, "b": 1}}],
        fallback="as well as can be \ud800",
        answer=f"x {KEY}",
    )
    return _run(path, scripted, config={"single_pass": True})


def _given(path: Path) -> RunResult:
    subplan = {
        "parent_step_id": "s1",
        "subplan_goal": "parts",
        "substeps": [{"step_id": "s1.1", "description": "first", **add(1, 2)}],
    }
    given = steps({"subplan": subplan}, {"tool": "adder"})
    repaired = {"step_id": "s2", "description": "do part 2", **add(3, 4)}
    scripted = ScriptedModel(repair=repaired, tool_call=call("calculator", operation="add", a=3, b=4), answer="3")
    return _run(path, scripted, given, config={"single_pass": True})


def _passes(path: Path) -> RunResult:
    criteria = ConvergenceCriteria.model_validate({
        "completeness": 0.9, "additional": [{"name": "short", "description": "The answer has fewer than 200 words"}],
    })  # fmt: skip
    scripted = model(plan=plan(by=0), refine=MENDED, judge=[{"issues": [ISSUE]}, {"issues": []}])
    return _run(path, scripted, criteria=criteria)


def _open_task(path: Path) -> RunResult:
    return _run(path, SimulatedModel(), task="design a REST API for invoices")


def _expired(path: Path) -> RunResult:
    return _run(path, model(plan=plan(by=0), refine=NOTHING), config={"ttl": 4})


def _unreadable(path: Path) -> RunResult:
    return _run(path, model(profile="no", plan=plan(by=0), refine="no JSON", repair="neither"))


def _gated(path: Path) -> RunResult:
    registry, memory = ToolRegistry(), InMemoryStore()
    memory.write("project", {"name": "Apollo"})

    @tool(effect="unsafe", needs_approval=True)
    def launch(count: int) -> dict[str, int]:
        """Launches."""
        memory.write("launched", count)
        return {"count": count}

    @tool(effect="idempotent")
    def probe() -> str:
        """Looks."""
        raise RuntimeError("dark")

    registry.register(launch)
    registry.register(probe)
    given = steps(
        {"tool": "launch", "arguments": {"count": 2}},
        {"tool": "probe", "arguments": {}},
        {"agent": "llm"},
        {"tool": "launch", "arguments": {"count": 3}},
    )
    answers = iter([
        ApprovalDecision(decision="edit", edited={"count": 1}, feedback="one is enough"),
        ApprovalDecision(decision="abort"),
    ])  # fmt: skip
    return _run(
        path,
        ScriptedModel(reason="fine", answer="x"),
        given,
        tools=registry,
        memory=memory,
        approver=lambda _: next(answers),
        config={"single_pass": True},
    )


def _rejected(path: Path) -> RunResult:
    policy = {"ask": ["calculator"]}
    answer = ApprovalDecision(decision="reject", feedback="not today")
    config = {"single_pass": True, "policy": policy}
    return _run(path, ScriptedModel(answer="none"), steps(add(1, 1)), approver=lambda _: answer, config=config)


def _denied(path: Path) -> RunResult:
    policy = {"deny": ["calculator(operation=divide)"]}
    given = steps({"tool": "calculator", "arguments": {"operation": "divide", "a": 4, "b": 2}}, add(1, 1))
    return _run(path, ScriptedModel(answer="2"), given, config={"single_pass": True, "policy": policy})


def _budget(path: Path) -> RunResult:
    asked: list[ApprovalRequest] = []

    def lift(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(decision="approve" if len(asked) == 1 else "reject")

    scripted = _Named("m", reason=[_used("one"), _used("two"), _used("three")], answer=_used("x"))
    given = steps({"agent": "llm"}, {"agent": "llm"}, {"agent": "llm"})
    config = {"single_pass": True, "budget": 0.02, "max_tokens": 1000, **_priced("m")}
    return _run(path, scripted, given, approver=lift, config=config)


def _chain(path: Path) -> RunResult:
    first = _Named("first", reason=LLMError("overloaded", True, status_code=529))
    second = _Named("second", reason=_used("thought"), answer=_used("x"))
    config = {"single_pass": True, **_priced("first", "second")}
    return _run(path, ModelChain([first, second]), steps({"agent": "llm"}), config=config)


def _refused(path: Path) -> RunResult:
    return _run(path, ScriptedModel(profile=LLMError("the key was refused", status_code=401)))


RUNS: dict[str, Run] = {
    "one-pass": _one_pass,
    "given": _given,
    "passes": _passes,
    "open-task": _open_task,
    "expired": _expired,
    "unreadable": _unreadable,
    "gated": _gated,
    "rejected": _rejected,
    "denied": _denied,
    "budget": _budget,
    "chain": _chain,
    "refused": _refused,
}
"""By name; each writes its journal to the path and returns the result."""
