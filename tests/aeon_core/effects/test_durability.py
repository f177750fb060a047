"""When lines must be on the disk: around unsafe tools and at the end, after every effect, or never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.config.schema import Durability
from aeon_core.tools.base import Effect
from tests.aeon_core.journal.test_writer_order import seen_by_the_disk
from tests.fakes import ScriptedModel, steps


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability, effect: Effect) -> list[str]:
    """Return what happened in its order: each record written, each fdatasync, the tool's invocation."""
    events = seen_by_the_disk(monkeypatch)
    registry = ToolRegistry()

    @tool(effect=effect)
    def act() -> str:
        """Acts."""
        events.append("invoked")
        return "done"

    registry.register(act)
    plan: Any = steps({"tool": "act", "arguments": {}})
    Orchestrator(
        ScriptedModel(answer="x"),
        tools=registry,
        journal=tmp_path / "r.jsonl",
        config=RunConfig(single_pass=True, durability=durability),
    ).run("t", plan)
    return [
        event for event in events if event in ("sync", "invoked") or event.startswith(("tool", "llm", "pass", "run_f"))
    ]


UNSAFE = ["tool.started", "sync", "invoked", "tool.finished", "sync"]
PURE = ["tool.started", "invoked", "tool.finished"]
LLM = ["llm.started", "llm.finished"]
END = ["pass", "sync", "run_finished", "sync"]


@pytest.mark.parametrize(
    ("durability", "effect", "expected"),
    [
        ("normal", "unsafe", [*UNSAFE, *LLM, *END]),
        ("normal", "idempotent", [*PURE, *LLM, *END]),
        ("normal", "pure", [*PURE, *LLM, *END]),
        ("full", "pure", [*UNSAFE, *LLM, "sync", *END]),
        ("off", "unsafe", [*PURE, *LLM, "pass", "run_finished"]),
    ],
)
def test_the_order_of_writes_and_syncs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    durability: Durability,
    effect: Effect,
    expected: list[str],
) -> None:
    assert run(tmp_path, monkeypatch, durability, effect) == expected
