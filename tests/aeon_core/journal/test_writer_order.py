"""Which lines are on the disk before what happens next: at approvals, unsafe calls, passes and the end (Decision 3)."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.config.schema import Durability
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan
from tests.fakes import steps


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return seen_by_the_disk(monkeypatch)


def seen_by_the_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what happens, in its order: each line that is written, each time that lines are brought to the disk."""
    seen: list[str] = []
    write, sync = os.write, os.fdatasync

    def seen_write(fd: int, data: bytes) -> int:
        if data.startswith(b'{"v":1'):
            record = json.loads(data)
            seen.append(f"{record['type']}.{record['state']}" if "state" in record else record["type"])
        return write(fd, data)

    def seen_sync(fd: int) -> None:
        seen.append("sync")
        sync(fd)

    monkeypatch.setattr(os, "write", seen_write)
    monkeypatch.setattr(os, "fdatasync", seen_sync)
    return seen


def gated(path: Path, events: list[str], durability: Durability) -> None:
    """Run one unsafe tool that a person approves, in one pass."""
    registry = ToolRegistry()

    @tool(effect="unsafe", needs_approval=True)
    def act() -> str:
        """Acts."""
        events.append("invoked")
        return "done"

    def approve(_: ApprovalRequest) -> ApprovalDecision:
        events.append("a person reads")
        return ApprovalDecision(decision="approve")

    registry.register(act)
    config = RunConfig(single_pass=True, durability=durability)
    orchestrator = Orchestrator(model(), tools=registry, approver=approve, journal=path, config=config)
    orchestrator.run("t", steps({"tool": "act", "arguments": {}}))


def between(events: list[str], first: str, last: str) -> list[str]:
    start = events.index(first)
    return events[start : events.index(last, start) + 1]


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_question_and_answer_and_the_call_that_follows_are_on_the_disk_in_time(
    tmp_path: Path, events: list[str], durability: Durability
) -> None:
    gated(tmp_path / "r.jsonl", events, durability)
    assert between(events, "approval.asked", "memory") == [
        "approval.asked",
        "sync",
        "a person reads",
        "approval.decided",
        "sync",
        "tool.started",
        "sync",
        "invoked",
        "tool.finished",
        "sync",
        "memory",
    ]
    assert events[-2:] == ["run_finished", "sync"]


def test_without_durability_nothing_waits_for_the_disk(tmp_path: Path, events: list[str]) -> None:
    gated(tmp_path / "r.jsonl", events, "off")
    assert "invoked" in events
    assert "sync" not in events


@pytest.mark.parametrize(
    ("durability", "synced"),
    [
        ("normal", {"pass", "run_finished"}),
        ("full", {"pass", "run_finished", "llm.finished", "tool.started", "tool.finished"}),
        ("off", set()),
    ],
)
def test_each_pass_and_the_end_are_on_the_disk_and_with_full_every_effect(
    tmp_path: Path, events: list[str], durability: Durability, synced: set[str]
) -> None:
    scripted, config = model(plan=plan(by=0), refine=MENDED), RunConfig(durability=durability)
    result = Orchestrator(scripted, journal=tmp_path / "r.jsonl", config=config).run(TASK)
    assert result.passes == 2
    before = [first for first, second in pairwise(events) if second == "sync"]
    assert set(before) == synced
    for kind in synced:
        assert before.count(kind) == events.count(kind)
