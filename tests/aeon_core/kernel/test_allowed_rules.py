"""A rule that the user allows with a call: it holds from the next call on, and after a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult, ToolRegistry, tool
from aeon_core.journal.reader import read_records
from aeon_core.runs.fork import Fork
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import MENDED, model
from tests.fakes import ScriptedModel

PLAN = {
    "goal": "remove files",
    "steps": [
        {"step_id": "s1", "description": "remove a", "tool": "remove", "arguments": {"path": "a.txt"}},
        {"step_id": "s2", "description": "remove a again", "tool": "remove", "arguments": {"path": "a.txt"}},
        {"step_id": "s3", "description": "remove b", "tool": "remove", "arguments": {"path": "b.txt"}},
    ],
}


def tools(called: list[str]) -> ToolRegistry:
    @tool(effect="unsafe", needs_approval=True)
    def remove(path: str) -> str:
        """Removes a file."""
        called.append(path)
        return path

    registry = default_registry()
    registry.register(remove)
    return registry


class Person:
    """Approves every call, and with the first one allows a rule."""

    def __init__(self, rule: str | None = None) -> None:
        self.rule = rule
        self.asked: list[str] = []
        self.proposals: list[Any] = []

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request.subject["arguments"]["path"])
        self.proposals.append(request.subject.get("proposal"))
        rule, self.rule = self.rule, None
        allow = {"rule": rule, "scope": "run"} if rule is not None else None
        return ApprovalDecision.model_validate({"decision": "approve", "allow": allow})


def run(path: Path, person: Person, *, single_pass: bool = True) -> tuple[RunResult, list[str]]:
    called: list[str] = []
    config = RunConfig(single_pass=single_pass, durability="off", approve=["tool"])
    llm = model(answer="removed", plan=PLAN)
    return Orchestrator(llm, tools(called), config=config, approver=person, journal=path).run("remove files"), called


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_rule_applies_from_the_next_call_and_is_journaled(tmp_path: Path) -> None:
    path, person = tmp_path / "r.jsonl", Person("remove(a.txt)")
    _, called = run(path, person)
    assert called == ["a.txt", "a.txt", "b.txt"]
    assert person.asked == ["a.txt", "b.txt"]
    assert person.proposals[0] == {"rule": "remove(a.txt)", "about": "a.txt"}
    decided = [each for each in read_records(path) if each["type"] == "approval" and each["state"] == "decided"]
    assert decided[0]["allow"] == {"rule": "remove(a.txt)", "scope": "run"}
    assert "allow" not in decided[1]
    assert replay(path).difference is None


@pytest.mark.parametrize("rule", ["", "remove(", "remove)("])
def test_an_invalid_rule_allows_nothing(tmp_path: Path, rule: str) -> None:
    person = Person(rule)
    _, called = run(tmp_path / "r.jsonl", person)
    assert called == person.asked == ["a.txt", "a.txt", "b.txt"]


def test_a_resumed_run_applies_the_rule_wherever_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(path, Person("remove(*.txt)"))
    lines = lines_of(path)
    since = next(place for place, line in enumerate(lines) if b'"decided"' in line[:300])
    for place in range(since + 1, len(lines), 3):
        part, person = tmp_path / f"{place}.jsonl", Person()
        part.write_bytes(b"".join(lines[:place]))
        resume(part, model(answer="removed"), tools([]), approver=person)
        assert person.asked == [] or b'"started"' in lines[place - 1]  # the call that was begun is of unknown outcome


def test_a_rule_outlives_its_pass_but_not_into_a_fork(tmp_path: Path) -> None:
    path, called = tmp_path / "r.jsonl", list[str]()
    again = {
        "actions": [{**MENDED["actions"][0], "type": "step_mark_invalid", "target": "s3", "changes": {}}],
        "follow_up_questions": [],
    }
    verdicts = [{"issues": [{"type": "relevance", "severity": "high", "description": "not yet", "step_id": "s3"}]}]
    scripted = ScriptedModel(**{**model(plan=PLAN, refine=again).scripts, "judge": verdicts[0]})
    config, person = RunConfig(durability="off", approve=["tool"], ttl=30), Person("remove(*)")
    Orchestrator(scripted, tools(called), config=config, approver=person, journal=path).run("remove files")
    passes = [record for record in read_records(path) if record["type"] == "pass"]
    assert len(passes) > 1
    assert [each["standing"]["allowed"] for each in passes] == [["remove(*)"]] * len(passes)
    lines, resumed = lines_of(path), Person()
    behind = next(place for place, line in enumerate(lines) if b'"type":"pass"' in line[:120])
    part = tmp_path / "part.jsonl"
    part.write_bytes(b"".join(lines[: behind + 1]))
    resume(part, ScriptedModel(**scripted.scripts), tools(called), approver=resumed)
    assert resumed.asked == []
    of_fork, forked = Person(), tmp_path / "fork.jsonl"
    Fork(path, 2, ScriptedModel(**scripted.scripts), tools(called), approver=of_fork, journal=forked).run()
    assert of_fork.asked
    assert replay(forked).difference is None
