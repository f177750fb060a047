"""Where things are handed over: callers' plans, tools, memories, approvers and listeners cannot harm a run."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any, cast

import pytest

from aeon_core import (
    AeonError,
    ApprovalDecision,
    ApprovalRequest,
    LLMError,
    LLMResponse,
    Memory,
    OrchestrationState,
    Orchestrator,
    Plan,
    RunConfig,
    ToolError,
    ToolRegistry,
    tool,
)
from aeon_core.config.schema import recorded_config
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.entities import LogEntry, SupervisorAction, ToolCall
from aeon_core.journal.view.reducer import fold
from aeon_core.kernel.state import ReadOnly
from aeon_core.redaction import tokens_in
from aeon_core.tools.registry import default_registry
from aeon_core.tools.shell.settings import ShellSettings
from tests.aeon_core.kernel.test_execution import of, run
from tests.aeon_core.kernel.test_passes import TASK
from tests.aeon_core.kernel.test_passes import model as converging
from tests.fakes import ScriptedModel, add, call, steps

OFF = RunConfig(single_pass=True, durability="off")


def registry_of(*functions: Any) -> ToolRegistry:
    registry = ToolRegistry()
    for function in functions:
        registry.register(function)
    return registry


def unsound(change: Any) -> Plan:
    plan = Plan.model_validate(steps(add(1, 1), add(2, 2)))
    change(plan)
    return plan


@pytest.mark.parametrize(
    ("task", "plan"),
    [
        (5, None),
        (None, None),
        ("t", "a plan"),
        ("t", [1]),
        ("t", unsound(lambda plan: setattr(plan.steps[1], "step_id", "s1"))),
        ("t", unsound(lambda plan: setattr(plan.steps[1], "arguments", {"a": "\ud800"}))),
        ("t", unsound(lambda plan: setattr(plan.steps[1], "arguments", {"a": 10**5000}))),
        ("t", unsound(lambda plan: plan.steps.clear())),
    ],
    ids=["number", "none", "text", "list", "twice", "surrogate", "huge", "empty"],
)
def test_an_invalid_task_or_plan_is_refused_before_the_run(task: Any, plan: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with pytest.raises(AeonError) as caught:
        Orchestrator(ScriptedModel(), config=OFF, journal=path).run(task, plan)
    assert "\n" not in caught.value.message
    assert not path.exists()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unspeakable(), "Unspeakable"),
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (ToolError(cast("str", ValueError("no such user"))), "no such user"),
    ],
)
def test_any_tool_error_fails_only_its_step(error: BaseException, told: str) -> None:
    @tool(effect="pure")
    def odd() -> int:
        """Raises."""
        raise error

    registry = registry_of(odd, *default_registry())
    result, _ = run(ScriptedModel(answer="x"), steps({"tool": "odd", "arguments": {}}, add(1, 1)), tools=registry)
    assert [step.status for step in result.steps] == ["failed", "complete"]
    assert result.steps[0].errors[0].startswith(told)


def test_an_undescribable_adapter_error_fails_the_run_in_one_line() -> None:
    class Mute(ScriptedModel):
        def complete(self, request: Any) -> LLMResponse:
            raise Unspeakable

    result, _ = run(Mute())
    assert result.error is not None
    assert result.error["message"] == "the model adapter failed: Unspeakable"


def test_a_reply_that_is_not_text_fails_the_run_in_one_line() -> None:
    class Textless(ScriptedModel):
        def complete(self, request: Any) -> LLMResponse:
            return LLMResponse(text=None)  # type: ignore[arg-type]

    result, _ = run(Textless())
    assert result.error is not None
    assert result.error["message"] == "the model adapter failed: LLMResponse: text: Input should be a valid string"


def test_network_errors_of_a_custom_adapter_are_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.effects.record_stream.RecordStream.wait", lambda self, seconds: None)
    model = ScriptedModel(plan=[TimeoutError("slow"), ConnectionResetError("gone"), steps(add(1, 1))], answer="2")
    result, _ = run(model)
    assert result.status == "completed"
    assert len(model.asked("plan")) == 3


def test_tokens_of_a_failed_call_are_counted() -> None:
    error = LLMError("cut off", usage={"input_tokens": 7, "output_tokens": 3})
    result, records = run(ScriptedModel(plan=error))
    assert result.usage.model_dump() == {"input_tokens": 7, "output_tokens": 3}
    finished = [record for record in of(records, "llm") if record["state"] == "finished"]
    assert finished[0]["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert finished[0]["cost_usd"] is None


def test_a_tool_unregistered_during_its_call_is_repaired() -> None:
    registry = default_registry()

    def leave(_: Any) -> LLMResponse:
        registry.unregister("calculator")
        return call("calculator", operation="add", a=1, b=1)

    model = ScriptedModel(tool_call=leave, repair="no", fallback="by hand", answer="x")
    result, _ = run(model, steps({"tool": "calculator"}), tools=registry, replays=False)
    assert (result.steps[0].mode, result.steps[0].output) == ("fallback", {"text": "by hand"})


class Dict(Memory):
    def __init__(self, **entries: Any) -> None:
        self.entries: dict[str, Any] = entries

    def write(self, key: str, value: Any) -> None:
        self.entries[key] = value

    def read(self, key: str) -> Any:
        return self.entries.get(key)

    def search(self, prefix: str) -> list[tuple[str, Any]]:
        return [item for item in self.entries.items() if item[0].startswith(prefix)]


def test_a_store_cannot_change_the_runs_values() -> None:
    class Meddler(Dict):
        def write(self, key: str, value: Any) -> None:
            value["meddled"] = True
            super().write(key, value)

    memory = Meddler()
    result, records = run(ScriptedModel(answer="x"), steps(add(1, 2)), memory=memory)
    assert result.steps[0].output == {"result": 3}
    assert of(records, "memory")[0]["value"] == {"result": 3}
    assert memory.entries["s1"] == {"result": 3, "meddled": True}


def test_a_correction_in_memory_reaches_the_next_prompt_and_one_bad_entry_hides_no_other() -> None:
    memory = Dict(odd=object(), secret=7, old=1)

    @tool(effect="pure")
    def correct() -> str:
        """Corrects what memory says of the first step, and forgets what is old."""
        memory.entries["s1"] = {"result": 99}
        del memory.entries["old"]
        return "done"

    registry = registry_of(correct, *default_registry())
    model = ScriptedModel(reason="ok", answer="ok")
    plan = steps(add(1, 1), {"tool": "correct", "arguments": {}}, {"agent": "llm"})
    _, records = run(model, plan, tools=registry, memory=memory)
    prompt = model.asked("reason")[0].prompt
    assert '{"key": "s1", "value": {"result": 99}}' in prompt
    assert '{"key": "secret", "value": 7}' in prompt
    assert '"old"' not in prompt
    external = [(record["key"], record["value"]) for record in of(records, "memory") if record["source"] == "external"]
    assert external == [("s1", {"result": 99}), ("old", None)]


def test_a_run_whose_entry_another_one_overwrites_says_once_that_each_needs_a_store() -> None:
    memory = Dict()

    @tool(effect="pure")
    def other() -> str:
        """Runs another plan on the same store."""
        run(ScriptedModel(answer="x"), steps(add(3, 4), add(5, 6)), memory=memory)
        return "done"

    plan = steps(add(1, 1), {"tool": "other", "arguments": {}}, {"agent": "llm"}, {"agent": "llm"})
    model = ScriptedModel(reason="ok", answer="ok")
    _, records = run(model, plan, tools=registry_of(other, *default_registry()), memory=memory)
    (notice,) = of(records, "notice")
    assert (notice["kind"], notice["step_id"]) == ("memory", "s3")
    assert "changed 's1' in memory, which this run had written; runs at the same time need a store" in notice["message"]


def test_a_long_output_shows_both_ends_and_the_omitted_size() -> None:
    @tool(effect="pure")
    def long() -> str:
        """Is long."""
        return "HEAD" + "a" * 9000 + "TAIL"

    model = ScriptedModel(reason="ok", answer="ok")
    run(model, steps({"tool": "long", "arguments": {}}, {"agent": "llm"}), tools=registry_of(long))
    [line] = [line for line in model.asked("reason")[0].prompt.splitlines() if "output_clipped" in line]
    shown = json.loads(line)["output_clipped"]
    assert shown.startswith('{"result": "HEADaaa')
    assert shown.endswith('aTAIL"}')
    assert "[5022 characters left out]" in shown
    assert len(shown) < 4100


@pytest.mark.parametrize(
    ("approver", "why"),
    [
        (None, "there was no one to ask; allow it with --allow danger"),
        (lambda _: 1 / 0, "the approver failed: ZeroDivisionError"),
        (
            lambda _: ApprovalDecision(decision=cast("Any", "yes")),
            "failed: ApprovalDecision: decision: Input should",
        ),
        (lambda _: "approve", "returned str"),
        (lambda _: ApprovalDecision(decision="edit"), "nothing was edited"),
        (lambda _: ApprovalDecision(decision="accept"), "the approver answered 'accept' about a tool"),
        (lambda _: ApprovalDecision(decision="reject", feedback="no \udcff"), "no \ufffd"),
    ],
)
def test_without_a_valid_approval_the_tool_is_not_called(approver: Any, why: str) -> None:
    called: list[int] = []

    @tool(effect="unsafe", needs_approval=True)
    def danger(x: int = 1) -> int:
        """Is dangerous."""
        called.append(x)
        return x

    plan = steps({"tool": "danger", "arguments": {}})
    result, records = run(ScriptedModel(answer="x"), plan, tools=registry_of(danger), approver=approver)
    assert called == []
    assert why in result.steps[0].errors[0]
    assert "\n" not in result.steps[0].errors[0]
    assert [record["state"] for record in of(records, "approval")] == ["asked", "decided"]
    assert len(of(records, "cycle")) == 2


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_non_json_number_in_a_result_is_reported_as_null(number: float) -> None:
    @tool(effect="pure")
    def measured() -> dict[str, Any]:
        """Measure."""
        return {"values": [1.5, number]}

    @tool(effect="pure")
    def mean() -> float:
        """Mean."""
        return number

    plan = steps({"tool": "measured", "arguments": {}}, {"tool": "mean", "arguments": {}})
    result, records = run(ScriptedModel(answer="x"), plan, tools=registry_of(measured, mean))
    note = "NaN or infinity in the result of 'measured' became null: JSON has neither"
    assert result.steps[0].output == {"values": [1.5, None]}
    assert [record.get("note") for record in of(records, "tool")][1] == note
    assert next((line.level, line.text) for line in fold(records).log if line.type == "notice") == ("warning", note)
    assert "expected number, got null (NaN or infinity in the result of 'mean'" in result.steps[1].errors[0]


def test_an_approver_that_changes_its_request_changes_nothing_else() -> None:
    @tool(effect="unsafe", needs_approval=True)
    def danger(x: int) -> int:
        """Is dangerous."""
        return x

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        request.subject["arguments"]["x"] = 2
        request.subject.clear()
        request.point = cast("Any", "nowhere")
        return ApprovalDecision(decision="approve")

    plan = steps({"tool": "danger", "arguments": {"x": 1}})
    result, records = run(ScriptedModel(answer="x"), plan, tools=registry_of(danger), approver=approver)
    assert result.steps[0].output == {"result": 1}
    assert of(records, "approval")[0]["subject"]["arguments"] == {"x": 1}


def test_listeners_that_fail_do_not_end_the_run_and_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("listener")

    class Unhashable(list[int]):
        __call__ = fail

    class Streaming(ScriptedModel):
        def complete(self, request: Any) -> LLMResponse:
            request.on_delta("text")
            return super().complete(request)

    model = Streaming(plan=steps(add(1, 1)), answer="2")
    result = Orchestrator(model, config=OFF, journal=False, on_record=fail, on_line=Unhashable(), on_delta=fail).run(
        "t"
    )
    assert result.status == "completed"
    assert [record.message for record in caplog.records].count("a record listener failed; the run continues") == 2


def test_an_aborted_orchestrator_runs_the_next_task() -> None:
    orchestrator = Orchestrator(ScriptedModel(plan=steps(add(1, 1)), answer="2"), config=OFF, journal=False)
    orchestrator.abort()
    assert [orchestrator.run("t").status for _ in range(2)] == ["aborted", "completed"]


NESTED = steps(
    {
        "subplan": {
            "parent_step_id": "s1",
            "subplan_goal": "parts",
            "substeps": [{"step_id": "s1.1", "description": "think", "agent": "llm"}],
        }
    }
)


def test_the_current_step_is_the_running_one_also_inside_subplans() -> None:
    seen: list[tuple[str, str, str | None]] = []
    orchestrator = Orchestrator(
        ScriptedModel(reason="x", answer="y"),
        config=OFF,
        journal=False,
        on_record=lambda record: (
            seen.append((record["step_id"], record["status"], current())) if record["type"] == "step" else None
        ),
    )

    def current() -> str | None:
        assert orchestrator.state is not None
        return orchestrator.state.current_step_id

    orchestrator.run("t", json.loads(json.dumps(NESTED)))
    assert seen == [
        ("s1", "running", "s1"),
        ("s1.1", "running", "s1.1"),
        ("s1.1", "complete", "s1.1"),
        ("s1", "complete", "s1"),
    ]


def test_a_model_that_fails_inside_a_subplan_fails_the_parent_too() -> None:
    result, _ = run(ScriptedModel(reason=LLMError("down")), json.loads(json.dumps(NESTED)))
    assert result.status == "failed"
    assert [(step.step_id, step.status) for step in result.steps] == [("s1", "failed"), ("s1.1", "failed")]
    assert result.error is not None
    assert result.error["step_id"] == "s1.1"


def test_the_state_keeps_its_rules() -> None:
    state = OrchestrationState(ttl_limit=3, ttl_allocated=3, ttl_remaining=3, tool_history=[], llm_outputs=[{}])
    with pytest.raises(TypeError):
        state.llm_outputs.clear()
    with pytest.raises(TypeError):
        state.tool_history = []
    with pytest.raises(ValueError, match="ttl_remaining"):
        state.ttl_remaining = -1
    with pytest.raises(ValueError, match="no step"):
        state.current_step_id = "s9"
    made = ToolCall(tool_name="t", arguments={}, result={}, timestamp="2026-11-21T00:00:00Z", step_id="s1")
    with pytest.raises(ValueError, match="frozen"):
        made.result = None


def test_a_state_needs_no_more_than_its_cycles_left() -> None:
    assert OrchestrationState(ttl_remaining=3).ttl.model_dump() == {
        "limit": 3,
        "allocated": 3,
        "spent": 0,
        "remaining": 3,
    }
    with pytest.raises(ValueError, match="ttl_remaining"):
        OrchestrationState(ttl_remaining=-1)


def test_text_in_place_of_an_object_is_kept_as_text() -> None:
    stamp = "2026-11-21T00:00:00Z"
    call = {"tool_name": "t", "arguments": {}, "result": "done", "timestamp": stamp, "step_id": "s1"}
    repair = {"original_output": "{goal:", "error": "not JSON", "action_type": "json_repair", "attempt_number": 1}
    given: dict[str, Any] = {"step_number": 1, "plan_state": {}, "llm_output": "{goal:", "errors": ["late"]}
    given |= {"supervisor_actions": [{**repair, "timestamp": stamp}], "tool_calls": [call], "ttl_remaining": 0}
    entry = LogEntry.model_validate({**given, "timestamp": stamp})
    assert (entry.llm_output, entry.errors) == ({"text": "{goal:"}, [{"text": "late"}])
    action = entry.supervisor_actions[0]
    assert (action.original_output, action.error) == ({"text": "{goal:"}, {"text": "not JSON"})
    assert entry.tool_calls[0].result == {"text": "done"}
    repaired = SupervisorAction.model_validate({**repair, "repaired_output": "a", "error": None, "timestamp": stamp})
    assert repaired.repaired_output == {"text": "a"}
    for value in (3, ["x"], None):
        with pytest.raises(ValueError, match="llm_output"):
            LogEntry.model_validate({**given, "timestamp": stamp, "llm_output": value})


@pytest.mark.parametrize("stamp", ["2026-99-99T99:99:99", "2026-01-01T00:00:00 garbage", "now"])
def test_a_timestamp_is_iso_8601(stamp: str) -> None:
    with pytest.raises(ValueError, match="timestamp"):
        ToolCall(tool_name="t", arguments={}, result={}, timestamp=stamp, step_id="s1")


def test_an_aborted_cycle_is_recorded_with_its_reason_and_replays() -> None:
    holder: list[Orchestrator] = []
    records: list[dict[str, Any]] = []

    def give_up(_: Any) -> LLMError:
        holder[0].abort()
        return LLMError("busy", True)

    model = ScriptedModel(repair="no", fallback=give_up)
    plan = steps({"tool": "nope"})
    holder.append(Orchestrator(model, config=OFF, journal=False, on_record=records.append))
    result = holder[0].run("t", dict(plan))
    assert result.status == "aborted"
    cycle = of(records, "cycle")[-1]
    assert cycle["errors"][-1]["error_type"] == "RunAborted"
    assert len(cycle["supervisor_actions"]) == 2
    cursor = ReplayCursor(records)
    again = Orchestrator(None, config=OFF, recorded=cursor).run("t", dict(plan))
    assert cursor.exhausted
    assert again == result


def test_a_run_with_its_own_journal_and_memory_replays(tmp_path: Path) -> None:
    from aeon_core.journal.reader import read_records

    path = tmp_path / "r.jsonl"
    model = ScriptedModel(
        plan=[LLMError("quota", provider="x", exit_code=3)],
    )
    result = Orchestrator(model, config=OFF, memory=Dict(k="v"), journal=path).run("t")
    assert result.exit_code == 3
    cursor = ReplayCursor(read_records(path))
    again = Orchestrator(None, config=OFF, recorded=cursor).run("t")
    assert again == result
    assert cursor.exhausted


def test_a_folder_name_that_is_not_utf8_is_recorded_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "x\udcff"
    model = ScriptedModel(plan=steps(add(1, 1)), answer="2")
    result = Orchestrator(model, config=RunConfig(single_pass=True, durability="off", runs_dir=folder)).run("t")
    assert result.status == "completed"
    [journal] = folder.iterdir()
    assert json.loads(journal.read_bytes().splitlines()[0])["type"] == "run_started"


def test_paths_in_the_shell_settings_round_trip(tmp_path: Path) -> None:
    shell = ShellSettings(readable=(tmp_path,), output_dir=tmp_path / "out")
    model = ScriptedModel(plan=steps(add(1, 1)), answer="2")
    config = RunConfig(single_pass=True, durability="off", shell=shell)
    result = Orchestrator(model, config=config, journal=tmp_path / "r.jsonl").run("t")
    assert result.status == "completed"
    started = json.loads((tmp_path / "r.jsonl").read_bytes().splitlines()[0])
    assert started["config"]["shell"]["readable"] == [str(tmp_path)]
    assert recorded_config(started).shell == shell


KEY = "sk-" + "a1" * 12


@pytest.mark.parametrize("place", ["task", "plan", "config", "reply", "result", "memory", "edited"])
def test_a_key_never_reaches_the_journal(place: str, tmp_path: Path) -> None:
    given: list[str] = []

    @tool(effect="pure", needs_approval=place == "edited")
    def use(text: str) -> str:
        """Uses a text."""
        given.append(text)
        return KEY if place == "result" else "used"

    path = tmp_path / "r.jsonl"
    heard: list[bytes] = []
    config = RunConfig(
        single_pass=True, durability="off", base_url=f"http://host/v1?api_key={KEY}" if place == "config" else None
    )
    arguments = {"text": KEY if place == "plan" else "x"}
    plan = steps({"tool": "use", "arguments": arguments}, {"agent": "llm"})
    result = Orchestrator(
        ScriptedModel(reason=KEY if place == "reply" else "ok", answer="done"),
        tools=registry_of(use),
        memory=Dict(note=KEY) if place == "memory" else None,
        config=config,
        approver=lambda _: ApprovalDecision(decision="edit", edited={"text": KEY}),
        journal=path,
        on_line=heard.append,
    ).run(f"use {KEY} please" if place == "task" else "t", plan)
    assert result.status == "completed"
    assert KEY not in path.read_text()
    assert KEY.encode() not in b"".join(heard)
    assert any(tokens_in(path.read_text()))
    if place in ("plan", "edited"):
        assert given == [KEY]


def test_history_entries_do_not_change() -> None:
    entry = ReadOnly({"text": "a", "tool_calls": [{"name": "echo"}]})
    for change in (lambda: entry.update(text="b"), lambda: entry["tool_calls"][0].clear()):
        with pytest.raises(TypeError, match="does not change"):
            change()
    assert json.loads(json.dumps(entry)) == {"text": "a", "tool_calls": [{"name": "echo"}]}
    assert copy.deepcopy(entry) == pickle.loads(pickle.dumps(entry)) == entry


@pytest.mark.parametrize(
    "state",
    [
        {"goal": 1, "steps": "x"},
        {"goal": "g", "steps": []},
        {"goal": "g", "steps": [1]},
        {"goal": "g", "steps": [{"step_id": "s1"}]},
        {"since": "1", "steps": {}},
    ],
)
def test_a_log_entry_holds_a_plan_or_its_changes(state: Any) -> None:
    fields: dict[str, Any] = {"step_number": 1, "llm_output": {}, "supervisor_actions": [], "tool_calls": []}
    fields |= {"ttl_remaining": 1, "errors": [], "timestamp": "2026-11-20T09:30:00Z"}
    with pytest.raises(ValueError, match="plan_state"):
        LogEntry(plan_state=state, **fields)
    assert LogEntry(plan_state={"since": 3, "steps": {"s1": {"status": "complete"}}}, **fields).step_number == 1


def test_an_error_in_aeon_itself_ends_the_run_with_a_result_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("aeon_core.kernel.orchestrator.plan_request", fail)
    path = tmp_path / "r.jsonl"
    result = Orchestrator(ScriptedModel(), config=OFF, journal=path).run("t")
    error = {"error_type": "InternalError", "message": "internal error: ZeroDivisionError: oops"}
    assert (result.status, result.error) == ("failed", error)
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [record["errors"] for record in records if record["type"] == "cycle"] == [[error]]
    assert records[-1]["result"]["error"] == error
    [logged] = [record for record in caplog.records if record.exc_info is not None]
    assert logged.getMessage() == "the run failed because of an error in Aeon itself"


@pytest.mark.parametrize("answer", ["2", LLMError("no")], ids=["completed", "failed"])
def test_a_run_whose_journal_was_moved_names_its_new_place(answer: Any, tmp_path: Path) -> None:
    path, new = tmp_path / "r.jsonl", tmp_path / "new.jsonl"
    move = lambda record: path.rename(new) if record["type"] == "plan" else None  # noqa: E731
    model = ScriptedModel(plan=steps(add(1, 1)), answer=answer)
    result = Orchestrator(model, config=OFF, journal=path, on_record=move).run("t")
    assert (result.status, result.journal) == ("completed" if answer == "2" else "failed", str(new))


@pytest.mark.parametrize(
    ("answer", "message"),
    [("2", "the journal {!r} was moved or deleted during the run; the run was not recorded"), (LLMError("no"), "no")],
    ids=["completed", "failed"],
)
def test_a_run_whose_journal_was_deleted_has_failed(answer: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    delete = lambda record: path.unlink() if record["type"] == "plan" else None  # noqa: E731
    model = ScriptedModel(plan=steps(add(1, 1)), answer=answer)
    result = Orchestrator(model, config=OFF, journal=path, on_record=delete).run("t")
    assert (result.status, result.error and result.error["message"]) == ("failed", message.format(str(path)))


def test_a_result_that_converged_without_its_journal_has_not(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    delete = lambda record: path.unlink() if record["type"] == "pass" else None  # noqa: E731
    result = Orchestrator(converging(), config=RunConfig(durability="off"), journal=path, on_record=delete).run(TASK)
    assert (result.status, result.converged, result.passes) == ("failed", False, 1)
