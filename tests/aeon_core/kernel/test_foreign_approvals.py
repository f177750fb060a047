"""Approvals in a journal that somebody else wrote make no call; those of its user do, wherever the run was cut off."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, ToolRegistry, UsageError, tool
from aeon_core.errors import ReplayMismatchError
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import Resumption, resume
from aeon_core.tools.base import Effect
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import model

Line = dict[str, Any]
STEPS = [
    {"step_id": f"s{number}", "description": "put it up", "tool": "deploy", "arguments": {"place": place}}
    for number, place in enumerate(("first", "second"), start=1)
]
PLAN = {"goal": "put it up", "steps": STEPS}
REFUSED = r"asks to call 'deploy' with \{\"place\": \"(first|worse)\"\}, which no rule of .* --trust-project, or "


def tools(made: list[str], effect: Effect = "unsafe", *, needs_approval: bool = True) -> ToolRegistry:
    @tool(effect=effect, needs_approval=needs_approval)
    def deploy(place: str) -> str:
        """Puts it up."""
        made.append(place)
        return place

    registry = default_registry()
    registry.register(deploy)
    return registry


def deciding(*decisions: dict[str, Any], asked: list[str] | None = None) -> Callable[[ApprovalRequest], Any]:
    """A person who makes these decisions about the calls, and approves all others."""
    left = list(decisions)

    def decide(request: ApprovalRequest) -> ApprovalDecision:
        if asked is not None:
            asked.append(request.subject["arguments"]["place"])
        return ApprovalDecision.model_validate(left.pop(0) if left else {"decision": "approve"})

    return decide


APPROVED = {"decision": "approve"}
EDITED = {"decision": "edit", "edited": {"place": "worse"}}
RULED = {"decision": "approve", "allow": {"rule": "deploy", "scope": "run"}}


def recorded(path: Path, decision: dict[str, Any] = APPROVED, effect: Effect = "unsafe", **config: Any) -> list[Line]:
    """The lines of a run in which a person decided about the first call."""
    options = {"single_pass": True, "durability": "off", "approve": ["tool"], **config}
    llm = model(answer="it is up", plan=PLAN)
    Orchestrator(llm, tools([], effect), config=options, approver=deciding(decision), journal=path).run("put it up")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def upto(lines: list[Line], type_: str, count: int = 1, **fields: Any) -> list[Line]:
    """The lines up to the one that is the `count`-th with these fields."""
    places = [
        place for place, line in enumerate(lines, start=1) if line["type"] == type_ and fields.items() <= line.items()
    ]
    return lines[: places[count - 1]]


@pytest.fixture
def as_another_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    return lambda: monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-of-another"))


def allowed_by_policy(lines: list[Line]) -> list[Line]:
    *before, last = upto(lines, "policy")
    return [*before, {**last, "answer": "allow"}]


DECIDED = {"state": "decided"}
STARTED = {"state": "started"}


def asked_about_it(lines: list[Line]) -> list[Line]:
    """A call that began, and the question about its unknown outcome."""
    begun, asked = upto(lines, "tool", **STARTED), upto(lines, "approval", state="asked")[-1]
    subject = {key: begun[-1][key] for key in ("tool_name", "arguments", "call_id")}
    digest = hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()
    return [*begun, {**asked, "seq": len(begun), "point": "unknown", "subject": subject, "digest": digest}]


@pytest.mark.parametrize(
    ("forged", "recording", "options"),
    [
        (lambda lines: upto(lines, "approval", **DECIDED), {}, {}),
        (lambda lines: upto(lines, "approval", **DECIDED), {"decision": EDITED}, {}),
        (lambda lines: upto(lines, "policy", count=2), {"decision": EDITED}, {}),
        (allowed_by_policy, {}, {}),
        (lambda lines: upto(lines, "tool", **STARTED), {"effect": "idempotent"}, {}),
        (lambda lines: upto(lines, "tool", **STARTED), {"on_unknown": "retry"}, {}),
        (lambda lines: upto(lines, "tool", **STARTED), {}, {"on_unknown": "retry"}),
        (asked_about_it, {"on_unknown": "retry"}, {}),
        (asked_about_it, {}, {"on_unknown": "retry"}),
        (asked_about_it, {"effect": "idempotent"}, {}),
    ],
    ids=[
        *("approved", "edited", "edited-and-judged", "allowed-by-policy", "begun", "retried-by-it", "retried-by-me"),
        *("asked-and-retried-by-it", "asked-and-retried-by-me", "asked-about-a-repeatable-call"),
    ],
)
def test_a_call_that_only_the_journal_of_another_user_allows_is_not_made(
    tmp_path: Path,
    as_another_user: Callable[[], None],
    forged: Callable[[list[Line]], list[Line]],
    recording: dict[str, Any],
    options: dict[str, Any],
) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    write(path, forged(recorded(path, **recording)))
    as_another_user()
    before, effect = path.read_bytes(), recording.get("effect", "unsafe")
    llm = model(answer="it is up", plan=PLAN)
    with pytest.raises(UsageError, match=REFUSED) as refused:
        resume(path, llm, tools(made, effect), options=options)
    assert (made, refused.value.exit_code, "\n" in refused.value.message) == ([], 2, False)
    assert not any(each in path.read_bytes()[len(before) :] for each in (b'"tool"', b'"approval"'))
    assert replay(path).difference is None
    result = resume(path, llm, tools(made, effect), options=options, trusts_project=True)
    assert made == ["worse" if recording.get("decision") is EDITED else "first"]
    assert "no one to ask" in str(result.steps[1].errors), "the next call is this user's to approve"


@pytest.mark.parametrize("effect", ["unsafe", "idempotent"])
def test_a_call_is_not_made_to_fit_into_a_journal_that_lacks_its_outcome(tmp_path: Path, effect: Effect) -> None:
    lines, made = recorded(tmp_path / "r.jsonl", effect=effect), list[str]()
    begun = upto(lines, "tool", state="started")
    failed = {**upto(lines, "step", status="complete")[-1], "status": "failed", "seq": len(begun)}
    path = write(tmp_path / "r.jsonl", [*begun, failed])
    before = path.read_bytes()
    with pytest.raises(ReplayMismatchError, match=r"the outcome of the tool call .* was not recorded"):
        resume(path, model(answer="it is up"), tools(made, effect), options={"on_unknown": "retry"})
    assert (made, path.read_bytes()) == ([], before)


@pytest.mark.parametrize("forged", [lambda lines: upto(lines, "tool", **STARTED), asked_about_it])
def test_a_call_that_another_user_approved_and_that_began_is_made_if_this_user_approves_it(
    tmp_path: Path, as_another_user: Callable[[], None], forged: Callable[[list[Line]], list[Line]]
) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    write(path, forged(recorded(path)))
    as_another_user()
    options = {"on_unknown": "ask"}
    resume(path, model(answer="it is up"), tools(made), options=options, approver=deciding(APPROVED, asked=asked))
    assert (made, asked) == (["first", "second"], ["first", "second"])
    assert replay(path).difference is None


def test_a_seal_of_another_run_question_or_decision_proves_nothing(tmp_path: Path) -> None:
    lines = upto(recorded(tmp_path / "r.jsonl"), "approval", **DECIDED)
    other = upto(recorded(tmp_path / "other.jsonl"), "approval", **DECIDED)[-1]["seal"]
    for changes in ({"seal": other}, {"seal": None}, {"seal": 1}, {"decision": "edit", "edited": {"place": "worse"}}):
        made: list[str] = []
        write(tmp_path / "r.jsonl", [*lines[:-1], {**lines[-1], **changes}])
        with pytest.raises(UsageError):
            resume(tmp_path / "r.jsonl", model(answer="it is up", plan=PLAN), tools(made))
        assert made == []


def test_a_call_that_needs_no_approval_today_is_made(tmp_path: Path) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    config = {"policy": {"allow": ["deploy(second)"], "ask": ["deploy(first)"]}}
    lines = upto(recorded(path, **config), "tool", count=2, state="started")
    write(path, lines)
    with pytest.MonkeyPatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "state-of-another"))
        with pytest.raises(UsageError, match=r"deploy\(second\), which .*; allow it with trusts_project"):
            resume(path, model(answer="it is up"), tools(made), options={"on_unknown": "retry"})
    assert made == []
    resume(path, model(answer="it is up"), tools(made), options={"on_unknown": "retry"})
    assert made == ["second"]


@pytest.mark.parametrize("place", ["decision", "start"])
def test_rules_that_another_user_allowed_are_not_used(
    tmp_path: Path, as_another_user: Callable[[], None], place: str
) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    lines = upto(recorded(path, RULED), "tool", state="finished")
    if place == "start":
        lines[0] |= {"parent": {"run_id": "p", "pass": 2}, "start": {"allowed": ["deploy"]}}
    write(path, lines)
    as_another_user()
    with pytest.raises(UsageError, match="without asking: deploy, which comes neither"):
        resume(path, model(answer="it is up"), tools(made))
    assert made == []


def test_a_rule_of_another_user_that_is_none_is_one_line(tmp_path: Path, as_another_user: Callable[[], None]) -> None:
    path = tmp_path / "r.jsonl"
    recorded(path, {**RULED, "allow": {"rule": "deploy(", "scope": "run"}})
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    as_another_user()
    with pytest.raises(UsageError, match=r"without asking: deploy\(, which"):
        resume(path, model(answer="it is up"), tools([]))


@pytest.mark.parametrize("decision", [APPROVED, EDITED, RULED], ids=["approved", "edited", "ruled"])
@pytest.mark.parametrize("effect", ["unsafe", "idempotent"])
def test_a_run_cut_anywhere_continues_for_its_user_alone(
    tmp_path: Path, decision: dict[str, Any], effect: Effect
) -> None:
    lines = recorded(tmp_path / "r.jsonl", decision, effect)
    registry = tools(made := [], effect)
    first = "worse" if decision is EDITED else "first"
    decided = len(upto(lines, "approval", state="decided"))
    for count in range(1, len(lines)):
        made.clear()
        path = write(tmp_path / f"{count}.jsonl", lines[:count])
        begun = lines[count - 1]["type"] == "tool" and lines[count - 1]["state"] == "started"
        with pytest.MonkeyPatch.context() as other:
            other.setenv("XDG_STATE_HOME", str(tmp_path / "state-of-another"))
            with suppress(UsageError):
                resume(path, model(answer="it is up", plan=PLAN), registry)
            assert made == [], lines[count - 1]
        write(path, lines[:count])
        asked = list[str]()
        llm, left = model(answer="it is up", plan=PLAN), [decision] if count < decided else []
        options = {"on_unknown": "retry"}
        assert resume(path, llm, registry, None, options, deciding(*left, asked=asked)).status == "completed"
        finished = [line["state"] for line in lines[:count] if line["type"] == "tool"].count("finished")
        assert made == [first, "second"][finished:], lines[count - 1]
        open_ = [line["state"] for line in lines[:count] if line["type"] == "approval"].count("decided")
        wanted = ["first"] if decision is RULED else ["first", "second"]
        assert asked == wanted[open_:] or begun
        assert replay(path).difference is None


def test_a_call_that_has_ended_is_not_asked_about(tmp_path: Path, as_another_user: Callable[[], None]) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    write(path, upto(recorded(path), "tool", state="finished"))
    as_another_user()
    result = resume(path, model(answer="it is up"), tools(made), approver=deciding(asked=asked))
    assert (result.status, made, asked) == ("completed", ["second"], ["second"])


def test_a_run_without_an_approval_needs_no_key(tmp_path: Path) -> None:
    Orchestrator(model(answer="15"), journal=tmp_path / "r.jsonl", config={"single_pass": True}).run("add 5 and 10")
    assert not (tmp_path / "xdg-state").exists()


def test_a_replay_needs_no_key(tmp_path: Path, as_another_user: Callable[[], None]) -> None:
    recorded(tmp_path / "r.jsonl", RULED)
    as_another_user()
    assert replay(tmp_path / "r.jsonl").difference is None
    assert not (tmp_path / "state-of-another").exists()


def test_an_interrupted_start_leaves_the_journal_free(tmp_path: Path, as_another_user: Callable[[], None]) -> None:
    path = tmp_path / "r.jsonl"
    write(path, upto(recorded(path), "approval", state="decided"))
    as_another_user()
    prepared = Resumption(path, model(answer="it is up"), tools([]))
    with pytest.raises(UsageError):
        prepared.run()
    prepared.close()
    Resumption(path, model(answer="it is up"), tools([])).close()


def test_an_approval_counts_once_although_the_same_call_is_asked_about_again(tmp_path: Path) -> None:
    path, made = tmp_path / "r.jsonl", list[str]()
    plan = {**PLAN, "steps": [{**step, "arguments": {"place": "first"}} for step in STEPS]}
    decide, options = deciding(APPROVED, {"decision": "reject"}), {"single_pass": True, "approve": ["tool"]}
    llm = model(answer="it is up", plan=plan)
    Orchestrator(llm, tools([]), config=options, approver=decide, journal=path).run("put it up")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    approved, rejected = upto(lines, "approval", **DECIDED)[-1], upto(lines, "approval", count=2, **DECIDED)[-1]
    assert (approved["digest"], rejected["decision"]) == (rejected["digest"], "reject")
    write(
        path, [*upto(lines, "approval", count=2, **DECIDED)[:-1], {**approved, "step_id": "s2", "seq": rejected["seq"]}]
    )
    with pytest.raises(UsageError, match=REFUSED):
        resume(path, model(answer="it is up"), tools(made))
    assert made == []


def test_an_approval_given_in_a_resumed_run_is_the_users_own_too(tmp_path: Path) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    write(path, upto(recorded(path), "approval", state="asked"))
    resume(path, model(answer="it is up"), tools([]), approver=deciding())
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["type"] for line in lines].count("run_resumed") == 1
    write(path, upto(lines, "approval", **DECIDED))
    resume(path, model(answer="it is up"), tools(made), approver=deciding({"decision": "reject"}, asked=asked))
    assert (made, asked) == (["first"], ["second"])


def test_a_call_that_somebody_else_approved_is_repeated_if_the_user_says_so(
    tmp_path: Path, as_another_user: Callable[[], None]
) -> None:
    path, made, asked = tmp_path / "r.jsonl", list[str](), list[str]()
    write(path, upto(recorded(path), "tool", state="started"))
    as_another_user()
    resume(path, model(answer="it is up"), tools(made), None, {"on_unknown": "ask"}, deciding(asked=asked))
    assert (made, asked) == (["first", "second"], ["first", "second"])


def test_a_call_approved_with_a_key_inside_the_project_is_not_made_and_the_refusal_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made, project = tmp_path / "r.jsonl", list[str](), tmp_path / "project"
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    write(path, upto(recorded(path, project_root=project), "approval", **DECIDED))
    with pytest.raises(UsageError, match=r"here allows \(no decision .*key' lies in the project; set XDG_STATE_HOME"):
        resume(path, model(answer="it is up"), tools(made))
    assert made == []


def test_a_rule_sealed_with_a_key_inside_the_project_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made, project = tmp_path / "r.jsonl", list[str](), tmp_path / "project"
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    lines = recorded(path, RULED, project_root=project)
    write(path, upto(lines, "tool", state="finished"))
    with pytest.raises(UsageError, match="asks to allow calls without asking: deploy, which comes neither"):
        resume(path, model(answer="it is up"), tools(made))
    assert made == []
