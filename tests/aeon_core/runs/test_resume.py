"""A run continues where its journal ends: nothing is repeated, and it ends as if it had not been interrupted."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core import LLMError, LLMResponse, Orchestrator, RunConfig, RunResult, tool
from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.errors import ReplayMismatchError, ToolError, UsageError
from aeon_core.journal.history import open_history
from aeon_core.journal.reader import read_records
from aeon_core.journal.summary import is_being_written
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import Resumption, resume
from aeon_core.tools.registry import ToolRegistry, default_registry
from tests.aeon_core.kernel.test_edges import Dict
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan
from tests.fakes import ScriptedModel, add, steps

SAME = ("status", "answer", "plan", "steps", "passes", "convergence", "ttl", "manual_intervention")


class Counted(LLMAdapter):
    """A model that tells what it was asked."""

    model = "scripted:test"

    def __init__(self, inner: ScriptedModel) -> None:
        self.inner = inner
        self.asked: list[tuple[str, str]] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.asked.append((request.purpose, request.prompt))
        return self.inner.complete(request)


def two_passes() -> Counted:
    right = "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5."
    return Counted(model(plan=plan(by=0), refine=MENDED, answer=right))


def record(
    path: Path, llm: LLMAdapter, task: str = TASK, tools: ToolRegistry | None = None, **config: Any
) -> RunResult:
    given = RunConfig(**{"durability": "off", **config})
    return Orchestrator(llm, tools=tools, config=given, journal=path).run(task)


def told(result: RunResult) -> dict[str, Any]:
    return {name: value for name, value in result.model_dump(mode="json").items() if name in SAME}


def remembered(path: Path) -> list[tuple[str, Any, str]]:
    return [(r["key"], r["value"], r["source"]) for r in read_records(path) if r["type"] == "memory"]


def cut(path: Path, lines: list[bytes], count: int) -> Path:
    path.write_bytes(b"".join(lines[:count]))
    return path


@pytest.mark.exhaustive
def test_a_run_cut_off_anywhere_ends_the_same_without_repeated_requests(tmp_path: Path) -> None:
    whole = two_passes()
    want = record(tmp_path / "whole.jsonl", whole)
    assert want.passes == 2
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "part.jsonl"
    for count in range(1, len(lines)):
        cut(path, lines, count)
        answered = sum(b'"type":"llm"' in line and b'"state":"finished"' in line for line in lines[:count])
        llm = two_passes()
        assert told(resume(path, llm)) == told(want), lines[count - 1][:200]
        assert llm.asked == whole.asked[answered:]
        assert remembered(path) == remembered(tmp_path / "whole.jsonl")
        size = path.stat().st_size
        assert told(resume(path, two_passes())) == told(want)
        assert path.stat().st_size == size
        done = replay(path)
        assert (done.difference, done.result is not None) == (None, True)


def test_a_torn_line_is_set_aside_and_the_run_continues(tmp_path: Path) -> None:
    want = record(tmp_path / "r.jsonl", two_passes())
    lines = (tmp_path / "r.jsonl").read_bytes().splitlines(keepends=True)
    cut(tmp_path / "r.jsonl", [*lines[:20], lines[20][:17]], 21)
    assert told(resume(tmp_path / "r.jsonl", two_passes())) == told(want)
    assert [r["type"] for r in read_records(tmp_path / "r.jsonl")].count("journal_recovered") == 1


def test_an_expired_run_continues_with_more_cycles_and_lists_passes_once(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    assert record(path, two_passes(), ttl=5).status == "ttl_expired"
    llm = two_passes()
    result = resume(path, llm, options={"ttl": 30})
    assert (result.status, result.ttl.limit, result.passes) == ("converged", 30, 2)
    assert [purpose for purpose, _ in llm.asked] == ["answer", "judge"]
    changes = [r["limit"] for r in read_records(path) if r["type"] == "ttl" and r["reason"] == "the limit was changed"]
    assert changes == [30]
    assert [each.pass_number for each in open_history(path).passes] == [1, 2]
    assert replay(path).difference is None


def test_a_run_without_more_cycles_expires_again_at_the_same_place(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    want = record(path, two_passes(), ttl=5)
    llm = two_passes()
    assert told(resume(path, llm)) == told(want)
    assert llm.asked == []


def test_an_aborted_run_continues(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    want = record(tmp_path / "whole.jsonl", two_passes())

    class Aborting(Counted):
        def complete(self, request: LLMRequest) -> LLMResponse:
            if request.purpose == "judge":
                orchestrator.abort()
            return super().complete(request)

    orchestrator = Orchestrator(Aborting(two_passes().inner), config=RunConfig(durability="off"), journal=path)
    assert orchestrator.run(TASK).status == "aborted"
    assert told(resume(path, two_passes())) == told(want)
    assert remembered(path) == remembered(tmp_path / "whole.jsonl")


class Unreadable(Dict):
    def search(self, prefix: str) -> list[tuple[str, Any]]:
        raise OSError("unreadable")


def resumed_after_a_failure(path: Path, memory: Dict, corrected: Any) -> ScriptedModel:
    """Resume a run that failed in its second step, with what the store holds of the first one by now."""
    failing, llm = ScriptedModel(reason=LLMError("no credit")), ScriptedModel(reason="ok", answer="ok")
    thinks, given = steps(add(1, 2), {"agent": "llm"}, {"agent": "llm"}), RunConfig(durability="off", single_pass=True)
    assert Orchestrator(failing, memory=memory, config=given, journal=path).run("t", thinks).status == "failed"
    memory.entries["s1"] = corrected
    assert resume(path, llm, memory=memory).status == "completed"
    return llm


def test_a_store_that_outlives_the_process_is_read_again_and_not_restored(tmp_path: Path) -> None:
    path, memory = tmp_path / "r.jsonl", Dict()
    llm = resumed_after_a_failure(path, memory, {"result": 99})
    assert '{"key": "s1", "value": {"result": 99}}' in llm.asked("reason")[0].prompt
    assert remembered(path)[:2] == [("s1", {"result": 3}, "kernel"), ("s1", {"result": 99}, "external")]
    assert memory.entries["s1"] == {"result": 99}


def test_a_store_that_cannot_be_read_is_noted_once(tmp_path: Path) -> None:
    resumed_after_a_failure(tmp_path / "r.jsonl", Unreadable(), None)
    notes = [record["message"] for record in read_records(tmp_path / "r.jsonl") if record["type"] == "notice"]
    assert notes == ["memory cannot be read: OSError: unreadable"]


@pytest.mark.parametrize(("call", "written"), [(1, ["llm", "cycle"]), (2, ["ttl", "cycle"])])
def test_a_run_killed_while_it_writes_that_it_was_aborted_continues(
    tmp_path: Path, call: int, written: list[str]
) -> None:
    def llm() -> Counted:
        right = plan(by=0)
        replies = [{"goal": TASK, "steps": [{}]}, right] if call > 1 else right
        return Counted(model(plan=replies, refine=MENDED, answer=two_passes().inner.scripts["answer"]))

    path = tmp_path / "r.jsonl"
    want = record(tmp_path / "whole.jsonl", llm())
    begun: list[str] = []

    def on_record(line: dict[str, Any]) -> None:
        if line["type"] == "llm" and line["purpose"] == "plan" and line["state"] == "started":
            begun.append(line["call_id"])
            if len(begun) == call:
                orchestrator.abort()
                raise KeyboardInterrupt

    orchestrator = Orchestrator(llm(), config=RunConfig(durability="off"), journal=path, on_record=on_record)
    assert orchestrator.run(TASK).status == "aborted"
    lines = path.read_bytes().splitlines(keepends=True)
    cut(path, lines, len(lines) - 1)
    assert [json.loads(line)["type"] for line in lines[-3:-1]] == written
    assert told(resume(path, two_passes())) == told(want)
    assert replay(path).difference is None


def test_a_run_whose_model_failed_continues_with_another(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    down = model(plan=plan(by=0), refine=MENDED, judge=LLMError("no", status_code=400), answer=LLMError("gone", False))
    assert record(path, down).status == "failed"
    other = two_passes()
    other.model = "scripted:other"
    result = resume(path, other)
    assert (result.status, result.model) == ("converged", "scripted:other")
    assert "plan" not in [purpose for purpose, _ in other.asked]
    assert replay(path).difference is None


def test_a_larger_budget_lets_a_run_continue(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    prices = {"scripted:test": {"input": 1, "output": 1}}

    def paid() -> ScriptedModel:
        reply = LLMResponse(text="fine", usage={"input_tokens": 10, "output_tokens": 10})
        return ScriptedModel(reason=reply, answer=LLMResponse(text="done", usage=reply.usage))

    given = steps({"agent": "llm"}, {"agent": "llm"})
    config = RunConfig(durability="off", prices=prices, budget=0.005, single_pass=True)
    first = Orchestrator(paid(), config=config, journal=path).run("t", json.loads(json.dumps(given)))
    assert first.status == "cost_ceiling"
    result = resume(path, paid(), options={"budget": 5.0})
    assert result.status == "completed"
    assert result.usage.input_tokens == 30
    assert replay(path).difference is None


Tools = tuple[ToolRegistry, list[str]]


class Cached(Counted):
    """A model with a price, whose every reply has read tokens from a cache."""

    model = "openai:gpt-4o"

    def complete(self, request: LLMRequest) -> LLMResponse:
        usage = {"input_tokens": 100_000, "output_tokens": 1, "cache_read_tokens": 100_000}
        return super().complete(request).model_copy(update={"usage": usage})


@pytest.mark.parametrize("count", [1, -1])
def test_tokens_from_a_cache_cost_the_same_after_a_resume(tmp_path: Path, count: int) -> None:
    whole = record(tmp_path / "whole.jsonl", Cached(two_passes()))
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    part = cut(tmp_path / "part.jsonl", lines, count)
    assert resume(part, Cached(two_passes())).cost_usd == whole.cost_usd


def test_a_recorded_price_that_differs_is_kept_after_a_resume(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole.jsonl", Cached(two_passes()), prices={"openai:gpt-4o": {"input": 1, "output": 1}})
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    started = json.loads(lines[0])
    del started["config"]["prices"]
    part = cut(tmp_path / "part.jsonl", [json.dumps(started).encode() + b"\n"], 1)
    assert resume(part, Cached(two_passes())).cost_usd == whole.cost_usd


def counting(*, effect: Any = "unsafe", reconcile: Any = None) -> Tools:
    registry, calls = default_registry(), []

    @tool(effect=effect)
    def pay() -> str:
        """Pays an invoice."""
        calls.append("paid")
        return "paid"

    registry.register(pay)
    if reconcile is not None:
        registry.get("pay").reconcile = reconcile  # type: ignore[union-attr]
    return registry, calls


def cut_in_the_call(tmp_path: Path, effect: Any = "unsafe") -> Path:
    """Return the journal of a run that was cut while its tool ran."""
    path = tmp_path / "r.jsonl"
    registry, _ = counting(effect=effect)
    given = steps({"tool": "pay", "arguments": {}}, add(1, 1))
    config = RunConfig(durability="off", single_pass=True)
    Orchestrator(ScriptedModel(answer="x"), tools=registry, config=config, journal=path).run("t", given)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if b'"type":"tool"' in line and b'"started"' in line)
    return cut(path, lines, place + 1)


def test_an_unsafe_call_that_was_begun_is_unknown_and_never_silently_repeated(tmp_path: Path) -> None:
    path = cut_in_the_call(tmp_path)
    registry, calls = counting()
    result = resume(path, ScriptedModel(answer="x"), registry)
    assert calls == []
    assert result.steps[0].status == "failed"
    assert "whether 'pay' took effect is unknown" in result.steps[0].errors[0]
    assert result.steps[1].status == "complete"
    decided = [r for r in read_records(path) if r["type"] == "approval"]
    assert [(r["point"], r["state"], r.get("decision")) for r in decided] == [
        ("unknown", "asked", None),
        ("unknown", "decided", "reject"),
    ]
    assert replay(path).difference is None


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
def test_a_repeatable_call_is_repeated(tmp_path: Path, effect: str) -> None:
    path = cut_in_the_call(tmp_path, effect)
    registry, calls = counting(effect=effect)
    assert resume(path, ScriptedModel(answer="x"), registry).steps[0].status == "complete"
    assert calls == ["paid"]


def test_a_person_decides_what_happens_to_an_unknown_call(tmp_path: Path) -> None:
    path = cut_in_the_call(tmp_path)
    registry, calls = counting()
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(decision="approve")

    result = resume(path, ScriptedModel(answer="x"), registry, options={"on_unknown": "ask"}, approver=approver)
    assert (calls, result.steps[0].status) == (["paid"], "complete")
    assert [(request.point, request.subject["tool_name"]) for request in asked] == [("unknown", "pay")]


def test_a_retry_that_is_cut_off_too_is_unknown_again(tmp_path: Path) -> None:
    path = cut_in_the_call(tmp_path)

    registry, calls = counting()
    resume(path, ScriptedModel(answer="x"), registry, options={"on_unknown": "retry"})
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if b'"decided"' in line)
    cut(path, lines, place + 1)
    registry, calls = counting()
    result = resume(path, ScriptedModel(answer="x"), registry)
    assert (calls, result.steps[0].status) == ([], "failed")
    assert replay(path).difference is None


def test_a_retry_that_ctrl_c_ends_replays_and_resumes(tmp_path: Path) -> None:
    path = cut_in_the_call(tmp_path)
    registry, _ = counting()

    def interrupted(**_: object) -> str:
        raise KeyboardInterrupt

    registry.get("pay").invoke = interrupted  # type: ignore[union-attr, method-assign]
    assert resume(path, ScriptedModel(answer="x"), registry, options={"on_unknown": "retry"}).status == "aborted"
    assert replay(path).difference is None
    registry, calls = counting()
    result = resume(path, ScriptedModel(answer="x"), registry, options={"on_unknown": "retry"})
    assert (calls, result.steps[0].status) == (["paid"], "complete")
    assert replay(path).difference is None


def test_a_tool_can_reconcile_its_call(tmp_path: Path) -> None:
    path = cut_in_the_call(tmp_path)
    registry, calls = counting(reconcile=lambda call_id, arguments: {"result": f"{call_id} was paid"})
    result = resume(path, ScriptedModel(answer="x"), registry)
    assert (calls, result.steps[0].output) == ([], {"result": "c1 was paid"})


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (ConnectionError("the bank does not answer"), "whether 'pay' took effect is unknown"),
        (ToolError("the bank refused"), "the bank refused"),
    ],
    ids=["cannot find out", "the call failed"],
)
def test_a_tool_that_cannot_find_out_leaves_its_call_unknown(tmp_path: Path, error: Exception, reported: str) -> None:
    def reconcile(call_id: str, arguments: dict[str, Any]) -> None:
        raise error

    path = cut_in_the_call(tmp_path)
    registry, calls = counting(reconcile=reconcile)
    result = resume(path, ScriptedModel(answer="x"), registry)
    assert (calls, result.steps[0].status) == ([], "failed")
    assert reported in result.steps[0].errors[0]
    assert replay(path).difference is None


def test_a_finished_run_returns_its_result(tmp_path: Path) -> None:
    want = record(tmp_path / "r.jsonl", two_passes())
    before = (tmp_path / "r.jsonl").read_bytes()
    assert resume(tmp_path / "r.jsonl", two_passes()) == want
    assert (tmp_path / "r.jsonl").read_bytes() == before


def test_a_finished_run_whose_journal_was_moved_names_its_new_place(tmp_path: Path) -> None:
    result = record(tmp_path / "r.jsonl", two_passes())
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "r.jsonl").rename(tmp_path / "elsewhere" / "r.jsonl")
    assert resume(moved) == result.model_copy(update={"journal": str(moved)})


def test_a_finished_run_with_fields_of_a_later_version_returns_its_result(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    result = record(path, two_passes())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        later = {"plan": line.get("plan"), "run_finished": line.get("result")}.get(line["type"])
        for each in [] if later is None else [later, *later["steps"]]:
            each["of_a_later_version"] = {"a": 1}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert resume(path, two_passes()) == result
    assert (difference := replay(path).difference) is not None
    assert "of_a_later_version" in difference.where


def test_a_mismatch_is_reported_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, two_passes())
    lines = path.read_bytes().splitlines(keepends=True)
    cut(path, lines, _first(lines, b'"type":"pass"'))
    before = path.read_bytes()
    with pytest.raises(
        ReplayMismatchError, match=r"cannot be resumed.*; fork it instead \(record 0 differs: run_started · tools was "
    ):
        resume(path, two_passes(), ToolRegistry())
    assert path.read_bytes() == before


def _first(lines: list[bytes], part: bytes) -> int:
    return next(number for number, line in enumerate(lines) if part in line[:200])


def test_completed_passes_are_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    want = record(path, two_passes())
    lines = path.read_bytes().splitlines(keepends=True)
    ended = _first(lines, b'"type":"pass"')
    other = [lines[0], *(line.replace(b'"max_tokens":', b'"max_tokens":1') for line in lines[1:ended])]
    for count in range(ended + 1, len(lines)):
        cut(path, [*other, *lines[ended:]], count)
        llm = two_passes()
        assert told(resume(path, llm)) == told(want)
        assert {purpose for purpose, _ in llm.asked} <= {"tool_call", "reason", "answer", "judge"}


def test_tools_may_be_described_otherwise_after_a_pass(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    want = record(path, two_passes())
    lines = path.read_bytes().splitlines(keepends=True)
    cut(path, lines, _first(lines, b'"type":"pass"') + 1)
    registry, _ = counting()
    assert told(resume(path, two_passes(), registry)) == told(want)


def test_a_forbidden_override_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, two_passes(), ttl=5)
    with pytest.raises(UsageError, match="'single_pass' cannot change when a run is resumed"):
        Resumption(path, two_passes(), options={"single_pass": True})
    assert resume(path, two_passes(), options={"ttl": 30}).status == "converged"


def test_wrong_overrides_of_a_finished_run_are_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, two_passes())
    for options, words in (
        ({"zz": 1}, "'zz' cannot change when a run is resumed"),
        ({"ttl": "many"}, "'ttl' of RunConfig must be"),
        (["ttl"], "options is of type list, expected a Mapping"),
    ):
        with pytest.raises(UsageError, match=words):
            resume(path, options=options)


class Listening:
    """A listener that can be closed."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.closed = False

    def __call__(self, record: dict[str, Any]) -> None:
        self.heard.append(record["type"])

    def close(self) -> None:
        self.closed = True


def test_a_resumed_orchestrator_is_released_with_listener_and_journal(tmp_path: Path) -> None:
    record(tmp_path / "whole.jsonl", two_passes())
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    path, listener = tmp_path / "part.jsonl", Listening()
    going_on = Resumption(cut(path, lines, 12), two_passes(), on_record=listener)
    assert is_being_written(path)
    going_on.close()
    assert (is_being_written(path), listener.closed) == (False, True)
    ran = Listening()
    with contextlib.closing(Resumption(path, two_passes(), on_record=ran)) as again:
        again.run()
        assert not ran.closed
    assert (ran.closed, ran.heard[0], ran.heard.count("run_finished")) == (True, "run_resumed", 1)


def test_resume_closes_the_model_and_the_tools_that_it_made_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "whole.jsonl", two_passes())
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    closed: list[str] = []
    monkeypatch.setattr(LLMAdapter, "close", lambda _: closed.append("model"))
    monkeypatch.setattr(ToolRegistry, "close", lambda _: closed.append("tools"))
    resume(cut(tmp_path / "a.jsonl", lines, 12), two_passes(), default_registry())
    assert closed == []
    resume(cut(tmp_path / "b.jsonl", lines, 12), "simulated:default")
    assert closed == ["model", "tools"]
