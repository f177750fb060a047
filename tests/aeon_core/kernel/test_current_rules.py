"""A run that is resumed keeps its rules, and those that ask or deny today hold too, wherever its journal ends."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, Orchestrator, ToolRegistry, UsageError
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from aeon_core.tools.base import Effect
from tests.aeon_core.kernel.test_foreign_approvals import APPROVED, EDITED, PLAN, RULED, deciding, tools, upto, write
from tests.aeon_core.kernel.test_passes import model

ASKED = {"policy": {"ask": ["deploy"]}}
DENIED = {"policy": {"deny": ["deploy"]}}


def recorded(path: Path, registry: ToolRegistry, decision: dict[str, Any], **policy: list[str]) -> list[dict[str, Any]]:
    options = {"single_pass": True, "durability": "off", "policy": policy}
    llm = model(answer="it is up", plan=PLAN)
    Orchestrator(llm, registry, config=options, approver=deciding(decision), journal=path).run("put it up")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("effect", ["unsafe", "idempotent"])
@pytest.mark.parametrize(
    ("decision", "policy"),
    [(APPROVED, {}), (EDITED, {}), (RULED, {}), (APPROVED, {"allow": ["deploy"]}), (APPROVED, {"ask": ["deploy"]})],
    ids=["approved", "edited", "ruled", "allowed", "asked"],
)
def test_no_call_is_made_that_is_denied_today_wherever_the_run_was_cut_off(
    tmp_path: Path, decision: dict[str, Any], policy: dict[str, list[str]], effect: Effect
) -> None:
    registry = tools(made := [], effect)
    lines = recorded(tmp_path / "r.jsonl", registry, decision, **policy)
    for count in range(1, len(lines)):
        made.clear()
        path = write(tmp_path / f"{count}.jsonl", lines[:count])
        options = {"on_unknown": "retry", **DENIED}
        llm = model(answer="it is up", plan=PLAN)
        result = resume(path, llm, registry, None, options, deciding(decision))
        assert made == [], lines[count - 1]
        finished = sum(line["type"] == "tool" and line["state"] == "finished" for line in lines[:count])
        for step in result.steps[finished:]:
            assert "the rule deny: deploy" in str(step.errors), lines[count - 1]
        assert replay(path).difference is None
        assert resume(path, llm, registry).steps == result.steps


def test_a_tool_that_needs_no_approval_is_asked_about_if_a_rule_says_so_today(tmp_path: Path) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    write(path, upto(recorded(path, tools([], needs_approval=False), APPROVED), "tool", state="finished"))
    registry, options = tools(made, needs_approval=False), {"policy": {"ask": ["deploy"]}}
    resume(path, model(answer="it is up"), registry, None, options, deciding({"decision": "reject"}, asked=asked))
    assert (made, asked) == ([], ["second"])
    assert replay(path).difference is None


@pytest.mark.parametrize("effect", ["unsafe", "idempotent", "pure"])
@pytest.mark.parametrize("needs_approval", [True, False])
def test_a_call_is_made_only_after_the_question_that_a_rule_of_today_asks_wherever_the_run_was_cut_off(
    tmp_path: Path, effect: Effect, needs_approval: bool
) -> None:
    policy = {"allow": ["deploy"]} if needs_approval else {}
    registry = tools(made := [], effect, needs_approval=needs_approval)
    lines = recorded(tmp_path / "r.jsonl", registry, APPROVED, **policy)
    options = {"on_unknown": "retry" if effect == "unsafe" else "fail", **ASKED}
    for count in range(1, len(lines)):
        finished = sum(line["type"] == "tool" and line["state"] == "finished" for line in lines[:count])
        for someone in (True, False):
            made.clear()
            path, asked = write(tmp_path / f"{count}.jsonl", lines[:count]), list[str]()
            llm, decide = model(answer="it is up", plan=PLAN), deciding(asked=asked) if someone else None
            result = resume(path, llm, registry, None, options, decide, trusts_project=True)
            assert made == asked == (["first", "second"][finished:] if someone else []), lines[count - 1]
            for step in [] if someone else result.steps[finished:]:
                assert "the rule ask: deploy and there was no one to ask" in str(step.errors), lines[count - 1]
            assert replay(path).difference is None


@pytest.mark.parametrize("effect", ["idempotent", "pure"])
def test_an_interrupted_call_that_no_rule_asks_about_any_more_is_made_although_its_question_is_open(
    tmp_path: Path, effect: Effect
) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    registry = partial(tools, effect=effect, needs_approval=False)
    write(path, upto(recorded(path, registry([]), APPROVED), "tool", state="started"))
    resume(path, model(answer="it is up"), registry([]), None, ASKED, deciding(asked=asked))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    write(path, upto(lines, "approval", point="unknown", state="asked"))
    result = resume(path, model(answer="it is up"), registry(made), None, {"on_unknown": "fail"})
    assert (asked, made) == (["first", "second"], ["first", "second"])
    assert all(step.status == "complete" for step in result.steps)
    assert replay(path).difference is None


@pytest.mark.parametrize("effect", ["unsafe", "idempotent", "pure"])
def test_an_open_question_that_nobody_answers_names_the_rule_that_asks(tmp_path: Path, effect: Effect) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    registry, options = partial(tools, effect=effect, needs_approval=False), {"on_unknown": "ask", **ASKED}
    write(path, upto(recorded(path, registry([]), APPROVED), "tool", state="started"))
    resume(path, model(answer="it is up"), registry([]), None, options, deciding())
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    write(path, upto(lines, "approval", point="unknown", state="asked"))
    result = resume(path, model(answer="it is up"), registry(made), None, options)
    assert made == []
    assert "the rule ask: deploy and there was no one to ask" in str(result.steps[0].errors)
    assert replay(path).difference is None


@pytest.mark.parametrize("effect", ["unsafe", "idempotent"])
def test_the_outcome_of_a_call_that_may_have_been_made_is_unknown(tmp_path: Path, effect: Effect) -> None:
    path, made, questions = tmp_path / "r.jsonl", list[str](), list[str]()
    write(path, upto(recorded(path, tools([], effect), APPROVED), "tool", state="started"))

    def decide(request: Any) -> ApprovalDecision:
        questions.append(request.point)
        return ApprovalDecision(decision="approve")

    result = resume(path, model(answer="it is up"), tools(made, effect), None, {"on_unknown": "ask", **DENIED}, decide)
    assert (made, questions) == ([], []), "a call that is denied anyway is not asked about"
    assert "whether 'deploy' took effect is unknown: the process ended during the call" in str(result.steps[0].errors)
    assert "it was not repeated (the rule deny: deploy)" in str(result.steps[0].errors)


@pytest.mark.parametrize("point", ["tool", "unknown"])
def test_nobody_is_asked_again_about_a_call_that_is_denied_today(tmp_path: Path, point: str) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    lines = recorded(path, tools([]), APPROVED)
    if point == "unknown":
        write(path, upto(lines, "tool", state="started"))
        asks = {"on_unknown": "ask"}
        resume(path, model(answer="it is up"), tools([]), None, asks, lambda _: ApprovalDecision(decision="abort"))
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    write(path, upto(lines, "approval", point=point, state="asked"))
    result = resume(path, model(answer="it is up"), tools(made), None, DENIED, deciding(asked=asked))
    assert (made, asked) == ([], [])
    assert "the rule deny: deploy" in str(result.steps[0].errors)
    assert replay(path).difference is None


@pytest.mark.parametrize(
    ("effect", "last", "rules", "error"),
    [
        ("unsafe", "policy", DENIED, "the call of 'deploy' is denied"),
        ("unsafe", "started", DENIED, "whether 'deploy' took effect is unknown"),
        ("idempotent", "policy", DENIED, "the call of 'deploy' is denied"),
        ("idempotent", "started", DENIED, "whether 'deploy' took effect is unknown"),
        ("pure", "started", DENIED, "the call of 'deploy' is denied"),
        ("idempotent", "started", ASKED, "whether 'deploy' took effect is unknown"),
        ("pure", "started", ASKED, "the call of 'deploy' is denied: the rule ask: deploy and there was no one to ask"),
    ],
)
def test_only_a_call_that_may_have_changed_something_has_an_unknown_outcome(
    tmp_path: Path, effect: Effect, last: str, rules: dict[str, Any], error: str
) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    lines = recorded(path, tools([], effect), APPROVED, allow=["deploy"])
    write(path, upto(lines, "policy") if last == "policy" else upto(lines, "tool", state=last))
    result = resume(path, model(answer="it is up"), tools(made, effect), None, {"on_unknown": "ask", **rules})
    assert made == []
    assert str(result.steps[0].errors).startswith(f'["{error}')


def test_a_denial_hides_the_secrets_in_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    lines = upto(recorded(path, tools([]), APPROVED), "approval", state="decided")
    monkeypatch.setenv("DEPLOY_TOKEN", secret := "hunter2-hunter2-hunter2")
    for last in (lines, lines[:-1]):
        write(path, last)
        options = {"policy": {"deny": [f"deploy([!{secret}]*)", f"deploy(*[!{secret}]*)"]}}
        result = resume(path, model(answer="it is up"), tools([]), None, options)
        assert "the rule deny: deploy(" in str(result.steps[0].errors)
        assert secret not in path.read_text()
        assert replay(path).difference is None


def test_the_rules_of_a_resume_are_recorded_and_hold_only_for_that_process(tmp_path: Path) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    lines = upto(recorded(path, tools([]), APPROVED), "tool", state="finished")
    write(path, lines)
    resume(path, model(answer="it is up"), tools(made), None, DENIED)
    resumed = [json.loads(line) for line in path.read_bytes().splitlines()][len(lines) :]
    assert resumed[0]["options"]["policy"] == {"allow": [], "ask": [], "deny": ["deploy"]}
    write(path, [*lines, resumed[0]])
    resume(path, model(answer="it is up"), tools(made), approver=deciding())
    assert made == ["second"]


def test_a_resume_adds_no_rule_that_allows_calls(tmp_path: Path) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    write(path, upto(recorded(path, tools([]), APPROVED), "tool", state="finished"))
    with pytest.raises(UsageError, match="rules that allow calls cannot be added when a run is resumed; fork the run"):
        resume(path, model(answer="it is up"), tools(made), None, {"policy": {"allow": ["deploy"]}})
    assert made == []


def test_a_search_leaves_out_files_that_may_not_be_read_today(tmp_path: Path) -> None:
    project, path = tmp_path / "project", tmp_path / "r.jsonl"
    project.mkdir()
    for name in (".env", "notes.txt"):
        (project / name).write_text("the password\n")
    step = {"step_id": "s1", "description": "search", "tool": "Grep", "arguments": {"pattern": "password"}}
    config = {"single_pass": True, "tools": ["files"], "project_root": project}
    plan = {"goal": "search", "steps": [step]}
    whole = Orchestrator(model(answer="found", plan=plan), config=config, journal=path).run("search")
    assert ".env" in str(whole.steps[0].output)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    write(path, upto(lines, "tool", state="started")[:-1])
    options = {"policy": {"deny": ["Read(*.env)"]}}
    result = resume(path, model(answer="found", plan=plan), None, None, options, trusts_project=True)
    assert "notes.txt" in str(result.steps[0].output)
    assert ".env" not in str(result.steps[0].output)
