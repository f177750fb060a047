"""A fork starts where a pass of another run started, and leaves that run as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import LLMResponse, Orchestrator, RunConfig, RunResult, tool
from aeon_core.config.schema import runs_directory
from aeon_core.convergence import ConvergenceCriteria
from aeon_core.errors import UsageError
from aeon_core.journal.history import open_history, open_run
from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.memory import InMemoryStore
from aeon_core.plan.models import Plan
from aeon_core.runs.fork import Fork, forked_config, starting_edit
from aeon_core.runs.replay import replay, replay_lines
from aeon_core.runs.resume import resume
from aeon_core.tools.registry import default_registry
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan
from tests.aeon_core.runs.test_resume import Counted, told, two_passes

Record = dict[str, Any]


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parent") / "parent.jsonl"
    assert Orchestrator(two_passes(), config=RunConfig(durability="off"), journal=path).run(TASK).passes == 2
    return path


@pytest.fixture(autouse=True)
def parent_stays(parent: Path) -> Iterator[None]:
    before = parent.read_bytes(), parent.stat().st_mtime_ns
    yield
    assert (parent.read_bytes(), parent.stat().st_mtime_ns) == before


def forked(parent: Path, path: Path, number: int = 2, **more: Any) -> tuple[RunResult, Counted, list[Record]]:
    llm = two_passes()
    result = Fork(parent, number, llm, journal=path, **more).run()
    records = list(read_records(path))
    assert replay(path).difference is None
    return result, llm, records


def test_a_fork_changes_the_options_that_a_dict_holds_and_keeps_the_others(parent: Path, tmp_path: Path) -> None:
    _, _, records = forked(parent, tmp_path / "f.jsonl", config={"ttl": 90})
    assert records[0]["config"] == {**next(read_records(parent))["config"], "ttl": 90}
    _, _, records = forked(parent, tmp_path / "g.jsonl", config=RunConfig(ttl=90))
    assert (records[0]["config"]["ttl"], records[0]["config"]["durability"]) == (90, "normal")


def passes(path: Path) -> list[Record]:
    return [record for record in read_records(path) if record["type"] == "pass"]


def test_a_fork_continues_where_the_pass_began(parent: Path, tmp_path: Path) -> None:
    result, llm, records = forked(parent, tmp_path / "f.jsonl")
    whole = open_history(parent).final_result
    assert whole is not None
    assert told(result) == told(whole)
    assert {purpose for purpose, _ in llm.asked} <= {"tool_call", "reason", "answer", "judge"}
    assert records[0]["parent"] == {"run_id": "parent", "pass": 2, "edited": False}
    begun, ended = passes(parent)[1], passes(tmp_path / "f.jsonl")
    assert [each["pass_number"] for each in ended] == [2]
    for same in ("plan_state", "snapshot", "task_profile", "adaptive_depth", "execution_results"):
        assert ended[0][same] == begun[same], same
    assert records[0]["memory"] == begun["snapshot"]["memory"] != {}


def test_a_fork_counts_only_its_own_cost_and_tokens(parent: Path, tmp_path: Path) -> None:
    result, _, records = forked(parent, tmp_path / "f.jsonl")
    calls = [record for record in records if record["type"] == "llm" and record["state"] == "finished"]
    assert next(record["call_id"] for record in records if "call_id" in record) == "c1"
    assert result.usage.input_tokens == sum((call["usage"] or {}).get("input_tokens", 0) for call in calls)
    spent = passes(parent)[1]["snapshot"]["ttl"]["spent"]
    assert result.ttl.spent == spent + sum(
        record["type"] == "cycle" and bool(record["llm_output"]) for record in records
    )


def test_the_first_pass_has_the_original_plan_and_is_planned_again(parent: Path, tmp_path: Path) -> None:
    result, llm, records = forked(parent, tmp_path / "f.jsonl", 1)
    asked = [purpose for purpose, _ in llm.asked]
    assert ("plan" in asked, asked[0], result.status, result.passes) == (False, "profile", "converged", 2)
    assert records[0]["parent"] == {"run_id": "parent", "pass": 1, "edited": False}
    assert passes(tmp_path / "f.jsonl")[0]["plan_state"] == passes(parent)[0]["plan_state"]
    assert result.answer == open_history(parent).final_result.answer  # type: ignore[union-attr]


def test_a_fork_is_resumed_from_wherever_it_was_cut_off(parent: Path, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    want, _, _ = forked(parent, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        path.write_bytes(b"".join(lines[:count]))
        result = resume(path, two_passes())
        assert told(result) == told(want), count
        assert replay(path).difference is None


def test_a_fork_that_an_earlier_version_recorded_resumes_and_replays(parent: Path, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    want, _, records = forked(parent, path)
    start = dict(records[0]["start"])
    del start["outdated"]  # it was added later
    path.write_text(json.dumps({**records[0], "start": start}) + "\n")
    assert told(resume(path, two_passes())) == told(want)
    assert replay(path).difference is None


def test_a_fork_after_a_pass_without_an_answer_replays_and_resumes(tmp_path: Path) -> None:
    refused, right = LLMResponse(text="No.", stop_reason="refusal"), "The sum of 5 and 10 is 15, and 1 / 2 is 0.5."
    llm = model(plan=plan(by=0), refine=MENDED, answer=[refused, right])
    Orchestrator(llm, config=RunConfig(durability="off"), journal=tmp_path / "r.jsonl").run(TASK)
    assert passes(tmp_path / "r.jsonl")[0]["execution_results"]["answer"] is None
    want, _, _ = forked(tmp_path / "r.jsonl", tmp_path / "f.jsonl")
    lines = (tmp_path / "f.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "f.jsonl").write_bytes(b"".join(lines[:3]))
    assert told(resume(tmp_path / "f.jsonl", two_passes())) == told(want)


def test_a_fork_is_forked(parent: Path, tmp_path: Path) -> None:
    forked(parent, tmp_path / "f.jsonl")
    result, _, records = forked(tmp_path / "f.jsonl", tmp_path / "g.jsonl")
    assert records[0]["parent"]["run_id"] == "f"
    assert told(result) == told(open_history(parent).final_result)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="has no pass 1; a fork can start with pass 2"):
        Fork(tmp_path / "f.jsonl", 1, two_passes())


@pytest.mark.parametrize("number", [0, 3, 99, -1])
def test_a_pass_that_never_began_is_reported_with_those_that_did(parent: Path, number: int) -> None:
    with pytest.raises(UsageError, match=rf"has no pass {number}; a fork can start with one of the passes 1 to 2"):
        Fork(parent, number, two_passes())


class Other(LLMAdapter):
    model = "scripted:other"

    def __init__(self) -> None:
        self.inner = two_passes()

    def complete(self, request: LLMRequest) -> LLMResponse:
        return self.inner.complete(request)


def test_another_model_a_larger_ttl_and_other_criteria(parent: Path, tmp_path: Path) -> None:
    config = forked_config(parent).model_copy(update={"ttl": 90})
    criteria = ConvergenceCriteria(completeness=0.5)
    path = tmp_path / "f.jsonl"
    result = Fork(parent, 2, Other(), config=config, criteria=criteria, journal=path).run()
    first = next(read_records(path))
    assert (result.model, result.ttl.limit, first["model"]) == ("scripted:other", 90, "scripted:other")
    assert first["criteria"]["completeness"] == 0.5
    assert replay(path).difference is None
    view, _ = open_run(path)
    assert (view.parent, view.parent_pass, view.ttl_limit) == ("parent", 2, 90)


def test_the_options_of_the_run_are_kept(tmp_path: Path) -> None:
    path, config = tmp_path / "p.jsonl", RunConfig(durability="off", ttl=33)
    Orchestrator(two_passes(), config=config, journal=path).run(TASK)
    assert forked(path, tmp_path / "f.jsonl")[0].ttl.limit == 33


def test_a_ttl_that_leaves_nothing_is_refused(parent: Path) -> None:
    spent = passes(parent)[1]["snapshot"]["ttl"]["spent"]
    config = forked_config(parent).model_copy(update={"ttl": spent})
    with pytest.raises(UsageError, match=rf"a TTL of {spent} is too small: {spent} cycles were spent before pass 2"):
        Fork(parent, 2, two_passes(), config=config)


def test_a_fork_of_a_later_pass_cannot_be_a_single_pass(parent: Path) -> None:
    config = forked_config(parent).model_copy(update={"single_pass": True})
    with pytest.raises(UsageError, match="a fork from pass 2 needs more than one pass"):
        Fork(parent, 2, two_passes(), config=config)


def test_unchanged_executed_steps_do_not_run_again(parent: Path, tmp_path: Path) -> None:
    plan = starting_edit(parent, 2).plan
    assert plan is not None
    done = [step.step_id for step in plan.walk() if step.status == "complete"]
    waiting = next(step for step in plan.walk() if step.status == "pending")
    waiting.description = "divide 1 by 4 with the calculator"
    waiting.arguments = {"operation": "divide", "a": 1, "b": 4} if waiting.arguments is not None else None
    result, _, records = forked(parent, tmp_path / "f.jsonl", plan=plan)
    assert records[0]["parent"]["edited"] is True
    told_plan = next(record for record in records if record["type"] == "plan")
    assert (told_plan["cause"], told_plan["pass"]) == ("edited", 2)
    ran = {record["step_id"] for record in records if record["type"] == "step" and record["status"] == "running"}
    assert waiting.step_id in ran
    assert ran.isdisjoint(done)
    assert {step.step_id for step in result.steps if step.status == "complete"} >= {*done, waiting.step_id}


def test_a_changed_step_and_its_dependents_run_again(parent: Path, tmp_path: Path) -> None:
    plan = starting_edit(parent, 2).plan
    assert plan is not None
    first = next(step for step in plan.walk() if step.status == "complete")
    store = InMemoryStore()
    edited = plan.model_dump(mode="json", exclude_none=True)
    edited["steps"][0]["status"] = "pending"
    result, _, records = forked(parent, tmp_path / "f.jsonl", plan=edited, memory=store)
    assert first.step_id == edited["steps"][0]["step_id"] not in records[0]["memory"]
    ran = {record["step_id"] for record in records if record["type"] == "step" and record["status"] == "running"}
    assert first.step_id in ran
    assert store.read(first.step_id) is not None
    assert result.status == "converged"


def test_an_interrupted_run_is_forked_from_its_next_pass(parent: Path, tmp_path: Path) -> None:
    lines = parent.read_bytes().splitlines(keepends=True)
    ended = next(number for number, line in enumerate(lines) if b'"type":"pass"' in line[:200])
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[: ended + 1]) + b'{"v":1,"se')
    result, _, _ = forked(cut, tmp_path / "f.jsonl")
    assert told(result) == told(open_history(parent).final_result)  # type: ignore[arg-type]


def test_only_damage_before_the_pass_matters(parent: Path, tmp_path: Path) -> None:
    lines = parent.read_bytes().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"".join([*lines[:-3], b"nonsense\n", *lines[-2:]]))
    assert forked(broken, tmp_path / "f.jsonl")[0].status == "converged"
    broken.write_bytes(b"".join([*lines[:9], b"nonsense\n", *lines[10:]]))
    with pytest.raises(UsageError, match="line 10"):
        Fork(broken, 2, two_passes())


def test_a_key_in_an_edited_plan_reaches_the_tool_and_not_the_journal(parent: Path, tmp_path: Path) -> None:
    given: list[str] = []

    @tool(effect="pure")
    def use(text: str) -> str:
        """Uses a text."""
        given.append(text)
        return "used"

    plan, key = starting_edit(parent, 2).plan, "sk-" + "ant-" + "x" * 40
    assert plan is not None
    waiting = next(step for step in plan.walk() if step.status == "pending")
    waiting.tool, waiting.arguments = "use", {"text": key}
    registry = default_registry()
    registry.register(use)
    path = tmp_path / "fork.jsonl"
    Fork(parent, 2, two_passes(), registry, plan=plan, journal=path).run()
    assert given[:1] == [key]
    assert key not in path.read_text()
    assert replay(path).difference is None


def test_a_store_that_takes_no_entries_is_reported(parent: Path, tmp_path: Path) -> None:
    class Full(InMemoryStore):
        def write(self, key: str, value: Any) -> None:
            raise OSError("no room")

    with pytest.raises(UsageError, match="the memory rejects what the fork starts with: no room"):
        Fork(parent, 2, two_passes(), memory=Full(), journal=tmp_path / "f.jsonl").run()


def test_existing_entries_of_the_callers_store_are_kept(tmp_path: Path) -> None:
    def store(**held: Any) -> InMemoryStore:
        made = InMemoryStore()
        for key, value in held.items():
            made.write(key, value)
        return made

    path = tmp_path / "p.jsonl"
    secret = {"password": "hunter2" + "hunter2"}
    llm = two_passes()
    Orchestrator(llm, memory=store(login=secret, other=1), config=RunConfig(durability="off"), journal=path).run(TASK)
    mine = store(login=secret, other=2)
    forked(path, tmp_path / "f.jsonl", memory=mine)
    assert (mine.read("login"), mine.read("other")) == (secret, 1)


@pytest.mark.parametrize("place", [("answer",), ("assessment", "coherence_score"), ("ttl", "spent"), ("cycles",)])
def test_an_altered_starting_point_is_noticed(parent: Path, tmp_path: Path, place: tuple[str, ...]) -> None:
    _, _, records = forked(parent, tmp_path / "f.jsonl")
    inner = records[0]["start"]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = 0 if not isinstance(inner[place[-1]], str) else "another"
    assert replay_lines(records).difference is not None


def test_a_fork_is_stored_in_the_runs_directory_under_a_new_name(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path))
    config = forked_config(parent)
    result = Fork(parent, 2, two_passes(), config=config).run()
    assert result.run_id != "parent"
    assert Path(str(result.journal)).parent == runs_directory(config)


@pytest.fixture(scope="module")
def given_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose second pass had nothing to execute, and so was not assessed again: refinement changed nothing."""
    path = tmp_path_factory.mktemp("given-up") / "given-up.jsonl"
    llm = model(plan=plan(by=0), refine="nonsense", repair="nonsense")
    assert Orchestrator(llm, config=RunConfig(durability="off"), journal=path).run(TASK).passes == 2
    return path


def test_other_criteria_apply_without_steps_left_to_run(given_up: Path, tmp_path: Path) -> None:
    criteria = ConvergenceCriteria(completeness=0.25)
    forked(given_up, tmp_path / "f.jsonl", criteria=criteria)
    found = passes(tmp_path / "f.jsonl")[0]["evaluation_results"]["convergence"]
    assert found["metadata"]["criteria"]["completeness"] == 0.25


def test_the_criteria_file_of_a_fork_applies(given_up: Path, tmp_path: Path) -> None:
    (tmp_path / "criteria.yml").write_text("completeness: 0.25")
    config = forked_config(given_up).model_copy(update={"criteria": tmp_path / "criteria.yml"})
    assert forked(given_up, tmp_path / "f.jsonl", config=config)[2][0]["criteria"]["completeness"] == 0.25


def test_a_plan_without_the_step_that_failed_is_assessed_without_it(given_up: Path, tmp_path: Path) -> None:
    assert set(forked(given_up, tmp_path / "whole.jsonl")[2][0]["start"]["failures"]) == {"s2"}
    edited = starting_edit(given_up, 2).plan
    assert edited is not None
    edited.steps = [step for step in edited.steps if step.status == "complete"]
    result, _, records = forked(given_up, tmp_path / "f.jsonl", plan=edited)
    assert records[0]["start"]["failures"] == {}
    assert result.convergence is not None
    assert (result.convergence["completeness_score"], result.convergence["detected_issues"]) == (1.0, [])


def test_a_plan_for_the_first_pass_has_no_executed_steps(parent: Path, tmp_path: Path) -> None:
    executed = starting_edit(parent, 2).plan
    result, _, records = forked(parent, tmp_path / "f.jsonl", 1, plan=executed)
    assert {step["status"] for step in records[0]["plan"]["steps"]} == {"pending"}
    assert result.status == "converged"


def test_a_given_plan_that_cannot_be_read_is_reported(parent: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in parent.read_bytes().splitlines()]
    lines[0]["plan"] = {"steps": []}
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(UsageError, match="cannot read the plan of the first pass: "):
        Fork(broken, 1, two_passes())


@pytest.mark.parametrize("given", [[], "a plan", 7, Plan.model_construct(goal="x", steps=[])])
@pytest.mark.parametrize("number", [1, 2])
def test_an_invalid_plan_is_reported(parent: Path, number: int, given: Any) -> None:
    with pytest.raises(UsageError, match="the plan is"):
        Fork(parent, number, two_passes(), plan=given)


def resumed_line(parent: Path, **fields: Any) -> bytes:
    first, lines = next(read_records(parent)), parent.read_bytes().count(b"\n")
    envelope = {"v": 1, "seq": lines, "ts": first["ts"], "run": first["run"], "type": "run_resumed"}
    return json.dumps({**envelope, **fields}, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("fields", [{}, {"options": None}, {"options": [], "continues_at": 9999}])
def test_a_damaged_resume_after_the_pass_does_not_affect_options(
    parent: Path, tmp_path: Path, fields: dict[str, Any]
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(parent.read_bytes() + resumed_line(parent, **fields))
    assert forked(broken, tmp_path / "f.jsonl")[0].ttl.limit == forked_config(parent).ttl


@pytest.mark.parametrize("ttl", ["many", -5, None])
def test_invalid_options_of_a_resume_are_reported(parent: Path, tmp_path: Path, ttl: Any) -> None:
    broken = tmp_path / "broken.jsonl"
    lines = parent.read_bytes().count(b"\n")
    broken.write_bytes(parent.read_bytes() + resumed_line(parent, options={"ttl": ttl}, continues_at=lines))
    with pytest.raises(UsageError, match=r"^this version of Aeon cannot read the options in the journal"):
        Fork(broken, 2, two_passes())


def test_a_journal_with_a_superseded_beginning_is_refused(parent: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(parent.read_bytes() + resumed_line(parent, options={}, continues_at=0) * 2)
    with pytest.raises(UsageError, match="has no start"):
        Fork(broken, 1, two_passes())


def test_a_renamed_journal_is_named_as_it_is_now(parent: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_bytes(parent.read_bytes())
    assert forked(renamed, tmp_path / "f.jsonl")[2][0]["parent"]["run_id"] == "renamed"
